"""Scatters against loops in Python: the last one stays, or all are joined."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.base.errors import CallError, OperatorError
from tests.unit.ops.single import Array, apply, whole

JOINS: dict[str, Callable[[Array, Array], Array]] = {
    "none": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reduction", JOINS)
def test_elements_go_where_the_indices_say(reduction: str, axis: int) -> None:
    x, updates = whole(3, 4, 5), whole(2, 4, 3, low=1, high=7)
    indices = whole(2, 4, 3, dtype="int64", low=-3, high=3)
    expected = x.copy()
    for place in np.ndindex(*indices.shape):
        target = list(place)
        target[axis] = indices[place]
        expected[tuple(target)] = JOINS[reduction](expected[tuple(target)], updates[place])
    found = apply("scatter_elements", x, indices, updates, axis=axis, reduction=reduction)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("reduction", JOINS)
@pytest.mark.parametrize("depth", [1, 2])
def test_slices_go_where_the_rows_of_indices_say(reduction: str, depth: int) -> None:
    x, indices = whole(4, 3, 2), whole(5, depth, dtype="int32", low=-3, high=3)
    updates = whole(5, *x.shape[depth:], low=1, high=7)
    expected = x.copy()
    for row, place in enumerate(indices):
        expected[tuple(place)] = JOINS[reduction](expected[tuple(place)], updates[row])
    np.testing.assert_array_equal(apply("scatter_nd", x, indices, updates, reduction=reduction), expected)


def test_nothing_is_changed_where_nothing_is_written() -> None:
    x = whole(3, 4)
    empty = np.zeros((0, 4), np.int64), np.zeros((0, 4), np.float32)
    np.testing.assert_array_equal(apply("scatter_elements", x, *empty), x)


def test_a_place_outside_is_an_error_when_the_program_runs() -> None:
    with pytest.raises(CallError):
        apply("scatter_elements", whole(3), np.array([3]), whole(1))
    with pytest.raises(OperatorError, match="cannot join"):
        apply("scatter_elements", whole(3), np.array([1]), whole(1), reduction="mean")


def test_unpooling_puts_elements_back_among_zeros() -> None:
    x, indices = np.array([[[[5, 6], [7, 8]]]], np.float32), np.array([[[[5, 7], [13, 15]]]])
    expected = np.zeros((1, 1, 4, 4))
    expected.reshape(-1)[indices.reshape(-1)] = x.reshape(-1)
    np.testing.assert_array_equal(apply("unpool", x, indices, shape=(1, 1, 4, 4)), expected)
