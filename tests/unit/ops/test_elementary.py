"""Elementary functions against NumPy: a few roundings of error, and the right answer at the ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from dovetail.ops.elementary import CHAINS
from tests.unit.ops.single import Array, apply, whole

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "sinh": np.sinh,
    "tan": np.tan,
}
MAGNITUDES = [*(10.0**n for n in range(-30, 9)), 1e30, 0.5, 0.99999, 1.0, 1.00001, 1.5, 88.5, 89.2, 0.0, np.inf, np.nan]
ROUNDINGS = {"float32": 2, "float64": 3}
"""Units in the last place; NumPy's own function is within one."""


def test_every_function_is_compared() -> None:
    assert {*FUNCTIONS} == {*CHAINS, "acos", "asin", "atan"}


@pytest.mark.parametrize("dtype", ROUNDINGS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_elementary_function_is_that_of_numpy(name: str, dtype: str) -> None:
    x = np.array([*MAGNITUDES, *(-m for m in MAGNITUDES)], dtype)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](x.astype(np.longdouble)).astype(dtype)
    found = apply(name, x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    np.testing.assert_array_almost_equal_nulp(found[finite], expected[finite], ROUNDINGS[dtype])


def test_the_angle_of_a_point_is_right_in_every_quarter_and_at_infinity() -> None:
    ends = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, 2.5, 1e-20, 3, -7], np.float32)
    a, b = (part.reshape(-1) for part in np.meshgrid(ends, ends))
    np.testing.assert_allclose(apply("atan2", a, b), np.arctan2(a, b), rtol=3e-7)
    np.testing.assert_array_equal(np.signbit(apply("atan2", a, b)), np.signbit(np.arctan2(a, b)))


def test_whole_numbers_have_no_elementary_functions() -> None:
    with pytest.raises(OperatorError, match="elementary function of i32"):
        apply("atan", whole(3, dtype="int32"))
