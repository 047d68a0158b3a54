"""Masks of scores and rotations against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import apply, whole


@pytest.mark.parametrize("past", [0, 2])
def test_no_query_sees_a_later_key(past: int) -> None:
    x = whole(2, 3, 5)
    seen = np.arange(5) <= np.arange(3)[:, None] + past
    np.testing.assert_array_equal(apply("mask_causal", x, past=past), np.where(seen, x, -np.inf))


def test_keys_beyond_a_length_are_left_out() -> None:
    x, lengths = whole(2, 3, 5), np.array([5, 2])
    seen = np.arange(5) < lengths[:, None, None]
    np.testing.assert_array_equal(apply("mask_lengths", x, lengths), np.where(seen, x, -np.inf))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("half", [2, 3])
def test_pairs_are_turned_and_the_rest_stays(half: int, interleaved: int) -> None:
    x, cos, sin = whole(2, 4, 3, 6), whole(2, 4, half), whole(2, 4, half, low=-2)
    first = np.arange(half) * (2 if interleaved else 1)
    second = first + (1 if interleaved else half)
    expected = x.copy()
    expected[..., first] = cos[:, :, None] * x[..., first] - sin[:, :, None] * x[..., second]
    expected[..., second] = sin[:, :, None] * x[..., first] + cos[:, :, None] * x[..., second]
    np.testing.assert_array_equal(apply("rotary", x, cos, sin, interleaved=interleaved), expected)
    turned = apply("rotary", x.transpose(0, 2, 1, 3).copy(), cos, sin, steps_axis=2, interleaved=interleaved)
    np.testing.assert_array_equal(turned, expected.transpose(0, 2, 1, 3))


def test_more_angles_than_pairs_are_refused() -> None:
    with pytest.raises(OperatorError, match="4 angles for 6 elements"):
        apply("rotary", whole(1, 2, 1, 6), whole(1, 2, 4), whole(1, 2, 4))
