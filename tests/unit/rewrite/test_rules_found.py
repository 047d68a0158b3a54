"""Mistakes in rules that random terms once brought up, each as small as it gets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.text import parse_definition
from dovetail.rewrite.apply import everywhere
from dovetail.rewrite.rules import Rules
from dovetail.rewrite.tables.algorithmic import ALGORITHMIC

RULES = Rules(ALGORITHMIC)


def test_a_sum_of_sums_is_not_taken_apart_where_only_one_of_them_misses_an_element() -> None:
    head = "def f(x: f32[3], y: f32[2], c: f32) -> z ="
    some = parse_definition(rf"{head} reduce(add, 0, map(\a b -> a * b + c, zip(x, pad(0, 1, none, y))))")
    both = parse_definition(rf"{head} reduce(add, 0, map(\a b -> a * b + (a + b), zip(x, pad(0, 1, none, y))))")
    assert not list(everywhere(some, RULES["reduce-of-sums"]))
    assert list(everywhere(both, RULES["reduce-of-sums"]))


def test_a_function_is_not_computed_before_it_is_used() -> None:
    definition = parse_definition(r"def f(x: f32[3], w: f32[4]) -> y = map(\v -> map(\u -> u * v, w), x)")
    x, w = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    wanted = evaluate(definition, {"x": x, "w": w})["y"]
    for found in everywhere(definition, RULES["map-fission"]):
        got = evaluate(replace(definition, body=found.whole.term), {"x": x, "w": w})["y"]
        assert np.array_equal(got, wanted), str(found.after)
