"""Activations against their definitions in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import Array, apply, broken, whole

FORMS: dict[str, tuple[dict[str, float], Callable[[Array], Array]]] = {
    "elu": ({"alpha": 1.5}, lambda x: np.where(x > 0, x, 1.5 * np.expm1(x))),
    "celu": ({"alpha": 2.0}, lambda x: np.maximum(x, 0) + np.minimum(2 * np.expm1(x / 2), 0)),
    "selu": ({"alpha": 2.0, "gamma": 3.0}, lambda x: 3 * np.where(x > 0, x, 2 * np.expm1(x))),
    "hard_sigmoid": ({"alpha": 0.25, "beta": 0.5}, lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
    "hard_swish": ({}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "softplus": ({}, lambda x: np.logaddexp(0, x)),
    "mish": ({}, lambda x: x * np.tanh(np.logaddexp(0, x))),
    "softsign": ({}, lambda x: x / (1 + np.abs(x))),
    "swish": ({"alpha": 0.5}, lambda x: x / (1 + np.exp(-0.5 * x))),
    "thresholded_relu": ({"alpha": 0.5}, lambda x: np.where(x > 0.5, x, 0)),
    "shrink": ({"bias": 0.25, "bound": 1.0}, lambda x: np.where(x < -1, x + 0.25, np.where(x > 1, x - 0.25, 0))),
}


@pytest.mark.parametrize("name", FORMS)
def test_an_activation_is_what_its_formula_says(name: str) -> None:
    settings, expected = FORMS[name]
    x = np.concatenate([broken(40), np.array([0, 1e-6, -1e-6, 1e-3, -1e-3, 60, -60, 0.5], np.float32)])
    np.testing.assert_allclose(apply(name, x, **settings), expected(x.astype(np.float64)), rtol=1e-6, atol=1e-30)


def test_softplus_neither_overflows_nor_vanishes() -> None:
    x = np.array([1e4, -80], np.float32)
    np.testing.assert_allclose(apply("softplus", x), [1e4, np.exp(-80.0)], rtol=1e-6)


def test_whole_numbers_shrink_too() -> None:
    x = np.array([-3, -2, -1, 0, 1, 2, 3], np.int32)
    np.testing.assert_array_equal(apply("shrink", x, bias=1.0, bound=1.5), [-2, -1, 0, 0, 0, 1, 2])


def test_a_slope_may_be_one_for_each_channel() -> None:
    x, slope = whole(2, 3, 4), whole(3, 1, low=1)
    np.testing.assert_array_equal(apply("prelu", x, slope), np.where(x < 0, x * slope, x))
    with pytest.raises(OperatorError, match="does not fit"):
        apply("prelu", whole(3), whole(2, 3))


def test_an_activation_of_whole_numbers_is_refused() -> None:
    with pytest.raises(OperatorError, match="an activation of i32"):
        apply("elu", whole(3, dtype="int32"))
