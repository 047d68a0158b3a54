"""The graph language: named operators over typed tensors, as a model states them.

    text      = size* graph
    size      = "size" name "in" lo ".." hi
    graph     = "graph" name "(" value, ... ")" "->" "(" name, ... ")" const* node*
    value     = name ":" dtype "[" extent, ... "]"
    const     = "const" value                                -- its data is kept beside the graph
    node      = name, ... "=" operator "(" name, ... ")" ["{" name "=" attribute, ... "}"] body*
    attribute = int | float | string | "(" number, ... ")" | dtype "[" int, ... "]" "(" number, ... ")"
    body      = "do" graph "end"                             -- closed: it sees its own inputs, and the sizes

    graph mlp(x: f32[1, 64]) -> (y)
      const w: f32[128, 64]
      h = matmul(x, w) {transpose_b = 1}
      y = relu(h)

A value is made once, by an input, a constant or a node, and used below. What an operator means, and so the type of
what it makes, is looked up in a table of ``Operator``s that is handed in; the one operator that the language itself
knows is ``scan``, which repeats its body:

    last, all = scan(h, x, w) {carried = 1, scanned = 1} do graph step(h: f32[8], x: f32[4], w: f32[8, 4]) -> (n, n)
      ...
    end

The first operands of ``scan`` are carried from step to step, the next give one slice of their first axis to each step
(from the last to the first with ``reverse = 1``), the others are the same at every step. The body's first outputs are
what is carried on, the others are stacked along a new first axis. ``steps`` says how often where nothing is scanned.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dovetail.base.dtypes import DType
from dovetail.ir.index import Index
from dovetail.ir.program import Size

SCAN = "scan"


@dataclass(frozen=True, slots=True)
class Type:
    """What is in a tensor, and its extents: numbers or affine in sizes."""

    dtype: DType
    shape: tuple[Index, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def __hash__(self) -> int:
        return hash((self.dtype.name, self.shape))

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class Value:
    """A named tensor that no node makes: an input or a constant."""

    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class SmallTensor:
    """A few numbers written in the text, in row-major order."""

    dtype: DType
    shape: tuple[int, ...]
    values: tuple[int | float, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]({', '.join(map(repr, self.values))})"


Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | SmallTensor


@dataclass(frozen=True, slots=True)
class Node:
    """``results = op(operands) {attributes}``; ``bodies`` are the subgraphs it runs."""

    op: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()
    """Sorted by name; what is not there has the operator's default."""
    bodies: tuple[Graph, ...] = ()
    line: int = field(default=0, compare=False)
    """Line of the source text, for messages."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        text = f"{', '.join(self.results)} = {self.op}({', '.join(self.operands)})"
        if self.attributes:
            text += f" {{{', '.join(f'{name} = {show(value)}' for name, value in self.attributes)}}}"
        for body in self.bodies:
            header, *rest = str(body).splitlines()
            yield f"{text} do {header}"
            yield from rest
            text = "end"
        yield text

    @property
    def place(self) -> str:
        """Where a message points to."""
        text = next(self._lines())
        return f"line {self.line}: {text}" if self.line else text

    def attribute(self, name: str) -> Attribute | None:
        """What the node states itself; None where the operator's default holds."""
        return next((value for found, value in self.attributes if found == name), None)


@dataclass(frozen=True)
class Graph:
    """Nodes in an order in which every value is made before it is used. ``verify`` says whether it means anything.

    Not slotted: who makes and who reads a value, and its type, is worked out when it is first asked for, and kept.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...] = ()
    constants: tuple[Value, ...] = ()
    sizes: tuple[Size, ...] = ()
    """Run-time extents; a body uses those of the graph around it and has none of its own."""
    _typed: dict[int, tuple[object, dict[str, Type]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __str__(self) -> str:
        inputs = ", ".join(map(str, self.inputs))
        lines = [f"graph {self.name}({inputs}) -> ({', '.join(self.outputs)})"]
        lines += [f"  const {value}" for value in self.constants]
        lines += [f"  {line}" for node in self.nodes for line in str(node).splitlines()]
        return "\n".join([*map(str, self.sizes), *lines])

    def producer(self, value: str) -> Node | None:
        """The node that makes ``value``; None for an input or a constant."""
        return self._producers.get(value)

    def users(self, value: str) -> tuple[Node, ...]:
        """Nodes that read ``value``, in order, each once."""
        return self._users.get(value, ())

    def uses(self, value: str) -> int:
        """How many operands and graph outputs ``value`` is; twice in one node counts twice."""
        inside = sum(node.operands.count(value) for node in self.users(value))
        return inside + self._asked[value]

    def is_constant(self, value: str) -> bool:
        return value in self._constants

    def is_output(self, value: str) -> bool:
        return value in self._asked

    def types_by(self, operators: object) -> dict[str, Type] | None:
        """The type of every value, where it has been worked out by this table of operators and kept."""
        table, types = self._typed.get(id(operators), (None, None))
        return types if table is operators else None

    def keep_types(self, operators: object, types: dict[str, Type]) -> None:
        """From now on known: nobody may change ``types``, nor has to work them out again."""
        self._typed[id(operators)] = (operators, types)

    def names(self) -> frozenset[str]:
        """Every value and size there is."""
        made = (name for node in self.nodes for name in node.results)
        return frozenset((*made, *(v.name for v in (*self.inputs, *self.constants)), *(s.name for s in self.sizes)))

    def in_order(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """These nodes, each once, as they stand in the graph."""
        places = self._places
        return tuple(self.nodes[place] for place in sorted({places[node.results[0]] for node in nodes}))

    def place(self, value: str) -> int:
        """Which of the nodes, counted from 0, makes ``value``."""
        return self._places[value]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, node in enumerate(self.nodes) for name in node.results}

    @cached_property
    def _producers(self) -> Mapping[str, Node]:
        return {name: node for node in self.nodes for name in node.results}

    @cached_property
    def _users(self) -> Mapping[str, tuple[Node, ...]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.operands):
                found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def _constants(self) -> frozenset[str]:
        return frozenset(value.name for value in self.constants)

    @cached_property
    def _asked(self) -> Counter[str]:
        return Counter(self.outputs)


def node(op: str, operands: tuple[str, ...], results: tuple[str, ...], **attributes: Attribute) -> Node:
    """A node with its attributes in order."""
    return Node(op, operands, results, tuple(sorted(attributes.items())))


def show(value: Attribute) -> str:
    """An attribute as it stands in the text."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(repr, value))}{',' if len(value) == 1 else ''})"
    return str(value) if isinstance(value, SmallTensor) else repr(value)
