"""Terms, types and definitions as text."""

from __future__ import annotations

import pytest

from dovetail.base.errors import ParseError
from dovetail.ir.functional.show import show
from dovetail.ir.functional.term import Call, Lambda, Literal, Meta, Pattern, Scalar, Var
from dovetail.ir.functional.text import parse_definition, parse_definitions, parse_term, parse_type
from dovetail.ir.index import constant, variable

SPELLED = [
    "x + y * 2 - (a - b)",
    "-x * 2",
    "(-3) * x",
    "neg(3)",
    "x < y & ~z | (a ^ b) == c",
    "\\a b -> a + b",
    "(\\a -> a)(x)",
    "f(x)(y, z)",
    "map(f)(x)",
    "add(x)",
    "map(transpose, split(4, x))",
    "let a = x in a + a",
    "(let a = x in a) + 1",
    "select(a >= 0.5, a, -inf)",
    "f16(bitcast_i16(x))",
    "orelse(x, none)",
    'to("", x)',
    'to("L1 cache", to(scratchpad, x))',
    "view([i<4, j<n where i + j >= 1: i + 2 * j, j // 2], x)",
    "view([: 3], x)",
    "scatter(max=, 8, n, [i<4: i, 0], x)",
    "slice(0, n - 1, 2, iota(2 * n))",
    "map(?f, slide(?n, ?n - 1, ?x))",
    "split((?m // ?n), to(?memory, view(?p, ?x)))",
    "tuple(1, 1.0, true, nan, 1e-05, -0.0)",
]


@pytest.mark.parametrize("text", SPELLED)
def test_text_reads_and_prints_as_it_was(text: str) -> None:
    term = parse_term(text)
    assert " ".join(str(term).split()) == text
    assert parse_term(show(term, 12)) == term


@pytest.mark.parametrize(
    "text", ["f32", "f32[8, n]", "(f32, i32[4])[n]", "(f32, f32) -> f32", "((f32, f32)) -> f32", "?a[?n] -> ?a -> ?b"]
)
def test_types_read_and_print_as_they_were(text: str) -> None:
    assert str(parse_type(text)) == text


def test_an_array_of_functions_prints_with_parentheses() -> None:
    assert str(parse_type("(f32 -> f32)[4]")) == "(f32 -> f32)[4]"
    assert str(parse_type("(f32 -> f32) -> f32")) == "(f32 -> f32) -> f32"


def test_composition_is_a_function_that_applies_both() -> None:
    v = Var("v")
    assert parse_term("?f . ?g") == Lambda(("v",), Call(Meta("f"), (Call(Meta("g"), (v,)),)))
    inner = Pattern("split", (constant(4),), (v,))
    assert parse_term("map(exp) . split(4)") == Lambda(("v",), Pattern("map", (), (Scalar("exp"), inner)))
    assert parse_term("f . g(v)") == Lambda(("v0",), Call(Var("f"), (Call(Call(Var("g"), (v,)), (Var("v0"),)),)))


def test_numbers_are_as_written() -> None:
    assert Literal(1) != Literal(1.0) != Literal(True)
    assert Literal(float("nan")) == Literal(float("nan"))
    assert parse_term("-2") == Literal(-2)
    assert parse_term("tuple(0.0)") != parse_term("tuple(-0.0)")


def test_sizes_of_settings_are_indices() -> None:
    assert parse_term("split(2 * n + 1, x)") == Pattern("split", (variable("n") * 2 + 1,), (Var("x"),))


def test_a_definition_reads_back_over_several_lines() -> None:
    text = """
    size n in 1..64
    def layer(const w: f32[64, n], x: f32[n], inout b: f32[64]) -> b =
      let products = map(\\row -> reduce(add, 0, map(mul, zip(row, x))), w) in
      map(\\p q -> max(p + q, 0), zip(products, b))
    """
    definition = parse_definition(text)
    assert [param.role.value for param in definition.params] == ["const", "in", "inout"]
    assert str(definition) == "\n".join(line.removeprefix("    ") for line in text.strip("\n ").splitlines())
    assert parse_definition(str(definition)) == definition
    assert parse_definitions(f"{definition}\n{definition}") == (definition, definition)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("map(f, x", "expected '\\)'"),
        ("map(f, x, y)", "map takes 2 terms, not 3"),
        ("max(a, b, c)", "max takes 2 terms, not 3"),
        ("split", "split needs its settings: split\\(n\\)"),
        ("split(x[2])", "expected '\\)'"),
        ("\\map -> map", "'map' is a word of the language"),
        ("\\a a -> a", "two values of one name"),
        ("let in = 3 in x", "'in' is a word of the language"),
        ("x @ y", "unexpected character '@'"),
        ("slide(3, // 2, x)", "expected a size"),
        ("split(0 // 0, x)", "positive number"),
        ("view([i<4 where i: i], x)", "expected a comparison"),
        ("scatter(-=, 8, [i<8: i], x)", "expected one of = \\+="),
        ("(" * 200 + "x", "more than 100 levels"),
        ("let a = x in " * 300 + "x", "more than 200 lets"),
        ("", "expected a term"),
    ],
)
def test_text_that_is_no_term_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_term(text)
