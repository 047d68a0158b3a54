"""Exploration of whole programs: which rules are followed, and what the scheduler's estimate finds."""

from __future__ import annotations

import time
from math import inf

import numpy as np
import pytest

import dovetail
import dovetail.frontends.functional as fn
from dovetail.base.errors import PlanError
from dovetail.base.limits import ExploreLimits
from dovetail.frontends.functional import Value, f32
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.infer import typing_of
from dovetail.ir.functional.term import Definition, Let, walk
from dovetail.ir.functional.types import Array, Function
from dovetail.ir.program import Program
from dovetail.rewrite.explore import explore
from dovetail.rewrite.explored import explored, explored_rules
from dovetail.rewrite.rule import Rule

CONV = """
in x: f32[1, 32, 28, 28]
const w: f32[32, 32, 3, 3]
out y: f32[1, 32, 28, 28]
for n<1, k<32, p<28, q<28, c<32, r<3, s<3 where 0 <= p+r-1 < 28, 0 <= q+s-1 < 28:
  y[n, k, p, q] += x[n, c, p+r-1, q+s-1] * w[k, c, r, s]
"""
CHAIN = r"def f(x: f32[64]) -> y = let t = map(\v -> v * 2, x) in map(\v -> v + 1, t)"
SECONDS = 10.0
"""What an exploration may take in all."""


@fn.function(q=f32[64, 32], k=f32[64, 32], v=f32[64, 32])
def attention(q: Value, k: Value, v: Value) -> Value:
    def of_query(query: Value) -> Value:
        weights = fn.softmax(fn.map(lambda key: fn.dot(query, key) * 0.125, k))
        return fn.matvec(fn.transpose(v), weights)

    return fn.map(of_query, q)


def temps(program: Program) -> float:
    """A cost: what is stored."""
    return float(len(program.temps))


def test_winograd_is_found_for_a_relaxed_convolution_in_time() -> None:
    begun = time.monotonic()
    found = dovetail.explore(dovetail.program(CONV), threads=1, relaxed=True)
    assert time.monotonic() - begun <= SECONDS
    assert found.derivation.steps[0].rule.startswith("winograd-")
    assert found.derivation.kind == "relaxed"
    assert found.cost < found.start_cost
    assert found.stopped
    assert "cycles estimated" in str(found) and found.stopped in str(found)


def test_a_block_of_attention_is_explored_in_time_and_computes_the_same() -> None:
    begun = time.monotonic()
    found = dovetail.explore(attention, threads=1, seconds=5)
    assert time.monotonic() - begun <= 5 + 2
    assert found.cost <= found.start_cost
    assert found.iterations >= 1
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=(64, 32)).astype(np.float32) for name in "qkv"}
    wanted, got = (evaluate(d, data)["y"] for d in (found.start, found.best))
    assert np.allclose(wanted, got, rtol=1e-5)


def test_what_is_not_worth_storing_is_not_stored() -> None:
    found = explored(dovetail.definition(CHAIN), temps, 5)
    assert (found.start_cost, found.cost) == (1, 0)
    assert not any(isinstance(part, Let) for part in walk(found.best.body))


def test_a_term_without_a_plan_costs_infinitely_much() -> None:
    def refuse(program: Program) -> float:
        if program.temps:
            raise PlanError("nothing may be stored")
        return 7.0

    found = explored(dovetail.definition(CHAIN), refuse, 5)
    assert (found.start_cost, found.cost) == (inf, 7)


def test_a_mistake_in_the_estimate_is_not_hidden() -> None:
    def wrong(program: Program) -> float:
        raise KeyError(program.temps)

    with pytest.raises(KeyError):
        explored(dovetail.definition(CHAIN), wrong, 5)


def test_relaxed_rules_are_followed_only_where_they_are_allowed() -> None:
    assert all(rule.kind != "relaxed" for rule in explored_rules())
    assert {"winograd-2x2", "winograd-4x4"} <= {rule.name for rule in explored_rules(relaxed=True)}


def test_rules_of_the_user_come_first_and_replace_those_of_their_name() -> None:
    mine = Rule("map-fusion", "map(?f, map(?g, ?x))", "map(?f . ?g, ?x)")
    found = explored_rules(rules=(mine,))
    assert found[0] is mine
    assert [rule.name for rule in found].count("map-fusion") == 1


def test_arrays_of_functions_are_not_made() -> None:
    text = r"def f(x: f32[8, 4], w: f32[4]) -> y = map(\r -> map(\a b -> a * b, zip(r, w)), x)"
    seen: list[Definition] = []

    def small(definition: Definition) -> float:
        seen.append(definition)
        return float(sum(1 for _ in walk(definition.body)))

    explore(dovetail.definition(text), explored_rules(), small, ExploreLimits(iterations=4))
    assert len(seen) > 1
    for definition in seen:
        kinds = typing_of(definition).at.values()
        assert not any(isinstance(kind, Array) and isinstance(kind.element, Function) for kind in kinds)
