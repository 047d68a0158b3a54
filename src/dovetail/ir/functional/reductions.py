"""Sums, products and extremes of many values at once, for the evaluator."""

from __future__ import annotations

from math import prod

import numpy as np

from dovetail.ir.functional.values import Array, Bools, Data, as_type, both_there
from dovetail.ir.program import Combine

COMBINES = {c.function: c for c in Combine if c.function is not None}
"""Primitives that combine values in any order."""
_UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def combined(function: str, data: Data, axis: int, ordered: bool = False) -> Data:
    """All values along ``axis`` combined, one by one if ``ordered``; those that are not there are passed over."""
    neutral = np.asarray(COMBINES[function].neutral(data.dtype)).astype(data.values.dtype)
    values = data.values if data.there is None else np.where(data.there, data.values, neutral)
    if data.dtype.name == "bool":
        values = {"add": np.logical_or, "max": np.logical_or}.get(function, np.logical_and).reduce(values, axis=axis)
    elif ordered and values.shape[axis]:
        values = _UFUNCS[function].accumulate(values, axis=axis, dtype=values.dtype).take(-1, axis=axis)
    else:
        values = _UFUNCS[function].reduce(values, axis=axis, dtype=values.dtype, initial=neutral)
    there = None if data.there is None else np.any(np.broadcast_to(data.there, data.values.shape), axis=axis)
    return Data(np.asarray(values), data.dtype, there)


def pair(function: str, a: Data, b: Data) -> Data:
    """``function`` of two values; where one is not there, the other."""
    if a.dtype.name == "bool":
        values: Array = {"add": np.logical_or, "max": np.logical_or}.get(function, np.logical_and)(a.values, b.values)
    else:
        values = _UFUNCS[function](a.values, b.values)
    if a.there is None and b.there is None:
        return Data(values, a.dtype)
    mine, other = (np.asarray(True) if d.there is None else d.there for d in (a, b))
    values = np.where(mine, np.where(other, values, a.values), b.values)
    there: Bools | None = np.logical_or(mine, other)
    return Data(values, a.dtype, None if a.there is None or b.there is None else there)


def dot(a: Data, b: Data, axis: int) -> Data | None:
    """The sum along ``axis`` of products, without the array of products; None where that is not the same."""
    there = both_there((a, b))
    left, right = a.values, b.values
    if there is not None:
        if not (np.isfinite(left).all() and np.isfinite(right).all()):
            return None
        left, right = (np.where(there, side, np.zeros((), side.dtype)) for side in (left, right))
    if a.dtype.name == "bool":
        return None
    return Data(_contract(left, right, axis), a.dtype)


def _contract(left: Array, right: Array, axis: int) -> Array:
    """A product of matrices, one for each element along the axes that both have; ``axis`` is summed."""
    rank = left.ndim
    shape = np.broadcast_shapes(left.shape, right.shape)
    count = shape[axis]
    left, right = (np.broadcast_to(s, (*s.shape[:axis], count, *s.shape[axis + 1 :])) for s in (left, right))
    axes = [k for k in range(rank) if k != axis]
    shared = [k for k in axes if left.shape[k] == right.shape[k]]
    mine = [k for k in axes if k not in shared and left.shape[k] != 1]
    other = [k for k in axes if k not in shared and left.shape[k] == 1]
    outer = [shape[k] for k in shared]
    a = left.transpose(*shared, *mine, axis, *other).reshape(*outer, prod(shape[k] for k in mine), count)
    b = right.transpose(*shared, axis, *other, *mine).reshape(*outer, count, prod(shape[k] for k in other))
    found = np.matmul(a, b).reshape([shape[k] for k in (*shared, *mine, *other)])
    order = [*shared, *mine, *other]
    return np.asarray(found.transpose([order.index(k) for k in axes]))


def products(a: Data, b: Data, into: Data) -> tuple[Data, Data] | None:
    """Factors as the sum computes with them; None where their product has to wrap before it is added."""
    if into.dtype.is_float:
        return as_type(a, into.dtype), as_type(b, into.dtype)
    return (a, b) if a.dtype == b.dtype == into.dtype else None
