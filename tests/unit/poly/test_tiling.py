"""Tilings against enumeration of their points."""

from __future__ import annotations

from itertools import product

import pytest

from dovetail.poly.tiling import Group, Tiling, covers_once, determines, separate


def test_tiles_of_fused_loops_cover_every_point_once() -> None:
    assert covers_once(Tiling(("7", "5", "3"), (Group((0, 1), 4), Group((2,), 16))))
    assert covers_once(Tiling(("7", "5"), (Group((), 16),)))
    assert covers_once(Tiling(("s0", "5"), (Group((0, 1), 4),), (("s0", 1, 512),)))


def test_a_loop_in_two_groups_is_met_more_than_once() -> None:
    assert not covers_once(Tiling(("7",), (Group((0,), 4), Group((0,), 2))))


def test_fusing_over_an_inner_run_time_extent_is_not_affine() -> None:
    assert not Tiling(("5", "s0"), (Group((0, 1), 4),), (("s0", 1, 9),)).is_affine
    assert Tiling(("s0", "5"), (Group((0, 1), 4),), (("s0", 1, 9),)).is_affine


@pytest.mark.parametrize(("size", "extent", "expected"), [(8, 8, False), (2, 8, True), (4, 2, True), (3, 9, False)])
def test_an_index_determines_a_loop_only_within_a_tile(size: int, extent: int, expected: bool) -> None:
    """``2*i + j``: one element for (0, 2) and (1, 0), unless a tile is too short to hold both."""
    tiling = Tiling(("6", str(extent)), (Group((0,), 4), Group((1,), size)))
    asked = determines(tiling, ("2*h0 + h1",), ("h0", "h1"))
    assert asked == expected == _by_enumeration(size, extent)


def _by_enumeration(size: int, extent: int) -> bool:
    seen: dict[tuple[int, int, int], tuple[int, int]] = {}
    for i, j in product(range(6), range(extent)):
        key = (i // 4, j // size, 2 * i + j)
        if seen.setdefault(key, (i, j)) != (i, j):
            return False
    return True


def test_padded_points_of_an_index_of_their_own_meet_no_live_element() -> None:
    tiling = Tiling(("10", "3"), (Group((0,), 8), Group((1,), 4)))
    assert separate(tiling, ("u0", "u1"), 0)
    assert separate(tiling, ("u0", "u1"), 1)
    assert not separate(tiling, ("u0 + u1",), 1), "u0 + 3 is also reached by live points"
    assert not separate(tiling, ("u0",), 1)
