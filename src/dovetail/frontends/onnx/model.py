"""An ONNX model as plain data: nothing of protobuf, everything checked.

    OnnxModel  = ir_version, opsets, graph, functions
    OnnxGraph  = name, inputs, outputs, initializers, nodes (each after those it reads), values
    OnnxNode   = op, domain, overload, name, inputs, outputs ("" is left out), attributes
    Attribute  = int | float | str | bytes | tensor | graph | type | reference | tuple of one kind
    Type       = tensor | sparse tensor | sequence | map | optional

Names are as the file has them and may hold any character: print them by ``base.words.printable``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.elements import ELEMENTS, Element

Array = npt.NDArray[np.generic]
Shape = tuple[int | str | None, ...]
"""One entry for each dimension: an extent, the name of one, or None for one of which nothing is said."""


@dataclass(frozen=True, slots=True, eq=False)
class OnnxTensor:
    """Values of a file: ``array`` is read-only, and may be a part of a mapped file."""

    name: str
    elem_type: int
    values: Array

    @property
    def element(self) -> Element:
        return ELEMENTS[self.elem_type]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def array(self) -> Array:
        """The values; strings are an array of objects that are ``str``."""
        return self.values


@dataclass(frozen=True, slots=True, eq=False)
class OnnxSparseTensor:
    """``values`` at ``indices`` (one linear index or one row of coordinates for each) of a tensor of zeros."""

    name: str
    values: OnnxTensor
    indices: OnnxTensor
    shape: tuple[int, ...]

    @property
    def elem_type(self) -> int:
        return self.values.elem_type

    def array(self) -> Array:
        """The dense tensor."""
        dense = np.zeros(self.shape, self.values.dtype)
        indices = self.indices.array().astype(np.int64)
        at = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), self.shape)
        dense.reshape(-1)[at] = self.values.array()
        return dense


@dataclass(frozen=True, slots=True)
class TensorType:
    """``elem_type`` 0 and ``shape`` None: nothing is said."""

    elem_type: int
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class SparseTensorType:
    """As TensorType, of a sparse tensor."""

    elem_type: int
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A list of values of one type."""

    element: OnnxType | None


@dataclass(frozen=True, slots=True)
class MapType:
    """A dictionary; keys are integers or strings."""

    key: int
    value: OnnxType | None


@dataclass(frozen=True, slots=True)
class OptionalType:
    """A value or nothing."""

    element: OnnxType | None


OnnxType = TensorType | SparseTensorType | SequenceType | MapType | OptionalType


@dataclass(frozen=True, slots=True)
class OnnxValue:
    """A named value; ``type`` is None where the file says nothing."""

    name: str
    type: OnnxType | None = None

    @property
    def elem_type(self) -> int:
        """Of a tensor; 0 for what is none, or not said."""
        return self.type.elem_type if isinstance(self.type, (TensorType, SparseTensorType)) else 0

    @property
    def shape(self) -> Shape | None:
        """Of a tensor; None for what is none, or not said."""
        return self.type.shape if isinstance(self.type, (TensorType, SparseTensorType)) else None


@dataclass(frozen=True, slots=True)
class AttributeReference:
    """In a function: the attribute ``name`` of its caller, of kind ``kind`` ("int", "floats", "graph", ...)."""

    name: str
    kind: str


Scalar = int | float | str | bytes
Attribute: TypeAlias = (
    "Scalar | tuple[Scalar, ...] | OnnxTensor | tuple[OnnxTensor, ...]"
    " | OnnxSparseTensor | tuple[OnnxSparseTensor, ...]"
    " | OnnxGraph | tuple[OnnxGraph, ...] | OnnxType | tuple[OnnxType, ...] | AttributeReference"
)


@dataclass(frozen=True, slots=True, eq=False)
class OnnxNode:
    """``op`` of ``domain`` ("" is ai.onnx). An input or output that is left out is ""."""

    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    name: str = ""
    overload: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class OnnxGraph:
    """``nodes`` stand after those whose results they read. A node of a body may read values of the graphs around it.

    An input that is also in ``initializers`` has that value unless another is given.
    ``values`` are the types the file states of other values: hints, which may be wrong.
    """

    name: str
    inputs: tuple[OnnxValue, ...]
    outputs: tuple[OnnxValue, ...]
    initializers: Mapping[str, OnnxTensor | OnnxSparseTensor]
    nodes: tuple[OnnxNode, ...]
    values: Mapping[str, OnnxValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class OnnxFunction:
    """A function of the model: what a node of this name, domain and overload stands for.

    ``attributes`` must be given by the caller, ``defaults`` may be.
    """

    name: str
    domain: str
    overload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    defaults: Mapping[str, Attribute]
    nodes: tuple[OnnxNode, ...]
    opsets: Mapping[str, int]


FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""


@dataclass(frozen=True, slots=True, eq=False)
class OnnxModel:
    """``opsets``: the version of each domain of operators; "" is ai.onnx."""

    ir_version: int
    opsets: Mapping[str, int]
    graph: OnnxGraph
    functions: Mapping[FunctionKey, OnnxFunction] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    """Files beside it that hold data of it."""

    @property
    def opset(self) -> int:
        """The version of ai.onnx; 0 when the model uses none of it."""
        return self.opsets.get("", 0)
