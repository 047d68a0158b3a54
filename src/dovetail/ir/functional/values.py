"""Values of terms at many points at once: arrays whose leading axes are the maps around them.

A term inside d maps is evaluated for all their elements together: its value has d batch axes, then its own. A batch
axis has size one where the value is the same for all elements; own axes are always whole. An array of tuples is a
tuple of arrays. ``there`` says where a value is there: None everywhere, else an array with the same own axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.ir.compute import convert, store

Array = npt.NDArray[np.generic]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Data:
    """Numbers: floats as float64, integers and bools as themselves. ``there`` has the same own axes."""

    values: Array
    dtype: DType
    there: Bools | None = None


Value = Data | tuple["Value", ...]


def each(value: Value, change: Callable[[Data], Data]) -> Value:
    """``change`` of every array of numbers in ``value``."""
    if isinstance(value, Data):
        return change(value)
    return tuple(each(member, change) for member in value)


def leaves(value: Value) -> list[Data]:
    """The arrays of numbers in ``value``."""
    return [value] if isinstance(value, Data) else [leaf for member in value for leaf in leaves(member)]


def like(value: Value, new: list[Data]) -> Value:
    """``value`` with other arrays of numbers, as many as it has; ``new`` is used up."""
    return new.pop(0) if isinstance(value, Data) else tuple(like(member, new) for member in value)


def reshaped(value: Value, change: Callable[[Array], Array]) -> Value:
    """``change`` of the places of elements: of the numbers and of where they are there."""

    def both(data: Data) -> Data:
        there = None if data.there is None else np.asarray(change(data.there), np.bool_)
        return Data(change(data.values), data.dtype, there)

    return each(value, both)


def lifted(value: Value, depth: int, now: int) -> Value:
    """A value from inside ``depth`` maps as one inside ``now``: the same for all elements of the inner ones."""
    if depth == now:
        return value
    return reshaped(value, lambda a: a.reshape(a.shape[:depth] + (1,) * (now - depth) + a.shape[depth:]))


def whole(value: Value, depth: int, count: int) -> Value:
    """Batch axis ``depth`` made an axis of its own, of size ``count``."""
    return reshaped(value, lambda a: np.broadcast_to(a, (*a.shape[:depth], count, *a.shape[depth + 1 :])))


def element(value: Value, axis: int, number: int) -> Value:
    """Element ``number`` along ``axis``."""
    return reshaped(value, lambda a: a[(slice(None),) * axis + (number,)])


def size_at(value: Value, axis: int) -> int:
    """The size of an own axis."""
    return int(leaves(value)[0].values.shape[axis])


def joined(parts: list[Value], depth: int, stack: bool) -> Value:
    """Values one after another along axis ``depth``, which is new where they are stacked."""
    together = []
    for members in zip(*(leaves(part) for part in parts), strict=True):
        batch = np.broadcast_shapes(*(m.values.shape[:depth] for m in members))
        values = [np.broadcast_to(m.values, batch + m.values.shape[depth:]) for m in members]
        combine = np.stack if stack else np.concatenate
        there = None
        if any(m.there is not None for m in members):
            paired = zip(members, values, strict=True)
            masks = [np.broadcast_to(True if m.there is None else m.there, v.shape) for m, v in paired]
            there = combine(masks, axis=depth)
        together.append(Data(combine(values, axis=depth), members[0].dtype, there))
    return like(parts[0], together)


def chosen(there: Bools, a: Data, b: Data) -> Data:
    """``a`` where ``there``, else ``b``; both of one dtype."""
    values = np.where(there, a.values, b.values)
    if a.there is None and b.there is None:
        return Data(values, a.dtype)
    mine, other = (np.asarray(True) if d.there is None else d.there for d in (a, b))
    return Data(values, a.dtype, np.where(there, mine, other))


def both_there(parts: tuple[Data, ...]) -> Bools | None:
    """Where all of ``parts`` are there."""
    masks = [part.there for part in parts if part.there is not None]
    if not masks:
        return None
    found = masks[0]
    for mask in masks[1:]:
        found = np.logical_and(found, mask)
    return found


def as_type(data: Data, dtype: DType) -> Data:
    """``data`` computed in ``dtype``; not rounded."""
    return Data(convert(data.values, data.dtype, dtype), dtype, data.there)


def rounded(data: Data, dtype: DType) -> Data:
    """``data`` stored as ``dtype`` and read again."""
    return Data(convert(store(data.values, data.dtype, dtype), dtype, dtype), dtype, data.there)


def same_bits(data: Data, dtype: DType) -> Data:
    """The bits of ``data`` as they are stored, read as ``dtype``."""
    bits = np.ascontiguousarray(store(data.values, data.dtype, data.dtype))
    return Data(convert(bits.view(dtype.numpy).reshape(data.values.shape), dtype, dtype), dtype, data.there)
