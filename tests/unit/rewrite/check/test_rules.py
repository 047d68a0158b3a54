"""What ``check_rule`` says of rules that are right, wrong, and never used."""

from __future__ import annotations

from dataclasses import replace

from dovetail.rewrite.check.rules import Effort, check_rule
from dovetail.rewrite.rule import Rule

QUICK = Effort(terms=4, examples=64)


def test_a_right_rule_has_as_many_examples_as_asked_for() -> None:
    rule = Rule("twice", "transpose(transpose(?x))", "?x")
    report = check_rule(rule, QUICK)
    assert report.ok
    assert report.examples == 64
    assert str(report) == "twice: 64 examples, bit-exact"


def test_a_wrong_rule_is_shown_with_the_term_and_the_values_that_differ() -> None:
    report = check_rule(Rule("backwards", "sub(?a, ?b)", "sub(?b, ?a)"), QUICK)
    assert not report.ok
    assert "before, " in str(report)
    assert "->" in str(report)


def test_a_rule_whose_sides_have_different_types_is_not_run() -> None:
    report = check_rule(Rule("flat", "split(?n, ?x)", "?x"), QUICK)
    assert not report.ok
    assert report.examples == 0


def test_a_rule_that_is_right_for_some_functions_only_is_found_out() -> None:
    rule = Rule("linear", r"map(\v -> add(?f(v), ?f(v)), ?x)", r"map(\v -> ?f(add(v, v)), ?x)")
    assert not check_rule(rule, QUICK).ok


def test_a_sum_in_another_order_is_not_bit_exact() -> None:
    rule = Rule(
        "parts",
        "reduce(add, 0, ?x)",
        "reduce(add, 0, map(reduce(add, 0), split(?n, ?x)))",
        types=("x: f32[?m]",),
        choose=("n: divisors(?m)",),
    )
    assert not check_rule(rule).ok
    assert check_rule(replace(rule, kind="reassociating")).ok


def test_a_relaxed_rule_must_keep_its_stated_error() -> None:
    rule = Rule("close", "mul(?a, f32(?b))", "mul(1.0000001, mul(?a, f32(?b)))", kind="relaxed", error="4 * eps")
    assert not check_rule(rule, QUICK).ok


def test_a_rule_that_never_fires_is_not_right() -> None:
    rule = Rule("never", "split(?n, ?x)", "split(?n, ?x)")
    assert check_rule(rule, Effort(tries=100)).failure == "it never fires"


def test_rules_about_operators_are_checked_on_graphs() -> None:
    right = Rule("twice", "neg(neg(?x))", "?x", level="dsl")
    wrong = Rule("once", "neg(neg(?x))", "neg(?x)", level="dsl")
    assert check_rule(right, QUICK).ok
    report = check_rule(wrong, QUICK)
    assert not report.ok
    assert "neg(x_x)" in str(report)
