"""The matcher over terms."""

import pytest

from dovetail.ir.functional.simplify import same, simplify
from dovetail.ir.functional.sizes import parse_size
from dovetail.ir.functional.text import parse_term
from dovetail.rewrite.build import build
from dovetail.rewrite.match import Binding, match
from dovetail.rewrite.rule import Rule, compiled
from dovetail.rewrite.term_host import TermHost


def bindings(before: str, subject: str) -> list[dict[str, str]]:
    """What metas and size metas stand for, for every match."""
    shape = compiled(Rule("r", before, before)).shape
    found = match(shape, simplify(parse_term(subject)), TermHost())
    return [{k: str(v) for part in (b.terms, b.settings) for k, v in part.items()} for b in found]


def test_metas_stand_for_whatever_is_there() -> None:
    assert bindings("map(?f, map(?g, ?x))", "map(exp, map(neg, transpose(y)))") == [
        {"f": "exp", "g": "neg", "x": "transpose(y)"}
    ]


def test_another_operation_does_not_match() -> None:
    assert bindings("map(?f, map(?g, ?x))", "map(exp, join(y))") == []


def test_a_meta_that_occurs_twice_is_the_same_term_up_to_bound_names() -> None:
    assert bindings("zip(?x, ?x)", r"zip(map(\a -> a * a, y), map(\b -> b * b, y))") == [{"x": r"map(\a -> a * a, y)"}]
    assert bindings("zip(?x, ?x)", "zip(y, z)") == []


def test_only_commutative_operations_are_tried_in_both_orders() -> None:
    assert bindings("?x + ?y * ?x", "b * a + a") == [{"x": "a", "y": "b"}]
    assert len(bindings("?x + ?y", "a + b")) == 2
    assert len(bindings("?x + ?y", "a + a")) == 1
    assert bindings("?x - ?y", "a - b") == [{"x": "a", "y": "b"}]


def test_settings_are_sizes_that_are_bound_or_compared() -> None:
    assert bindings("split(?n, ?x)", "split(4, y)") == [{"x": "y", "n": "4"}]
    assert bindings("slide(?n, ?n, ?x)", "slide(3, 3, y)") == [{"x": "y", "n": "3"}]
    assert bindings("slide(?n, ?n, ?x)", "slide(3, 1, y)") == []
    assert bindings("slide(2 * ?n + 1, 1, ?x)", "slide(7, 1, y)") == [{"x": "y", "n": "3"}]
    assert bindings("slide(2 * ?n + 1, 1, ?x)", "slide(8, 1, y)") == []
    assert bindings("split(4, ?x)", "split(8, y)") == []


def test_places_match_up_to_the_names_of_loops() -> None:
    assert bindings("view([i<?n, j<?m: j, i], ?x)", "view([p<3, q<5: q, p], y)") == [{"x": "y", "n": "3", "m": "5"}]
    assert bindings("view([i<?n, j<?m: j, i], ?x)", "view([p<3, q<5: p, q], y)") == []
    assert bindings("view([i<8 where i < ?k: i + ?k], ?x)", "view([p<8 where p < 3: p + 3], y)") == [
        {"x": "y", "k": "3"}
    ]
    assert bindings("view([i<8 where i < ?k: i + ?k], ?x)", "view([p<8 where p < 3: p + 4], y)") == []
    assert len(bindings("zip(view(?p, ?x), view(?p, ?y))", "zip(view([i<8: 2 * i], a), view([j<8: 2 * j], b))")) == 1


def test_names_of_memories_are_settings() -> None:
    assert bindings("to(?m, ?x)", "to(chip, y)") == [{"x": "y", "m": "chip"}]


def test_functions_match_up_to_the_names_they_bind() -> None:
    assert bindings(r"map(\a -> a + ?c, ?x)", r"map(\v -> v + w, y)") == [{"c": "w", "x": "y"}]
    assert bindings(r"map(\a b -> a - b, ?x)", r"map(\p q -> p - q, y)") == [{"x": "y"}]
    assert bindings(r"map(\a b -> a - b, ?x)", r"map(\p q -> q - p, y)") == []


def test_a_meta_does_not_stand_for_a_term_with_a_variable_of_the_rule() -> None:
    assert bindings(r"map(\a -> ?c, ?x)", r"map(\v -> v + w, y)") == []
    assert bindings(r"map(\a -> ?c, ?x)", r"map(\v -> w, y)") == [{"c": "w", "x": "y"}]


def test_a_function_of_bound_variables_is_found_again() -> None:
    before = r"map(\a -> map(\b -> ?f(a, b), ?y), ?x)"
    assert bindings(before, r"map(\i -> map(\j -> i * exp(j), w), z)") == [
        {"f": r"\i j -> i * exp(j)", "y": "w", "x": "z"}
    ]
    assert bindings(before, r"map(\i -> map(\j -> j - i, w), z)") == [{"f": r"\i j -> j - i", "y": "w", "x": "z"}]
    assert bindings(before, r"map(\i -> map(\j -> j - i, i), z)") == []


def test_a_function_is_written_as_short_as_can_be() -> None:
    assert bindings(r"map(\a -> map(\b -> ?f(a, b), ?y), ?x)", r"map(\i -> map(\j -> i * j, w), z)")[0]["f"] == "mul"


def test_a_composition_is_taken_apart_at_its_outermost_operation() -> None:
    assert bindings("map(?f . ?g, ?x)", r"map(\v -> max(v + b, 0), y)") == [
        {"f": r"\v0 -> max(v0, 0)", "g": r"\v -> v + b", "x": "y"}
    ]


def test_both_uses_of_a_variable_keep_a_composition_together() -> None:
    assert bindings("map(?f . ?g, ?x)", r"map(\v -> exp(v) * v, y)") == []


def test_a_primitive_is_a_function_of_its_values() -> None:
    assert bindings(r"reduce(\a b -> a + b, 0, ?x)", "reduce(add, 0, y)") == [{"x": "y"}]
    assert bindings(r"map(\v -> map(\w -> ?f(v, w), v), ?x)", "map(map(exp), y)") == [
        {"f": r"\v v0 -> exp(v0)", "x": "y"}
    ]


def test_what_is_left_out_of_a_commutative_operation_may_stand_on_either_side() -> None:
    assert bindings(r"map(\v -> ?c * v, ?x)", r"map(\a -> a * w, y)") == [{"c": "w", "x": "y"}]
    assert bindings(r"map(\v -> ?c * v, ?x)", r"map(\a -> w * a, y)") == [{"c": "w", "x": "y"}]
    assert bindings(r"map(\v -> v * ?c, ?x)", r"map(\a -> w * a, y)") == [{"c": "w", "x": "y"}]
    assert bindings(r"map(\v -> ?c - v, ?x)", r"map(\a -> a - w, y)") == []


def test_a_hidden_variable_is_another_one() -> None:
    assert bindings(r"map(\a -> map(\b -> a + b, ?y), ?x)", r"map(\v -> map(\v -> v + v, y), x)") == []


def test_a_let_is_matched_with_its_value() -> None:
    assert bindings("let v = ?x in map(?f, v)", "let t = exp(y) in map(neg, t)") == [{"x": "exp(y)", "f": "neg"}]


@pytest.mark.parametrize("text", ["0", "0.0"])
def test_a_number_is_the_same_however_it_is_written(text: str) -> None:
    assert bindings("max(?x, 0)", f"max(y, {text})") == [{"x": "y"}]


def test_zero_is_not_minus_zero() -> None:
    assert bindings("?x + 0", "y + -0.0") == []


def test_names_that_the_right_side_binds_catch_no_variable() -> None:
    read = compiled(Rule("r", "map(?f, map(?g, ?x))", r"map(\v -> ?f(?g(v)), ?x)"))
    (binding,) = match(read.shape, parse_term(r"map(\a -> a + v, map(\a -> a * w, y))"), TermHost())
    assert same(build(read.after, binding) or parse_term("none"), parse_term(r"map(\u -> u * w + v, y)"))


def test_sizes_of_the_right_side_are_computed() -> None:
    read = compiled(Rule("r", "split(?n, split(?m, ?x))", "split(?n * ?m, slide(?m // ?n, ?m % ?n + 1, ?x))"))
    (binding,) = match(read.shape, parse_term("split(4, split(10, y))"), TermHost())
    assert str(build(read.after, binding)) == "split(40, slide(2, 3, y))"
    assert build(read.after, Binding(binding.terms, {**binding.settings, "n": parse_size("n")}, {})) is None
