"""Tensors made from positions against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import SmallTensor
from tests.unit.ops.single import apply, whole


def test_full_is_one_value_everywhere() -> None:
    for dtype, value in (("f32", 2.5), ("i64", -3), ("bool", 1)):
        found = apply("full", shape=(2, 3), value=SmallTensor(DTYPES[dtype], (), (value,)))
        np.testing.assert_array_equal(found, np.full((2, 3), value, DTYPES[dtype].numpy))
    assert apply("full", shape=(), value=SmallTensor(DTYPES["i8"], (), (4,))).shape == ()


@pytest.mark.parametrize("k", [-2, 0, 1])
def test_a_diagonal_may_start_elsewhere(k: int) -> None:
    np.testing.assert_array_equal(apply("eye", shape=(3, 5), k=k, dtype="i32"), np.eye(3, 5, k, np.int32))


def test_a_range_counts_in_its_own_dtype() -> None:
    start, step = (SmallTensor(DTYPES["i32"], (), (n,)) for n in (10, -3))
    np.testing.assert_array_equal(apply("arange", count=4, start=start, step=step), [10, 7, 4, 1])
    start, step = (SmallTensor(DTYPES["f64"], (), (n,)) for n in (0.5, 0.25))
    np.testing.assert_array_equal(apply("arange", count=3, start=start, step=step), [0.5, 0.75, 1.0])


@pytest.mark.parametrize("k", [-9, -1, 0, 2, 9])
def test_a_triangle_of_the_last_two_axes_stays(k: int) -> None:
    x = whole(2, 4, 5, low=1, high=9)
    np.testing.assert_array_equal(apply("triangle", x, upper=1, k=k), np.triu(x, k))
    np.testing.assert_array_equal(apply("triangle", x, upper=0, k=k), np.tril(x, k))


@pytest.mark.parametrize("repeats", [(1, 1), (2, 1), (3, 2), (0, 2)])
def test_tile_repeats_the_whole(repeats: tuple[int, int]) -> None:
    x = whole(2, 3)
    np.testing.assert_array_equal(apply("tile", x, repeats=repeats), np.tile(x, repeats))
    with pytest.raises(OperatorError, match="repeats"):
        apply("tile", x, repeats=(2,))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot_marks_the_index_and_counts_back_from_the_end(axis: int) -> None:
    indices, values = np.array([[1, -1], [4, 7]]), np.array([3, 9], np.float32)
    expected = np.where(np.arange(5) == np.where(indices < 0, indices + 5, indices)[..., None], 9, 3)
    found = apply("one_hot", indices, values, depth=5, axis=axis)
    np.testing.assert_array_equal(found, np.moveaxis(expected, -1, axis))
    np.testing.assert_array_equal(apply("one_hot", np.array([2], np.uint8), values, depth=3), [[3, 3, 9]])
