"""Every match of every pattern in a graph.

    find(bound, patterns) -> matches, in the order of the graph

Patterns are indexed by what their first sink, and what that reads, is made by: of fifty patterns a node meets those
that can end there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from dovetail.ir.functional.types import Type as TermType
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Node, Type
from dovetail.ir.graph.verify import Operators, infer
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.patterns.chain import ChainFinder
from dovetail.rewrite.patterns.form import Chain, unrolled
from dovetail.rewrite.patterns.guards import allowed
from dovetail.rewrite.patterns.index import GraphIndex, Label
from dovetail.rewrite.patterns.needle import Needle, needle
from dovetail.rewrite.patterns.pattern import Pattern, ReadPattern, read_pattern
from dovetail.rewrite.patterns.search import Found, Search
from dovetail.rewrite.shape import Value

MOST_WAYS = 64
"""Ways in which one pattern is taken to end at one node; more are left out."""
_MOST_UNROLLED = 3
"""Steps of a chain that are looked at before it is walked."""
Signature = tuple[object, ...]
"""A label, and for each operand what makes it and how often it is read."""


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern found in a graph: what its holes and sizes stand for, and the nodes that lie inside."""

    read: ReadPattern
    found: Found
    settings: Mapping[str, Value]
    kinds: Mapping[str, TermType]

    @property
    def pattern(self) -> Pattern:
        return self.read.pattern

    @property
    def inside(self) -> tuple[str, ...]:
        """The nodes, by the names of their first results, in the order of the graph."""
        return self.found.inside


def find(
    bound: BoundGraph,
    patterns: Iterable[Pattern],
    operators: Operators = OPERATORS,
    types: Mapping[str, Type] | None = None,
) -> tuple[Match, ...]:
    """Every match that the patterns allow, by place of the node it ends at, then in the order of the patterns.

    ``types`` are those of the graph, where the caller has them; they are worked out when a pattern asks for them.
    """
    index = GraphIndex(bound.graph, operators, bound.data)
    known = types
    matches: list[Match] = []
    for read, found in _found(index, [read_pattern(pattern) for pattern in patterns]):
        if known is None and (read.types or read.conditions):
            known = infer(bound.graph, operators)
        judged = allowed(read, found, bound.graph, known or {})
        if not isinstance(judged, str):
            matches.append(Match(read, found, judged.settings, judged.kinds))
    return tuple(sorted(matches, key=lambda match: index.places[_anchor(match.found, index)]))


def _anchor(found: Found, index: GraphIndex) -> str:
    return index.makers[found.sinks[0]].results[0]


def _found(index: GraphIndex, patterns: Sequence[ReadPattern]) -> Iterator[tuple[ReadPattern, Found]]:
    """What has the form of a pattern, its last nodes first: a chain is met at its end."""
    seekers = [_Seeker(read, needle(read.before, read.name), index) for read in patterns]
    by_label: dict[Label, list[_Seeker]] = {}
    for seeker in seekers:
        by_label.setdefault(seeker.needle.anchor, []).append(seeker)
    likely: dict[Signature, tuple[_Seeker, ...]] = {}
    labels, uses = index.labels, index.uses
    many = max((1 + max(seeker.needle.reads) for seeker in seekers), default=0)
    for node in reversed(index.graph.nodes):
        own = labels[node.results[0]]
        ending = by_label.get(own)
        if ending is None:
            continue
        signature = (own, *[(labels.get(value), u if (u := uses[value]) < many else many) for value in node.operands])
        if signature not in likely:
            likely[signature] = tuple(seeker for seeker in ending if seeker.may_end(node))
        for seeker in likely[signature]:
            if seeker.may_end_at(node):
                for found in seeker.at(node):
                    yield seeker.read, found


class _Seeker:
    """One pattern on its way through the graph."""

    def __init__(self, read: ReadPattern, form: Needle, index: GraphIndex) -> None:
        self.read, self.needle, self.index = read, form, index
        self._is_chain = len(form.sinks) == 1 and isinstance(form.parts[form.sinks[0]], Chain)
        self._inside: set[str] = set()
        """Where a chain has been already: it is met at its end alone."""
        self._chains = ChainFinder(index)
        self._search = Search(index, form, self._chains)
        self._form, self._sink = _last(form)

    def may_end(self, node: Node) -> bool:
        """Whether the operands of a node, by what makes them and how often they are read, can be the first sink's."""
        return self._form.may_read(self._sink, node, self.index)

    def may_end_at(self, node: Node) -> bool:
        """``may_end``, at any depth."""
        return node.results[0] not in self._inside and self._form.may_be(self._sink, node.results[0], self.index)

    def at(self, node: Node) -> Iterator[Found]:
        """Every way in which the pattern ends at ``node``."""
        self._chains.walked.clear()
        is_met = False
        for found in islice(self._search.at(node), MOST_WAYS):
            if len(found.sinks) > 1 and not is_convex(self.index, found):
                continue
            is_met = True
            if self._is_chain:
                self._inside.update(found.inside)
            yield found
        if self._is_chain and not is_met:
            self._inside.update(self._chains.walked)


def _last(form: Needle) -> tuple[Needle, int]:
    """The form that ends with an operation, and the place of that: of a chain, as many steps as it has at least."""
    sink = form.sinks[0]
    part = form.parts[sink]
    if isinstance(part, Chain):
        steps = needle(unrolled(part, min(part.least, _MOST_UNROLLED)))
        return steps, steps.sinks[0]
    return form, sink


def is_convex(index: GraphIndex, found: Found) -> bool:
    """Whether nothing that the match reads is made of what it makes."""
    inside = set(found.inside)
    least = min(index.places[node] for node in inside)
    values = (*(value for _, value in found.holes), *(value for _, several in found.items for value in several))
    return inside.isdisjoint(index.above(iter(values), least))
