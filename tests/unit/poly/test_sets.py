"""Questions about integer sets: right answers, smallest witnesses, bounded effort."""

import pytest

from dovetail.base.errors import LimitError
from dovetail.poly import sets
from dovetail.poly.sets import (
    first_collision,
    first_meeting,
    first_missing,
    first_point,
    is_empty,
    is_injective,
    is_subset,
    map_text,
    set_text,
)


def test_the_first_point_is_the_smallest() -> None:
    assert first_point(set_text(["p", "r"], ["0 <= p < 56", "0 <= r < 4", "p + r >= 58"])) == (55, 3)


def test_a_set_without_integer_points_is_empty() -> None:
    assert is_empty(set_text(["i"], ["1 <= 2*i", "2*i <= 1"]))
    assert first_point(set_text([], ["1 = 1"])) == ()
    assert first_point(set_text([], ["1 = 2"])) is None


def test_hidden_variables_are_projected_out() -> None:
    even = set_text(["e"], ["0 <= i < 5", "e = 2*i"], ["i"])
    assert first_missing("{ [e] : 0 <= e < 10 }", (even,)) == (1,)


def test_parts_that_cover_leave_nothing_missing() -> None:
    whole = set_text(["i"], ["0 <= i < 10"])
    assert first_missing(whole, ("{ [i] : i < 5 }", "{ [i] : i >= 5 }")) is None
    assert first_missing(whole, ("{ [i] : i < 5 }", "{ [i] : i > 6 }")) == (5,)
    assert is_subset("{ [i] : 2 <= i < 4 }", whole)
    assert not is_subset("{ [i] : 2 <= i < 11 }", whole)


def test_a_collision_names_two_points() -> None:
    assert first_collision(map_text(["i", "j"], ["4*i + j"], ["0 <= i < 9", "0 <= j < 5"])) == ((0, 4), (1, 0))
    assert is_injective(map_text(["i", "j"], ["4*i + j"], ["0 <= i < 9", "0 <= j < 4"]))
    assert is_injective(map_text(["i"], ["floor((i)/4)", "(i) mod 4"], ["0 <= i < 99"]))


def test_images_that_meet_give_a_point_of_each() -> None:
    one, other = "{ [i] -> [i] : 0 <= i < 5 }", "{ [j] -> [j + 4] : 0 <= j < 5 }"
    assert first_meeting(one, other) == ((4,), (0,))
    assert first_meeting(one, "{ [j] -> [j + 5] : 0 <= j < 5 }") is None
    assert first_meeting(one, one, "{ [i] -> [i] }") is None


def test_a_question_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "MAX_OPERATIONS", 50)
    with pytest.raises(LimitError, match="takes too long"):
        first_collision(map_text(["i", "j"], ["floor((4*i + j)/7)", "(i + j) mod 5"], ["0 <= i < 61", "0 <= j < 5"]))
    monkeypatch.undo()
    assert first_point("{ [i] : 3 <= i < 5 }") == (3,)
