"""A tensor's elements as an array over loops: axes sliced, padded, windowed and brought into the order of the loops.

    x[c, p + r, q + s] over p, q, r, s, c  ->  map(\\v -> transpose(map(slide(3, 1), v)), slide(3, 1, map(transpose, ...
    b[l, j] over j, l                      ->  transpose(b)

An *axis* is a dimension of the tensor with the loops that run over it, outermost first: one (all elements, or a slice
of them), two (windows, or parts of equal size), or none (an element). What is none of these is a ``view``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.ir.functional.term import Literal, Pattern
from dovetail.ir.index import ZERO, Condition, Index, constant
from dovetail.ir.index_ranges import Ranges, highest, lowest, needed_conditions

NONE = Literal(None)
Extents = Mapping[str, Index]


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension: what is done to it before it is taken apart, how it is, and the loops over it."""

    loops: tuple[str, ...]
    before: tuple[Pattern, ...] = ()
    apart: Pattern | None = None
    """``slide`` or ``split``, where there are two loops."""
    inner: Pattern | None = None
    """What is done to each window."""
    conditions: tuple[Condition, ...] = ()
    """Those that padding stands for."""
    at: Index = ZERO
    """The element, where there is no loop."""

    @property
    def is_whole(self) -> bool:
        """Whether one loop runs over all elements in order."""
        return len(self.loops) == 1 and not self.before

    @property
    def is_windowed(self) -> bool:
        """Whether its two loops overlap."""
        return self.apart is not None and self.apart.name == "slide"


def axis(index: Index, extent: Index, order: Sequence[str], extents: Extents, ranges: Ranges) -> Axis | None:
    """The axis for a dimension of size ``extent`` read at ``index``; None where only a ``view`` will do."""
    if not index.is_affine or any(name not in extents for name in index.names()):
        return None
    if index.is_constant:
        inside = index.const >= 0 and (extent.is_constant and index.const < extent.const)
        return Axis((), at=index) if inside else None
    if any(c <= 0 for _, c in index.terms) or len(index.terms) > 2:
        return None
    names = sorted((str(name) for name, _ in index.terms), key=list(order).index)
    if len(names) == 1:
        return _line(index, names[0], extent, extents, ranges)
    return _windows(index, names[0], names[1], extent, extents, ranges)


def _line(index: Index, name: str, extent: Index, extents: Extents, ranges: Ranges) -> Axis | None:
    """One loop: all elements, every so many-th of them, or padded at its ends."""
    step, count = index.coefficient(name), extents[name]
    if step == 1 and not index.const and count == extent:
        return Axis((name,))
    found = _padded(index, extent, ranges)
    if found is None:
        return None
    left, right, conditions = found
    start = constant(index.const + left)
    if not left and not right:
        return Axis((name,), (Pattern("slice", (start, count, constant(step))),))
    before: tuple[Pattern, ...] = (_pad(left, right),)
    if (step, start, count) != (1, constant(0), extent + left + right):
        before = (*before, Pattern("slice", (start, count, constant(step))))
    return Axis((name,), before, conditions=conditions)


def _windows(index: Index, outer: str, inner: str, extent: Index, extents: Extents, ranges: Ranges) -> Axis | None:
    """Two loops: parts of equal size, or windows."""
    step, gap, count = index.coefficient(outer), index.coefficient(inner), extents[outer]
    if not (extent.is_constant and count.is_constant and extents[inner].is_constant):
        return _parts(index, outer, inner, extent, extents)
    if min(count.const, extents[inner].const) < 1:
        return None
    found = _padded(index, extent, ranges)
    if found is None:
        return None
    left, right, conditions = found
    reach = (extents[inner].const - 1) * gap + 1
    if not conditions and (parts := _parts(index, outer, inner, extent, extents)) is not None:
        return parts
    wanted = (count.const - 1) * step + reach
    if (
        left
        and right <= left
        and (extent.const + 2 * left - reach) // step + 1 == count.const
        and not index.const + left
    ):
        right = left
    before: tuple[Pattern, ...] = (_pad(left, right),) if left or right else ()
    start, there = index.const + left, extent.const + left + right
    if start or (there - reach) // step + 1 != count.const:
        before = (*before, Pattern("slice", (constant(start), constant(wanted), constant(1))))
    apart = Pattern("slide", (constant(reach), constant(step)))
    each = Pattern("slice", (constant(0), extents[inner], constant(gap))) if gap > 1 else None
    return Axis((outer, inner), before, apart, each, conditions)


def _parts(index: Index, outer: str, inner: str, extent: Index, extents: Extents) -> Axis | None:
    """``n * i + j`` with j < n over the whole dimension."""
    width = extents[inner]
    if not width.is_constant or index.const or index.coefficient(inner) != 1:
        return None
    if index.coefficient(outer) != width.const or extents[outer] * width.const != extent:
        return None
    return Axis((outer, inner), (), Pattern("split", (width,)))


def _padded(index: Index, extent: Index, ranges: Ranges) -> tuple[int, int, tuple[Condition, ...]] | None:
    """Elements to add before and after so that ``index`` stays inside, and what adding ``none`` means."""
    low, over = lowest(index, ranges), highest(index - (extent - 1), ranges)
    if low is None or over is None:
        return None
    left, right = max(0, -low), max(0, over)
    if not left and not right:
        return 0, 0, ()
    conditions = needed_conditions((Condition(index), Condition(extent - 1 - index)), ranges)
    return left, right, conditions


def _pad(left: int, right: int) -> Pattern:
    return Pattern("pad", (constant(left), constant(right)), (NONE,))
