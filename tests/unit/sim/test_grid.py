"""Operands spread over a grid of units, and copies that reach a row of it."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import SimulationError
from dovetail.ir.index import Condition, variable
from dovetail.ir.nest import Nest, Node, Parallel, When
from dovetail.sim.functional import simulate
from dovetail.sim.timed import simulate_time
from tests.unit.sim.machines import alloc, bounds, buffer, call, machine, now, place


def product(m: int, n: int, p: int, *, rows: int) -> Nest:
    """y = a @ b on buffers made for ``rows`` rows; only ``m`` of them are there."""
    held = (
        buffer("s", "local", "i32", 2, 2, rows // 2, p // 2),
        buffer("w", "local", "i32", 2, 2, p // 2, n // 2),
        buffer("acc", "local", "i32", 2, 2, rows // 2, n // 2),
    )
    first, second, sums = place("s", 0, 0, 0, 0), place("w", 0, 0, 0, 0), place("acc", 0, 0, 0, 0)
    body: tuple[Node, ...] = (
        call("clear", first, m=rows, n=p),
        *now("t0", call("get", first, place("a", 0, 0), ld=p, m=m, n=p)),
        *now("t1", call("get", second, place("b", 0, 0), ld=n, m=p, n=n)),
        call("clear", sums, m=rows, n=n),
        call("multiply", sums, first, second, m=rows, n=n, p=p),
        *now("t2", call("put", place("y", 0, 0), sums, ld=n, m=m, n=n)),
    )
    arguments = (
        buffer("a", "memory", "i32", m, p),
        buffer("b", "memory", "i32", p, n),
        buffer("y", "memory", "i32", m, n),
    )
    return Nest(arguments, (), (alloc(held, *body),), ("y",))


@pytest.mark.parametrize(("m", "rows"), [(8, 8), (5, 6), (1, 4)])
def test_a_product_of_spread_operands_is_exact(m: int, rows: int) -> None:
    """A copy of fewer rows than the product takes leaves each unit's part where it was."""
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-9, 10, shape).astype(np.int32) for shape in ((m, 4), (4, 6)))
    found = simulate(product(m, 6, 4, rows=rows), machine("grid"), {"a": a, "b": b})
    np.testing.assert_array_equal(found.arrays["y"], a @ b)
    assert found.peak_bytes["local"] == rows * 4 + 4 * 6 + rows * 6


def test_a_large_spread_product_is_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 10, shape).astype(np.int32) for shape in ((4, 8), (8, 6)))
    nest = product(4, 6, 8, rows=4)
    plain = simulate(nest, machine("grid"), {"a": a, "b": b})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dovetail.sim.large.LEAST_POINTS", 1)
        large = simulate(nest, machine("grid"), {"a": a, "b": b})
    np.testing.assert_array_equal(plain.arrays["y"], a @ b)
    np.testing.assert_array_equal(large.arrays["y"], a @ b)


def test_each_unit_has_room_for_its_part_only() -> None:
    with pytest.raises(SimulationError, match="memory 'local' is full"):
        simulate_time(product(16, 16, 16, rows=16), machine("grid"))


def test_a_call_on_spread_operands_is_one_call() -> None:
    found = simulate_time(product(8, 6, 4, rows=8), machine("grid"))
    copies = (20 + 8 * 4 / 2) + (20 + 4 * 6 / 2) + (20 + 8 * 6 / 2)
    assert found.cycles == 8 + copies + 8 * 6 / 4 + 10 + 8 * 6 * 4 / 16
    assert found.memory("memory").bytes == 4 * (8 * 4 + 4 * 6 + 8 * 6)
    assert found.unit("group").utilisation < 1


def test_its_bytes_pass_all_ports_at_once() -> None:
    found = simulate_time(product(8, 6, 4, rows=8), machine("grid"))
    moved = 4 * (2 * 8 * 4 + 4 * 6 + 8 * 6 + (2 * 8 * 6 + 8 * 4 + 4 * 6) + 8 * 6)
    assert found.memory("local").bytes == moved
    assert found.memory("local").busy_cycles == moved / 16


def own(name: str, *inside: Node) -> Nest:
    """Every cell fetches four elements for itself."""
    where = place("x", variable("v") * 4)
    copies = now("t", call(name, place("s", 0), where, n=4))
    cells = Parallel("cell", "v", bounds(4), (alloc((buffer("s", "local", "i32", 4),), *copies, *inside),))
    return Nest((buffer("x", "memory", "i32", 16),), (), (cells,), ())


def test_a_broadcast_along_a_dimension_reads_once_for_each_of_its_rows() -> None:
    target = machine("grid")
    assert simulate_time(own("own_get"), target).memory("memory").bytes == 4 * 16
    assert simulate_time(own("column_get"), target).memory("memory").bytes == 2 * 16


def test_cells_that_part_before_a_broadcast_meet_in_it() -> None:
    """Cells that differ are timed one by one; a column still makes one request."""
    v = variable("v")
    odd = When((Condition(-v),), now("u", call("own_get", place("s", 0), place("x", 0), n=2)))
    nest = own("column_get", odd)
    found = simulate_time(nest, machine("grid"))
    assert found.memory("memory").bytes == 2 * 16 + 8
    assert found.memory("local").bytes == 4 * 16 + 8
    assert found.cycles == 22 + 21


def test_a_broadcast_from_one_unit_to_others_is_refused() -> None:
    """A nest has no words for whose memory is read."""
    passed = call("pass_on", place("s", 0), place("s", 0), n=4)
    with pytest.raises(SimulationError, match="pass_on sends from the memory 'local' of one cell"):
        simulate(own("own_get", passed), machine("grid"), {"x": np.zeros(16, np.int32)})
