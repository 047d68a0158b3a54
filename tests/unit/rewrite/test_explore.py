"""Exploration: classes of equal terms, the cheapest of them, and the chain of rules that leads there."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dovetail.base.limits import ExploreLimits
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.term import Definition, Pattern, walk
from dovetail.ir.functional.text import parse_definition
from dovetail.rewrite.egraph import EGraph
from dovetail.rewrite.explore import explore
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.trees import Tree

RULES = (
    Rule("map-map", "map(?f, map(?g, ?x))", "map(?f . ?g, ?x)"),
    Rule("transpose-twice", "transpose(transpose(?x))", "?x"),
    Rule("join-split", "join(split(?n, ?x))", "?x"),
    Rule("transpose-map", "transpose(map(map(?f), ?x))", "map(map(?f), transpose(?x))"),
)
GROWS = (Rule("double", "map(?f, ?x)", "map(?f, transpose(transpose(?x)))"),)
CHAIN = r"def f(x: f32[4, 8]) -> y = transpose(map(map(exp), map(map(neg), transpose(x))))"


def operations(definition: Definition) -> float:
    """Whole-array operations that are not reshaping cost much, others little."""
    return sum(10 if part.name == "map" else 1 for part in walk(definition.body) if isinstance(part, Pattern))


def test_equal_operands_make_equal_nodes() -> None:
    graph = EGraph()
    x, y = Tree("x"), Tree("y")
    for leaf in (x, y):
        graph.add(Tree("f", (Tree("g", (leaf,)),)))
    before = graph.classes()
    assert before.find(Tree("f", (Tree("g", (x,)),))) != before.find(Tree("f", (Tree("g", (y,)),)))
    graph.union(x, y)
    after = graph.classes()
    assert after.find(Tree("f", (Tree("g", (x,)),))) == after.find(Tree("f", (Tree("g", (y,)),)))


def test_the_cheapest_term_is_found_where_several_rules_must_meet() -> None:
    found = explore(parse_definition(CHAIN), RULES, operations)
    assert found.stopped == "nothing new"
    assert found.cost < found.start_cost
    assert not any(isinstance(part, Pattern) and part.name == "transpose" for part in walk(found.best.body))
    maps = [part for part in walk(found.best.body) if isinstance(part, Pattern) and part.name == "map"]
    assert len(maps) == 2, str(found.best.body)


def test_what_is_found_has_the_same_values() -> None:
    found = explore(parse_definition(CHAIN), RULES, operations)
    x = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    assert np.array_equal(evaluate(found.start, {"x": x})["y"], evaluate(found.best, {"x": x})["y"])


def test_the_derivation_leads_from_the_definition_to_what_was_found() -> None:
    found = explore(parse_definition(CHAIN), RULES, operations)
    assert found.derivation.start == found.start
    assert found.derivation.end == found.best
    assert {step.rule.partition(",")[0] for step in found.derivation.steps} <= {rule.name for rule in RULES}
    x = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    wanted = evaluate(found.start, {"x": x})["y"]
    for step in found.derivation.steps:
        whole = parse_definition(CHAIN)
        got = evaluate(Definition(whole.name, whole.params, whole.results, step.whole), {"x": x})["y"]
        assert np.array_equal(wanted, got), step.rule


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (ExploreLimits(nodes=8), "the limit of 8 nodes"),
        (ExploreLimits(iterations=2), "the limit of 2 iterations"),
        (ExploreLimits(iterations=1_000_000, nodes=1_000_000, seconds=0.2), "the limit of 0.2 seconds"),
    ],
)
def test_rules_that_never_end_are_stopped_by_a_limit_that_is_named(limits: ExploreLimits, reason: str) -> None:
    found = explore(parse_definition(r"def f(x: f32[4, 8]) -> y = map(map(neg), x)"), GROWS, operations, limits)
    assert found.stopped == reason
    assert found.cost == found.start_cost


def test_only_exploration_loads_the_extra_and_says_what_is_missing() -> None:
    script = (
        "import sys; sys.modules['egglog'] = None\n"
        "from dovetail.ir.functional.text import parse_definition\n"
        "from dovetail.rewrite.explore import explore\n"
        "from dovetail.base.errors import RewriteError\n"
        "try:\n"
        "    explore(parse_definition('def f(x: f32[4]) -> y = map(neg, x)'), (), lambda d: 0.0)\n"
        "except RewriteError as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'dovetail[explore]'" in done.stdout
