"""Patterns applied to a graph: found, chosen by cost, checked, put in place; until none is found any more.

What a pattern has made is not matched by it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.base.errors import GraphError
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.edit import free_names, replace_values
from dovetail.ir.graph.graph import Graph, Type
from dovetail.ir.graph.operator import Operator
from dovetail.ir.graph.verify import Operators, infer
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.patterns.check import check
from dovetail.rewrite.patterns.choose import choose
from dovetail.rewrite.patterns.cost import Cost, usual_cost
from dovetail.rewrite.patterns.find import Match, find
from dovetail.rewrite.patterns.make import Calls, Made, Setup, make
from dovetail.rewrite.patterns.pattern import Pattern
from dovetail.rewrite.patterns.subject import Subject, subject

_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Step:
    """A pattern that was applied: what was there, what is, and what that saves by the estimate.

    ``sinks`` are what the model calls the values that it makes.
    """

    pattern: str
    sinks: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    gain: float

    def __str__(self) -> str:
        before, after = ("\n".join(f"    {line}" for line in part) for part in (self.before, self.after))
        return f"{self.pattern} at {', '.join(self.sinks)}\n{before}\n  ->\n{after or '    nothing'}"


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """The graph after all patterns, the operators that it uses, and what was done. ``checks`` were run."""

    bound: BoundGraph
    operators: Operators
    steps: tuple[Step, ...] = ()
    checks: int = 0


def map_patterns(
    bound: BoundGraph,
    patterns: Iterable[Pattern],
    operators: Operators = OPERATORS,
    *,
    calls: Calls | None = None,
    cost: Cost = usual_cost,
) -> Mapped:
    """The graph with every pattern put in place; a PatternError where two sides do not compute the same.

    The order of ``patterns`` plays no part, also in the names of what is made.
    ``calls`` are the instructions that patterns may call; ``cost`` decides between matches that overlap.
    """
    ordered = tuple(sorted(patterns, key=lambda one: (one.name, str(one.before))))
    work = _Work(bound, ordered, operators, calls or {}, cost)
    for _ in range(_MOST_ROUNDS if work.patterns else 0):
        if not work.round():
            break
    return Mapped(work.bound, work.operators, tuple(work.steps), len(work.checked))


class _Work:
    """The graph as it is now."""

    def __init__(
        self, bound: BoundGraph, patterns: tuple[Pattern, ...], operators: Operators, calls: Calls, cost: Cost
    ) -> None:
        self.bound, self.patterns, self.calls, self.cost = bound, patterns, calls, cost
        self.operators: dict[str, Operator] = dict(operators)
        self.steps: list[Step] = []
        self.checked: dict[tuple[object, ...], float] = {}
        """What was checked, and what it saves."""
        self._made: dict[str, set[str]] = {}
        """By pattern: what it has made."""

    def round(self) -> bool:
        """Whether a pattern was applied."""
        types = infer(self.bound.graph, self.operators)
        found = find(self.bound, self.patterns, self.operators, types)
        matches = self._candidates(found)
        if not matches:
            return False
        names = free_names(self.bound.graph, "r")
        sizes = {size.name: size for size in self.bound.graph.sizes}
        setup = Setup(self.operators, types, names, sizes, self.calls)
        makings = {
            id(match): _Making(match, subject(match, self.bound, types), make(match, setup)) for match in matches
        }
        for making in makings.values():
            self.operators.update(making.made.operators)
        gains = {number: self._gain(making) for number, making in makings.items()}
        chosen = choose(matches, lambda match: gains[id(match)])
        self._put([makings[id(match)] for match in chosen], types, gains)
        return True

    def _candidates(self, found: Sequence[Match]) -> list[Match]:
        """One match of a pattern for the same nodes, and none of what the pattern has made."""
        first: dict[tuple[str, tuple[str, ...]], Match] = {}
        for match in found:
            if self._made.get(match.pattern.name, set()).isdisjoint(match.inside):
                first.setdefault((match.pattern.name, match.inside), match)
        return list(first.values())

    def _gain(self, making: _Making) -> float:
        """Checked once for each unique match."""
        key = making.subject.key
        if key not in self.checked:
            check(making.subject, making.made, self.operators)
            after, _ = making.subject.after(making.made)
            constants = making.subject.constants
            before = self.cost(making.subject.before, self.operators, constants)
            self.checked[key] = before - self.cost(after, self.operators, constants)
        return self.checked[key]

    def _put(self, makings: list[_Making], types: Mapping[str, Type], gains: Mapping[int, float]) -> None:
        """All at once; where several that make more than one value would run in a circle, one of those now."""
        try:
            graph = self._replaced(makings, types)
        except GraphError:
            wide = [making for making in makings if len(making.match.found.sinks) > 1]
            if len(wide) < 2:
                raise
            makings = [making for making in makings if making not in wide[1:]]
            graph = self._replaced(makings, types)
        for making in makings:
            self._note(making, gains[id(making.match)])
        data = {**self.bound.data, **{name: array for one in makings for name, array in one.made.data.items()}}
        kept = {value.name: data[value.name] for value in graph.constants}
        self.bound = BoundGraph(graph, kept, self.bound.names)

    def _replaced(self, makings: list[_Making], types: Mapping[str, Type]) -> Graph:
        return replace_values(self.bound.graph, [one.made.replacement for one in makings], self.operators, types)

    def _note(self, making: _Making, gain: float) -> None:
        match, replacement = making.match, making.made.replacement
        before = tuple(str(self.bound.graph.producer(name)) for name in match.inside)
        new = {name for node in replacement.nodes for name in node.results}
        self._made.setdefault(match.pattern.name, set()).update(new, match.found.sinks)
        names = {made: old for old, made in replacement.values if made in new}
        after = tuple(
            str(replace(node, results=tuple(names.get(name, name) for name in node.results)))
            for node in replacement.nodes
        )
        same = tuple(f"{old} is {other}" for old, other in replacement.values if other not in new)
        shown = tuple(map(self.bound.shown, match.found.sinks))
        self.steps.append(Step(match.pattern.name, shown, before, (*after, *same), gain))


@dataclass(frozen=True, slots=True, eq=False)
class _Making:
    """A match, cut out, and what takes its place."""

    match: Match
    subject: Subject
    made: Made
