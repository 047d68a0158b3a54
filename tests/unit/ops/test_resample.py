"""Resampling by tables against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import CallError, OperatorError
from tests.unit.ops.single import apply, whole


def test_upsampling_repeats_every_element() -> None:
    x = whole(2, 3, 4)
    found = apply("upsample", x, factors=(1, 2, 3))
    np.testing.assert_array_equal(found, np.repeat(np.repeat(x, 2, axis=1), 3, axis=2))
    with pytest.raises(OperatorError, match="factors"):
        apply("upsample", x, factors=(2, 2))


def test_elements_are_picked_along_several_axes() -> None:
    x, rows, columns = whole(2, 4, 5), np.array([3, 0, 0]), np.array([1, 4])
    expected = x[:, rows][:, :, columns]
    np.testing.assert_array_equal(apply("pick", x, rows, columns, axes=(1, -1)), expected)
    with pytest.raises(CallError):
        apply("pick", x, np.array([4]), axes=(1,))


def test_elements_are_mixed_by_weights() -> None:
    x = whole(2, 4, 3)
    places, weights = np.array([[0, 1], [1, 3], [3, 3]]), np.array([[1, 2], [-1, 1], [3, 0]], np.float32)
    expected = np.einsum("ntkc,tk->ntc", x[:, places], weights)
    np.testing.assert_array_equal(apply("resample", x, places, weights, axis=1), expected)
    with pytest.raises(OperatorError, match="mixed"):
        apply("resample", whole(4, dtype="int32"), places, weights, axis=0)
