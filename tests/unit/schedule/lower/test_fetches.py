"""What comes next is asked for: the next block of panels, the next copy, or a stream a little ahead."""

from collections.abc import Iterator, Mapping

import pytest

from dovetail.ir.nest import Alloc, Call, Fetch, Loop, Nest, Node, Parallel, Place, When, walk
from dovetail.ir.parse import parse
from dovetail.ir.plan import Digit, Hold, Leaf, Plan, Tile
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target

LINE_ELEMENTS = 16
TARGET = load_target("x86-64-v3")


def test_a_constant_larger_than_the_caches_is_asked_for_block_by_block() -> None:
    plan, nest = product(32, 1536, 384)
    assert next(hold for hold in plan.holds if hold.tensor == "b").fetched
    buffer = next(b for b in nest.arguments if b.name == "b")
    panels, depth, width = (extent.const for extent in buffer.shape)
    asked = {(panel * depth + row) * width + at for panel, row, at in places(nest.body, buffer.name, {})}
    lines = {element // LINE_ELEMENTS for element in asked}
    everything = range(panels * depth * width // LINE_ELEMENTS)
    first = min(lines)  # nobody asks for the first block
    assert 0 < first < len(everything) / 4
    assert lines >= set(everything[first:])


def test_with_a_run_time_number_of_rows_all_that_follows_is_asked_for_in_a_few_rounds() -> None:
    plan, nest = product("n", 1536, 384, "size n in 1..4096 about 128\n")
    assert next(hold for hold in plan.holds if hold.tensor == "b").fetched
    buffer = next(b for b in nest.arguments if b.name == "b")
    panels, depth, width = (extent.const for extent in buffer.shape)
    for rows, least in ((128, 0.9), (48, 0.9), (16, 0.4)):
        found = places(nest.body, buffer.name, {"n": rows})
        asked = {(panel * depth + row) * width + at for panel, row, at in found}
        assert len({element // LINE_ELEMENTS for element in asked}) > least * panels * depth * width / LINE_ELEMENTS


def test_a_constant_that_stays_near_is_not_asked_for() -> None:
    plan, _ = product(64, 48, 64)
    assert not any(hold.fetched for hold in plan.holds)


@pytest.mark.parametrize("columns", [96, 96 + 7])
@pytest.mark.parametrize(("rows", "depth"), [(24, 100), (8, 64), (90, 50)])
def test_all_that_the_next_copy_reads_is_asked_for_while_this_one_is_used(rows: int, depth: int, columns: int) -> None:
    width, text = 24, f"in a: f32[{rows},{depth}]  in b: f32[{depth},{columns}]  out c: f32[{rows},{columns}]"
    program = parse(f"{text}\nfor i<{rows}, j<{columns}, k<{depth}: c[i,j] += a[i,k] * b[k,j]")
    copy = Hold("b", "memory", (Digit(1, width), Digit(0), Digit(1, 1, width)), fetched=True)
    sums = Tile("k1", ((0, "k"),), 1, (Leaf(0, "j", 8),))
    tiles = Tile("i2", ((0, "i"),), 4, (sums,), holds=(Hold("c", "registers"),))
    nest = build_nest(program, Plan((Tile("j3", ((0, "j"),), width, (tiles,), holds=(copy,)),)), TARGET)
    asked = set(places(nest.body, "b", {}))
    for row in range(depth):
        for first in range(width, columns // width * width, LINE_ELEMENTS):
            assert any((row, column) in asked for column in range(first, first + LINE_ELEMENTS)), (row, first)
    assert min(column for _, column in asked) >= width  # nobody asks for the first copy
    per_row = width // LINE_ELEMENTS + 1 + 1
    assert len(asked) <= per_row * depth * (columns // width) * 1.5


def test_a_copy_that_is_the_only_one_asks_for_nothing() -> None:
    program = parse("in a: f32[8,64]  in b: f32[64,24]  out c: f32[8,24]\nfor i<8, j<24, k<64: c[i,j] += a[i,k]*b[k,j]")
    copy = Hold("b", "memory", (Digit(1, 24), Digit(0), Digit(1, 1, 24)), fetched=True)
    plan = Plan((Tile("j1", ((0, "j"),), 24, (Tile("i1", ((0, "i"),), 4, (Leaf(0, "j", 8),)),), holds=(copy,)),))
    assert not list(places(build_nest(program, plan, TARGET).body, "b", {}))


@pytest.mark.parametrize(("rows", "block"), [(64, True), (2048, False)])
def test_a_block_of_rows_is_asked_for_where_it_stays_near_else_what_comes_soon(rows: int, block: bool) -> None:
    depth, panel = 256, 4
    program = parse(
        f"const a: f32[{rows},{depth}]  in b: f32[{depth},48]  out c: f32[{rows},48]\n"
        f"for i<{rows}, j<48, k<{depth}: c[i,j] += a[i,k] * b[k,j]"
    )
    held = Hold("a", "memory", (Digit(0, panel), Digit(1), Digit(0, 1, panel)), ahead=True, fetched=True)
    sums = Tile("k1", ((0, "k"),), 1, (Leaf(0, "j", 8),))
    tiles = Tile("i2", ((0, "i"),), panel, (sums,), holds=(Hold("c", "registers"),))
    plan = Plan((Tile("k4", ((0, "k"),), depth // 2, (Tile("j3", ((0, "j"),), 24, (tiles,)),)),), (held,))
    nest = build_nest(program, plan, TARGET)
    operands = [operand for node in walk(nest.body) if isinstance(node, Call) for operand in node.operands]
    read = {o.indices for o in operands if isinstance(o, Place) and o.buffer == "a"}
    asked = [n.place.indices for n in walk(nest.body) if isinstance(n, Fetch) and n.place.buffer == "a"]
    ahead = {(f[1] - r[1]).const for f in asked for r in read if f[0] == r[0] and (f[1] - r[1]).is_constant}
    assert asked
    assert (1536 // (4 * panel) in ahead) is not block


@pytest.mark.parametrize(("columns", "far"), [(640, False), (6400, True)])
def test_copies_are_asked_for_of_what_the_cores_do_not_keep_near(columns: int, far: bool) -> None:
    program = parse(
        f"const a: f32[512,256]  in b: f32[256,{columns}]  out c: f32[512,{columns}]\n"
        f"for i<512, j<{columns}, k<256: c[i,j] += a[i,k] * b[k,j]"
    )
    (copy,) = (hold for hold in default_plan(program, TARGET, 2).all_holds() if hold.tensor == "b")
    assert copy.fetched is far


def product(rows: int | str, columns: int, depth: int, sizes: str = "") -> tuple[Plan, Nest]:
    program = parse(
        f"{sizes}in a: f32[{rows},{depth}]  const b: f32[{depth},{columns}]  out c: f32[{rows},{columns}]\n"
        f"for i<{rows}, j<{columns}, k<{depth}: c[i,j] += a[i,k] * b[k,j]"
    )
    plan = default_plan(program, TARGET, 1)
    return plan, build_nest(program, plan, TARGET)


def places(nodes: tuple[Node, ...], buffer: str, at: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """Every place of ``buffer`` that is asked for, by running all loops."""
    for node in nodes:
        if isinstance(node, Fetch) and node.place.buffer == buffer:
            yield tuple(index.evaluate(at) for index in node.place.indices)
        elif isinstance(node, Loop):
            low, high = max(i.evaluate(at) for i in node.lower), min(i.evaluate(at) for i in node.upper)
            for value in range(low, high, node.step):
                yield from places(node.body, buffer, {**at, node.var: value})
        elif isinstance(node, Parallel):
            for value in range(min(i.evaluate(at) for i in node.extent)):
                yield from places(node.body, buffer, {**at, node.var: value})
        elif isinstance(node, When):
            holds = all(c.holds(at) for c in node.conditions)
            yield from places(node.body if holds else node.otherwise, buffer, at)
        elif isinstance(node, Alloc):
            yield from places(node.body, buffer, at)
