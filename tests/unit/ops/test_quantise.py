"""Quantised values against their formula."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import apply, apply_many, broken, whole


def test_what_does_not_fit_is_the_nearest_bound_and_halves_go_to_even() -> None:
    x, scale = np.array([0, 1, 3, -5, 1000, -1000], np.float32), np.array(2, np.float32)
    np.testing.assert_array_equal(apply("quantise", x, scale, np.array(128, "uint8")), [128, 128, 130, 126, 255, 0])
    np.testing.assert_array_equal(apply("quantise", x, scale, np.array(-1, "int8")), [-1, -1, 1, -3, 127, -128])
    np.testing.assert_array_equal(apply("quantise", x, scale, dtype="i16"), [0, 0, 2, -2, 500, -500])


def test_scales_may_be_one_for_each_index_along_an_axis() -> None:
    x, scale = whole(2, 3, 4, low=-40, high=40), np.array([1, 2, 4], np.float32)
    zero = np.array([1, 2, 3], np.uint8)
    expected = np.clip(np.rint(x / scale[:, None]) + zero[:, None], 0, 255)
    found = apply("quantise", x, scale, zero)
    np.testing.assert_array_equal(found, expected)
    back = apply("dequantise", found, scale, zero)
    np.testing.assert_array_equal(back, (expected - zero[:, None]) * scale[:, None])


def test_scales_may_be_one_for_each_block() -> None:
    x, scale = whole(2, 5, dtype="int8", low=-9, high=9), np.array([[1, 2, 4], [8, 16, 32]], np.float32)
    expected = x * np.repeat(scale, 2, axis=1)[:, :5]
    np.testing.assert_array_equal(apply("dequantise", x, scale, axis=1, block=2), expected)
    with pytest.raises(OperatorError, match="scale is"):
        apply("dequantise", x, scale, axis=1, block=3)


def test_bytes_without_sign_are_centred_without_wrapping() -> None:
    x = np.array([0, 128, 255], np.uint8)
    found = apply("dequantise", x, np.array(0.5, np.float32), np.array(128, np.uint8))
    np.testing.assert_array_equal(found, [-64, 0, 63.5])


def test_a_scale_is_found_that_fits_all_and_zero() -> None:
    x = np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32)
    y, scale, zero = apply_many("dynamic_quantise", 3, x)
    np.testing.assert_array_equal(y, [153, 255, 0, 26, 221, 179])
    assert scale == np.float32(5) / np.float32(255) and zero == 153
    y, scale, zero = apply_many("dynamic_quantise", 3, np.zeros(3, np.float32))
    assert not y.any() and zero == 0 and scale == np.float32(1) / np.float32(255)


def test_quantised_values_are_whole_numbers() -> None:
    with pytest.raises(OperatorError, match="quantised to f32"):
        apply("quantise", broken(3), np.array(1, np.float32), dtype="f32")
