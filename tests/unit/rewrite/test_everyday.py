"""The strategy of every day: shorter terms of the same value, and an end."""

import numpy as np
import pytest

from dovetail.base.errors import RewriteError
from dovetail.base.limits import RewriteLimits
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.simplify import same, simplify
from dovetail.ir.functional.term import Definition, Pattern, walk
from dovetail.ir.functional.text import parse_definition, parse_term
from dovetail.rewrite.everyday import tidied
from dovetail.rewrite.rule import Rule

TERMS = {
    "moves that undo each other": (
        "def f(x: f32[4, 6]) -> y = transpose(map(map(neg), transpose(join(split(2, x)))))",
        "map(map(neg), x)",
    ),
    "maps one after the other": (
        r"def f(x: f32[8]) -> y = map(exp, map(neg, map(\v -> v * 2, x)))",
        r"map(\v -> exp(-(v * 2)), x)",
    ),
    "maps around tiles": (
        "def f(x: f32[8]) -> y = join(map(map(exp), split(4, map(neg, x))))",
        r"map(\v -> exp(-v), x)",
    ),
    "maps inside a product": (
        "def f(x: f32[8], w: f32[8]) -> y = reduce(add, 0, map(mul, zip(map(neg, x), map(abs, w))))",
        r"reduce(add, 0, map(\a b -> (-a) * abs(b), zip(x, w)))",
    ),
    "copies of one value": (
        "def f(x: f32[8]) -> y = map(add, zip(x, repeat(8, 3)))",
        r"map(\a -> a + 3, x)",
    ),
    "stored values stay": (
        r"def f(x: f32[8]) -> y = let e = map(exp, x) in map(\v -> v / reduce(add, 0, e), e)",
        r"let e = map(exp, x) in map(\v -> v / reduce(add, 0, e), e)",
    ),
}


def passes(definition: Definition) -> int:
    """How many operations on whole arrays there are."""
    return sum(isinstance(term, Pattern) for term in walk(definition.body))


@pytest.mark.parametrize(("text", "after"), TERMS.values(), ids=TERMS.keys())
def test_a_term_becomes_shorter_and_keeps_its_value(text: str, after: str) -> None:
    definition = parse_definition(text)
    found = tidied(definition).end
    assert same(found.body, simplify(parse_term(after)))
    assert passes(found) <= passes(definition)
    random = np.random.default_rng(1)
    shapes = {p.name: str(p.type).removeprefix("f32")[1:-1].split(", ") for p in definition.params}
    data = {name: random.integers(-4, 5, [int(n) for n in shape]).astype(np.float32) for name, shape in shapes.items()}
    assert np.array_equal(evaluate(definition, data)["y"], evaluate(found, data)["y"], equal_nan=True)


def test_rules_of_a_user_come_first() -> None:
    rule = Rule("mine", "map(exp, map(neg, ?x))", "map(abs, ?x)", kind="relaxed", error="1 * eps, wrong on purpose")
    found = tidied(parse_definition("def f(x: f32[8]) -> y = map(exp, map(neg, x))"), [rule])
    assert [step.rule for step in found.steps] == ["mine"]


def test_rules_of_a_user_that_undo_those_of_every_day_are_stopped() -> None:
    rule = Rule("unfuse", "map(?f . ?g, ?x)", "map(?f, map(?g, ?x))")
    with pytest.raises(RewriteError, match="kept firing"):
        tidied(parse_definition("def f(x: f32[8]) -> y = map(exp, map(neg, x))"), [rule], RewriteLimits(steps=50))
