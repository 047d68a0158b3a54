"""Regions while they grow. What joins a region leaves only one value of it for others to read: then no path can leave
the region and come back, since it would start at that value and end before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from dovetail.graph.roles import VIEWS, Work, without_ones
from dovetail.ir.graph.graph import Graph, Node, Type
from dovetail.ir.index import Index

_MOST_NODES = 32
"""Of one region: what is compiled as one piece stays within registers and seconds."""
_MOST_READ = 12
"""Tensors that a region reads."""


@dataclass
class Sketch:
    """A graph, and for each node that has one, its region."""

    graph: Graph
    types: Mapping[str, Type]
    work: Mapping[str, Work]
    home: dict[str, int] = field(default_factory=dict)
    """Of each node, by its first result."""
    regions: dict[int, tuple[tuple[Node, ...], str]] = field(default_factory=dict)
    count: int = 0
    """Regions that there have been."""
    places: dict[str, int] = field(init=False)
    outputs: frozenset[str] = field(init=False)
    _points: dict[str, tuple[Index, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = {node.results[0]: place for place, node in enumerate(self.graph.nodes)}
        self.outputs = frozenset(self.graph.outputs)

    def found(self, nodes: tuple[Node, ...], why: str) -> None:
        """A new region."""
        number, self.count = self.count, self.count + 1
        self.regions[number] = (self.graph.in_order(nodes), why)
        self.home.update((node.results[0], number) for node in nodes)

    def join(self, number: int, nodes: tuple[Node, ...]) -> None:
        """More nodes of a region."""
        old, why = self.regions[number]
        self.regions[number] = (self.graph.in_order((*old, *nodes)), why)
        self.home.update((node.results[0], number) for node in nodes)

    def merge(self, numbers: tuple[int, ...], why: str) -> None:
        """One region instead of several; it takes the place of the last."""
        nodes = tuple(node for number in numbers for node in self.regions.pop(number)[0])
        self.regions[numbers[-1]] = (self.graph.in_order(nodes), why)
        self.home.update((node.results[0], numbers[-1]) for node in nodes)

    def is_free(self, node: Node) -> bool:
        return node.results[0] not in self.home

    def work_of(self, node: Node) -> Work:
        return self.work[node.results[0]]

    def same_points(self, value: str, other: str) -> bool:
        """Whether both have the same elements but for axes of one."""
        return self.points(value) == self.points(other)

    def points(self, value: str) -> tuple[Index, ...]:
        """Its extents but for axes of one."""
        found = self._points.get(value)
        if found is None:
            found = self._points[value] = without_ones(self.types[value].shape)
        return found


def behind(sketch: Sketch, anchor: Node) -> tuple[Node, ...]:
    """``anchor`` and the pointwise nodes behind it, as far as they leave one value to read."""
    inside = {anchor.results[0]: anchor}
    leaving = {anchor.results[0]: len(sketch.graph.users(anchor.results[0]))}  # and how many outside read it
    best: tuple[Node, ...] = (anchor,)
    waiting = [sketch.places[user.results[0]] for user in sketch.graph.users(anchor.results[0])]  # in order: a heap
    tried: set[int] = set()
    while waiting and len(inside) < _MOST_NODES:
        place = heappop(waiting)
        if place in tried:
            continue
        tried.add(place)
        node = sketch.graph.nodes[place]
        if not _follows(sketch, node, anchor):
            continue
        key = node.results[0]
        inside[key] = node
        users = sketch.graph.users(key)
        for user in users:
            heappush(waiting, sketch.places[user.results[0]])
        for value in leaving.keys() & node.operands:
            leaving[value] -= 1
            if not leaving[value] and value not in sketch.outputs:
                del leaving[value]
        if users or key in sketch.outputs:
            leaving[key] = len(users)
        if leaving.keys() <= {key} and few_reads(inside):
            best = tuple(inside.values())
    return best


def before(sketch: Sketch, nodes: tuple[Node, ...], anchor: Node) -> tuple[Node, ...]:
    """``nodes`` and the pointwise nodes before them that nothing else reads and that have the anchor's elements."""
    inside = {node.results[0]: node for node in nodes}
    like = anchor.results[0] if sketch.work_of(anchor) is Work.POINTWISE else anchor.operands[0]
    waiting = [value for node in nodes for value in node.operands]
    while waiting and len(inside) < _MOST_NODES:
        value = waiting.pop(0)
        node = sketch.graph.producer(value)
        if node is None or node.results[0] in inside or not _precedes(sketch, node, like, inside):
            continue
        if not few_reads({**inside, value: node}):
            continue
        inside[value] = node
        waiting += node.operands
    return tuple(inside.values())


def without_leaving(graph: Graph, node: Node) -> bool:
    """Whether a view may be the bytes of its operand: not where a caller would get what a caller gave, or twice."""
    outputs = any(map(graph.is_output, node.results))
    made = graph.producer(node.operands[0])
    while made is not None and made.op in VIEWS and not graph.is_output(node.operands[0]):
        node, made = made, graph.producer(made.operands[0])
    return not outputs or (made is not None and not graph.is_output(node.operands[0]))


def _follows(sketch: Sketch, node: Node, anchor: Node) -> bool:
    """Whether a node works on the anchor's elements, one by one."""
    kind = sketch.work_of(node)
    fits = kind is Work.POINTWISE or (kind is Work.VIEW and sketch.same_points(node.results[0], node.operands[0]))
    return fits and sketch.is_free(node) and sketch.same_points(node.results[0], anchor.results[0])


def _precedes(sketch: Sketch, node: Node, like: str, inside: Mapping[str, Node]) -> bool:
    return (
        sketch.work_of(node) is Work.POINTWISE
        and sketch.is_free(node)
        and sketch.same_points(node.results[0], like)
        and not _leaves(sketch, node.results[0], inside)
    )


def _leaves(sketch: Sketch, value: str, inside: Mapping[str, Node]) -> bool:
    return value in sketch.outputs or any(user.results[0] not in inside for user in sketch.graph.users(value))


def few_reads(inside: Mapping[str, Node]) -> bool:
    """Whether a region of these nodes reads few tensors."""
    read = {value for node in inside.values() for value in node.operands if value not in inside}
    return len(read) <= _MOST_READ
