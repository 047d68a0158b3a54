"""Softmax and norms against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.ops.single import Array, apply, apply_sized, broken

TIGHT = 2e-6
"""A few roundings of float32."""


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_its_logarithm(axis: int) -> None:
    x = broken(3, 4, 5)
    np.testing.assert_allclose(apply("softmax", x, axis=axis), softmax(x, axis), rtol=TIGHT)
    np.testing.assert_allclose(apply("log_softmax", x, axis=axis), np.log(softmax(x, axis)), rtol=TIGHT, atol=TIGHT)


def test_large_numbers_do_not_overflow_softmax() -> None:
    np.testing.assert_array_equal(apply("softmax", np.array([1e30, 1e30], np.float32)), [0.5, 0.5])


def test_softmax_of_a_row_of_any_length() -> None:
    x = broken(3, 7)
    np.testing.assert_allclose(apply_sized("softmax", 7, x), softmax(x, -1), rtol=TIGHT)


def test_batch_norm_uses_the_statistics_given() -> None:
    x = broken(2, 3, 4, 4)
    s, b, m = broken(3), broken(3) + 1, broken(3) - 1
    v = np.abs(broken(3)) + np.float32(0.5)
    per = [p.astype(np.float64).reshape(3, 1, 1) for p in (s, b, m, v)]
    expected = (x - per[2]) / np.sqrt(per[3] + 1e-3) * per[0] + per[1]
    found = apply("batch_norm", x, s, b.astype(np.float32), m.astype(np.float32), v, epsilon=1e-3)
    np.testing.assert_allclose(found, expected, rtol=TIGHT, atol=TIGHT)


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_layer_norm_is_over_the_axis_and_all_behind_it(axis: int) -> None:
    x = broken(3, 4, 5)
    axes = tuple(range(axis % 3, 3))
    wide = x.astype(np.float64)
    plain = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(apply("layer_norm", x, axis=axis), plain, rtol=TIGHT, atol=TIGHT)
    s, b = broken(*x.shape[axis % 3 :]), broken(*x.shape[axis % 3 :]) + np.float32(1)
    np.testing.assert_allclose(apply("layer_norm", x, s, b, axis=axis), plain * s + b, rtol=TIGHT, atol=3 * TIGHT)


def test_rms_norm_takes_no_mean() -> None:
    x, s = broken(3, 8), broken(8)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(apply("rms_norm", x), expected, rtol=TIGHT)
    np.testing.assert_allclose(apply("rms_norm", x, s), expected * s, rtol=TIGHT)
    np.testing.assert_allclose(apply_sized("rms_norm", 8, x), expected, rtol=TIGHT)


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))
