"""What a conversion of one ATen call works with: a graph in the making.

def relu(context: Context, call: Call) -> Results:
    return (context.node("relu", call.tensor("self")),)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from dovetail.base.dtypes import DType, Kind
from dovetail.frontends.drawing import Drawing
from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.elements import Array, array_of, type_of
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.edit import without_dead
from dovetail.ir.graph.graph import Attribute, Type


class Context(Drawing):
    """Builds one graph."""

    def __init__(self) -> None:
        super().__init__("model")
        self._inputs = 0
        self._kept: dict[tuple[object, ...], str] = {}

    def input(self, t: Type) -> str:
        self._inputs += 1
        return self._builder.input(f"x{self._inputs - 1}", t)

    def kept(self, tensor: torch.Tensor) -> str:
        """A constant with the value of ``tensor``; the same memory read in the same order is one."""
        type_of(tensor)
        key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.is_neg())
        if key not in self._kept:
            self._kept[key] = self.constant(array_of(tensor))
        return self._kept[key]

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
        return super()._constant(np.ascontiguousarray(array).reshape(array.shape), dtype)


Results = tuple[str | None, ...]
"""Our names of what was made; None for a result that nothing needs."""
Conversion = Callable[[Context, Call], Results]
"""Adds to the context's graph what a call computes."""
