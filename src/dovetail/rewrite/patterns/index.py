"""A graph as the search looks at it: who makes and who reads a value, and what a constant is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from dovetail.ir.graph.bound import Array
from dovetail.ir.graph.graph import Attribute, Graph, Node, SmallTensor, Type
from dovetail.ir.graph.verify import Operators, infer
from dovetail.ir.index import Index
from dovetail.rewrite.graph_attributes import whole_numbers
from dovetail.rewrite.graph_host import as_value
from dovetail.rewrite.match import match_setting
from dovetail.rewrite.shape import Value

Label = tuple[str, int, int]
"""Operator, how many operands and how many results."""
_LARGEST = 1 << 20
"""Elements of a constant that is looked through for one number."""
_AXES = ("axis", "axes")
"""Attributes that count axes of the first operand, from the first on or, negative, from the last."""
_OF_THE_RESULT = ("unsqueeze",)
"""Operators that count axes of what they make."""
_NUMBERS = ("constant", "full")
"""Operators that make a constant of a small tensor."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operation of a pattern: what its node must look like."""

    label: Label
    settings: tuple[tuple[str, Value], ...]
    commutative: bool
    results: tuple[int | None, ...]
    """The part that each result is; None where the pattern does not name it."""


class GraphIndex:
    """Made once for all patterns. Nodes go by the name of their first result."""

    def __init__(self, graph: Graph, operators: Operators, data: Mapping[str, Array] | None = None) -> None:
        self.graph, self.operators = graph, operators
        self._data = data or {}
        self.makers: dict[str, Node] = {}
        self.places: dict[str, int] = {}
        self.labels: dict[str, Label] = {}
        """Of the node that makes a value; inputs and constants have none."""
        shared: dict[Label, Label] = {}
        for place, node in enumerate(graph.nodes):
            found = (node.op, len(node.operands), len(node.results))
            found = shared.setdefault(found, found)
            for name in node.results:
                self.makers[name] = node
                self.labels[name] = found
            self.places[node.results[0]] = place
        self.uses: Mapping[str, int] = Counter(
            chain(graph.outputs, chain.from_iterable(node.operands for node in graph.nodes))
        )
        """How many operands and outputs a value is."""
        self._settings: dict[tuple[str, tuple[tuple[str, Attribute], ...]], dict[str, Value]] = {}
        self._plain: dict[tuple[Step, tuple[tuple[str, Attribute], ...]], bool] = {}
        self._numbers: dict[str, tuple[float, float] | None] = {}

    def settings(self, node: Node) -> Mapping[str, Value]:
        """The attributes of a node, defaults filled in."""
        key = (node.op, node.attributes)
        found = self._settings.get(key)
        if found is None:
            settings = self.operators[node.op].settings(node)
            found = self._settings[key] = {name: as_value(value) for name, value in settings.items()}
        return found

    def is_plain(self, step: Step, node: Node) -> bool:
        """Whether the attributes of a node are those that a pattern fixes, and it leaves none open."""
        key = (step, node.attributes)
        found = self._plain.get(key)
        if found is None:
            known: dict[str, Value] = {}
            given = self.settings(node)
            found = all(match_setting(wanted, given[name], known) for name, wanted in step.settings) and not known
            self._plain[key] = found
        return found

    def same_axes(self, node: Node, key: str, wanted: Value) -> bool:
        """Whether an attribute names the axes that are wanted, counted from the other end."""
        if key not in _AXES or node.op in _OF_THE_RESULT or not node.operands:
            return False
        rank = self.types[node.operands[0]].rank
        return _counted(wanted, rank) is not None and _counted(wanted, rank) == _counted(self.settings(node)[key], rank)

    @cached_property
    def types(self) -> Mapping[str, Type]:
        """Worked out when something asks for them."""
        return infer(self.graph, self.operators)

    def users(self, value: str) -> tuple[Node, ...]:
        return self.graph.users(value)

    def number(self, value: str) -> tuple[float, float] | None:
        """The one number that a constant is made of, and its relative precision; None for any other value."""
        if value not in self._numbers:
            self._numbers[value] = self._number(value)
        return self._numbers[value]

    def _number(self, value: str) -> tuple[float, float] | None:
        node = self.makers.get(value)
        if node is None:
            array = self._data.get(value)
            return None if array is None else _one_number(array)
        small = node.attribute("value") if node.op in _NUMBERS else None
        if not isinstance(small, SmallTensor) or len(set(small.values)) != 1:
            return None
        return float(small.values[0]), _precision(small.dtype.numpy)

    def above(self, values: Iterator[str], least: int) -> Iterator[str]:
        """The nodes that ``values`` are made of, at any depth, none that stands before place ``least``."""
        waiting, seen = list(values), set[str]()
        while waiting:
            node = self.makers.get(waiting.pop())
            if node is None or node.results[0] in seen or self.places[node.results[0]] < least:
                continue
            seen.add(node.results[0])
            yield node.results[0]
            waiting += node.operands


def _counted(axes: Value, rank: int) -> tuple[int, ...] | None:
    """Axes counted from the first; None where they are none."""
    found = (axes.const,) if isinstance(axes, Index) and axes.is_constant else whole_numbers(axes)
    return tuple(one % rank for one in found) if found and rank else None


def _one_number(array: Array) -> tuple[float, float] | None:
    if not 0 < array.size <= _LARGEST or array.dtype.kind not in "fiub":
        return None
    first = array.flat[0]
    return (float(first), _precision(array.dtype)) if bool(np.all(array == first)) else None


def _precision(dtype: np.dtype[np.generic]) -> float:
    if dtype.kind != "f":
        return 0.0
    return 1e-6 if dtype.itemsize >= 4 else 1e-3
