"""Signs, remainders, powers, bits and tests of floats against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import apply, broken, whole


def test_the_sign_is_minus_one_zero_or_one_and_nan_stays() -> None:
    x = np.array([-3.5, -0.0, 0, 7, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(apply("sign", x), np.sign(x))
    np.testing.assert_array_equal(apply("sign", np.array([-5, 0, 9], np.int8)), [-1, 0, 1])
    np.testing.assert_array_equal(apply("sign", np.array([0, 9], np.uint8)), [0, 1])


def test_infinities_are_told_apart_by_their_sign() -> None:
    x = np.array([1, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(apply("is_nan", x), np.isnan(x))
    np.testing.assert_array_equal(apply("is_inf", x), np.isinf(x))
    np.testing.assert_array_equal(apply("is_inf", x, negative=0), np.isposinf(x))
    np.testing.assert_array_equal(apply("is_inf", x, positive=0), np.isneginf(x))
    assert not apply("is_inf", x, negative=0, positive=0).any()


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "float16"])
def test_remainders_take_the_sign_of_the_one_or_the_other(dtype: str) -> None:
    a = whole(7, 9, dtype=dtype, low=-50, high=50)
    b = np.where(whole(9, low=-6) == 0, 3, whole(9, low=-6)).astype(dtype)
    np.testing.assert_array_equal(apply("mod", a, b), np.mod(a, b))
    np.testing.assert_array_equal(apply("fmod", a, b), np.fmod(a, b))


def test_a_remainder_of_floats_is_exact_and_never_as_large_as_the_divisor() -> None:
    a, b = broken(300) * 1000, np.float32(0.1) * np.ones(300, np.float32)
    np.testing.assert_array_equal(apply("fmod", a, b), np.fmod(a, b))
    np.testing.assert_array_equal(apply("fmod", np.array([5.0], "f"), np.array([np.inf], "f")), [5])
    np.testing.assert_array_equal(apply("fmod", a * np.float32(1e9), b), np.fmod(a * np.float32(1e9), b))
    assert np.isnan(apply("fmod", np.array([5, np.inf], "f"), np.array([0, 2], "f"))).all()


def test_floor_division_rounds_down() -> None:
    a, b = whole(30, dtype="int32", low=-20, high=20), np.where(whole(30) == 0, -3, whole(30)).astype("int32")
    np.testing.assert_array_equal(apply("floor_div", a, b), a // b)
    np.testing.assert_array_equal(apply("floor_div", np.array([-7.0, 7.0], "f"), np.array([2.0, 2.0], "f")), [-4, 3])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_whole_powers_of_whole_numbers_are_exact(dtype: str) -> None:
    a, b = np.array([0, 1, 2, 3, 7, 2, 10], dtype), np.array([0, 9, 7, 4, 2, 1, 2], dtype)
    np.testing.assert_array_equal(apply("power", a, b), a**b)
    large = np.array([3, -3, 2], np.int64), np.array([39, 39, 62], np.int64)
    np.testing.assert_array_equal(apply("power", *large), large[0] ** large[1])


def test_a_power_has_the_dtype_of_its_base() -> None:
    a, b = np.array([2, 3, -1], np.int32), np.array([-1, 200, 71], np.int64)
    np.testing.assert_array_equal(apply("power", a, b)[[0, 2]], [0, -1])
    found = apply("power", np.array([2.0, 3.0], np.float32), np.array([3, 2], np.int64))
    assert found.dtype == np.float32 and found.tolist() == [8, 9]
    assert apply("power", np.array([4, 9], np.int64), np.array([0.5, 1.5], np.float32)).tolist() == [2, 27]


def test_bits_that_leave_are_lost() -> None:
    a, b = np.array([16, 4, 1, 255], np.uint8), np.array([1, 2, 7, 8], np.uint8)
    np.testing.assert_array_equal(apply("shift_left", a, b), [32, 16, 128, 0])
    np.testing.assert_array_equal(apply("shift_right", a, b), [8, 1, 0, 0])
    np.testing.assert_array_equal(apply("shift_right", np.array([-8, -8], "int8"), np.array([1, 9], "int8")), [-4, -1])
    with pytest.raises(OperatorError, match="shifted"):
        apply("shift_left", whole(3), whole(3))


def test_bits_are_read_as_another_dtype_of_the_same_width() -> None:
    x = broken(5)
    np.testing.assert_array_equal(apply("bitcast", x, dtype="u32"), x.view(np.uint32))
    with pytest.raises(OperatorError, match="bitcast from f32 to i64"):
        apply("bitcast", x, dtype="i64")
