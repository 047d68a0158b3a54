"""A graph that a front end draws node by node: what is known of its values, and its constants."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType, from_numpy
from dovetail.base.errors import UnsupportedError
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.graph import Type
from dovetail.ir.index import constant as number
from dovetail.ops.table import OPERATORS

Array = npt.NDArray[np.generic]
_SHARED_BYTES = 4096
"""Constants up to this are kept once each."""


class Drawing:
    """Values are called x0, x1, ... (inputs), c0, c1, ... (constants) and v0, v1, ..."""

    def __init__(self, name: str) -> None:
        self.names: dict[str, str] = {}
        """What the model calls a value of ours, for messages."""
        self.data: dict[str, Array] = {}
        self._builder = Builder(name, OPERATORS)
        self._shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def type(self, name: str) -> Type:
        return self._builder.types[name]

    def dtype(self, name: str) -> DType:
        return self.type(name).dtype

    def shape(self, name: str) -> tuple[int, ...]:
        """The extents of a value, as numbers."""
        return tuple(extent.const for extent in self.type(name).shape)

    def rank(self, name: str) -> int:
        return self.type(name).rank

    def constant(self, array: Array) -> str:
        """A constant with this value; equal small ones are one."""
        array = np.asarray(array)
        dtype = from_numpy(array.dtype)
        if dtype is None:
            raise UnsupportedError("a constant", f"elements of {array.dtype} are not in the graph language")
        if array.nbytes > _SHARED_BYTES:
            return self._constant(array, dtype)
        key = (dtype.name, array.shape, array.tobytes())
        if key not in self._shared:
            self._shared[key] = self._constant(array, dtype)
        return self._shared[key]

    def _constant(self, array: Array, dtype: DType) -> str:
        name = self._builder.constant(f"c{len(self.data)}", Type(dtype, tuple(map(number, array.shape))))
        self.data[name] = array
        return name
