"""What functions are known to be by their spelling."""

import pytest

from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.text import parse_term
from dovetail.rewrite import algebra


@pytest.mark.parametrize(
    "text",
    ["add", "mul", "max", r"\a b -> map(add, zip(a, b))", r"\a b -> map(\c d -> map(max, zip(c, d)), zip(a, b))"],
)
def test_associative(text: str) -> None:
    assert algebra.associative(simplify(parse_term(text)))


@pytest.mark.parametrize("text", ["sub", "div", "exp", r"\a b -> b + a * b", r"\a b -> map(add, zip(a, a))"])
def test_not_associative(text: str) -> None:
    assert not algebra.associative(simplify(parse_term(text)))


@pytest.mark.parametrize(
    ("function", "value", "is_neutral"),
    [
        ("add", "0", True),
        ("add", "0.0", True),
        ("add", "1", False),
        ("mul", "1", True),
        ("max", "-inf", True),
        ("max", "0", False),
        ("min", "inf", True),
        ("sub", "0", False),
        ("add", "none", False),
        (r"\a b -> map(add, zip(a, b))", "repeat(8, 0)", True),
        (r"\a b -> map(add, zip(a, b))", "repeat(8, 1)", False),
        ("add", "x", False),
    ],
)
def test_neutral(function: str, value: str, is_neutral: bool) -> None:
    assert algebra.neutral(simplify(parse_term(function)), parse_term(value)) == is_neutral


@pytest.mark.parametrize(
    "text",
    [
        "mul",
        r"\a b -> b * a",
        r"\a b -> reduce(add, 0, map(mul, zip(a, b)))",
        r"\a b -> reduce(add, 0, map(\c d -> reduce(add, 0, map(mul, zip(c, d))), zip(a, b)))",
        r"\a b -> map(\r -> reduce(add, 0, map(mul, zip(r, b))), a)",
        r"\a b -> a * b + 2 * a * b",
        r"\a b -> -(a * b)",
        r"\a b -> w * a * b",
        r"\a b -> (a + a) * b",
        r"\a b -> map(mul, zip(transpose(a), b))",
    ],
)
def test_bilinear(text: str) -> None:
    assert algebra.bilinear(simplify(parse_term(text)))


@pytest.mark.parametrize(
    "text",
    [
        "add",
        "max",
        r"\a b -> a * a",
        r"\a b -> a * b + 1",
        r"\a b -> a * b + a",
        r"\a b -> a * b * b",
        r"\a b -> exp(a) * b",
        r"\a b -> reduce(max, 0, map(mul, zip(a, b)))",
        r"\a b -> reduce(add, 1, map(mul, zip(a, b)))",
        r"\a b -> reduce(add, 0, map(add, zip(a, b)))",
        r"\a b -> a / b",
        r"\a -> a * a",
    ],
)
def test_not_bilinear(text: str) -> None:
    assert not algebra.bilinear(simplify(parse_term(text)))


@pytest.mark.parametrize(
    "text",
    [
        r"\a -> a",
        r"\a -> 2 * a",
        "neg",
        r"\a -> a - 3 * a",
        r"\a -> map(\v -> v * 2, a)",
        "reduce(add, 0)",
        "transpose",
    ],
)
def test_linear(text: str) -> None:
    assert algebra.linear(simplify(parse_term(text)))


@pytest.mark.parametrize(
    "text", [r"\a -> a + 1", r"\a -> a * a", "exp", r"\a -> map(abs, a)", "reduce(max, 0)", r"\a -> 3", "mul"]
)
def test_not_linear(text: str) -> None:
    assert not algebra.linear(simplify(parse_term(text)))


def test_distribution_is_of_one_operation_over_another() -> None:
    mul, add = parse_term("mul"), parse_term("add")
    assert algebra.distributes(mul, add)
    assert not algebra.distributes(add, mul)


def test_functions_that_pass_over_none_are_not_strict() -> None:
    assert algebra.strict(parse_term(r"\a -> exp(a) + 1"))
    assert not algebra.strict(parse_term(r"\a -> orelse(a, 0)"))
    assert not algebra.strict(parse_term("reduce(add, 0)"))
    assert not algebra.strict(parse_term(r"\a -> 3"))
    assert not algebra.strict(parse_term(r"\a b -> a"))
