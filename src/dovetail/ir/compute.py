"""The value of an expression at many points at once: exact integers that wrap, floats in float64.

An array of type d holds floats as float64, whatever their width, and integers and bools as themselves. ``store``
is the one place where a float is rounded to its dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES, DType, Kind, compute_type
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Read, argument_types, value_type
from dovetail.ir.index import Access, Index
from dovetail.ir.primitives import PRIMITIVES

Array = npt.NDArray[np.generic]
IntArray = npt.NDArray[np.int64]
DTypes = Mapping[str, DType]


class Place(Protocol):
    """Where expressions are evaluated: it knows its loops and the tensors."""

    def index(self, index: Index) -> IntArray:
        """The value of an index at every point."""

    def read(self, access: Access) -> Array:
        """The stored elements at every point."""


def compute(e: Expr, own: DType, dtypes: DTypes, at: Place) -> Array:
    """``e`` computed in type ``own`` at every point of ``at``."""
    if isinstance(e, Literal):
        return literal(e.value, own)
    if isinstance(e, Read):
        return convert(at.read(e.access), dtypes[e.access.tensor], own)
    if isinstance(e, Cast):
        inner = compute_type(value_type(e.arg, dtypes, None))
        return convert(store(compute(e.arg, inner, dtypes, at), inner, e.dtype), e.dtype, own)
    if isinstance(e, Bitcast):
        inner = value_type(e.arg, dtypes, None)
        bits = store(compute(e.arg, compute_type(inner), dtypes, at), compute_type(inner), inner)
        return convert(np.asarray(bits).view(e.dtype.numpy), e.dtype, own)
    if isinstance(e, Apply):
        return _apply(e, own, dtypes, at)
    return convert(np.asarray(at.index(e.index)), DTYPES["i64"], own)


def _apply(e: Apply, own: DType, dtypes: DTypes, at: Place) -> Array:
    args = []
    for arg, kind in zip(e.args, argument_types(e, dtypes, own), strict=True):
        inner = compute_type(value_type(arg, dtypes, kind))
        args.append(convert(compute(arg, inner, dtypes, at), inner, kind))
    row = PRIMITIVES[e.function]
    return convert(np.asarray(row.meaning(*args)), DTYPES["bool"] if row.result == "bool" else own, own)


def representation(d: DType) -> np.dtype[np.generic]:
    """What arrays of type ``d`` are made of while they are computed with."""
    return np.dtype(np.float64) if d.is_float else d.numpy


def literal(value: int | float | bool, own: DType) -> Array:
    """A number as a 0-d array of type ``own``; integers wrap."""
    if own.is_integer and isinstance(value, int):
        value = (value - own.low) % (1 << own.bits) + own.low
    return np.asarray(value).astype(representation(own))


def convert(values: Array, source: DType, target: DType) -> Array:
    """Values of type ``source`` as type ``target``: integers wrap, floats saturate, NaN gives 0; not rounded."""
    if target.is_float:
        return values.astype(np.float64, copy=False)
    if source == target:
        return values
    if target.kind is Kind.BOOL:
        return np.not_equal(values, np.zeros((), values.dtype))
    return _saturate(values.astype(np.float64), target) if source.is_float else values.astype(target.numpy)


def store(values: Array, source: DType, target: DType) -> Array:
    """Computed values of type ``source`` as elements of dtype ``target`` in memory."""
    return convert(values, source, target).astype(target.numpy, copy=False)


def _saturate(values: npt.NDArray[np.float64], target: DType) -> Array:
    whole = np.trunc(np.where(np.isnan(values), 0.0, values))
    above, below = whole >= float(target.high + 1), whole <= float(target.low)
    wide = np.uint64 if target.kind is Kind.UNSIGNED else np.int64
    inside = np.where(above | below, 0.0, whole).astype(wide).astype(target.numpy)
    low, high = (np.asarray(v, target.numpy) for v in (target.low, target.high))
    return np.where(above, high, np.where(below, low, inside))
