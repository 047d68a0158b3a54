"""Strategies, their limits, and derivations."""

import json

import pytest

from dovetail.base.errors import RewriteError
from dovetail.base.limits import RewriteLimits
from dovetail.ir.functional.term import Definition
from dovetail.ir.functional.text import parse_definition
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.strategy import (
    BottomUp,
    Fire,
    FirstOf,
    InOrder,
    Once,
    Repeat,
    Strategy,
    TopDown,
    Try,
    any_of,
    derive,
    exhaust,
)

FUSE = Rule("map-map", "map(?f, map(?g, ?x))", "map(?f . ?g, ?x)")
NEG = Rule("neg-neg", "map(neg, map(neg, ?x))", "?x")
ABS = Rule("abs-to-neg", "map(abs, ?x)", "map(neg, ?x)", kind="relaxed", error="1 * eps, wrong on purpose")
EXP = Rule("exp-to-log", "map(exp, ?x)", "map(log, ?x)", kind="reassociating")
GROW = Rule("grow", "map(?f, ?x)", "map(?f, map(neg, ?x))")


def term(body: str) -> Definition:
    return parse_definition(f"def f(x: f32[8]) -> y = {body}")


def result(body: str, strategy: Strategy) -> str:
    return str(derive(term(body), strategy).end.body)


def test_a_rule_fires_at_the_top_alone() -> None:
    assert result("map(exp, map(abs, x))", Fire(ABS)) == "map(exp, map(abs, x))"
    assert result("map(exp, map(abs, x))", Fire(EXP)) == "map(log, map(abs, x))"


def test_once_fires_at_the_first_place_outermost_first() -> None:
    assert result("map(abs, map(exp, map(abs, x)))", Once(Fire(ABS))) == "map(neg, map(exp, map(abs, x)))"


def test_top_down_and_bottom_up_fire_wherever_they_can() -> None:
    for everywhere in (TopDown, BottomUp):
        assert result("map(abs, map(exp, map(abs, x)))", everywhere(Fire(ABS))) == "map(neg, map(exp, map(neg, x)))"


def test_bottom_up_sees_what_became_of_the_inside() -> None:
    both = FirstOf((Fire(ABS), Fire(NEG)))
    assert result("map(neg, map(abs, x))", BottomUp(both)) == "x"
    assert result("map(neg, map(abs, x))", TopDown(both)) == "map(neg, map(neg, x))"


def test_the_first_that_fires_is_taken() -> None:
    assert result("map(neg, map(neg, x))", FirstOf((Fire(NEG), Fire(FUSE)))) == "x"
    assert result("map(neg, map(neg, x))", FirstOf((Fire(FUSE), Fire(NEG)))) == r"map(\v -> -(-v), x)"


def test_in_order_fires_all_or_nothing() -> None:
    assert result("map(neg, map(abs, x))", InOrder((Once(Fire(ABS)), Fire(NEG)))) == "x"
    assert result("map(exp, map(abs, x))", InOrder((Once(Fire(ABS)), Fire(NEG)))) == "map(exp, map(abs, x))"
    assert result("map(exp, map(abs, x))", InOrder((Once(Fire(ABS)), Try(Fire(NEG))))) == "map(exp, map(neg, x))"


def test_repeat_goes_on_until_nothing_fires() -> None:
    assert result("map(exp, map(log, map(abs, x)))", exhaust((FUSE,))) == r"map(\v -> exp(log(abs(v))), x)"
    assert result("map(exp, x)", Repeat(Try(Fire(FUSE)))) == "map(exp, x)"


def test_functions_are_written_short_again_after_a_traversal() -> None:
    body = r"map(\r -> map(exp, transpose(transpose(split(2, r)))), transpose(split(4, x)))"
    twice = Rule("transpose-twice", "transpose(transpose(?x))", "?x")
    definition = parse_definition(f"def f(x: f32[16]) -> y = {body.replace('map(exp, ', 'map(map(exp), ')}")
    after = derive(definition, exhaust((twice,))).end
    assert str(after.body) == r"map(\r -> map(map(exp), split(2, r)), transpose(split(4, x)))"


def test_a_derivation_is_the_chain_of_rules() -> None:
    found = derive(term("map(abs, map(abs, x))"), InOrder((exhaust((ABS,)), Fire(NEG))))
    assert [(step.rule, step.at) for step in found.steps] == [
        ("abs-to-neg", ()),
        ("abs-to-neg", (1,)),
        ("neg-neg", ()),
    ]
    assert str(found) == (
        "def f(x: f32[8]) -> y = map(abs, map(abs, x))\n"
        "\n"
        "1. abs-to-neg (relaxed) at the top\n"
        "     map(abs, map(abs, x))\n"
        "  -> map(neg, map(abs, x))\n"
        "\n"
        "2. abs-to-neg (relaxed) at 1\n"
        "     map(abs, x)\n"
        "  -> map(neg, x)\n"
        "\n"
        "3. neg-neg (bit-exact) at the top\n"
        "     map(neg, map(neg, x))\n"
        "  -> x\n"
        "\n"
        "after 3 steps (relaxed):\n"
        "def f(x: f32[8]) -> y = x"
    )
    assert found.kind == "relaxed"
    data = json.loads(json.dumps(found.to_json()))
    assert data["steps"][1] == {
        "rule": "abs-to-neg",
        "kind": "relaxed",
        "at": [1],
        "before": "map(abs, x)",
        "after": "map(neg, x)",
        "term": "map(neg, map(neg, x))",
        "chosen": {},
    }


def test_derivations_are_joined() -> None:
    first = derive(term("map(abs, map(neg, x))"), Fire(ABS))
    second = derive(first.end, Fire(NEG))
    assert (first + second).end.body == second.end.body
    assert [step.rule for step in (first + second).steps] == ["abs-to-neg", "neg-neg"]


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (RewriteLimits(steps=7), "the limit of 7 steps"),
        (RewriteLimits(nodes=20), "the limit of 20 nodes"),
        (RewriteLimits(seconds=0.0), "the limit of 0.0 seconds"),
    ],
)
def test_a_limit_that_stops_is_named_with_the_rule_that_kept_firing(limits: RewriteLimits, named: str) -> None:
    found = derive(term("map(exp, x)"), exhaust((GROW,)), limits)
    assert found.stopped == f"{named}; rule 'grow' kept firing"
    with pytest.raises(RewriteError, match=named):
        found.finished()


def test_what_was_done_before_a_limit_stays() -> None:
    found = derive(term("map(exp, x)"), exhaust((GROW,)), RewriteLimits(steps=2))
    assert len(found.steps) == 2
    assert str(found.end.body) == "map(exp, map(neg, map(neg, x)))"
    assert str(found).endswith("stopped by the limit of 2 steps; rule 'grow' kept firing")


def test_rules_are_tried_in_the_order_of_their_table() -> None:
    assert result("map(neg, map(neg, x))", any_of((NEG, FUSE))) == "x"
    assert result("map(neg, map(neg, x))", any_of((FUSE, NEG))) == r"map(\v -> -(-v), x)"
