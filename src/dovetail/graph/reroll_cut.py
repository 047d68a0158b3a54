"""Parts of a tensor along one axis: where each step of an unrolled loop has its input from, and its result goes to.

s = slice(x) {axes = (0,), starts = (3,), ends = (4,)}
v = reshape(s) {shape = (2, 6)}                           v is the cut of x at 3 along axis 0, 1 wide
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.graph.clean_rule import numbers, settings
from dovetail.graph.roles import VIEWS
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Attribute, Node


@dataclass(frozen=True, slots=True)
class Cut:
    """``width`` elements of ``axis`` of ``source``, from ``start`` on, under any shape."""

    source: str
    axis: int
    start: int
    width: int


@dataclass(frozen=True, slots=True)
class CutRow:
    """Cuts at equal distances: the first starts at ``start``, the next ``stride`` further."""

    source: str
    axis: int
    start: int
    stride: int
    width: int
    count: int

    def fits(self, extent: int, count: int) -> bool:
        """Whether there are ``count`` such cuts."""
        last = self.start + (count - 1) * self.stride
        return last >= 0 and last + self.width <= extent


class Cuts:
    """Which values are cuts, looked up once each."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._known: dict[str, Cut | None] = {}

    def of(self, value: str) -> Cut | None:
        if value not in self._known:
            self._known[value] = _cut(self._sheet, value)
        return self._known[value]

    def row(self, values: Sequence[str]) -> CutRow | None:
        """At least two values as cuts of one tensor, one behind or before the other without overlap."""
        found = [self.of(value) for value in values]
        first, second = found[0], found[1] if len(found) > 1 else None
        if first is None or second is None:
            return None
        stride = second.start - first.start
        if stride == 0 or (first.width > 1 and stride != first.width):
            return None
        for place, cut in enumerate(found):
            if cut != Cut(first.source, first.axis, first.start + place * stride, first.width):
                return None
        return CutRow(first.source, first.axis, first.start, stride, first.width, len(found))


def stacked(sheet: Sheet, row: CutRow, shape: tuple[int, ...]) -> str:
    """The cuts of ``row``, each under ``shape``, along a new first axis."""
    extents = sheet.shape(row.source)
    assert extents is not None, "cuts are of tensors with known extents"
    value, axis, rank = row.source, row.axis, len(extents)
    if row.width == 1:
        end = row.start + row.count * row.stride
        if row.stride != 1 or row.start or end != extents[axis]:
            stop = end if end >= 0 else -extents[axis] - 1
            value = sheet.add("slice", value, starts=(row.start,), ends=(stop,), axes=(axis,), steps=(row.stride,))
    else:
        end = row.start + row.count * row.width
        if row.start or end != extents[axis]:
            value = sheet.add("slice", value, starts=(row.start,), ends=(end,), axes=(axis,), steps=(1,))
        parts = (*extents[:axis], row.count, row.width, *extents[axis + 1 :])
        value, rank = sheet.add("reshape", value, shape=parts), rank + 1
    if axis:
        perm = (axis, *(k for k in range(rank) if k != axis))
        value = sheet.add("transpose", value, perm=perm)
    return viewed(sheet, value, (row.count, *shape))


def viewed(sheet: Sheet, value: str, shape: tuple[int, ...]) -> str:
    """``value`` under another shape."""
    return value if sheet.shape(value) == shape else sheet.add("reshape", value, shape=shape)


def joined(sheet: Sheet, cuts: Cuts, node: Node) -> str | None:
    """What a ``concat`` of cuts makes, without the cuts; None where there are none in a row."""
    axis = settings(sheet, node)["axis"]
    shapes = [sheet.shape(value) for value in node.operands]
    if not isinstance(axis, int) or len(node.operands) < 3 or None in shapes:
        return None
    pieces: list[str] = []
    place, runs = 0, 0
    while place < len(node.operands):
        row = _longest(cuts, node.operands[place:], shapes[place:])
        if row is None:
            pieces.append(node.operands[place])
            place += 1
            continue
        shape = shapes[place]
        assert shape is not None
        pieces.append(_laid_out(sheet, stacked(sheet, row, shape), shape, axis % len(shape)))
        place, runs = place + row.count, runs + 1
    if not runs:
        return None
    return pieces[0] if len(pieces) == 1 else sheet.add("concat", *pieces, axis=axis)


def _longest(cuts: Cuts, values: Sequence[str], shapes: Sequence[tuple[int, ...] | None]) -> CutRow | None:
    """The cuts in a row at the front: three or more."""
    first = cuts.row(values[:3]) if len(values) > 2 and shapes[0] == shapes[1] == shapes[2] else None
    if first is None or 0 in (shapes[0] or ()):
        return None
    count = 3
    while count < len(values) and shapes[count] == shapes[0]:
        wanted = Cut(first.source, first.axis, first.start + count * first.stride, first.width)
        if cuts.of(values[count]) != wanted:
            break
        count += 1
    return CutRow(first.source, first.axis, first.start, first.stride, first.width, count)


def _laid_out(sheet: Sheet, value: str, shape: tuple[int, ...], axis: int) -> str:
    """Parts of ``shape`` along a first axis, one behind the other along ``axis``."""
    count = (sheet.shape(value) or (0,))[0]
    if axis:
        perm = (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))
        value = sheet.add("transpose", value, perm=perm)
    return viewed(sheet, value, (*shape[:axis], count * shape[axis], *shape[axis + 1 :]))


def _cut(sheet: Sheet, value: str) -> Cut | None:
    node = sheet.maker(value)
    while node is not None and node.op in VIEWS:
        value = node.operands[0]
        node = sheet.maker(value)
    if node is None or node.op not in ("slice", "gather", "split"):
        return None
    extents = sheet.shape(node.operands[0])
    if extents is None or 0 in extents:
        return None
    given = settings(sheet, node)
    if node.op == "slice":
        return _sliced(node, extents, given)
    axis = given["axis"]
    if not isinstance(axis, int):
        return None
    axis %= len(extents)
    if node.op == "gather":
        index = sheet.array(node.operands[1])
        if index is None or index.size != 1:
            return None
        start = int(index.flat[0])
        return (
            Cut(node.operands[0], axis, start % extents[axis], 1) if -extents[axis] <= start < extents[axis] else None
        )
    sizes = numbers(given["sizes"])
    part = node.results.index(value)
    return Cut(node.operands[0], axis, sum(sizes[:part]), sizes[part]) if sizes[part] else None


def _sliced(node: Node, extents: tuple[int, ...], given: Mapping[str, Attribute | None]) -> Cut | None:
    """A slice of one axis, without gaps."""
    starts, ends, axes, steps = (numbers(given[name]) for name in ("starts", "ends", "axes", "steps"))
    found: list[Cut] = []
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = (axes[place] if axes else place) % len(extents)
        kept = range(extents[axis])[start : end : steps[place] if steps else 1]
        if len(kept) == extents[axis] and kept[0] == 0:
            continue
        if not kept or (len(kept) > 1 and kept.step != 1):
            return None
        found.append(Cut(node.operands[0], axis, kept[0], len(kept)))
    return found[0] if len(found) == 1 else None
