"""Special functions against Python's own and their inverses, within the error their approximations state."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import apply


def test_erfc_keeps_its_digits_where_one_minus_erf_has_none_left() -> None:
    x = np.array([*np.linspace(-4, 9, 131), 0.0, 1e-8], np.float32)
    wanted = np.array([math.erfc(float(value)) for value in x])
    np.testing.assert_allclose(apply("erfc", x), wanted, rtol=2e-7)


def test_erfinv_undoes_erf() -> None:
    y = np.array([*np.linspace(-3, 3, 61), 1e-6], np.float64)
    x = np.array([math.erf(value) for value in y]).astype(np.float32)
    back = np.array([math.erf(float(value)) for value in apply("erfinv", x)])
    np.testing.assert_allclose(back, x, rtol=1e-6)


def test_the_ends_of_erfinv_are_infinite_and_beyond_is_nothing() -> None:
    found = apply("erfinv", np.array([-1.0, 1.0, 1.5, -2.0, np.nan], np.float32))
    np.testing.assert_array_equal(found, [-np.inf, np.inf, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("name", ["erfc", "erfinv"])
def test_what_the_approximation_is_too_coarse_for_is_refused(name: str) -> None:
    with pytest.raises(OperatorError, match="an approximation for f32 of f64"):
        apply(name, np.ones(2))
