"""Where loops stand: what is left of them, where they end, and which elements are touched from there."""

from __future__ import annotations

from dovetail.ir.index import Condition, constant, variable
from dovetail.schedule.placed.standing import Standing, lower, span, upper

T = variable("t")
RANGES = {"t": (0, 2)}


def test_a_loop_that_ends_inside_its_last_tile_is_partial_there() -> None:
    last = Standing(T * 4, 4, 10)
    assert last.is_partial(RANGES)
    assert last.valid(RANGES) == (constant(4), constant(10) - T * 4)
    even = Standing(T * 4, 4, 12)
    assert not even.is_partial(RANGES)
    assert even.valid(RANGES) == (constant(4),)


def test_a_tile_that_may_begin_behind_the_end_asks_whether_it_exists() -> None:
    assert Standing(T * 4, 4, 8).exists(RANGES) == (Condition(constant(7) - T * 4),)
    assert Standing(T * 4, 4, 9).exists(RANGES) == ()


def test_a_window_covers_what_its_loops_reach_together() -> None:
    spot = {"p": Standing(T * 4, 4, 12), "r": Standing(constant(0), 3, 3)}
    found = span(variable("p") * 2 + variable("r"), spot, 25, RANGES)
    assert (found.low, found.extent) == (T * 8, 9)
    assert found.valid == (constant(9),)


def test_a_span_is_as_long_as_the_shorter_of_its_loop_and_its_dimension() -> None:
    spot = {"i": Standing(T * 4, 4, 10)}
    assert span(variable("i"), spot, 10, RANGES).valid == (constant(4), constant(10) - T * 4)
    guarded = span(variable("i") - 1, {"i": Standing(T * 4, 4, 12)}, 10, RANGES)
    assert guarded.low == T * 4 - 1
    assert guarded.valid == (constant(4), constant(11) - T * 4)


def test_values_lie_between_the_smallest_and_the_largest() -> None:
    assert (lower(constant(7) - T * 3, RANGES), upper(constant(7) - T * 3, RANGES)) == (1, 7)
