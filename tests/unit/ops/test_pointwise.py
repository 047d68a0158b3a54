"""Elementwise operators against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import erf

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from dovetail.ops.pointwise import BINARY, COMPARE, UNARY
from tests.unit.ops.single import Array, apply, apply_sized, broken, whole

FLOAT_UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": lambda x: np.log(x),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "erf": np.vectorize(erf),
}
EXACT_UNARY: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
}
EXACT_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
LOGIC: dict[str, Callable[[Array, Array], Array]] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
PAIRS = [((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((), (2, 3)), ((1,), (1,))]


def test_every_elementwise_operator_is_compared_with_numpy() -> None:
    assert {*UNARY} == {*FLOAT_UNARY, *EXACT_UNARY, "not"}
    assert {*BINARY} == {*EXACT_BINARY, *LOGIC, "pow"}
    assert {*COMPARE} == {*COMPARISONS}


@pytest.mark.parametrize("name", FLOAT_UNARY)
def test_a_function_of_floats_is_that_of_numpy(name: str) -> None:
    x = np.abs(broken(3, 5)) + np.float32(0.25)
    np.testing.assert_allclose(apply(name, x), FLOAT_UNARY[name](x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("name", EXACT_UNARY)
def test_a_function_that_does_not_round_is_that_of_numpy(name: str) -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, -7, 8])
    np.testing.assert_array_equal(apply(name, x), EXACT_UNARY[name](x))


@pytest.mark.parametrize("name", EXACT_BINARY)
@pytest.mark.parametrize("shapes", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "float16"])
def test_two_tensors_meet_as_in_numpy(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    a, b = whole(*shapes[0], dtype=dtype), whole(*shapes[1], dtype=dtype, low=-7)
    np.testing.assert_array_equal(apply(name, a, b), EXACT_BINARY[name](a, b))


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_gives_bools(name: str) -> None:
    a, b = whole(4, 5), whole(5, low=-3)
    a[0, 0] = np.nan
    np.testing.assert_array_equal(apply(name, a, b), COMPARISONS[name](a, b))


@pytest.mark.parametrize("name", LOGIC)
def test_logic_is_of_bools_and_of_bits(name: str) -> None:
    for dtype in ("bool", "int32"):
        a, b = whole(4, 5, dtype=dtype, low=0), whole(4, 5, dtype=dtype, low=-1)
        np.testing.assert_array_equal(apply(name, a, b), LOGIC[name](a, b))


def test_not_turns_bools_and_bits_round() -> None:
    np.testing.assert_array_equal(apply("not", np.array([True, False])), [False, True])
    np.testing.assert_array_equal(apply("not", np.array([0, 5], np.int32)), [-1, -6])


def test_integers_are_divided_towards_zero() -> None:
    a = np.array([7, -7, 7, -7, 0, 6], np.int32)
    b = np.array([2, 2, -2, -2, 3, -3], np.int32)
    np.testing.assert_array_equal(apply("div", a, b), [3, -3, -3, 3, 0, -2])
    np.testing.assert_array_equal(apply("div", np.array([200], np.uint8), np.array([3], np.uint8)), [66])


def test_floats_are_divided_and_raised_to_powers() -> None:
    a, b = np.abs(broken(3, 4)) + 1, broken(4)
    np.testing.assert_allclose(apply("div", a, b), a.astype(np.float64) / b, rtol=1e-6)
    np.testing.assert_allclose(apply("pow", a, b), a.astype(np.float64) ** b, rtol=1e-6)


def test_select_takes_from_the_one_or_the_other() -> None:
    c, a, b = np.array([[True], [False]]), whole(3), whole(2, 3, low=0)
    np.testing.assert_array_equal(apply("select", c, a, b), np.where(c, a, b))


def test_the_condition_of_select_must_be_bool() -> None:
    with pytest.raises(OperatorError, match="not bool"):
        apply("select", whole(3), whole(3), whole(3))


def test_a_cast_wraps_truncates_and_saturates() -> None:
    x = np.array([1.75, -1.75, 300, -300, np.nan], np.float32)
    np.testing.assert_array_equal(apply("cast", x, dtype="i8"), [1, -1, 127, -128, 0])
    np.testing.assert_array_equal(apply("cast", np.array([300], np.int32), dtype="u8"), [44])
    np.testing.assert_array_equal(apply("cast", np.array([0, 2], np.int32), dtype="bool"), [False, True])


def test_leaky_relu_keeps_a_share_of_what_is_negative() -> None:
    x = np.array([-4, -0.0, 3, np.nan], np.float32)
    np.testing.assert_array_equal(apply("leaky_relu", x, alpha=0.25), np.array([-1, 0, 3, np.nan], np.float32))


def test_clip_holds_values_between_bounds_that_may_be_missing() -> None:
    x = whole(3, 4, low=-9, high=9)
    np.testing.assert_array_equal(apply("clip", x, low=-2.0, high=3.0), np.clip(x, -2, 3))
    np.testing.assert_array_equal(apply("clip", x, high=1), np.minimum(x, 1))
    np.testing.assert_array_equal(apply("clip", x.astype(np.int8), low=-1000.0, high=2.0), np.minimum(x, 2))


def test_gelu_has_an_exact_and_an_approximate_form() -> None:
    x = broken(4, 4).astype(np.float64)
    exact = 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))
    about = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(apply("gelu", x), exact, rtol=1e-12)
    np.testing.assert_allclose(apply("gelu", x, approximate="tanh"), about, rtol=1e-12)


def test_scale_multiplies_and_shifts_each_channel() -> None:
    x, s, b = whole(2, 3, 4), whole(3, low=-2), whole(3, low=0)
    expected = x * s[:, None] + b[:, None]
    np.testing.assert_array_equal(apply("scale", x, s, b), expected)
    np.testing.assert_array_equal(apply("scale", x, s), x * s[:, None])
    np.testing.assert_array_equal(apply("scale", np.moveaxis(x, 1, 2), s, b, axis=-1), np.moveaxis(expected, 1, 2))


def test_extents_may_be_known_at_run_time_only() -> None:
    a, b = whole(7, 3), whole(3, low=-2)
    np.testing.assert_array_equal(apply_sized("add", 7, a, b), a + b)
    np.testing.assert_array_equal(apply_sized("relu", 3, a), np.maximum(a, 0))
