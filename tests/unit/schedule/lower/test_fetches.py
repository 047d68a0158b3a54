"""Blocks of panels are asked for while the block before them is used."""

from collections.abc import Iterator, Mapping

from dovetail.ir.nest import Alloc, Fetch, Loop, Nest, Node, Parallel, When
from dovetail.ir.parse import parse
from dovetail.ir.plan import Plan
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
