"""Reductions, places and running sums against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import apply, apply_sized, whole

REDUCTIONS: dict[str, Callable[..., object]] = {
    "reduce_sum": np.sum,
    "reduce_prod": np.prod,
    "reduce_max": np.max,
    "reduce_min": np.min,
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axes", [None, (0,), (-1,), (0, 2), (2, 1)])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_reduction_is_that_of_numpy(name: str, axes: tuple[int, ...] | None, keepdims: int, dtype: str) -> None:
    x = whole(2, 3, 4, dtype=dtype, low=-2, high=3)
    given = {} if axes is None else {"axes": axes}
    expected = REDUCTIONS[name](x, axis=axes, keepdims=bool(keepdims))
    np.testing.assert_array_equal(apply(name, x, keepdims=keepdims, **given), np.asarray(expected))


def test_a_mean_divides_by_the_number_of_elements() -> None:
    x = whole(3, 4, 8)
    np.testing.assert_array_equal(apply("reduce_mean", x, axes=(1, 2), keepdims=0), x.mean((1, 2)))
    np.testing.assert_allclose(apply_sized("reduce_mean", 3, x), x.mean(keepdims=True), rtol=1e-6)
    with pytest.raises(OperatorError, match="the mean of i32"):
        apply("reduce_mean", whole(3, dtype="int32"))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_first_of_equals_is_the_place(axis: int, keepdims: int) -> None:
    x = whole(4, 5, 6, low=0, high=3)
    x[1, 1, 1] = np.nan
    for name, place in (("argmax", np.argmax), ("argmin", np.argmin)):
        expected = place(x, axis=axis, keepdims=bool(keepdims))
        np.testing.assert_array_equal(apply(name, x, axis=axis, keepdims=keepdims), expected)


def test_the_last_of_equals_can_be_asked_for() -> None:
    x = np.array([[1, 3, 3, 0], [0, 0, 0, 0]], np.int32)
    np.testing.assert_array_equal(apply("argmax", x, axis=1, keepdims=0, last=1), [2, 3])
    np.testing.assert_array_equal(apply("argmin", x, axis=1, keepdims=0, last=1), [3, 3])
    np.testing.assert_array_equal(apply_sized("argmax", 4, x, axis=1, keepdims=0), [1, 0])


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_a_running_sum_counts_itself_or_not(axis: int, reverse: int) -> None:
    x = whole(3, 4)
    turned = np.flip(x, axis) if reverse else x
    sums = np.cumsum(turned, axis)
    for exclusive, expected in ((0, sums), (1, sums - turned)):
        found = apply("cumsum", x, axis=axis, reverse=reverse, exclusive=exclusive)
        np.testing.assert_array_equal(found, np.flip(expected, axis) if reverse else expected)
    np.testing.assert_array_equal(apply_sized("cumsum", 4, x, axis=1), np.cumsum(x, 1))


@pytest.mark.parametrize("axes", [(0,), (1, 2), ()])
def test_norms_and_logarithms_of_sums_are_those_of_numpy(axes: tuple[int, ...]) -> None:
    x = whole(2, 3, 4, low=1, high=5)
    total = x.astype(np.float64)
    np.testing.assert_array_equal(apply("reduce_l1", -x, axes=axes), np.abs(x).sum(axes, keepdims=True))
    np.testing.assert_array_equal(apply("reduce_sum_square", x, axes=axes), (x * x).sum(axes, keepdims=True))
    np.testing.assert_allclose(
        apply("reduce_l2", x, axes=axes), np.sqrt((total**2).sum(axes, keepdims=True)), rtol=1e-6
    )
    np.testing.assert_allclose(apply("reduce_log_sum", x, axes=axes), np.log(total.sum(axes, keepdims=True)), rtol=1e-6)
    found = apply("reduce_log_sum_exp", x, axes=axes)
    np.testing.assert_allclose(found, np.log(np.exp(total).sum(axes, keepdims=True)), rtol=1e-6)


def test_the_logarithm_of_a_sum_of_exponentials_stays_in_range() -> None:
    x = np.array([[1000, 1000], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    found = apply("reduce_log_sum_exp", x, axes=(1,), keepdims=0)
    np.testing.assert_allclose(found, [1000 + np.log(2), -np.inf, np.inf], rtol=1e-6)
    assert apply("reduce_log_sum_exp", np.zeros((2, 0), np.float32), axes=(1,)).tolist() == [[-np.inf], [-np.inf]]


def test_reductions_that_leave_the_whole_numbers_are_refused() -> None:
    with pytest.raises(OperatorError, match="reduce_l2 of i32"):
        apply("reduce_l2", whole(3, dtype="int32"))
    np.testing.assert_array_equal(
        apply("reduce_l1", whole(3, dtype="uint8", low=0)), whole(3, dtype="uint8", low=0).sum()
    )


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_a_running_product_starts_at_one(exclusive: int, reverse: int) -> None:
    x = whole(2, 4, low=1, high=5)
    turned = x[:, ::-1] if reverse else x
    expected = np.cumprod(turned, axis=1)
    if exclusive:
        expected = np.concatenate([np.ones((2, 1)), expected[:, :-1]], axis=1)
    found = apply("cumprod", x, axis=1, exclusive=exclusive, reverse=reverse)
    np.testing.assert_array_equal(found, expected[:, ::-1] if reverse else expected)
