"""Terms made shorter."""

from __future__ import annotations

import pytest

from dovetail.ir.functional.simplify import same, simplify
from dovetail.ir.functional.text import parse_term

PAIRS = [
    ("(\\v -> v * v)(x)", "x * x"),
    ("(\\a b -> a - b)(x, y)", "x - y"),
    ("(\\a b -> a - b)(tuple(x, y))", "x - y"),
    ("(\\a b -> a - b)(p)", "get(0, p) - get(1, p)"),
    ("(\\p -> get(0, p) - get(1, p))(x, y)", "x - y"),
    ("map(exp)(x)", "map(exp, x)"),
    ("reduce(add)(0, x)", "reduce(add, 0, x)"),
    ("add(x)(y)", "x + y"),
    ("get(1, tuple(a, b))", "b"),
    ("\\v -> map(f, v)", "map(f)"),
    ("\\z x -> reduce(add, z, x)", "reduce(add)"),
    ("\\a b -> a + b", "add"),
    ("\\a -> f(a)", "f"),
    ("map(\\row -> map(\\e -> exp(e), row), x)", "map(map(exp), x)"),
    ("let a = b in map(f, a)", "map(f, b)"),
    ("let g = \\e -> e + 1 in map(g, x)", "map(\\e -> e + 1, x)"),
    ("let g = reduce(add, 0) in map(g, x)", "map(reduce(add, 0), x)"),
    ("let unused = map(f, x) in y", "y"),
    ("(let v = f(u) in \\w -> w + v)(v)", "let v0 = f(u) in v + v0"),
    ("(map(exp) . split(4))(x)", "map(exp, split(4, x))"),
    ("(\\a -> \\b -> a - b)(b)", "sub(b)"),
    ("(\\a -> \\b -> b - a)(b)", "\\c -> c - b"),
]
KEPT = [
    "\\b a -> a - b",
    "\\v -> map(\\e -> e + reduce(add, 0, v), v)",
    "\\a b -> zip(a, b)",
    "\\v -> v(v)",
    "\\v -> f(v)(v)",
    "let a = map(f, x) in map(g, zip(a, a))",
    "let one = 1 in x + one",
    "get(0, p)",
    "(\\a b c -> a)(x, y)",
]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_this_becomes_that(before: str, after: str) -> None:
    found = simplify(parse_term(before))
    assert same(found, parse_term(after)), f"{before} became {found}"


@pytest.mark.parametrize("text", KEPT)
def test_this_stays(text: str) -> None:
    assert simplify(parse_term(text)) == parse_term(text)


def test_terms_that_differ_in_bound_names_only_are_the_same() -> None:
    assert same(parse_term("\\a -> let b = a in b + c"), parse_term("\\x -> let y = x in y + c"))
    assert not same(parse_term("\\a b -> a - b"), parse_term("\\a b -> b - a"))
    assert not same(parse_term("\\a -> a + b"), parse_term("\\a -> a + c"))
