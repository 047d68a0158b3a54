"""Gather and embedding against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import CallError, OperatorError
from tests.unit.ops.single import apply, whole


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_gather_takes_slices_by_number(axis: int, shape: tuple[int, ...]) -> None:
    x = whole(4, 5, 6)
    for dtype in ("int64", "int32"):
        indices = whole(*shape, dtype=dtype, low=-4, high=4)
        np.testing.assert_array_equal(apply("gather", x, indices, axis=axis), np.take(x, indices.astype(int), axis))


def test_a_place_that_is_not_there_is_an_error_in_either_direction() -> None:
    for outside in (4, -5):
        with pytest.raises(CallError):
            apply("gather", whole(4), np.array([outside]))


def test_embedding_takes_rows() -> None:
    table, rows = whole(7, 3), np.array([[0, 6], [3, 3]])
    np.testing.assert_array_equal(apply("embedding", table, rows), table[rows])
    with pytest.raises(CallError):
        apply("embedding", table, np.array([-1]))
    with pytest.raises(OperatorError, match="not integers"):
        apply("embedding", table, whole(2))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_gathered_along_one_axis(axis: int) -> None:
    x, indices = whole(4, 5, 6), whole(4, 5, 6, dtype="int64", low=-4, high=4)[:3, :2, :4]
    expected = np.take_along_axis(
        x[tuple(slice(None) if d == axis % 3 else slice(n) for d, n in enumerate((3, 2, 4)))],
        np.where(indices < 0, indices + x.shape[axis], indices),
        axis,
    )
    np.testing.assert_array_equal(apply("gather_elements", x, indices, axis=axis), expected)


def test_indices_that_reach_beyond_the_other_axes_are_refused() -> None:
    with pytest.raises(OperatorError, match="reaches beyond"):
        apply("gather_elements", whole(2, 3), np.zeros((3, 3), np.int64), axis=1)


def test_rows_of_indices_are_places() -> None:
    x = whole(3, 4, 5)
    pairs, ones = np.array([[0, 1], [-1, 2], [2, -4]]), np.array([[2], [0]])
    np.testing.assert_array_equal(apply("gather_nd", x, pairs), x[pairs[:, 0], pairs[:, 1]])
    np.testing.assert_array_equal(apply("gather_nd", x, ones), x[ones[:, 0]])
    batched = np.array([[1], [3], [-1]])
    np.testing.assert_array_equal(apply("gather_nd", x, batched, batch_dims=1), x[np.arange(3), batched[:, 0]])
    with pytest.raises(OperatorError, match="do not share"):
        apply("gather_nd", x, ones, batch_dims=1)


def test_each_sequence_is_turned_by_its_own_length() -> None:
    x, lengths = whole(4, 3, 2), np.array([1, 4, 3])
    expected = x.copy()
    for b, n in enumerate(lengths):
        expected[:n, b] = x[:n, b][::-1]
    np.testing.assert_array_equal(apply("reverse_sequence", x, lengths), expected)
    turned = apply("reverse_sequence", np.swapaxes(x, 0, 1).copy(), lengths, batch_axis=0, time_axis=1)
    np.testing.assert_array_equal(turned, np.swapaxes(expected, 0, 1))


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_is_updated_from_where_each_row_stands(mode: str) -> None:
    cache, update = whole(2, 3, 5, 2), whole(2, 3, 2, 2, low=10, high=20)
    starts = np.array([1, 3 if mode == "linear" else 4])
    expected = cache.copy()
    for b, first in enumerate(starts):
        for t in range(2):
            expected[b, :, (first + t) % 5] = update[b, :, t]
    np.testing.assert_array_equal(apply("cache_update", cache, update, starts, mode=mode), expected)
    expected = np.concatenate([update, cache[:, :, 2:]], axis=2)
    np.testing.assert_array_equal(apply("cache_update", cache, update), expected)
