"""Default plans for machines that need not be this one: they can be built, whatever the shape."""

from __future__ import annotations

import pytest

from dovetail.ir.nest import Fetch, walk
from dovetail.ir.plan import Tile
from dovetail.pipeline import program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.schedule.machine import machine_of
from dovetail.targets.load import load_target

SHAPES = ((512, 1, 512), (64, 1, 1216), (1024, 2, 512), (512, 4, 512), (35, 70, 2048), (1000, 1000, 1000), (1, 64, 64))


def product(m: int, n: int, k: int, role: str = "in") -> str:
    head = f"{role} a: f32[{m}, {k}]  in b: f32[{k}, {n}]  out c: f32[{m}, {n}]"
    return f"{head}\nfor i<{m}, j<{n}, l<{k}: c[i, j] += a[i, l] * b[l, j]"


@pytest.mark.parametrize("role", ["in", "const"])
@pytest.mark.parametrize("target", ["generic", "x86-64-v3", "x86-64-v4", "znver4"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_plan_of_a_product_becomes_a_nest(shape: tuple[int, int, int], target: str, role: str) -> None:
    machine, flat = load_target(target), collapse(program(product(*shape, role)))
    assert build_nest(flat, default_plan(flat, machine, 2), machine).body


def test_a_large_result_is_fetched_and_a_small_one_is_not() -> None:
    machine = load_target("x86-64-v3")
    for size, expected in ((512, True), (32, False)):
        flat = collapse(program(product(size, size, size)))
        nest = build_nest(flat, default_plan(flat, machine, 1), machine)
        assert any(isinstance(node, Fetch) and node.write for node in walk(nest.body)) is expected


def test_little_work_stays_on_one_core() -> None:
    machine = load_target("x86-64-v3")
    parallel = [default_plan(collapse(program(product(n, n, n))), machine, 2).is_parallel for n in (8, 256)]
    assert parallel == [False, True]


def test_a_sum_that_never_leaves_the_registers_is_not_fetched() -> None:
    text = """in a: f32[300, 100]  in b: f32[100, 300]  out c: f32[300, 300]  temp t: f32[300, 300]
for i<300, j<300, l<100: t[i, j] += a[i, l] * b[l, j]
for i<300, j<300: c[i, j] = max(t[i, j], 0.0)"""
    machine, flat = load_target("x86-64-v3"), collapse(program(text))
    nest = build_nest(flat, default_plan(flat, machine, 2), machine)
    assert not any(isinstance(node, Fetch) and node.place.buffer == "t" for node in walk(nest.body))


def test_one_core_alone_keeps_its_block_to_less_than_half_of_the_second_cache() -> None:
    machine = load_target("x86-64-v3")
    near = machine.caches[1].bytes
    node = default_plan(collapse(program(product(512, 512, 512, "const"))), machine, 1).body[0]
    assert isinstance(node, Tile) and node.unit
    assert 0.2 * near < node.step * 512 * 4 < 0.45 * near


def test_only_a_unit_alone_sees_less_of_the_second_cache() -> None:
    machine = machine_of(load_target("x86-64-v3"))
    alone = machine.for_units(1).usable
    assert machine.for_units(2) is machine
    assert alone[1] < machine.usable[1] and (alone[0], alone[2]) == (machine.usable[0], machine.usable[2])


@pytest.mark.parametrize(
    ("name", "value", "width"),
    [
        ("generic", "select(j - i > 3, -inf, x[i,j])", 1),
        ("x86-64-v3", "select(j - i > 3, -inf, x[i,j])", 4),
        ("x86-64-v4", "select(j - i > 3, -inf, x[i,j])", 8),
        ("x86-64-v3", "select(j // 3 > i, -inf, x[i,j])", 1),
    ],
)
def test_a_statement_that_looks_at_its_loops_counts_along_even_lanes(name: str, value: str, width: int) -> None:
    text = f"in x: f32[8,40]  out y: f32[8,40]\nfor i<8, j<40: y[i,j] = {value}"
    target, flat = load_target(name), collapse(program(text))
    plan = default_plan(flat, target, 2)
    assert [leaf.width for leaf in plan.leaves()] == [width]
    assert build_nest(flat, plan, target).body


def held(m: int, n: int, k: int, target: str) -> set[str]:
    """Tensors that the plan of a product lays out anew."""
    flat = collapse(program(product(m, n, k)))
    nodes, found = list(default_plan(flat, load_target(target), 2).body), set[str]()
    while nodes:
        node = nodes.pop()
        if isinstance(node, Tile):
            nodes += node.body
            found |= {hold.tensor for hold in node.holds if hold.digits}
    return found


@pytest.mark.parametrize("target", ["x86-64-v4", "znver5"])
def test_rows_that_even_the_second_cache_loses_before_the_next_sweep_are_laid_out(target: str) -> None:
    assert "b" in held(128, 1024, 1024, target)  # rows 4 KiB apart: a sweep of 1,024 steps has room for 256
    assert "b" in held(64, 2048, 2048, target)


@pytest.mark.parametrize(("target", "ways"), [("x86-64-v3", 128), ("x86-64-v4", 256), ("znver5", 256)])
def test_caches_hold_as_many_lines_of_one_set_apart_as_their_bytes_say(target: str, ways: int) -> None:
    machine = machine_of(load_target(target))
    assert machine.ways(4096, 1) == ways == machine.caches[1] // 4096
    assert machine.ways(4096) == machine.caches[0] // 4096
    assert not machine.loses(4096, ways) and machine.loses(4096, ways + 1) == bool(machine.ahead_cycles)
    assert not machine.loses(4096 + 64, 2 * ways)


def test_code_that_asks_ahead_pays_for_pages_only_beyond_those_remembered_further_out() -> None:
    machine = machine_of(load_target("znver5"))
    assert machine.paging_cycles(4096, machine.far_pages) == 0.0 < machine.paging_cycles(4096, machine.far_pages + 1)
    assert machine.paging_cycles(784, 1024) == 0.0
