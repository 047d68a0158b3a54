"""A graph while a pass changes it: who makes and who reads each value is kept up to date, change by change.

    y = relu(h)         replace("y", "h")         z = add(h, x)
    z = add(y, x)              ->

Outputs keep their names: what is made in place of an output is called by it in the end, and an output that has become
an input, a constant or another output is a copy of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dovetail.ir.graph.bound import Array, BoundGraph
from dovetail.ir.graph.graph import Attribute, Graph, Node, Type, Value
from dovetail.ir.graph.verify import Operators, infer, result_types
from dovetail.ir.index import constant

IDENTITY = "identity"


class Sheet:
    """Nodes go by the name of their first result."""

    def __init__(self, bound: BoundGraph, operators: Operators) -> None:
        graph = bound.graph
        self.bound, self.graph, self.operators = bound, graph, operators
        self.types: dict[str, Type] = infer(graph, operators)
        self.data: dict[str, Array] = dict(bound.data)
        self.nodes: dict[str, Node] = {node.results[0]: node for node in graph.nodes}
        self.outputs: list[str] = list(graph.outputs)
        self._asked: dict[str, list[int]] = {}
        self._uses: Counter[str] = Counter(graph.outputs)
        self._makers: dict[str, str] = {name: node.results[0] for node in graph.nodes for name in node.results}
        self._readers: dict[str, dict[str, None]] = {}
        self._constants: dict[str, None] = {value.name: None for value in graph.constants}
        self._sizes = {size.name: size for size in graph.sizes}
        self._taken = set(graph.names())
        self._next = len(self._taken)
        for place, name in enumerate(graph.outputs):
            self._asked.setdefault(name, []).append(place)
        for node in graph.nodes:
            self._note(node)

    # -- what is there

    def maker(self, value: str) -> Node | None:
        """The node that makes ``value``; None for an input or a constant."""
        key = self._makers.get(value)
        return None if key is None else self.nodes[key]

    def made_by(self, value: str, *ops: str) -> Node | None:
        """The node that makes ``value``, if it is one of these operators."""
        node = self.maker(value)
        return node if node is not None and node.op in ops else None

    def readers(self, value: str) -> tuple[Node, ...]:
        return tuple(self.nodes[key] for key in self._readers.get(value, ()))

    def uses(self, value: str) -> int:
        """How many operands and outputs ``value`` is."""
        return self._uses[value]

    def is_output(self, value: str) -> bool:
        return value in self._asked

    def array(self, value: str) -> Array | None:
        """The data of a constant; None for anything else."""
        return self.data[value] if value in self._constants else None

    def shape(self, value: str) -> tuple[int, ...] | None:
        """Its extents as numbers; None where one is a size."""
        extents = self.types[value].shape
        return tuple(e.const for e in extents) if all(e.is_constant for e in extents) else None

    def shown(self, value: str) -> str:
        return self.bound.shown(value)

    # -- changes

    def add(self, op: str, *operands: str, **attributes: Attribute) -> str:
        """The value that a new node makes."""
        node = Node(op, operands, (self._fresh(),), tuple(sorted(attributes.items())))
        self.insert(node)
        return node.results[0]

    def insert(self, node: Node) -> None:
        """A new node; raises an OperatorError where it cannot take its operands."""
        self.types.update(zip(node.results, result_types(node, self.types, self.operators, self._sizes), strict=True))
        self.nodes[node.results[0]] = node
        self._makers.update((name, node.results[0]) for name in node.results)
        self._note(node)

    def constant(self, array: Array, like: Type) -> str:
        """A new constant of the dtype of ``like``."""
        name = self._fresh()
        self._fix(name, array, Type(like.dtype, tuple(map(constant, array.shape))))
        return name

    def freeze(self, key: str, arrays: Sequence[Array]) -> None:
        """What the node ``key`` makes is constant from now on."""
        node = self.nodes.pop(key)
        for name, array in zip(node.results, arrays, strict=True):
            del self._makers[name]
            self._fix(name, array, self.types[name])
        self._forget(node)
        self.release(*node.operands)

    def _fix(self, name: str, array: Array, t: Type) -> None:
        self.data[name] = np.ascontiguousarray(array.astype(t.dtype.numpy, copy=False)).reshape(array.shape)
        self.types[name] = t
        self._constants[name] = None

    def replace(self, old: str, new: str) -> None:
        """Everything that reads ``old`` reads ``new``; what nothing reads any more is gone."""
        if old == new:
            return
        assert self.types[old] == self.types[new], f"{old} is {self.types[old]}, {new} is {self.types[new]}"
        self._uses[new] += self._uses.pop(old, 0)
        for key in self._readers.pop(old, {}):
            node = self.nodes[key]
            self.nodes[key] = replace(node, operands=tuple(new if name == old else name for name in node.operands))
            self._readers.setdefault(new, {})[key] = None
        for place in self._asked.get(old, ()):
            self.outputs[place] = new
        if old in self._asked:
            self._asked.setdefault(new, []).extend(self._asked.pop(old))
        self.release(old)

    def redirect(self, key: str, old: str, new: str) -> None:
        """The node ``key`` alone reads ``new`` in place of ``old``."""
        node = self.nodes[key]
        self.nodes[key] = replace(node, operands=tuple(new if name == old else name for name in node.operands))
        self._readers[old].pop(key)
        self._readers.setdefault(new, {})[key] = None
        count = node.operands.count(old)
        self._uses[old] -= count
        self._uses[new] += count

    def release(self, *values: str) -> None:
        """Leave out the makers of ``values``, and of what they alone read, where nothing needs them."""
        waiting = list(values)
        while waiting:
            key = self._makers.get(waiting.pop())
            if key is None or any(self.needed(name) for name in self.nodes[key].results):
                continue
            node = self.nodes.pop(key)
            for name in node.results:
                del self._makers[name]
            self._forget(node)
            waiting += node.operands

    def needed(self, value: str) -> bool:
        return bool(self._readers.get(value)) or value in self._asked

    # -- the end

    def finish(self) -> BoundGraph:
        """The graph as it is now, in order, without what no output needs."""
        names = self._output_names()
        nodes = [_renamed(node, names) for node in self._in_order()]
        inputs = tuple(self.graph.inputs)
        read = {name for node in nodes for name in node.operands} | set(self.outputs)
        constants = tuple(Value(name, self.types[name]) for name in self._constants if name in read)
        outputs = tuple(names.get(name, name) for name in self.outputs)
        graph = Graph(self.graph.name, inputs, outputs, tuple(nodes), constants, self.graph.sizes)
        graph.keep_types(self.operators, self._types_of(graph, names))
        data = {value.name: self.data[value.name] for value in constants}
        shown = {names.get(name, name): model for name, model in self.bound.names.items()}
        return BoundGraph(graph, data, shown)

    def _types_of(self, graph: Graph, names: Mapping[str, str]) -> dict[str, Type]:
        """The types of the values of ``graph``, in order; some are called by ``names`` there."""
        old = {new: name for name, new in names.items()}
        made = (name for node in graph.nodes for name in node.results)
        every = (*(value.name for value in (*graph.inputs, *graph.constants)), *made)
        return {name: self.types[old.get(name, name)] for name in every}

    def _output_names(self) -> dict[str, str]:
        """New values that take the name of an output that is gone; other such outputs become copies."""
        names: dict[str, str] = {}
        kept = {old for old, new in zip(self.graph.outputs, self.outputs, strict=True) if old == new}
        for place, (old, new) in enumerate(zip(self.graph.outputs, self.outputs, strict=True)):
            if old == new or names.get(new) == old:
                continue
            if old in self._makers and names.get(old) is None:
                names[old] = self._fresh()  # one of several results that others still need
            if self.maker(new) is not None and new not in kept and new not in names:
                names[new] = old
            else:
                self.outputs[place] = self.add(IDENTITY, new)
                names[self.outputs[place]] = old
        return names

    def _in_order(self) -> Iterator[Node]:
        """Each node that an output needs behind those it reads, otherwise as they came."""
        needed = self._reached()
        done: set[str] = set()
        for start in self.nodes:
            waiting = [start] if start in needed else []
            while waiting:
                key = waiting[-1]
                missing = [
                    m for n in self.nodes[key].operands if (m := self._makers.get(n)) is not None and m not in done
                ]
                if key in done or not missing:
                    waiting.pop()
                    if key not in done:
                        done.add(key)
                        yield self.nodes[key]
                else:
                    waiting += missing

    def _reached(self) -> set[str]:
        found: set[str] = set()
        waiting = [key for name in self.outputs if (key := self._makers.get(name)) is not None]
        while waiting:
            key = waiting.pop()
            if key not in found:
                found.add(key)
                waiting += [m for name in self.nodes[key].operands if (m := self._makers.get(name)) is not None]
        return found

    def _note(self, node: Node) -> None:
        for name in node.operands:
            self._readers.setdefault(name, {})[node.results[0]] = None
            self._uses[name] += 1

    def _forget(self, node: Node) -> None:
        """A node that has been left out reads nothing."""
        for name in node.operands:
            self._readers[name].pop(node.results[0], None)
            self._uses[name] -= 1

    def _fresh(self) -> str:
        while (name := f"v{self._next}") in self._taken:
            self._next += 1
        self._taken.add(name)
        return name


def _renamed(node: Node, names: dict[str, str]) -> Node:
    if names.keys().isdisjoint((*node.operands, *node.results)):
        return node
    operands = tuple(names.get(name, name) for name in node.operands)
    return replace(node, operands=operands, results=tuple(names.get(name, name) for name in node.results))
