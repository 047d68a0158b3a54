"""Parameters: bounds of costs hold, costs are looked at where parameters can be, contradictions are found exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.base.errors import TargetError
from dovetail.ir.parse import parse_conditions
from dovetail.ir.program import Size
from dovetail.targets.cost import cost_bounds, evaluate_cost
from dovetail.targets.parameters import check_constraints, check_cost, least_values
from dovetail.targets.tables import Entry, Place

ENTRY = Entry(Place("t.toml", "[[instruction]] #1 'i'"), {})
M, N = Size("m", 1, 64), Size("n", 0, 1 << 30)
LEAVES = st.sampled_from(["m", "n", "1", "3", "0.5", "-2"])
COSTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(lambda t: f"({' '.join(t)})"),
        inner.map(lambda text: f"ceil({text})"),
        st.tuples(st.sampled_from(["max", "min"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    ),
    max_leaves=6,
)


@given(COSTS, st.integers(-5, 5), st.integers(0, 9), st.integers(-5, 5), st.integers(0, 9))
def test_a_cost_lies_within_its_bounds(text: str, m: int, wide: int, n: int, high: int) -> None:
    bounds = cost_bounds(text, {"m": (m, m + wide), "n": (n, n + high)})
    if bounds is None:
        return
    for values in ({"m": a, "n": b} for a in range(m, m + wide + 1) for b in range(n, n + high + 1)):
        assert bounds[0] <= evaluate_cost(text, values) <= bounds[1]


@pytest.mark.parametrize(
    ("cost", "where"),
    [
        ("m - 8", "m >= 8"),
        ("8 / (m - 3)", "m % 2 == 0, m >= 4"),
        ("n - m", "n >= m"),
        ("n % 7 + m * n / (n + 1)", "m >= 1"),
        ("max(0, 5 - n)", "m >= 1"),
    ],
)
def test_only_values_that_parameters_have_count(cost: str, where: str) -> None:
    check_cost("cycles", cost, (M, N), tuple(parse_conditions(where, (M, N), "where")), ENTRY)


@pytest.mark.parametrize(
    ("cost", "where", "message"),
    [
        ("m - 8", "m >= 7", "is -1 when m = 7"),
        ("8 / (m - 3)", "m % 2 == 1, m >= 3", "divides by zero"),
        ("n - m", "n <= 1000000", "is -1 when m = 1, n = 0"),
        ("(1 << 2)", "m >= 1", "has no meaning"),
        ("max(m)", "m >= 1", "has no meaning"),
        ("m" + " + m" * 200, "m >= 1", "a cost of 801 characters"),
    ],
)
def test_a_cost_that_fails_somewhere_is_refused(cost: str, where: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        check_cost("cycles", cost, (M, N), tuple(parse_conditions(where, (M, N), "where")), ENTRY)


def test_a_rare_solution_is_found_and_none_is_not_invented() -> None:
    rare = tuple(parse_conditions("n % 999983 == 7, n >= 536000000", (M, N), "where"))
    check_constraints((M, N), rare, ENTRY)
    least = least_values((M, N), rare)
    assert least["m"] == 1 and least["n"] % 999983 == 7 and 536000000 <= least["n"] < 537000000
    never = tuple(parse_conditions("n % 4 == 1, m >= 3, n % 2 == 0", (M, N), "where"))
    with pytest.raises(TargetError, match="no parameters meet") as caught:
        check_constraints((M, N), never, ENTRY)
    assert caught.value.why == "n % 4 == 1, n % 2 == 0, n in 0..1073741824"
