"""Working sets against the published rows, against isl, and against counting by hand."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.poly.reuse import Access, Index, WorkingSet, box_working_sets, has_closed_form
from dovetail.poly.reuse_isl import isl_working_sets
from dovetail.schedule.reuse import bytes_per_level, cost, working_sets
from tests.unit.schedule.published_rows import CAPACITIES, WEIGHTS, Row, accesses_in, load_rows

Analysis = Callable[[tuple[int, ...], tuple[Access, ...]], tuple[WorkingSet, ...]]

ROWS = load_rows()
POINTWISE = tuple(row for row in ROWS if row.taps == 1)
WINDOWED = tuple(row for row in ROWS if row.taps == 3)
UNIT_ORDER = ("oj", "KT", "CT", "oi", "k", "c", "kj", "ki")
UNIT_EXTENTS = (56, 1, 1, 56, 64, 64, 1, 1)
UNIT_PAIRS = [(5, 127), (131, 4159), (4226, 11136), (11266, 398336)]


@pytest.mark.parametrize("analyse", [box_working_sets, isl_working_sets])
def test_both_analyses_give_the_published_pairs_of_the_unit_check(analyse: Analysis) -> None:
    found = analyse(UNIT_EXTENTS, accesses_in(UNIT_ORDER, 1))
    assert sorted((w.nearest, w.farthest) for w in found) == UNIT_PAIRS


def test_the_unit_check_lands_on_the_published_bytes_per_level() -> None:
    found = working_sets(UNIT_EXTENTS, accesses_in(UNIT_ORDER, 4))
    assert bytes_per_level(found, CAPACITIES) == (34592, 89608, 1593344, 0)


def test_the_data_holds_sixty_pointwise_and_sixteen_windowed_rows() -> None:
    assert (len(POINTWISE), len(WINDOWED)) == (60, 16)


@pytest.mark.parametrize("row", POINTWISE, ids=lambda row: f"{row.layer}-{'.'.join(row.order)}")
def test_every_pointwise_row_is_reproduced_exactly(row: Row) -> None:
    accesses = row.accesses()
    assert has_closed_form(row.extents, accesses)
    found = bytes_per_level(working_sets(row.extents, accesses), CAPACITIES)
    assert found == row.level_bytes
    assert cost(found, WEIGHTS) == row.cost


def test_the_difference_to_the_windowed_rows_is_reported(record_property: Callable[[str, object], None]) -> None:
    report = {}
    for row in WINDOWED:
        found = bytes_per_level(working_sets(row.extents, row.accesses()), CAPACITIES)
        report[row.layer, row.order] = tuple(a - b for a, b in zip(found, row.level_bytes, strict=True))
    for (layer, order), difference in report.items():
        print(f"layer {layer:2} {' '.join(order)}: bytes per level minus published {difference}")
    record_property("windowed_rows", str(report))
    assert len(report) == 16


@st.composite
def projection_nests(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Access, ...]]:
    """A box nest whose subscripts are single loops or mixed-radix pairs of them."""
    extents = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    accesses = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        loops = draw(st.permutations(range(len(extents))))[: draw(st.integers(0, len(extents)))]
        indices = [_unit(len(extents), loop, draw(st.sampled_from((1, -2, 3)))) for loop in loops]
        if len(loops) == 2 and draw(st.booleans()):
            inner, outer = loops
            coefficients = [0] * len(extents)
            coefficients[inner], coefficients[outer] = 1, extents[inner]
            indices = [Index(tuple(coefficients), 7)]
        accesses.append(Access(name, tuple(indices), draw(st.sampled_from((1, 2, 4)))))
    return extents, tuple(accesses)


def _unit(depth: int, loop: int, factor: int) -> Index:
    return Index(tuple(factor if n == loop else 0 for n in range(depth)))


@settings(max_examples=150, deadline=None)
@given(projection_nests())
def test_isl_agrees_with_the_closed_form_on_box_nests(nest: tuple[tuple[int, ...], tuple[Access, ...]]) -> None:
    assert has_closed_form(*nest)
    assert isl_working_sets(*nest) == box_working_sets(*nest)


@st.composite
def affine_nests(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Access, ...]]:
    extents = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    index = st.builds(Index, st.tuples(*[st.integers(-1, 2)] * len(extents)), st.integers(0, 1))
    access = st.builds(Access, st.sampled_from("ab"), st.tuples(index))
    return extents, tuple(draw(st.lists(access, min_size=1, max_size=3)))


@settings(max_examples=100, deadline=None)
@given(affine_nests())
def test_isl_agrees_with_counting_point_by_point_on_any_affine_nest(
    nest: tuple[tuple[int, ...], tuple[Access, ...]],
) -> None:
    assert isl_working_sets(*nest) == _by_counting(*nest)


def test_a_guard_takes_points_away() -> None:
    triangle = (Access("x", (Index((0, 1)),)),)
    assert isl_working_sets((3, 3), triangle, "i1 <= i0") == (WorkingSet("x", 0, 1, 2),)


def test_a_window_has_no_closed_form_and_a_blocked_subscript_has() -> None:
    assert not has_closed_form((8, 3), (Access("x", (Index((1, 1)),)),))
    assert not has_closed_form((8, 8), (Access("x", (Index((1, 0)), Index((1, 0)))),))
    assert has_closed_form((4, 8), (Access("x", (Index((8, 1)),)),))


def test_a_nest_without_iterations_reuses_nothing() -> None:
    accesses = (Access("x", (Index((1, 0)),)),)
    assert box_working_sets((0, 4), accesses) == isl_working_sets((0, 4), accesses) == ()


def test_a_set_that_exactly_fills_a_level_fits_and_equal_distances_count_twice() -> None:
    assert bytes_per_level((WorkingSet("x", 0, 100, 100), WorkingSet("y", 0, 30, 101)), (100, 200)) == (230, 101, 0)


def test_greedy_filling_takes_room_away_from_later_sets() -> None:
    sets = (WorkingSet("x", 0, 60, 90), WorkingSet("y", 0, 30, 500))
    assert bytes_per_level(sets, (100, 200), greedy=True) == (90, 90, 500)


def _by_counting(extents: tuple[int, ...], accesses: tuple[Access, ...]) -> tuple[WorkingSet, ...]:
    """The definition of a working set, spelled out over all points in execution order."""
    points = list(product(*map(range, extents)))
    distinct = tuple(dict.fromkeys(accesses))

    def element(access: Access, point: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            i.constant + sum(c * x for c, x in zip(i.coefficients, point, strict=True)) for i in access.indices
        )

    def data(start: int, stop: int) -> int:
        return len({(a.array, element(a, point)) for a in distinct for point in points[start:stop]})

    found = []
    for a, b in product(distinct, repeat=2):
        for loop in range(len(extents)) if a.array == b.array else ():
            meets = [
                (s, t)
                for s, p in enumerate(points)
                for t, q in enumerate(points)
                if p[:loop] == q[:loop] and p[loop] < q[loop] and element(a, p) == element(b, q)
            ]
            if not meets:
                continue
            source = meets[0][0]
            targets = [t for s, t in meets if s == source]
            last = min(t for t in targets if points[t][loop] == max(points[u][loop] for u in targets))
            nearest = data(source, last) if targets[0] == last else data(source, targets[0] + 1)
            found.append(WorkingSet(a.array, loop, nearest, data(source, last)))
    return tuple(found)
