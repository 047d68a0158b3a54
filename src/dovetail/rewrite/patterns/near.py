"""What nearly matched: the place at which most operations of a pattern were found, and the operand that parted.

near_misses(bound, patterns) -> for each pattern its best misses, the nearest first
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Node, Type
from dovetail.ir.graph.verify import Operators, infer
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.patterns.chain import ChainFinder
from dovetail.rewrite.patterns.find import is_convex
from dovetail.rewrite.patterns.guards import allowed
from dovetail.rewrite.patterns.index import GraphIndex
from dovetail.rewrite.patterns.needle import needle
from dovetail.rewrite.patterns.pattern import Pattern, ReadPattern, read_pattern
from dovetail.rewrite.patterns.search import Search

MOST = 3
"""Misses that are kept of one pattern."""
_MOST_ANCHORS = 20_000
"""Nodes at which one pattern is looked at closely."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """``matched`` of ``operations`` were found up from ``sink``; then ``value`` parted, and why."""

    pattern: str
    sink: str
    matched: int
    operations: int
    value: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.pattern}: {self.matched} of {self.operations} operators up from {self.sink}; "
            f"{self.value} parted: {self.why}"
        )


def near_misses(
    bound: BoundGraph,
    patterns: Iterable[Pattern],
    operators: Operators = OPERATORS,
    types: Mapping[str, Type] | None = None,
    most: int = MOST,
) -> tuple[NearMiss, ...]:
    """For each pattern, where it comes nearest without being there; nothing where no operator ends like it."""
    index = GraphIndex(bound.graph, operators, bound.data)
    known = infer(bound.graph, operators) if types is None else types
    found: list[NearMiss] = []
    for pattern in patterns:
        misses = sorted(_misses(bound, index, read_pattern(pattern), known), key=lambda miss: -miss.matched)
        found += misses[:most]
    return tuple(found)


def _misses(bound: BoundGraph, index: GraphIndex, read: ReadPattern, types: Mapping[str, Type]) -> Iterator[NearMiss]:
    form = needle(read.before, read.name)
    ending = [node for node in bound.graph.nodes if index.labels[node.results[0]] == form.anchor]
    for node in ending[:_MOST_ANCHORS]:
        miss = _miss_at(bound, index, read, node, types)
        if miss is not None:
            yield miss


def _miss_at(
    bound: BoundGraph, index: GraphIndex, read: ReadPattern, node: Node, types: Mapping[str, Type]
) -> NearMiss | None:
    """What parts the pattern from a node; None where it is there."""
    total = sum(1 for _ in read.before.operations())
    best = (-1, 0, node.results[0], "")

    def note(matched: int, value: str, why: str, alike: int = 3) -> None:
        """The miss behind most operations; of those, the one at what is most like the pattern."""
        nonlocal best
        if (matched, alike) > best[:2]:
            best = (matched, alike, value, why)

    search = Search(index, needle(read.before, read.name), ChainFinder(index), note)
    for found in search.at(node):
        if not is_convex(index, found):
            note(total, found.sinks[0], "what it reads is made of what it makes")
            continue
        judged = allowed(read, found, bound.graph, types)
        if not isinstance(judged, str):
            return None
        note(total, found.sinks[0], judged)
    matched, _, value, why = best
    return NearMiss(
        read.name, bound.shown(node.results[0]), min(max(matched, 0), total), total, bound.shown(value), why
    )
