"""Softmax and norms against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import Array, apply, apply_many, apply_sized, broken, whole

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


def test_layer_norm_can_tell_what_it_found() -> None:
    x = broken(2, 3, 4)
    y, mean, factor = apply_many("layer_norm", 3, x, axis=1, statistics=1)
    np.testing.assert_array_equal(y, apply("layer_norm", x, axis=1))
    np.testing.assert_allclose(mean, x.mean((1, 2), keepdims=True), rtol=TIGHT, atol=1e-7)
    np.testing.assert_allclose(factor, 1 / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5), rtol=TIGHT)


def test_a_scale_may_be_stretched_to_what_is_normalised() -> None:
    x, scale = broken(2, 3, 4), broken(3, 1)
    expected = apply("layer_norm", x, axis=1) * scale
    np.testing.assert_allclose(apply("layer_norm", x, scale, axis=1), expected, rtol=TIGHT)
    with pytest.raises(OperatorError, match="do not fit"):
        apply("layer_norm", x, broken(2), axis=1)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_group_of_channels_is_normalised_together(groups: int) -> None:
    x, scale, bias = broken(2, 4, 3, 5), broken(4), broken(4) + 1
    parts = x.astype(np.float64).reshape(2, groups, -1)
    apart = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    expected = apart.reshape(x.shape) * scale[:, None, None] + bias[:, None, None]
    np.testing.assert_allclose(apply("group_norm", x, scale, bias, groups=groups), expected, rtol=TIGHT, atol=TIGHT)
    with pytest.raises(OperatorError, match="3 groups"):
        apply("group_norm", x, scale, bias, groups=3)


def test_mean_and_variance_may_be_taken_over_any_axes() -> None:
    x = broken(2, 3, 4).astype(np.float64)
    expected = (x - x.mean((0, 2), keepdims=True)) / (x.std((0, 2), keepdims=True) + 1e-9)
    np.testing.assert_allclose(apply("mean_variance_norm", x, axes=(0, 2)), expected, rtol=1e-12)


@pytest.mark.parametrize("p", [1, 2])
def test_rows_are_divided_by_their_norm_and_zeros_stay(p: int) -> None:
    x = broken(3, 4)
    x[1] = 0
    norms = (np.abs(x.astype(np.float64)) ** p).sum(1, keepdims=True) ** (1 / p)
    np.testing.assert_allclose(apply("lp_norm", x, p=p), x / np.where(norms == 0, 1, norms), rtol=TIGHT)


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_channels_are_divided_by_those_around_them(size: int) -> None:
    x = whole(2, 5, 3).astype(np.float64)
    squares = np.zeros_like(x)
    for c in range(5):
        low, high = max(0, c - (size - 1) // 2), min(5, c + size // 2 + 1)
        squares[:, c] = (x[:, low:high] ** 2).sum(1)
    expected = x / (2 + 0.5 / size * squares) ** 0.75
    np.testing.assert_allclose(apply("local_response_norm", x, size=size, alpha=0.5, bias=2.0), expected, rtol=1e-12)


def test_hardmax_marks_the_first_of_the_largest() -> None:
    x = np.array([[1, 3, 3], [2, 0, 1]], np.float32)
    np.testing.assert_array_equal(apply("hardmax", x), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(apply("hardmax", x, axis=0), [[0, 1, 1], [1, 0, 0]])
