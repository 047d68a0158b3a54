"""The matcher's view of graphs: a node is a value, its operands are those of the operator that makes it.

Two operations of a pattern are two operations of the graph, and what lies inside a match is used nowhere else: the
match can be replaced without anything being computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.ir.graph.graph import Graph
from dovetail.ir.graph.operator import find
from dovetail.ir.graph.verify import Operators
from dovetail.ir.index import constant
from dovetail.rewrite.match import Binding, Opened
from dovetail.rewrite.shape import Value

OUTSIDE = "outside"
"""The label of inputs, of constants, and of what an operator with several results makes."""


class GraphHost:
    """A verified graph."""

    def __init__(self, graph: Graph, operators: Operators) -> None:
        self.graph, self.operators = graph, operators

    def label(self, node: str) -> str:
        made = self.graph.producer(node)
        return OUTSIDE if made is None or len(made.results) > 1 else f"{made.op}({len(made.operands)})"

    def settings(self, node: str) -> Mapping[str, Value]:
        made = self.graph.producer(node)
        assert made is not None, "only operators have attributes"
        return {name: as_value(found) for name, found in find(made, self.operators).settings(made).items()}

    def operands(self, node: str) -> tuple[str, ...]:
        made = self.graph.producer(node)
        return () if made is None else made.operands

    def same(self, first: str, second: str) -> bool:
        return first == second

    def variable(self, node: str) -> str | None:
        return None

    def free(self, node: str) -> frozenset[str]:
        return frozenset()

    def opened(self, node: str, label: str, count: int, taken: frozenset[str]) -> Opened[str] | None:
        return None

    def abstracted(self, names: tuple[str, ...], node: str) -> str:
        raise AssertionError("patterns of graphs have no functions")

    def splits(self, node: str) -> Iterator[tuple[str, str]]:
        return iter(())

    def accepts(self, binding: Binding[str]) -> bool:
        inside = set(binding.inside)
        if len(inside) < len(binding.inside):
            return False
        made = [self.graph.producer(value) for value in binding.inside]
        used = [operand for node in made if node is not None for operand in node.operands]
        return all(self.graph.uses(value) == used.count(value) for value in binding.inside[1:])


def as_value(found: Value | int) -> Value:
    """An attribute as the matcher knows it."""
    return constant(found) if isinstance(found, int) and not isinstance(found, bool) else found
