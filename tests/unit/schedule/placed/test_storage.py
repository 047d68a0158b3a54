"""Buffers of held tensors: images where an instruction can walk them, packed otherwise; blocks, layouts, alignment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import PlanError
from dovetail.ir.index import Access, Index, constant, variable
from dovetail.schedule.placed.standing import Spot, Standing
from dovetail.schedule.placed.storage import Store, Wanted, across, coordinate, store_for, walk_strides
from dovetail.targets.load import load_target
from dovetail.targets.model import Target
from tests.unit.schedule.placed.small import machine

ROW, K, P, Q, R, S = (variable(name) for name in "ikpqrs")


def wanted(
    access: tuple[Index, ...], needles: tuple[tuple[str, ...], ...], strides: tuple[int | str, ...], memory: str = "pad"
) -> Wanted:
    return Wanted("a", Access("x", access), memory, DTYPES["i8"], needles, strides, None, False)


def spot(**lefts: int) -> Spot:
    return {name: Standing(constant(0), left, 64) for name, left in lefts.items()}


def made(what: Wanted, here: Spot, leaf: Spot, sizes: tuple[int, ...], copies: int = 1, align: int = 1) -> Store:
    return store_for("x_1", what, here, leaf, sizes, aligned(align), copies, {})


def aligned(align: int) -> Target:
    target = machine()
    memories = tuple(replace(m, align=align) if m.name == "pad" else m for m in target.memories)
    return replace(target, memories=memories, digest=f"aligned to {align}")


def shape(store: Store) -> tuple[int, ...]:
    return tuple(extent.const for extent in store.buffer.shape)


def test_what_neighbouring_calls_share_is_held_once() -> None:
    window = wanted((P + R, K), (("p",), ("k",)), ("ld", 1))
    store = made(window, spot(p=8, r=3, k=16), spot(p=8, r=1, k=4), (64, 16))
    assert shape(store) == (10, 16)
    assert walk_strides(store, window, spot(p=8, r=1, k=4)) == (16, 1)


def test_a_buffer_has_its_axes_in_the_order_in_which_they_are_walked() -> None:
    turned = wanted((K, ROW), (("i",), ("k",)), ("ld", 1))
    store = made(turned, spot(i=8, k=16), spot(i=8, k=4), (16, 64))
    assert shape(store) == (8, 16)
    assert [axis.dimension for axis in store.axes] == [1, 0]


def test_a_buffer_keeps_the_order_of_its_tensor_where_any_distance_will_do() -> None:
    column = wanted((ROW, K), (("i",),), ("step",))
    store = made(column, spot(i=8, k=16), spot(i=8, k=1), (64, 64))
    assert [axis.dimension for axis in store.axes] == [0, 1]
    assert walk_strides(store, column, spot(i=8, k=1)) == (16,)


def test_loops_that_are_walked_as_one_are_packed() -> None:
    fused = wanted((P + R, Q + S), (("p", "q"),), (1,))
    calls = spot(p=4, q=5, r=1, s=1)
    assert [axis.dimension for axis in made(fused, calls, calls, (64, 64)).axes] == [0, 1]
    over_windows = made(fused, spot(p=4, q=5, r=3, s=3), calls, (64, 64))
    assert [axis.loop for axis in over_windows.axes] == ["r", "s", "p", "q"]
    assert shape(over_windows) == (3, 3, 4, 5)


def test_the_elements_of_a_dense_call_lie_together() -> None:
    dense = wanted((ROW, K), (("i",), ("k",)), ())
    store = made(dense, spot(i=8, k=12), spot(i=4, k=4), (64, 64))
    assert shape(store) == (2, 3, 4, 4)
    there = {"i": Standing(constant(4), 4, 64), "k": Standing(constant(8), 4, 64)}
    at = [coordinate(axis, dense.access, spot(i=8, k=12), there) for axis in store.axes]
    assert at == [constant(1), constant(2), constant(0), constant(0)]


def test_a_loop_that_the_tensor_does_not_have_repeats_its_elements() -> None:
    repeated = wanted((K,), (("i",), ("k",)), ("ld", 1))
    store = made(repeated, spot(i=4, k=8), spot(i=4, k=8), (64,))
    assert shape(store) == (4, 8)
    assert store.axes[0].steps == (0,)


def test_what_an_instruction_cannot_walk_is_refused_with_the_distances() -> None:
    uneven = wanted((ROW * 2, K), (("i", "k"),), (1,))
    with pytest.raises(PlanError, match="its elements would lie"):
        made(replace(uneven, strides=(2,)), spot(i=4, k=4), spot(i=4, k=4), (64, 64))


def test_a_layout_with_units_spreads_a_block_over_them() -> None:
    target = load_target("sw26010")
    spread = next(layout for layout in target.layouts if layout.name == "spread")
    block = Wanted("a", Access("x", (ROW, K)), "ldm", DTYPES["f64"], (("i",), ("k",)), (), spread, False)
    store = store_for("x_1", block, spot(i=64, k=32), spot(i=32, k=32), (64, 64), target, 2, {})
    assert store.grid == 2
    assert shape(store)[:4] == (8, 8, 2, 2)
    assert store.block == 2


def test_two_copies_are_the_first_axis() -> None:
    rows = wanted((ROW, K), (("i",), ("k",)), ("ld", 1))
    assert shape(made(rows, spot(i=8, k=4), spot(i=8, k=4), (64, 64), copies=2)) == (2, 8, 4)


def test_calls_start_at_multiples_of_the_alignment() -> None:
    rows = wanted((ROW, K), (("i",), ("k",)), ("ld", 1))
    calls = spot(i=1, k=6)
    assert made(rows, spot(i=8, k=6), calls, (64, 64)).strides == (6, 1)
    store = made(rows, spot(i=8, k=6), calls, (64, 64), copies=2, align=16)
    assert store.strides == (16, 1)
    assert [s.const for s in store.buffer.strides] == [128, 16, 1]


def test_calls_along_an_aligned_row_lie_in_parts_of_their_own() -> None:
    rows = wanted((K,), (("k",),), (1,))
    store = made(rows, spot(k=12), spot(k=4), (64,), align=16)
    assert shape(store) == (3, 4)
    assert store.strides == (16, 1)
    assert made(rows, spot(k=48), spot(k=16), (64,), align=16).strides == (1,)


def test_parts_and_what_is_inside_them_are_counted_apart_on_the_way() -> None:
    dense = wanted((K,), (("i",), ("k",)), ())
    far = made(dense, spot(i=1, k=12), spot(i=1, k=4), (64,))
    near = made(dense, spot(i=1, k=4), spot(i=1, k=4), (64,))
    many, inner = (axis for axis in far.axes if axis.loop == "k")
    short = next(axis for axis in near.axes if axis.loop == "k")
    assert not many.is_inner
    assert [across(short, axis, far, dense.access, spot(i=1, k=4)) for axis in (many, inner)] == [0, 1]
    assert [across(many, axis, far, dense.access, spot(i=1, k=12)) for axis in (many, inner)] == [1, 0]
