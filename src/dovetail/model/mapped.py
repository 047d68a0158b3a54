"""Patterns of a user, put in place in a model's graph before anything else happens to it.

What is computed twice, or from constants alone, is looked at as one value: a pattern need not know how often a model
says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dovetail.graph.common_subexpressions import CommonSubexpressions
from dovetail.graph.constant_folding import ConstantFolding
from dovetail.graph.dead_code import DeadCode
from dovetail.graph.record import Pass, counted
from dovetail.ir.graph.bound import BoundGraph
from dovetail.model.report import Note
from dovetail.model.stated import Stated
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.patterns.apply import Mapped, map_patterns
from dovetail.rewrite.patterns.own import call_operator
from dovetail.rewrite.patterns.pattern import Pattern
from dovetail.targets.model import Target

NAME = "patterns"
_PLAIN: tuple[Pass, ...] = (DeadCode(), ConstantFolding(), CommonSubexpressions())


def plain_graph(bound: BoundGraph) -> BoundGraph:
    """The graph that patterns are looked for in."""
    for one in _PLAIN:
        bound, _ = one(bound, OPERATORS)
    return bound


def mapped(bound: BoundGraph, patterns: tuple[Pattern, ...], target: Target) -> Mapped:
    """The graph with all patterns in place; a PatternError where one maps to another computation."""
    calls = {instruction.name: instruction for instruction in target.external_instructions}
    return map_patterns(plain_graph(bound), patterns, calls=calls)


def stated(bound: BoundGraph, patterns: tuple[Pattern, ...], target: Target) -> Stated:
    """``mapped``, as it is compiled and reported."""
    found = mapped(bound, patterns, target)
    times = Counter(step.pattern for step in found.steps)
    notes = tuple(
        Note(NAME, f"{pattern.name}, {counted(times[pattern.name], 'time')}", "both sides compute the same")
        if times[pattern.name]
        else Note(NAME, f"{pattern.name} was not found", "dovetail explain shows what came near")
        for pattern in patterns
    )
    external = {call_operator(one).name: one.call for one in target.external_instructions} if found.steps else {}
    calls = {name: symbol for name, symbol in external.items() if name in found.operators}
    return Stated(found.bound, found.operators, notes, calls)


def called(calls: Mapping[str, str], code: Mapping[str, bytes]) -> tuple[Note, ...]:
    """Whether the code of each operator that is to be a call does call: by cost, another plan may be taken."""
    return tuple(
        Note(NAME, f"{calls[name]} is called", "")
        if calls[name].encode() in code[name]
        else Note(NAME, f"{calls[name]} is not called", "by the 'cycles' of the target file, another plan is faster")
        for name in calls
        if name in code
    )
