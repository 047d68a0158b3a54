"""Rules about nodes that move elements."""

from __future__ import annotations

from math import prod

import numpy as np

from dovetail.graph.clean_rule import CleanRule, Values, numbers, reshaped, retyped, settings
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Node
from dovetail.ir.index import ONE
from dovetail.ops.pointwise import BINARY, COMPARE

_RESHAPES = ("reshape", "flatten", "squeeze", "unsqueeze")
_BROADCAST = (*BINARY, *COMPARE, "div", "select", "matmul")
"""Operators that stretch an axis of one element by themselves."""
_FAR = (1 << 31) - 1


def _nothing(sheet: Sheet, node: Node) -> str | None:
    return node.operands[0]


def _same_shape(sheet: Sheet, node: Node) -> str | None:
    x = node.operands[0]
    return x if sheet.types[x] == sheet.types[node.results[0]] else None


def _reshape(sheet: Sheet, node: Node) -> str | None:
    """Any change of shape is a reshape of the first tensor of that order, its extents written out."""
    (x,), (y,) = node.operands, node.results
    source = x
    while (made := sheet.made_by(source, *_RESHAPES)) is not None:
        source = made.operands[0]
    shape = sheet.shape(y)
    if shape is None or 0 in shape or (source == x and node.op == "reshape" and node.attribute("shape") == shape):
        return None
    return reshaped(sheet, source, sheet.types[y])


def _split_part(sheet: Sheet, node: Node) -> str | None:
    """An axis of a slice that is split: the whole is split, and the slice takes whole blocks of it."""
    made = sheet.made_by(node.operands[0], "slice")
    cut, new = None if made is None else _cut(sheet, made), sheet.shape(node.results[0])
    if made is None or cut is None or new is None or 0 in new:
        return None
    (x,) = made.operands
    whole = sheet.shape(x)
    assert whole is not None, "it was cut"
    axes = [axis for axis, extent in enumerate(whole) if cut[axis] != range(extent)]
    if len(axes) != 1 or cut[axes[0]].step != 1:
        return None
    if len(new) <= len(whole):
        return None
    at, part = axes[0], cut[axes[0]]
    behind = len(whole) - at - 1
    inner = new[at + 1 : len(new) - behind]
    block = prod(inner)
    same = new[:at] == whole[:at] and new[len(new) - behind :] == whole[at + 1 :] and new[at] * block == len(part)
    if not same or part.start % block or whole[at] % block:
        return None
    view = sheet.add("reshape", x, shape=(*whole[:at], whole[at] // block, *inner, *whole[at + 1 :]))
    first = part.start // block
    return sheet.add("slice", view, starts=(first,), ends=(first + new[at],), axes=(at,))


def _perm(sheet: Sheet, node: Node) -> tuple[int, ...]:
    rank = sheet.types[node.operands[0]].rank
    perm = settings(sheet, node)["perm"]
    return tuple(reversed(range(rank))) if perm is None else numbers(perm)


def _transpose(sheet: Sheet, node: Node) -> str | None:
    (x,), (y,) = node.operands, node.results
    perm = _perm(sheet, node)
    if perm == tuple(range(len(perm))):
        return x
    shape = sheet.types[x].shape
    moved = [axis for axis in perm if shape[axis] != ONE]
    if moved == sorted(moved):
        return reshaped(sheet, x, sheet.types[y])
    inner = sheet.made_by(x, "transpose")
    if inner is None:
        return None
    first = _perm(sheet, inner)
    return sheet.add("transpose", inner.operands[0], perm=tuple(first[axis] for axis in perm))


def _expand(sheet: Sheet, node: Node) -> str | None:
    inner, shape = sheet.made_by(node.operands[0], "expand"), sheet.shape(node.results[0])
    if inner is None or shape is None:
        return None
    return retyped(sheet, "expand", inner.operands[0], like=node.results[0], shape=shape)


def _of_expanded(sheet: Sheet, node: Node) -> str | None:
    for place, operand in enumerate(node.operands):
        made = sheet.made_by(operand, "expand")
        if made is None or len(node.results) > 1:
            continue
        operands = (*node.operands[:place], made.operands[0], *node.operands[place + 1 :])
        found = retyped(sheet, node.op, *operands, like=node.results[0], **dict(node.attributes))
        if found is not None:
            return found
    return None


def _split(sheet: Sheet, node: Node) -> Values | None:
    given = settings(sheet, node)
    axis, sizes = given["axis"], numbers(given["sizes"])
    if not isinstance(axis, int) or len(sizes) != len(node.results) or 0 in sizes:
        return None
    start, found = 0, []
    for size in sizes:
        found.append(sheet.add("slice", node.operands[0], starts=(start,), ends=(start + size,), axes=(axis,)))
        start += size
    return tuple(found)


Cut = tuple[range, ...]
"""Of each axis the elements that a slice takes, in order."""


def _cut(sheet: Sheet, node: Node) -> Cut | None:
    shape = sheet.shape(node.operands[0])
    if shape is None:
        return None
    given = settings(sheet, node)
    starts, ends = numbers(given["starts"]), numbers(given["ends"])
    axes = numbers(given["axes"]) if given["axes"] is not None else tuple(range(len(starts)))
    steps = numbers(given["steps"]) if given["steps"] is not None else (1,) * len(starts)
    cut = [range(extent) for extent in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        cut[axis % len(shape)] = range(shape[axis % len(shape)])[start:end:step]
    return tuple(cut)


def _sliced(sheet: Sheet, x: str, cut: Cut, like: str) -> str | None:
    """A slice of ``x``, forwards along every axis."""
    shape = sheet.shape(x)
    if shape is None or any(part.step < 1 or not len(part) for part in cut):
        return None
    if all(part == range(extent) for part, extent in zip(cut, shape, strict=True)):
        return x
    axes = tuple(axis for axis, extent in enumerate(shape) if cut[axis] != range(extent))
    starts, ends = tuple(cut[a].start for a in axes), tuple(cut[a][-1] + 1 for a in axes)
    steps = tuple(cut[a].step for a in axes)
    return retyped(sheet, "slice", x, like=like, starts=starts, ends=ends, axes=axes, steps=steps)


def _slice(sheet: Sheet, node: Node) -> str | None:
    """All of a tensor; a slice of a slice; a slice of one of the parts of a tensor."""
    (x,), (y,) = node.operands, node.results
    cut = _cut(sheet, node)
    if cut is None:
        return None
    if sheet.types[x] == sheet.types[y] and all(part.step > 0 for part in cut):
        return x
    inner = sheet.made_by(x, "slice", "concat")
    if inner is None:
        return None
    if inner.op == "slice":
        first = _cut(sheet, inner)
        whole = None if first is None else tuple(a[b.start : b.stop : b.step] for a, b in zip(first, cut, strict=True))
        return None if whole is None else _sliced(sheet, inner.operands[0], whole, y)
    return _part(sheet, inner, cut, y)


def _part(sheet: Sheet, joined: Node, cut: Cut, like: str) -> str | None:
    axis = settings(sheet, joined)["axis"]
    if not isinstance(axis, int) or not len(cut[axis]):
        return None
    at, start = axis % len(cut), 0
    for operand in joined.operands:
        shape = sheet.shape(operand)
        if shape is None:
            return None
        if start <= min(cut[at]) and max(cut[at]) < start + shape[at]:
            part = cut[at]
            own = range(part.start - start, part.stop - start, part.step)
            return _sliced(sheet, operand, (*cut[:at], own, *cut[at + 1 :]), like)
        start += shape[at]
    return None


def _concat(sheet: Sheet, node: Node) -> str | None:
    """One part; parts of parts; parts that a tensor was cut into, put together again."""
    if len(node.operands) == 1:
        return node.operands[0]
    given = settings(sheet, node)["axis"]
    axis = given % sheet.types[node.results[0]].rank if isinstance(given, int) else 0
    parts: list[str] = []
    for operand in node.operands:
        inner = sheet.made_by(operand, "concat")
        same = inner is not None and sheet.uses(operand) == 1 and settings(sheet, inner)["axis"] in (given, axis)
        parts += inner.operands if inner is not None and same else [operand]
    whole = _whole(sheet, parts, axis, node.results[0])
    if whole is not None:
        return whole
    return sheet.add("concat", *parts, axis=axis) if len(parts) > len(node.operands) else None


def _whole(sheet: Sheet, parts: list[str], axis: int, like: str) -> str | None:
    """The tensor of which these are slices, one behind the other."""
    found: set[str] = set()
    place = 0
    for part in parts:
        made = sheet.made_by(part, "slice")
        cut = None if made is None else _cut(sheet, made)
        if made is None or cut is None:
            return None
        (x,) = made.operands
        shape = sheet.shape(x) or ()
        own = range(place, place + len(cut[axis]))
        if list(cut[axis]) != list(own) or any(cut[d] != range(n) for d, n in enumerate(shape) if d != axis):
            return None
        found.add(x)
        place = own.stop
    x = found.pop()
    return x if not found and sheet.types[x] == sheet.types[like] else None


def _gather(sheet: Sheet, node: Node) -> str | None:
    """Places that are known and lie at equal distances are a slice."""
    x, indices = node.operands
    array, shape = sheet.array(indices), sheet.shape(x)
    axis = settings(sheet, node)["axis"]
    if array is None or shape is None or array.size == 0 or not isinstance(axis, int):
        return None
    at = axis % len(shape)
    places = [int(n) + shape[at] * (int(n) < 0) for n in np.asarray(array, np.int64).ravel()]
    step = places[1] - places[0] if len(places) > 1 else 1
    whole = range(places[0], places[0] + step * len(places), step) if step > 0 else None
    if whole is None or list(whole) != places or not 0 <= places[0] <= places[-1] < shape[at]:
        return None
    cut = [range(extent) for extent in shape]
    cut[at] = whole
    t = sheet.types[node.results[0]]
    if all(part == range(n) for part, n in zip(cut, shape, strict=True)):
        return reshaped(sheet, x, t)
    made = sheet.add("slice", x, starts=(whole[0],), ends=(whole[-1] + 1,), axes=(at,), steps=(step,))
    return reshaped(sheet, made, t)


MOVES = (
    CleanRule("identity", ("identity", "dropout"), _nothing, "it hands on what it is given"),
    CleanRule("same-shape", (*_RESHAPES, "expand"), _same_shape, "the shape stays as it is"),
    CleanRule("reshape", _RESHAPES, _reshape, "one change of shape says what several say"),
    CleanRule(
        "transpose", ("transpose",), _transpose, "two changes of axes are one, and one that changes nothing none"
    ),
    CleanRule("split-part", ("reshape",), _split_part, "a view of the whole, of which a part is read where it lies"),
    CleanRule("expand", ("expand",), _expand, "two are one"),
    CleanRule("of-expanded", _BROADCAST, _of_expanded, "the operator stretches axes of one element by itself"),
    CleanRule("split", ("split",), _split, "who reads a part reads it where it lies"),
    CleanRule("slice", ("slice",), _slice, "a slice of a slice, or of one part, is one slice; one of everything none"),
    CleanRule("concat", ("concat",), _concat, "parts of parts are parts; one part is everything"),
    CleanRule("gather", ("gather",), _gather, "the places are known, at equal distances: a slice"),
)
