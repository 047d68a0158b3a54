"""A match cut out of its graph: what it computes and what takes its place, as two small graphs over the same inputs.

Equal text means that two matches are the same up to where they are: they are checked, and estimated, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.ir.graph.bound import Array, BoundGraph
from dovetail.ir.graph.graph import Graph, Node, Type, Value
from dovetail.rewrite.patterns.find import Match
from dovetail.rewrite.patterns.make import Made


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """``before`` is named v0, v1, ...; ``data`` are numbers that the pattern names."""

    match: Match
    before: Graph
    data: Mapping[str, Array]
    names: Mapping[str, str]
    """What each value of the graph is called here."""
    constants: frozenset[str]
    """Inputs that are constants in the graph: what is made of them alone is computed ahead of time."""
    shown: tuple[str, ...]
    """What the model calls each output."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for matches that need one check."""
        numbers = tuple((name, array.tobytes()) for name, array in sorted(self.data.items()))
        holes = tuple((name, self.names.get(value, "")) for name, value in self.match.found.holes)
        items = tuple((n, tuple(self.names[v] for v in several)) for n, several in self.match.found.items)
        return self.match.pattern, str(self.before), numbers, holes, items, self.constants

    def after(self, made: Made) -> tuple[Graph, dict[str, Array]]:
        """The graph with the replacement in place, and the data of its constants."""
        names = dict(self.names)
        for name in (*made.data, *(result for node in made.replacement.nodes for result in node.results)):
            names[name] = f"w{len(names)}"
        nodes = tuple(_renamed(node, names) for node in made.replacement.nodes)
        instead = dict(made.replacement.values)
        outputs = tuple(names[instead.get(sink, sink)] for sink in self.match.found.sinks)
        constants = tuple(Value(names[value.name], value.type) for value in made.replacement.constants)
        data = {**self.data, **{names[name]: array for name, array in made.data.items()}}
        known = (*self.before.constants, *constants)
        graph = Graph("after", self.before.inputs, outputs, nodes, known, self.before.sizes)
        return graph, data


def subject(match: Match, bound: BoundGraph, types: Mapping[str, Type]) -> Subject:
    """The nodes inside a match, in order, under names that only depend on what they are."""
    graph = bound.graph
    inside = [node for name in match.inside if (node := graph.producer(name)) is not None]
    made = dict.fromkeys(result for node in inside for result in node.results)
    given = dict.fromkeys(value for node in inside for value in node.operands if value not in made)
    given.update(dict.fromkeys(value for _, value in match.found.holes))
    holes = {value for _, value in match.found.holes} | {v for _, several in match.found.items for v in several}
    numbers = [value for value in given if value not in holes]
    names = {value: f"v{number}" for number, value in enumerate((*given, *made))}
    inputs = tuple(Value(names[value], types[value]) for value in given if value in holes)
    small = tuple(Value(names[value], types[value]) for value in numbers if value in bound.data)
    literal = [node for value in numbers if (node := graph.producer(value)) is not None]
    nodes = tuple(_renamed(node, names) for node in (*literal, *inside))
    before = Graph("before", inputs, tuple(names[sink] for sink in match.found.sinks), nodes, small, graph.sizes)
    data = {names[value]: bound.data[value] for value in numbers if value in bound.data}
    fixed = frozenset(names[value] for value in given if graph.is_constant(value))
    return Subject(match, before, data, names, fixed, tuple(map(bound.shown, match.found.sinks)))


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    operands = tuple(names[name] for name in node.operands)
    return Node(node.op, operands, tuple(names[name] for name in node.results), node.attributes, node.bodies)
