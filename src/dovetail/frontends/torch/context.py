"""What a conversion of one ATen call works with: a graph in the making.

def relu(context: Context, call: Call) -> Results:
    return (context.node("relu", call.tensor("self")),)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dovetail.base.dtypes import DType, Kind, from_numpy
from dovetail.base.errors import UnsupportedError
from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.elements import Array, typed
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.edit import without_dead
from dovetail.ir.graph.graph import Attribute, Type
from dovetail.ops.table import OPERATORS

_SHARED_BYTES = 4096
"""Constants up to this are kept once each."""


class Context:
    """Builds one graph. Values are called x0, x1, ... (inputs), c0, c1, ... (constants) and v0, v1, ..."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """What PyTorch's graph calls a value of ours, for messages."""
        self.data: dict[str, Array] = {}
        self._builder = Builder("model", OPERATORS)
        self._inputs = 0
        self._shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def type(self, name: str) -> Type:
        return self._builder.types[name]

    def dtype(self, name: str) -> DType:
        return self.type(name).dtype

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(extent.const for extent in self.type(name).shape)

    def rank(self, name: str) -> int:
        return self.type(name).rank

    def input(self, t: Type) -> str:
        self._inputs += 1
        return self._builder.input(f"x{self._inputs - 1}", t)

    def constant(self, array: Array) -> str:
        """A constant with this value; equal small ones are one."""
        dtype = from_numpy(array.dtype)
        if dtype is None:
            raise UnsupportedError("a constant", f"elements of {array.dtype} are not in the graph language")
        if array.nbytes > _SHARED_BYTES:
            return self._constant(array, dtype)
        key = (dtype.name, array.shape, array.tobytes())
        if key not in self._shared:
            self._shared[key] = self._constant(array, dtype)
        return self._shared[key]

    def scalar(self, value: float, dtype: DType) -> str:
        """A constant of no axes; a number that ``dtype`` does not hold wraps, as PyTorch's do."""
        if dtype.is_integer and not isinstance(value, float):
            value = (int(value) - dtype.low) % (1 << dtype.bits) + dtype.low
        return self.constant(np.array(value).astype(dtype.numpy))

    def node(self, op: str, *operands: str, **attributes: Attribute) -> str:
        """What a node with one result makes."""
        return self._builder.add(op, *operands, **attributes)

    def nodes(self, op: str, *operands: str, results: int, **attributes: Attribute) -> tuple[str, ...]:
        """What a node with several results makes."""
        return self._builder.add_many(op, operands, results, attributes)

    def cast(self, name: str, dtype: DType) -> str:
        """``name`` in ``dtype``, as PyTorch converts: any number but 0 is true."""
        if self.dtype(name) == dtype:
            return name
        if dtype.kind is Kind.BOOL:
            return self.node("not_equal", name, self.scalar(0, self.dtype(name)))
        return self.node("cast", name, dtype=dtype.name)

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The same elements in another shape."""
        if self.shape(name) == tuple(shape):
            return name
        if 0 in shape:
            return self.constant(np.zeros(tuple(shape), self.dtype(name).numpy))
        return self.node("reshape", name, shape=tuple(shape))

    def expand(self, name: str, shape: Sequence[int]) -> str:
        """Axes of extent 1 repeated, new axes in front."""
        return name if self.shape(name) == tuple(shape) else self.node("expand", name, shape=tuple(shape))

    def bound(self, outputs: Sequence[str]) -> BoundGraph:
        """The graph that makes ``outputs``, without what none of them needs; inputs all stay."""
        graph = without_dead(self._builder.graph(*outputs))
        return BoundGraph(graph, {value.name: self.data[value.name] for value in graph.constants}, dict(self.names))

    def _constant(self, array: Array, dtype: DType) -> str:
        name = self._builder.constant(f"c{len(self.data)}", typed(dtype, array.shape))
        self.data[name] = np.ascontiguousarray(array).reshape(array.shape)
        return name


Results = tuple[str | None, ...]
"""Our names of what was made; None for a result that nothing needs."""
Conversion = Callable[[Context, Call], Results]
"""Adds to the context's graph what a call computes."""
