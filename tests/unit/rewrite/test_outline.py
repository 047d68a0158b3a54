"""Rules made for a place, and the tables that mapping uses: each keeps types and values wherever it fires."""

import numpy as np
import pytest

from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.term import Definition, Param, Pattern
from dovetail.ir.functional.text import parse_definition, parse_term
from dovetail.ir.functional.type_text import parse_type
from dovetail.ir.program import Role
from dovetail.rewrite.check.rules import Effort, check_rule
from dovetail.rewrite.operations import to_operations
from dovetail.rewrite.outline import broadcast, fission, store
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.run import Run
from dovetail.rewrite.tables.arithmetic import ARITHMETIC
from dovetail.rewrite.tables.nests import ROWS, SUMS

EFFORT = Effort(terms=3, examples=200)


def mapped(text: str) -> Pattern:
    term = parse_term(text)
    assert isinstance(term, Pattern)
    return term


def test_a_part_of_a_function_gets_a_pass_of_its_own() -> None:
    rule = fission(mapped(r"map(\a b c -> max(a + b, c), zip(x, y, z))"), (0, 0, 0))
    assert rule is not None
    assert str(rule.before) == r"map(\a b c -> max(?part(a, b), c), zip(?x0, ?x1, ?x2))"
    assert str(rule.after) == r"map(\v c -> max(v, c), zip(map(\a b -> ?part(a, b), zip(?x0, ?x1)), ?x2))"


def test_what_lies_beside_the_way_to_a_part_is_a_meta() -> None:
    rule = store(parse_term("let a = map(f, g(x, h(y))) in k(a)"), (0, 1, 2), "v")
    assert " ".join(str(rule.before).split()) == "let a = map(?m1, ?m2(?m3, ?part)) in ?m4(a)"
    assert " ".join(str(rule.after).split()) == "let v = ?part in let a = map(?m1, ?m2(?m3, v)) in ?m4(a)"


def test_a_number_becomes_a_row() -> None:
    rule = broadcast(mapped(r"map(\v -> v * 2, x)"), (0, 0, 1), "f32")
    assert rule is not None
    assert str(rule.before) == r"map(\v -> v * ?part, ?x0)"
    assert str(rule.after) == r"map(\v v0 -> v * v0, zip(?x0, repeat(?n, f32(?part))))"
    assert rule.types == ("x0: ?t[?n]",)


def test_a_part_that_is_the_same_for_all_elements_is_not_taken_out_of_the_pass() -> None:
    assert fission(mapped(r"map(\a -> a + reduce(add, 0, y), x)"), (0, 0, 1)) is None


def test_a_chain_of_operations_is_in_the_order_of_what_needs_what() -> None:
    run = Run(parse_definition(r"def f(x: f32[8], y: f32[8]) -> z = map(\a b -> exp(a * b) - a, zip(x, y))"))
    to_operations(run)
    assert str(run.definition).splitlines()[1:] == [
        "  let v2 = map(mul, zip(x, y)) in",
        "  let v1 = map(exp, v2) in",
        "  map(sub, zip(v1, x))",
    ]
    assert {step.rule for step in run.steps} == {"store", "map-fission"}


def made_rules() -> list[Rule]:
    """Rules as they are made at typical places."""
    found = [
        fission(mapped(r"map(\a b -> max(a + b, 0), zip(x, y))"), (0, 0, 0)),
        fission(mapped(r"map(\a b c -> select(a < b, a * c, c), zip(x, y, z))"), (0, 0, 1)),
        fission(mapped(r"map(\r -> map(exp, map(neg, r)), x)"), (0, 0, 1)),
        store(parse_term(r"map(exp, map(neg, x))"), (1,), "v"),
    ]
    return [rule for rule in found if rule is not None]


@pytest.mark.parametrize("rule", made_rules(), ids=lambda rule: f"{rule.name}: {rule.before}")
def test_a_rule_that_is_made_for_a_place_keeps_the_value(rule: Rule) -> None:
    report = check_rule(rule, EFFORT)
    assert report.ok, report


@pytest.mark.parametrize(
    "rule", [ROWS, *SUMS, *(rule for rule in ARITHMETIC if rule.kind != "relaxed")], ids=lambda rule: rule.name
)
def test_a_rule_that_mapping_uses_keeps_the_value(rule: Rule) -> None:
    report = check_rule(rule, EFFORT)
    assert report.ok, report


def test_the_logistic_function_by_tanh_is_off_by_what_is_stated() -> None:
    (rule,) = (rule for rule in ARITHMETIC if rule.kind == "relaxed")
    assert rule.error.startswith("2 * eps, absolute")
    body = parse_term(str(rule.after).replace("?a", "x"))
    x = np.linspace(-40, 40, 4001)
    definition = Definition(
        "f", (Param(Role.IN, "x", parse_type("f64[4001]")),), ("y",), mapped(rf"map(\x -> {body}, x)")
    )
    found = np.asarray(evaluate(definition, {"x": x})["y"], np.float64)
    assert np.max(np.abs(found - 1 / (1 + np.exp(-x)))) <= 2 * 2.0**-52
