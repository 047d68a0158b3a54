"""What a conversion of one ONNX node works with: a graph in the making, and what is known of its values.

    def softplus(context: Context, node: OnnxNode, operands: Operands) -> Results:
        (x,) = required(node, operands, 1)                 # see ``attributes``
        return (context.node("softplus", x),)

Operands and results are names of ours; an optional input that is left out, or missing at the end, is None.

``context.value(name)`` asks for a value at build time. A small input is looked at only then, and from then on the
graph holds for this value alone: it becomes one of ``guards``. Floats are looked at where they are asked for
themselves, not where something is computed from them: they take too many values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.base.errors import LimitError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.frontends.drawing import Drawing
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.edit import without_dead
from dovetail.ir.graph.evaluate import run_node
from dovetail.ir.graph.graph import SCAN, Attribute, Graph, Node, Type
from dovetail.ir.index import constant as number
from dovetail.ops.table import OPERATORS

Array = npt.NDArray[np.generic]
Operands = tuple[str | None, ...]
Results = tuple[str, ...]
LARGEST_GUARD = 64
"""Elements of an input that may be looked at: shapes, axes, sizes and scales have a few."""
_WINDOW = frozenset(("kernel", "strides", "pads", "dilations", "output_padding"))
"""Attributes that are extents, or go into them."""


class Later(Exception):
    """A conversion needs the value of an operand that is only there when the model runs."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Context(Drawing):
    """Builds one graph; ``around`` is that of the graph whose ``scan`` repeats this one."""

    def __init__(
        self, opsets: Mapping[str, int], around: Context | None = None, limits: ModelLimits = DEFAULT_MODEL_LIMITS
    ) -> None:
        super().__init__("model" if around is None else "step")
        self.opsets: Mapping[str, int] = opsets
        self.limits = limits
        self.guards: dict[str, Array] = {}
        """Inputs whose value was asked for."""
        self._around = around
        self._known: dict[str, Array] = {}
        self._guarded: set[str] = set()
        self._seen: dict[str, Array] = {}
        self._outer: dict[str, str] = {}
        self._inner: dict[str, str] = {}
        self._producers: dict[str, Node] = {}
        self._inputs: list[str] = []

    @property
    def opset(self) -> int:
        """The version of the standard operators that the node at hand belongs to."""
        return self.opsets.get("", 1)

    def value(self, name: str) -> Array | None:
        """The value of ``name`` if it is known while building, or can be for the inputs at hand."""
        order = self._order(name)
        if order is None:
            return None
        for value in order:
            if value not in self._known:
                self._compute(value)
        return self._known[name]

    def fixed(self, name: str) -> Array | None:
        """The value of ``name`` if it is the same for all inputs: no input is looked at."""
        return None if self._order(name, guard=False) is None else self.value(name)

    def direct(self, name: str) -> Array:
        """The value of ``name`` if it is the same for all inputs, or an input itself: what takes few values."""
        found = self.value(name) if name in self._inputs else self.fixed(name)
        if found is None:
            raise Later(name)
        return found

    def now(self, name: str) -> Array | None:
        """The value of ``name`` if it has been computed, or is a constant: nothing is computed for it."""
        return self._known.get(name)

    def known(self, name: str) -> Array:
        """The value of ``name``, which the conversion cannot do without."""
        found = self.value(name)
        if found is None:
            raise Later(name)
        return found

    def ints(self, name: str) -> tuple[int, ...]:
        """The value of ``name`` as whole numbers: axes, a shape, sizes."""
        return tuple(int(value) for value in self.known(name).reshape(-1).astype(np.int64))

    def node(self, op: str, *operands: str, **attributes: Attribute) -> str:
        """What a node with one result makes."""
        return self._add(op, operands, 1, attributes)[0]

    def nodes(self, op: str, *operands: str, results: int, **attributes: Attribute) -> tuple[str, ...]:
        """What a node with several results makes."""
        return self._add(op, operands, results, attributes)

    def scalar(self, value: float, dtype: DType) -> str:
        """A constant of no axes."""
        return self.constant(np.array(value, dtype.numpy))

    def input(self, dtype: DType, shape: Sequence[int], array: Array | None = None) -> str:
        """A new input; ``array`` is what it is in this call, if that may be looked at."""
        name = self._builder.input(f"x{len(self._inputs)}", Type(dtype, tuple(map(number, shape))))
        self._inputs.append(name)
        if array is not None and array.size <= LARGEST_GUARD:
            self._seen[name] = array.copy()
        return name

    def step(self) -> Context:
        """A context for the body of a ``scan``: its inputs first, then what ``share`` and constants bring in."""
        return Context(self.opsets, self, self.limits)

    def share(self, outer: str) -> str:
        """In a body: the value ``outer`` of the graph around, the same at every step."""
        assert self._around is not None
        if outer not in self._inner:
            t = self._around.type(outer)
            self._inner[outer] = inner = self.input(t.dtype, self._around.shape(outer))
            self._outer[inner] = outer
        return self._inner[outer]

    def repeat(
        self, body: Context, outputs: Sequence[str], operands: Sequence[str], carried: int, scanned: int, steps: int
    ) -> tuple[str, ...]:
        """What ``scan`` makes of ``operands``, those that are carried and scanned, and of what ``body`` shares."""
        graph = without_dead(body._builder.graph(*outputs))
        shared = tuple(body._outer.values())
        attributes: dict[str, Attribute] = {"carried": carried, "scanned": scanned, "steps": steps}
        return self._add(SCAN, (*operands, *shared), len(outputs), attributes, (graph,))

    def bound(self, outputs: Sequence[str]) -> BoundGraph:
        """The graph that makes ``outputs``, without what none of them needs."""
        graph = without_dead(self._builder.graph(*outputs))
        graph = replace(graph, inputs=tuple(value for value in graph.inputs if graph.uses(value.name)))
        return BoundGraph(graph, {value.name: self.data[value.name] for value in graph.constants}, dict(self.names))

    def _add(
        self,
        op: str,
        operands: tuple[str, ...],
        results: int,
        attributes: Mapping[str, Attribute],
        bodies: tuple[Graph, ...] = (),
    ) -> tuple[str, ...]:
        for name in _WINDOW & attributes.keys():
            value = attributes[name]
            if isinstance(value, tuple) and any(abs(extent) > self.limits.extent for extent in value):
                raise LimitError(f"{op}: {name} of {value}", why=f"{self.limits.extent} is allowed")
        made = self._builder.add_many(op, operands, results, attributes, bodies)
        node = Node(op, operands, made, tuple(sorted(attributes.items())), bodies)
        self._producers.update(dict.fromkeys(made, node))
        return made

    def _constant(self, array: Array, dtype: DType) -> str:
        if self._around is not None:
            return self.share(self._around.constant(array))
        name = super()._constant(array, dtype)
        self._known[name] = array
        return name

    def _order(self, name: str, guard: bool = True) -> list[str] | None:
        """Values that ``name`` is computed from, before what needs them; None if one is not known now."""
        order: list[str] = []
        done: set[str] = set()
        waiting: list[tuple[str, bool]] = [(name, False)]
        while waiting:
            value, ready = waiting.pop()
            if ready:
                order.append(value)
                continue
            if value in done:
                continue
            done.add(value)
            if self._at_hand(value, guard and (value == name or not self.dtype(value).is_float)):
                order.append(value)
            elif value in self._producers and self._bytes(value) <= self.limits.folded_bytes:
                waiting.append((value, True))
                waiting.extend((operand, False) for operand in self._producers[value].operands)
            else:
                return None
        return order

    def _bytes(self, value: str) -> int:
        return prod(self.shape(value)) * self.dtype(value).bytes

    def _at_hand(self, value: str, guard: bool) -> bool:
        if value in self._outer:
            assert self._around is not None
            return self._around._order(self._outer[value], guard) is not None
        if value in self._known:
            return guard or value not in self._guarded
        return guard and value in self._seen

    def _compute(self, value: str) -> None:
        """Puts ``value`` among what is known; its operands are."""
        if value in self._outer:
            assert self._around is not None
            found = self._around.value(self._outer[value])
            assert found is not None
            self._known[value] = found
            guarded = self._around.fixed(self._outer[value]) is None
        elif value in self._seen:
            self.guards[value] = self._known[value] = self._seen[value]
            guarded = True
        else:
            node = self._producers[value]
            made = run_node(node, self._builder.types, OPERATORS, self._known, {}, {})
            self._known.update(zip(node.results, made, strict=True))
            guarded = any(operand in self._guarded for operand in node.operands)
        if guarded:
            self._guarded.update(self._producers[value].results if value in self._producers else (value,))


Conversion = Callable[[Context, OnnxNode, Operands], Results]
"""Adds to the context's graph what an ONNX node computes."""
