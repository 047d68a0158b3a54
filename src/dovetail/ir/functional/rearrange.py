"""Patterns that move elements and compute nothing, for the evaluator; one function each.

Each takes the settings, the values of the terms, the number of maps around, and the values of sizes. The outermost
own axis of a value is its axis number ``depth``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dovetail.base.dtypes import DTYPES, compute_type
from dovetail.ir.compute import IntArray
from dovetail.ir.functional.reductions import COMBINES, pair
from dovetail.ir.functional.term import Places, Setting
from dovetail.ir.functional.values import Array, Bools, Data, Value, as_type, each, joined, reshaped
from dovetail.ir.index import Access, Index, Quotient
from dovetail.ir.program import Combine

Sizes = Mapping[str, int]


def number(setting: Setting, sizes: Sizes) -> int:
    """The value of a size."""
    assert isinstance(setting, Index)
    return setting.evaluate(sizes)


def _zip(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    return args


def _get(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    (whole,) = args
    assert isinstance(whole, tuple)
    return whole[number(settings[0], sizes)]


def _array(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    return joined(list(args), depth, stack=True)


def _to(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    return args[0]


def _slide(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    n, step = (number(s, sizes) for s in settings)

    def windows(a: Array) -> Array:
        found = np.lib.stride_tricks.sliding_window_view(a, n, axis=depth)
        return np.moveaxis(found, -1, depth + 1)[(slice(None),) * depth + (slice(None, None, step),)]

    return reshaped(args[0], windows)


def _split(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    n = number(settings[0], sizes)
    return reshaped(args[0], lambda a: a.reshape(*a.shape[:depth], a.shape[depth] // n, n, *a.shape[depth + 1 :]))


def _join(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    def together(a: Array) -> Array:
        return a.reshape(*a.shape[:depth], a.shape[depth] * a.shape[depth + 1], *a.shape[depth + 2 :])

    return reshaped(args[0], together)


def _transpose(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    return reshaped(args[0], lambda a: np.swapaxes(a, depth, depth + 1))


def _pad(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    left, right = (number(s, sizes) for s in settings)
    fill, data = args
    parts = [_copies(fill, left, depth), data, _copies(fill, right, depth)]
    return joined(parts, depth, stack=False)


def _repeat(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    return _copies(args[0], number(settings[0], sizes), depth)


def _iota(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    n = number(settings[0], sizes)
    return Data(np.arange(n, dtype=np.int64).reshape((1,) * depth + (n,)), DTYPES["i64"])


def _slice(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    start, count, step = (number(s, sizes) for s in settings)
    part = slice(start, start + count * step, step) if count else slice(0, 0)
    return reshaped(args[0], lambda a: a[(slice(None),) * depth + (part,)])


def _view(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    (places,) = settings
    assert isinstance(places, Places)

    def taken(data: Data) -> Data:
        extents = data.values.shape[depth : depth + len(places.indices)]
        indices, inside = places_at(places, extents, sizes)
        at = (slice(None),) * depth + tuple(indices)
        values = data.values[at] if 0 not in extents else np.zeros((), data.values.dtype)
        rest = data.values.shape[depth + len(extents) :]
        shape = (*data.values.shape[:depth], *inside.shape, *rest)
        there = inside.reshape((1,) * depth + inside.shape + (1,) * len(rest))
        there = np.broadcast_to(there, (1,) * depth + inside.shape + rest)
        if data.there is not None:
            there = np.logical_and(there, data.there[at])
        return Data(np.broadcast_to(values, shape), data.dtype, None if there.all() else there)

    return each(args[0], taken)


def _scatter(settings: tuple[Setting, ...], args: tuple[Value, ...], depth: int, sizes: Sizes) -> Value:
    combine, *extents, places = settings
    assert isinstance(places, Places)
    shape = tuple(number(extent, sizes) for extent in extents)
    function = Combine(combine).function

    def put(data: Data) -> Data:
        data = data if function is None else as_type(data, compute_type(data.dtype))
        loops = len(places.loops)
        indices, inside = places_at(places, shape, sizes)
        values = np.moveaxis(data.values, range(depth, depth + loops), range(loops))
        there = np.broadcast_to(True if data.there is None else data.there, data.values.shape)
        there = np.moveaxis(there, range(depth, depth + loops), range(loops))
        start = 0 if function is None else COMBINES[function].neutral(data.dtype)
        total = np.full((*shape, *values.shape[loops:]), start, values.dtype)
        found = np.zeros(total.shape, np.bool_)
        for point in np.argwhere(inside):
            at, here = tuple(int(i[tuple(point)]) for i in indices), tuple(point)
            old = Data(np.asarray(total[at]), data.dtype, np.asarray(found[at]))
            new = Data(np.asarray(values[here]), data.dtype, np.asarray(there[here]))
            both = new if function is None else pair(function, old, new)
            total[at] = np.where(there[here], both.values, old.values)
            found[at] |= there[here]
        total, found = (np.moveaxis(a, range(len(shape)), range(depth, depth + len(shape))) for a in (total, found))
        return Data(total, data.dtype, found if function is None and not found.all() else None)

    return each(args[0], put)


def places_at(places: Places, extents: tuple[int, ...], sizes: Sizes) -> tuple[list[IntArray], Bools]:
    """Indices at every point of the loops, kept inside ``extents``, and where the point is there."""
    shape = tuple(loop.extent.evaluate(sizes) for loop in places.loops)
    grid = np.indices(shape, np.int64)
    values = {loop.name: grid[k] for k, loop in enumerate(places.loops)}
    inside = np.ones(shape, np.bool_)
    for condition in places.where:
        found = _index(condition.index, values, sizes)
        inside &= found == 0 if condition.equal else found >= 0
    indices: list[IntArray] = []
    for index, extent in zip(places.indices, extents, strict=True):
        found = np.broadcast_to(_index(index, values, sizes), shape)
        inside &= (found >= 0) & (found < extent)
        indices.append(np.clip(found, 0, max(0, extent - 1)))
    return indices, inside


def _index(index: Index, values: Mapping[str, IntArray], sizes: Sizes) -> IntArray:
    """The value of an index at every point."""
    total = np.asarray(index.const, np.int64)
    for atom, factor in index.terms:
        if isinstance(atom, str):
            part = values[atom] if atom in values else np.asarray(sizes[atom])
        else:
            assert not isinstance(atom, Access), f"{atom} is read from an array"
            inner = _index(atom.index, values, sizes)
            part = inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor
        total = total + np.asarray(part * factor, np.int64)
    return total


def _copies(value: Value, count: int, depth: int) -> Value:
    return reshaped(value, lambda a: np.repeat(np.expand_dims(a, depth), count, axis=depth))


REARRANGE: dict[str, Callable[[tuple[Setting, ...], tuple[Value, ...], int, Sizes], Value]] = {
    "zip": _zip,
    "tuple": _zip,
    "get": _get,
    "array": _array,
    "to": _to,
    "slide": _slide,
    "split": _split,
    "join": _join,
    "transpose": _transpose,
    "pad": _pad,
    "repeat": _repeat,
    "iota": _iota,
    "slice": _slice,
    "view": _view,
    "scatter": _scatter,
}
