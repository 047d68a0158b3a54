"""Arithmetic of each element: PyTorch's types and corner cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from tests.unit.frontends.torch.traced import check, whole_numbers

FLOATS = torch.tensor([-2.5, -1.0, -0.0, 0.0, 0.5, 1.5, 2.5, float("inf"), float("-inf"), float("nan")])
WHOLE = torch.tensor([-7, -2, -1, 0, 1, 2, 7], dtype=torch.int64)


@pytest.mark.parametrize("other", [2, -3, 2.0, -0.5], ids=repr)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "remainder", "fmod", "eq", "lt", "ge", "floor_divide"])
def test_a_number_joins_the_type_of_a_tensor_as_pytorch_has_it(op: str, other: float) -> None:
    function = getattr(torch, op)
    check(lambda x: function(x, other), WHOLE)
    check(lambda x: function(x, other), whole_numbers(3, 4))


def test_whole_numbers_and_floats_meet_in_floats() -> None:
    check(lambda a, b: a + b, whole_numbers(3, dtype=torch.int32), whole_numbers(2, 3))


def test_bools_are_joined_as_numbers_where_pytorch_does() -> None:
    a, b = torch.tensor([True, False, True]), torch.tensor([True, True, False])
    check(lambda a, b: (a + b, a * b, a == b, a < b, torch.maximum(a, b), ~a, a ^ b), a, b)
    check(lambda a: a * 3 + 1, a)


@pytest.mark.parametrize(
    "op", ["sign", "signbit", "isnan", "isinf", "abs", "ceil", "round", "trunc", "relu", "isneginf"]
)
def test_corner_cases_of_floats_are_pytorchs(op: str) -> None:
    check(getattr(torch, op), FLOATS)


@pytest.mark.parametrize("op", ["maximum", "minimum", "fmax", "fmin", "copysign", "hypot"])
def test_pairs_of_corner_cases_are_pytorchs(op: str) -> None:
    function: Callable[..., Tensor] = getattr(torch, op)
    check(lambda a, b: function(a[:, None], b), FLOATS, FLOATS, exact=op != "hypot")


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 2.5])
def test_powers_that_have_a_shorter_way_take_it(exponent: float) -> None:
    check(lambda x: x**exponent, whole_numbers(8).abs() + 1, exact=False)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_quotients_are_rounded_as_asked(mode: str | None) -> None:
    b = torch.tensor([2.0, -3.0, 0.7, -0.5])
    check(lambda a, b: torch.div(a[:, None], b, rounding_mode=mode), FLOATS[:7], b)
    check(lambda a: torch.div(a, -2, rounding_mode=mode), WHOLE)


def test_a_clamp_whose_bounds_cross_gives_the_high_one() -> None:
    check(lambda x: torch.clamp(x, 2, -1), whole_numbers(9))
    check(lambda x, y: torch.clamp(x, min=y), whole_numbers(3, 4), whole_numbers(4, seed=1))


def test_any_number_but_zero_becomes_true() -> None:
    check(lambda x: (x.bool(), x.to(torch.int8), x.to(torch.float64)), torch.tensor([0.0, 0.25, -3.0]))


@pytest.mark.parametrize("op", ["exp", "erfc", "log1p", "expm1", "sinh", "atan", "tanh", "sigmoid", "rsqrt"])
def test_functions_of_whole_numbers_are_floats(op: str) -> None:
    check(getattr(torch, op), torch.tensor([1, 2, 5]), exact=False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_are_computed_as_pytorch_does(dtype: torch.dtype) -> None:
    check(
        lambda a, b: (a * b + a, a.exp(), a.sum()), whole_numbers(8, dtype=dtype), whole_numbers(8, dtype=dtype, seed=1)
    )
