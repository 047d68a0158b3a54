"""The traffic model against hand-computed nests, and its footprints against counting."""

from itertools import product
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.schedule.traffic import TiledAccess, TiledLoop, footprints, traffic

ROW, COLUMN, DEPTH = (("i", 1),), (("j", 1),), (("k", 1),)
MATMUL = (TiledAccess((ROW, COLUMN), 4), TiledAccess((ROW, DEPTH), 4), TiledAccess((DEPTH, COLUMN), 4))
PLAIN = (("i", 64, 1), ("j", 64, 1), ("k", 64, 1))
BLOCKED = (("i", 4, 16), ("j", 4, 16), ("k", 64, 1), ("i", 16, 1), ("j", 16, 1))


def test_a_matmul_that_fits_moves_each_matrix_once() -> None:
    assert traffic(PLAIN, MATMUL, (49152, 1 << 20)) == (3 * 16384, 3 * 16384)


def test_a_plain_matmul_streams_one_matrix_for_each_row() -> None:
    assert traffic(PLAIN, MATMUL, (1024,)) == (16384 + 16384 + 64 * 16384,)


def test_a_register_block_streams_both_factors_once_for_each_block() -> None:
    # inside k one 16x16 block of C, a column of A, a row of B: 1024 + 64 + 64 bytes, and only that fits
    assert traffic(BLOCKED, MATMUL, (2048,)) == (16384 + 16 * 4096 + 16 * 4096,)


def test_a_larger_memory_keeps_a_panel_of_the_left_factor() -> None:
    # inside k 1024 + 4096 + 4096 bytes fit, inside the j blocks 4096 + 4096 + 16384 do not
    assert traffic(BLOCKED, MATMUL, (16384,)) == (16384 + 16384 + 4 * 16384,)


def test_an_accumulator_crosses_twice() -> None:
    accumulating = (TiledAccess((ROW, COLUMN), 4, passes=2), *MATMUL[1:])
    assert traffic(PLAIN, accumulating, (1 << 20,)) == (4 * 16384,)


def test_neighbouring_windows_share_their_halo() -> None:
    # y[p] += x[p+r] * w[r]: inside r 4 + 12 + 12 bytes fit; x then moves 8 + 3 - 1 elements in all
    window = (TiledAccess(((("p", 1),),), 4), TiledAccess(((("p", 1), ("r", 1)),), 4), TiledAccess(((("r", 1),),), 4))
    assert traffic((("p", 8, 1), ("r", 3, 1)), window, (32,)) == (32 + 40 + 12,)


def test_a_memory_smaller_than_a_point_holds_a_point() -> None:
    assert traffic((("i", 8, 1),), (TiledAccess((ROW,), 4),), (0,)) == (32,)


def test_lines_round_the_contiguous_dimension_only() -> None:
    loops = (("j", 20, 1), ("i", 4, 1))
    assert footprints(loops, TiledAccess((ROW, COLUMN), 4), 64) == (4 * 128, 4 * 64, 64)
    assert footprints(loops, TiledAccess((COLUMN, ROW), 4), 64) == (20 * 64, 64, 64)
    assert footprints(loops, TiledAccess((ROW, (("j", 32),)), 4), 64) == (4 * 20 * 64, 4 * 64, 64)


def test_a_scan_along_a_line_moves_the_line_once() -> None:
    assert traffic((("i", 4, 1), ("j", 16, 1)), (TiledAccess((ROW, COLUMN), 4),), (64,), 64) == (256,)


def test_a_loop_without_trips_moves_nothing_and_a_scalar_moves_itself() -> None:
    assert traffic((("i", 0, 1), ("j", 4, 1)), (TiledAccess((ROW, COLUMN), 4),), (64, 128)) == (0, 0)
    assert traffic((("i", 9, 1),), (TiledAccess((), 8),), (64,)) == (8,)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("pqr"), st.integers(1, 5), st.integers(1, 7)), min_size=1, max_size=4),
    st.lists(st.lists(st.tuples(st.sampled_from("pqr"), st.integers(-3, 5)), max_size=3), min_size=1, max_size=2),
)
def test_footprints_are_exact_on_boxes_whose_dimensions_share_no_loop(
    loops: list[TiledLoop], terms: list[list[tuple[str, int]]]
) -> None:
    first = dict(terms[0])
    dims = [tuple(first.items()), *(tuple((n, c) for n, c in dict(d).items() if n not in first) for d in terms[1:])]
    access = TiledAccess(tuple(dims), 4)
    expected = tuple(4 * prod(_counted(loops[depth:], dim) for dim in dims) for depth in range(len(loops) + 1))
    assert footprints(tuple(loops), access) == expected


def _counted(loops: list[TiledLoop], dim: tuple[tuple[str, int], ...]) -> int:
    factors = [step * dict(dim).get(name, 0) for name, _, step in loops]
    points = product(*(range(trips) for _, trips, _ in loops))
    return len({sum(f * x for f, x in zip(factors, point, strict=True)) for point in points})
