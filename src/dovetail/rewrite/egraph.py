"""Classes of equal nodes, kept by egglog: nodes are added, two of them declared equal, and congruence follows.

A node is a label over classes. egglog is an extra, 200 MB that take a while to load: only this module imports it, and
only ``explore`` loads this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from egglog import bindings

from dovetail.rewrite.trees import Tree

MOST_OPERANDS = 12
"""Nodes with more operands than this cannot be explored."""
_HERE = bindings.PanicSpan()
_OPERANDS = "".join(f" (N{n} String{' Term' * n})" for n in range(MOST_OPERANDS + 1))


Node = tuple[str, tuple[int, ...]]
"""A label over numbers of classes."""


class EGraph:
    """Trees, and which of them are equal."""

    def __init__(self) -> None:
        self._graph = bindings.EGraph()
        self._graph.run_program(*self._graph.parse_program(f"(datatype Term{_OPERANDS})"))

    def add(self, tree: Tree) -> None:
        """The tree with all trees in it."""
        self._graph.run_program(bindings.ActionCommand(bindings.Expr_(_HERE, _call(tree))))

    def union(self, first: Tree, second: Tree) -> None:
        """Declare two trees equal; they are added when they are new."""
        self._graph.run_program(bindings.ActionCommand(bindings.Union(_HERE, _call(first), _call(second))))

    def classes(self) -> Classes:
        """The nodes of each class as they are now."""
        self._graph.run_program(*self._graph.parse_program("(run 1)"))
        numbers: dict[bindings.Value, int] = {}
        nodes: dict[int, list[Node]] = {}
        for function in self._graph.freeze().functions.values():
            for row in function.rows:
                label, *operands = row.inputs
                node = self._graph.value_to_string(label), tuple(_number(numbers, value) for value in operands)
                nodes.setdefault(_number(numbers, row.output), []).append(node)
        return Classes(nodes, {node: number for number, members in nodes.items() for node in members})


@dataclass(frozen=True, slots=True)
class Classes:
    """The nodes of each class, and the class of each node."""

    nodes: Mapping[int, list[Node]]
    of: Mapping[Node, int]

    def find(self, tree: Tree) -> int:
        """The class of a tree that was added."""
        return self.of[tree.label, tuple(self.find(operand) for operand in tree.operands)]

    @property
    def size(self) -> int:
        return len(self.of)


def _number(numbers: dict[bindings.Value, int], value: bindings.Value) -> int:
    return numbers.setdefault(value, len(numbers))


def _call(tree: Tree) -> bindings.Call:
    label = bindings.Lit(_HERE, bindings.String(tree.label))
    return bindings.Call(_HERE, f"N{len(tree.operands)}", [label, *map(_call, tree.operands)])
