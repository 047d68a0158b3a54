"""Types of terms.

    type     = dtype | type "[" size, ... "]" | "(" type, ... ")" | type "->" type
    size     = quasi-affine in run-time sizes

``f32[8, n]`` is an array of 8 arrays of n numbers: ``Array(8, Array(n, Scalar(f32)))``. A name that begins with ``?``
stands for any type, in a size for any size: only rules have such names.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.base.dtypes import DType
from dovetail.ir.index import Index


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number."""

    dtype: DType

    def __str__(self) -> str:
        return self.dtype.name


@dataclass(frozen=True, slots=True)
class Array:
    """``size`` elements of one type."""

    size: Index
    element: Type

    def __str__(self) -> str:
        sizes, inner = shape(self)
        return f"{_grouped(inner)}[{', '.join(map(str, sizes))}]"


@dataclass(frozen=True, slots=True)
class Tuple:
    """Several values side by side."""

    members: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.members))})"


@dataclass(frozen=True, slots=True)
class Function:
    """What takes ``params`` and gives ``result``. One that takes several also takes the tuple of them."""

    params: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        if len(self.params) != 1:
            return f"({', '.join(map(str, self.params))}) -> {self.result}"
        (given,) = self.params
        return f"{f'({given})' if isinstance(given, Tuple) else _grouped(given)} -> {self.result}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any type; the same name is the same type."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


Type = Scalar | Array | Tuple | Function | Unknown


def shape(kind: Type) -> tuple[tuple[Index, ...], Type]:
    """The sizes of an array of arrays, outermost first, and what its elements are in the end."""
    sizes: list[Index] = []
    while isinstance(kind, Array):
        sizes.append(kind.size)
        kind = kind.element
    return tuple(sizes), kind


def array(sizes: tuple[Index, ...], element: Type) -> Type:
    """``element[sizes]``; the element itself where there are none."""
    for size in reversed(sizes):
        element = Array(size, element)
    return element


def _grouped(kind: Type) -> str:
    return f"({kind})" if isinstance(kind, Function) else str(kind)
