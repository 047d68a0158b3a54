"""Rules at places of a term."""

from dataclasses import replace

import pytest

from dovetail.base.errors import RuleError, TermError
from dovetail.ir.functional.term import Lambda, Pattern, Scalar, Var
from dovetail.ir.functional.text import parse_definition, parse_term
from dovetail.rewrite.apply import everywhere, rewrite
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.typed import Typed

MAP_MAP = Rule("map-map", "map(?f, map(?g, ?x))", "map(?f . ?g, ?x)")
SPLIT = Rule(
    "split-map",
    "map(?f, ?x)",
    "join(map(map(?f), split(?n, ?x)))",
    types=("x: ?t[?m]",),
    choose=("n: divisors(?m)",),
)
DOT = "def dot(a: f32[4, 6], b: f32[6]) -> y = map(\\r -> reduce(add, 0, map(mul, zip(r, b))), a)"


def fired(text: str, rule: Rule, allowed: frozenset[str] = frozenset()) -> list[str]:
    """The new part, for every way the rule can fire."""
    return [str(found.after) for found in everywhere(parse_definition(text), rule, allowed)]


def test_a_rule_fires_where_it_is_told() -> None:
    definition = parse_definition("def f(x: f32[8]) -> y = map(abs, map(exp, map(neg, x)))")
    after = rewrite(definition, MAP_MAP, (1,))
    assert after is not None
    assert after.body == parse_term(r"map(abs, map(\v -> exp(-v), x))")
    assert rewrite(definition, MAP_MAP, (1, 1)) is None


def test_a_rule_fires_everywhere_outermost_first() -> None:
    assert fired("def f(x: f32[8]) -> y = map(abs, map(exp, map(neg, x)))", MAP_MAP) == [
        r"map(\v -> abs(exp(v)), map(neg, x))",
        r"map(\v -> exp(-v), x)",
    ]


def test_every_size_that_may_be_chosen_is_a_way_to_fire() -> None:
    definition = parse_definition("def f(x: f32[12]) -> y = map(exp, x)")
    assert [found.chosen for found in everywhere(definition, SPLIT)] == [(("n", k),) for k in (2, 3, 4, 6)]
    after = rewrite(definition, SPLIT, (), {"n": 4})
    assert after is not None
    assert str(after.body) == "join(map(map(exp), split(4, x)))"


def test_the_types_of_bound_variables_are_known_inside_a_function() -> None:
    rule = Rule(
        "part",
        "reduce(?f, ?z, ?x)",
        "reduce(?f, ?z, map(reduce(?f, ?z), split(?n, ?x)))",
        when=("associative(?f)", "neutral(?f, ?z)", "?n > 2"),
        types=("x: ?t[?m]",),
        choose=("n: divisors(?m)",),
        kind="reassociating",
    )
    assert fired(DOT, rule) == ["reduce(add, 0, map(reduce(add, 0), split(3, map(mul, zip(r, b)))))"]


def test_a_rule_that_changes_nothing_does_not_fire() -> None:
    assert fired("def f(x: f32[8]) -> y = map(exp, x)", Rule("same", "map(?f, ?x)", "map(?f, ?x)")) == []


def test_a_rule_that_breaks_types_is_named() -> None:
    rule = Rule("by-four", "map(?f, ?x)", "join(map(map(?f), split(4, ?x)))")
    with pytest.raises(RuleError, match="rule 'by-four' breaks types"):
        fired("def f(x: f32[10]) -> y = map(exp, x)", rule)


def test_an_ill_typed_definition_is_refused() -> None:
    with pytest.raises(TermError):
        Typed.of(parse_definition("def f(x: f32[8]) -> y = map(transpose, x)"))


def test_conditions_see_types_constants_and_what_the_user_vouches_for() -> None:
    text = "def f(const w: f32[8], x: i32[8], y: f32[8]) -> z = tuple(map(abs, w), map(abs, x), map(abs, y))"
    assert fired(text, Rule("r", "map(?f, ?x)", "?x", when=("constant(?x)",))) == ["w"]
    assert fired(text, Rule("r", "map(?f, ?x)", "?x", when=("integer(?x)",))) == ["x"]
    assert fired(text, Rule("r", "map(?f, ?x)", "?x", when=("float(?x)", "not constant(?x)"))) == ["y"]
    assert fired(text, Rule("r", "map(?f, ?x)", "?x", when=("integer(?x)", "finite"))) == []
    assert fired(text, Rule("r", "map(?f, ?x)", "?x", when=("integer(?x)", "finite")), frozenset({"finite"})) == ["x"]


def test_sizes_known_at_run_time_are_compared_by_their_ranges() -> None:
    text = "size n in 4..64 def f(x: f32[n]) -> y = map(abs, x)"
    for condition, count in (("?n >= 4", 1), ("?n > 4", 0), ("?n <= 64", 1), ("?n != 3", 1), ("?n % 2 == 0", 0)):
        rule = Rule("r", "map(?f, ?x)", "?x", types=("x: ?t[?n]",), when=(condition,))
        assert len(fired(text, rule)) == count, condition


def test_the_type_of_all_that_was_matched_has_a_name() -> None:
    rule = Rule("r", "transpose(?x)", "view([i<?n, j<?m: j, i], ?x)", types=("result: ?t[?n, ?m]",))
    assert fired("def f(x: f32[3, 5]) -> y = transpose(x)", rule) == ["view([i<5, j<3: j, i], x)"]


def test_a_size_that_cannot_be_written_down_keeps_a_rule_from_firing() -> None:
    rule = Rule("r", "map(?f, ?x)", "slice(0, 64 // ?n * ?n, 1, ?x)", types=("x: ?t[?n]",))
    assert fired("size n in 4..64 def f(x: f32[n]) -> y = map(abs, x)", rule) == []


def test_variables_of_one_name_have_the_types_of_their_own_functions() -> None:
    one = Var("a")
    square = Lambda(("a",), Pattern("map", (), (Scalar("mul"), Pattern("zip", (), (one, one)))))
    body = Pattern("map", (), (Lambda(("a",), Pattern("map", (), (square, one))), Var("x")))
    definition = replace(parse_definition("def f(x: f32[2, 3, 4]) -> y = x"), body=body)
    assert str(Typed.of(definition).type_inside((0, 0), one)) == "f32[3, 4]"
