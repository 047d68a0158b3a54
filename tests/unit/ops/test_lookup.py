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
