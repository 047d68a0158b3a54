"""The search for one form in a graph: from a sink upwards through the operands, with back-tracking.

It branches at commutative operators, where a repetition ends, and where a further sink is one of several readers of
what is bound. Operations of the form are different nodes of the graph; a value inside the match is read as often as
the form reads it and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from dovetail.ir.graph.graph import Node
from dovetail.rewrite.match import match_setting
from dovetail.rewrite.patterns.form import Chain, Hole, Item, Number, Operation, Result
from dovetail.rewrite.patterns.index import GraphIndex
from dovetail.rewrite.patterns.needle import Needle
from dovetail.rewrite.shape import Value

Goals = tuple[int, str, "Goals"] | None
"""A part, the value it must be, and further goals."""
Miss = Callable[[int, str, str, int], None]
"""Told how many operations were matched, at which value the search parted, why, and how alike it was (0 to 3)."""
Trail = list[Callable[[], object]]
"""How to undo what was bound."""
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Found:
    """One way in which a form is in a graph. ``inside`` are the nodes, by the names of their first results."""

    sinks: tuple[str, ...]
    holes: tuple[tuple[str, str], ...]
    items: tuple[tuple[str, tuple[str, ...]], ...]
    """For each hole of a step its values, first step first."""
    settings: tuple[tuple[str, Value], ...]
    inside: tuple[str, ...]


class Run(Protocol):
    """A chain of steps in the graph; ``start`` is what its first step reads."""

    @property
    def start(self) -> str: ...

    def bind(self, search: Search, trail: Trail) -> bool:
        """Add what the steps bind to what is bound; False where they cannot go together."""


class Chains(Protocol):
    """Finds chains, by a search for each step."""

    def ending_at(self, search: Search, chain: Chain, value: str, uses: int | None) -> Iterator[Run]:
        """Chains whose last step makes ``value``, the longest first; ``uses`` is how often that may be read."""


class Search:
    """Mutable: what is bound so far. ``chains`` is handed in, for it makes searches itself."""

    __slots__ = ("bound", "chains", "holes", "index", "items", "miss", "needle", "settings", "used")

    def __init__(self, index: GraphIndex, needle: Needle, chains: Chains, miss: Miss | None = None) -> None:
        self.index, self.needle, self.chains, self.miss = index, needle, chains, miss
        self.bound: dict[int, str] = {}
        self.holes: dict[str, str] = {}
        self.items: dict[str, tuple[str, ...]] = {}
        self.settings: dict[str, Value] = {}
        self.used: dict[str, None] = {}

    def at(self, node: Node) -> Iterator[Found]:
        """Every way in which the form ends at ``node`` with its first sink."""
        part = self.needle.parts[self.needle.sinks[0]]
        value = node.results[part.number if isinstance(part, Result) else 0]
        if len(self.needle.sinks) == 1:
            for _ in self.solve((self.needle.sinks[0], value, None)):
                yield self.found()
            return
        for _ in self._sinks(0, value):
            yield self.found()

    def found(self) -> Found:
        """What is bound."""
        return Found(
            tuple(self.bound[sink] for sink in self.needle.form.sinks),
            tuple(sorted(self.holes.items())),
            tuple(sorted(self.items.items())),
            tuple(sorted(self.settings.items())),
            tuple(sorted(self.used, key=self.index.places.__getitem__)),
        )

    # -- sinks, one after the other

    def _sinks(self, number: int, value: str) -> Iterator[None]:
        for _ in self.solve((self.needle.sinks[number], value, None)):
            if number + 1 == len(self.needle.sinks):
                yield
                continue
            for following in self._following(number + 1):
                yield from self._sinks(number + 1, following)

    def _following(self, number: int) -> list[str]:
        """Values that may be the next sink."""
        route = self.needle.routes[number]
        if route is None:
            return [self.bound[self.needle.sinks[number]]]
        start, path = route
        part = self.needle.parts[start]
        values = [self.holes[part.name] if isinstance(part, Hole) else self.bound[start]]
        for place in path:
            values = list(dict.fromkeys(below for value in values for below in self._below(place, value)))
        if not values:
            found = self.needle.parts[path[-1]]
            shown = found.op if isinstance(found, Operation) else "an operator"
            self._parted(self.bound[self.needle.sinks[0]], "no other {} reads what it reads", shown)
        return values

    def _below(self, place: int, value: str) -> Iterator[str]:
        """What ``value`` may become by the part at ``place``."""
        part = self.needle.parts[place]
        if isinstance(part, Result):
            node = self.index.makers[value]
            yield node.results[part.number]
            return
        step = self.needle.steps[place]
        assert step is not None, "ways to sinks lead through operators"
        for node in self.index.users(value):
            if self.index.labels[node.results[0]] == step.label and node.results[0] not in self.used:
                yield node.results[0]

    # -- goals

    def solve(self, goals: Goals) -> Iterator[None]:
        """Bind all ``goals``, in every way; what is bound is undone when the caller asks for the next way."""
        trail: Trail = []
        try:
            while goals is not None:
                place, value, goals = goals
                if self.needle.is_leaf[place]:
                    if not self._leaf(place, value, trail):
                        return
                    continue
                if self.needle.operation_at[place] is None:
                    yield from self._chain(place, value, goals)
                    return
                node = self._node(place, value, trail)
                if node is None:
                    return
                if node.results[0] in self.used:
                    continue
                put(self.used, node.results[0], None, trail)
                orders = self._operands(place, node)
                if len(orders) != 1:
                    for order in orders:
                        yield from self.solve(_more(order, goals))
                    return
                goals = _more(orders[0], goals)
            yield
        finally:
            undo(trail)

    def _operands(self, place: int, node: Node) -> list[tuple[tuple[int, str], ...]]:
        """The operand parts of the operation and their values, in each order that is allowed."""
        operation = self.needle.operation_at[place]
        assert operation is not None
        parts, step = self.needle.operands[place], self.needle.steps[operation]
        given = node.operands
        if step is None or not step.commutative or given[0] == given[1]:
            return [tuple(zip(parts, given, strict=True))]
        both: tuple[tuple[str, ...], ...] = (given, (given[1], given[0], *given[2:]))
        if self.miss is None:
            both = tuple(one for one in both if self.needle.may_be_all(parts, one, self.index))
        return [tuple(zip(parts, one, strict=True)) for one in both]

    def _leaf(self, place: int, value: str, trail: Trail) -> bool:
        part = self.needle.parts[place]
        if isinstance(part, Number):
            return self._number(part.value, value)
        assert isinstance(part, Hole) or isinstance(part, Item)  # noqa: SIM101  # faster than a union
        there = self.holes.get(part.name)
        if there is None:
            put(self.holes, part.name, value, trail)
            return True
        return there == value or self._parted(value, "?{} is {} elsewhere in the pattern", part.name, there)

    def _node(self, place: int, value: str, trail: Trail) -> Node | None:
        """The node that makes ``value``, if it is the operation at ``place``, or makes the result that is there."""
        node, bound = self.index.makers.get(value), self.bound.get(place)
        if bound is not None:
            same = bound == value or self._parted(value, "it is {} elsewhere in the pattern", bound)
            return node if same else None
        operation = self.needle.operation_at[place]
        assert operation is not None
        step = self.needle.steps[operation]
        assert step is not None
        if node is None or self.index.labels[value] != step.label:
            alike = 0 if node is None else 1 + (len(node.operands) == step.label[1])
            there = "it is given" if node is None else f"it is {node.op}"
            self._parted(value, "{} is wanted, {}", step.label[0], there, alike=alike)
            return None
        if not self._belongs(place, operation, node, value) or not self._fits(node, operation, trail):
            return None
        put(self.bound, place, value, trail)
        if operation not in self.bound:
            put(self.bound, operation, node.results[0], trail)
        return node

    def _belongs(self, place: int, operation: int, node: Node, value: str) -> bool:
        """Whether ``value`` is the right result of its node, and the node that of this operation alone."""
        part = self.needle.parts[place]
        if isinstance(part, Result) and node.results[part.number] != value:
            return self._parted(value, "it is another result of {} than number {}", node.op, part.number)
        if operation in self.bound:
            same = self.bound[operation] == node.results[0]
            return same or self._parted(value, "it is made by another {} than its neighbours", node.op)
        if node.results[0] in self.used:
            return self._parted(value, "its {} is another operation of the pattern", node.op)
        return True

    def _fits(self, node: Node, operation: int, trail: Trail) -> bool:
        """Whether nothing outside reads what the node makes, and its attributes are those wanted."""
        step = self.needle.steps[operation]
        assert step is not None
        for made, result in zip(step.results, node.results, strict=True):
            if made is not None and self.needle.is_sink[made]:
                continue
            uses, inside = self.index.uses.get(result, 0), 0 if made is None else self.needle.reads[made]
            if uses != inside:
                return self._parted(result, "it is read in {} places, the pattern reads it in {}", uses, inside)
        if self.index.is_plain(step, node):
            return True
        given = self.index.settings(node)
        for key, wanted in step.settings:
            if isinstance(wanted, str) and wanted.startswith("?") and wanted[1:] not in self.settings:
                put(self.settings, wanted[1:], given[key], trail)
            elif not match_setting(wanted, given[key], self.settings) and not self.index.same_axes(node, key, wanted):
                return self._parted(node.results[0], "its {} is {}, not {}", key, given[key], wanted)
        return True

    def _number(self, wanted: float, value: str) -> bool:
        found = self.index.number(value)
        if found is None:
            return self._parted(value, "the constant {} is wanted", wanted)
        number, precision = found
        near = abs(number - wanted) <= precision * max(abs(number), abs(wanted))
        return near or self._parted(value, "it is the constant {}, not {}", number, wanted)

    def _chain(self, place: int, value: str, goals: Goals) -> Iterator[None]:
        """Chains that end at ``value``: the longest for which all other goals can be reached."""
        chain = self.needle.parts[place]
        assert isinstance(chain, Chain)
        uses = None if self.needle.is_sink[place] else self.needle.reads[place]
        bound = self.bound.get(place)
        if bound is not None:
            if bound == value:
                yield from self.solve(goals)
            return
        for run in self.chains.ending_at(self, chain, value, uses):
            if not self.needle.may_be(chain.start, run.start, self.index):
                self._parted(run.start, "the chain does not begin there")
                continue
            trail: Trail = []
            put(self.bound, place, value, trail)
            reached = False
            if run.bind(self, trail):
                for _ in self.solve((chain.start, run.start, goals)):
                    reached = True
                    yield
            undo(trail)
            if reached:
                return

    def _parted(self, value: str, why: str, *about: object, alike: int = 3) -> bool:
        """False; who asked for it is told."""
        if self.miss is not None:
            self.miss(len(self.used), value, why.format(*about), alike)
        return False


def put(table: MutableMapping[K, V], key: K, value: V, trail: Trail) -> None:
    """Bind ``key``, which is not bound, so that it can be undone."""
    table[key] = value
    trail.append(partial(table.__delitem__, key))


def undo(trail: Trail) -> None:
    """Undo what was bound, the last first."""
    for one in reversed(trail):
        one()
    trail.clear()


def _more(operands: tuple[tuple[int, str], ...], goals: Goals) -> Goals:
    for place, value in reversed(operands):
        goals = (place, value, goals)
    return goals
