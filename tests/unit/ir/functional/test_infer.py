"""Types of terms: sizes forwards and backwards, numbers, functions, metas."""

from __future__ import annotations

import pytest

from dovetail.base.errors import TermError
from dovetail.ir.functional.infer import check, infer, types_of, typing_of
from dovetail.ir.functional.inference import Inference
from dovetail.ir.functional.sizes import parse_size, substitute
from dovetail.ir.functional.text import parse_definition, parse_term, parse_type
from dovetail.ir.index import constant, variable

GIVEN = {
    "x": "f32[12]",
    "h": "f16[8]",
    "i": "i8[8]",
    "w": "f32[4, 12]",
    "m": "f32[n, 3]",
    "v": "f32[4 * n]",
    "b": "bool[8]",
    "s": "f32",
}
ENV = {name: parse_type(text) for name, text in GIVEN.items()}

CASES = [
    ("map(\\e -> e + 1, x)", "f32[12]"),
    ("split(4, x)", "f32[3, 4]"),
    ("split(4, v)", "f32[n, 4]"),
    ("split(n, v)", "f32[4, n]"),
    ("join(m)", "f32[3 * n]"),
    ("join(split(n, v))", "f32[4 * n]"),
    ("slide(3, 1, m)", "f32[n - 2, 3, 3]"),
    ("slide(3, 2, x)", "f32[5, 3]"),
    ("slide(3, 2, m)", "f32[(n + 1) // 2 - 1, 3, 3]"),
    ("transpose(w)", "f32[12, 4]"),
    ("pad(1, n, 0, x)", "f32[n + 13]"),
    ("pad(1, 1, none, w)", "f32[6, 12]"),
    ("slice(1, 4, 3, x)", "f32[4]"),
    ("repeat(n, x)", "f32[n, 12]"),
    ("iota(n)", "i64[n]"),
    ("zip(x, join(split(3, x)))", "(f32, f32)[12]"),
    ("tuple(x, 1, true)", "(f32[12], i64, bool)"),
    ("get(1, tuple(x, 0.5))", "f32"),
    ("array(s, 1, 2)", "f32[3]"),
    ("to(scratchpad, x)", "f32[12]"),
    ("view([p<4, q<3: 3 * p + q], x)", "f32[4, 3]"),
    ("view([p<4: p], w)", "f32[4, 12]"),
    ("view([: 2], w)", "f32[12]"),
    ("scatter(+=, 9, [p<8: p + 1], h)", "f32[9]"),
    ("scatter(=, 9, [p<8: p + 1], h)", "f16[9]"),
    # numbers take the type of what they meet; small floats are computed in f32
    ("reduce(add, 0, h)", "f32"),
    ("reduce(add, 0, i)", "i8"),
    ("reduce(add, i32(0), i)", "i32"),
    ("map(add, zip(h, i))", "f32[8]"),
    ("map(f16, map(add, zip(h, i)))", "f16[8]"),
    ("map(\\e -> orelse(e, 0), h)", "f16[8]"),
    ("map(\\e -> select(e > 0, 1, 0), h)", "i64[8]"),
    ("map(\\e -> select(e, 1.0, 0), b)", "f32[8]"),
    ("scan(\\t e -> t / 2 + e, 0, h)", "f32[8]"),
    ("scan(\\t e -> t * 2 + e, 1, i)", "i8[8]"),
    ("map(\\e -> select(e > 0, 1 + 1, -1) * e, h)", "f32[8]"),
    ("exp(1)", "f32"),
    ("1 + 2", "i64"),
    ("1 + 2.0", "f32"),
    ("array(1, 2.5)", "f32[2]"),
    # functions of several values take tuples; what is left out makes a function
    ("map(\\p q -> p * q, zip(x, x))", "f32[12]"),
    ("map(\\p -> get(0, p) * get(1, p), zip(x, x))", "f32[12]"),
    ("(\\p q -> p * q)(tuple(s, s))", "f32"),
    ("map(reduce(add, 0), split(3, x))", "f32[4]"),
    ("map(map(\\e -> -e), w)", "f32[4, 12]"),
    ("map(mul(s), x)", "f32[12]"),
    ("(map(map(exp)) . split(3))(x)", "f32[4, 3]"),
    ("let f = \\e -> e + s in map(f, x)", "f32[12]"),
    ("reduce(\\p q -> map(add, zip(p, q)), repeat(12, 0), w)", "f32[12]"),
    ("map(\\row -> reduce(add, 0, map(mul, zip(row, x))), w)", "f32[4]"),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_a_term_has_this_type(text: str, expected: str) -> None:
    assert infer(parse_term(text), ENV) == parse_type(expected)


def test_every_subterm_has_a_type_under_its_path() -> None:
    found = types_of(parse_term("map(\\row -> reduce(add, 0, row), split(4, x))"), ENV).at
    assert found[()] == parse_type("f32[3]")
    assert found[0,] == parse_type("f32[4] -> f32")
    assert found[0, 0, 1] == parse_type("f32")
    assert found[1,] == parse_type("f32[3, 4]")


def test_metas_and_the_sizes_of_a_rule_are_solved() -> None:
    typing = types_of(
        parse_term("map(?f, split(?n, ?x))"), {"?x": parse_type("f32[?m]"), "?f": parse_type("?a -> i32")}
    )
    assert str(typing.metas["f"]) == "f32[?n] -> i32"
    inference = Inference()
    before, after = (inference.infer(parse_term(t), {}) for t in ("join(split(?n, ?x))", "?x"))
    inference.demand(before, after, "the sides differ")
    inference.settle()


def test_sides_of_different_size_are_found() -> None:
    inference = Inference()
    before = inference.infer(parse_term("split(?n, ?x)"), {"?x": parse_type("f32[12]"), "?n": parse_type("f32")})
    with pytest.raises(TermError, match="the sides differ"):
        inference.demand(before, parse_type("i32[?k, ?n]"), "the sides differ")


def test_a_waiting_size_is_checked_when_it_is_known() -> None:
    term = parse_term("\\f -> zip(slide(3, 2, f), slide(2, 2, f))")
    assert infer(parse_term("(\\f -> zip(slide(3, 2, f), slide(2, 2, slice(0, 10, 1, f))))(x)"), ENV)
    with pytest.raises(TermError, match="does not fit"):
        infer(parse_term(f"({term})(x)"), ENV)


def test_run_time_sizes_are_numbers_and_their_ranges_are_used() -> None:
    text = "def mean(x: f32[n]) -> y = reduce(add, 0, x) / f32(n)"
    assert [str(t) for t in check(parse_definition(f"size n in 1..8 {text}"))] == ["f32"]
    windows = "def f(x: f32[n]) -> y = slide(3, 1, x)"
    assert [str(t) for t in check(parse_definition(f"size n in 3..8 {windows}"))] == ["f32[n - 2, 3]"]
    with pytest.raises(TermError, match="windows of 3 elements do not fit"):
        check(parse_definition(f"size n in 1..8 {windows}"))


def test_several_results_are_a_tuple() -> None:
    definition = parse_definition("def f(x: f32[4]) -> a, b = tuple(x, map(neg, x))")
    assert [str(t) for t in check(definition)] == ["f32[4]", "f32[4]"]
    assert typing_of(definition).at[1, 1] == parse_type("f32[4]")


def test_sizes_multiply_out_and_cancel() -> None:
    product = parse_size("(?k + 1) * ?n")
    assert str(product) == "?k * ?n + ?n"
    assert substitute(product, {"?n": constant(4)}) == parse_size("4 * ?k + 4")
    assert parse_size("?k * ?n // ?n") == variable("?k")
    assert parse_size("?k * ?n % ?n") == constant(0)
    rest = parse_size("?m // ?n + 2 * (?m % ?n)")
    assert substitute(rest, {"?m": constant(14), "?n": constant(4)}) == constant(3 + 2 * 2)
    assert parse_size(str(rest)) == rest


def test_sizes_that_could_be_anything_are_kept_apart() -> None:
    inference = Inference()
    before = inference.infer(parse_term("transpose(?x)"), {})
    sizes = inference.open_sizes()
    assert len(sizes) == 2 and inference.narrowed(sizes) is None
    inference.demand(before, inference.infer(parse_term("?x"), {}), "the sides differ")
    assert inference.narrowed(sizes) is not None
