"""Costs are numbers or small expressions, and nothing else."""

from __future__ import annotations

import pytest

from dovetail.base.errors import TargetError
from dovetail.targets.cost import cost_names, evaluate_cost


@pytest.mark.parametrize(
    ("text", "params", "cycles"),
    [
        ("16", {}, 16),
        ("0.5", {}, 0.5),
        ("120 + m * n * k / 235", {"m": 128, "n": 32, "k": 8}, 120 + 128 * 32 * 8 / 235),
        ("max(1, ceil(n / 4))", {"n": 9}, 3),
        ("n // 4 + n % 4 - -1", {"n": 9}, 4),
    ],
)
def test_a_cost_is_an_expression_of_the_parameters(text: str, params: dict[str, int], cycles: float) -> None:
    assert evaluate_cost(text, params) == cycles
    assert cost_names(text) == frozenset(params)


@pytest.mark.parametrize("text", ["", "n +", "n.real", "__import__('os')", "[n]", "n ** 9999999", "True", "1 / 0"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(TargetError):
        cost_names(text)
