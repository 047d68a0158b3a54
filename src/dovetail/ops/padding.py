"""``pad``: a tensor with something around it. The result is cut into boxes, and each is written by one statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import ZERO, Index, constant, variable
from dovetail.ops.text import Grid, grid, text

_MOST_BOXES = 1024
"""Each is a statement."""


def pad(x: Type, *, pads: Ints, mode: str = "constant", value: float = 0.0) -> str:
    """``pads`` are all before, then all behind; around x is ``value``, or x itself repeated (edge), mirrored without
    its edge (reflect), or from its other side (wrap)."""
    if len(pads) != 2 * x.rank or min(pads, default=0) < 0:
        raise OperatorError(f"pads {pads} must be {2 * x.rank} numbers that are not negative")
    if mode not in _SOURCES and mode != "constant":
        raise OperatorError(f"pad cannot fill by '{mode}'", hint=f"one of constant, {', '.join(_SOURCES)}")
    around = tuple(zip(pads[: x.rank], pads[x.rank :], strict=True))
    shape = [extent + before + after for extent, (before, after) in zip(x.shape, around, strict=True)]
    g = grid(x.shape)
    axes = [_pieces(g.names[dim], x.shape[dim], around[dim], mode) for dim in range(x.rank)]
    if prod(map(len, axes)) > _MOST_BOXES and mode != "constant":
        raise OperatorError(f"pads {pads} by {mode}", why=f"they cut the result into more than {_MOST_BOXES} boxes")
    boxes = _slabs(axes, shape) if mode == "constant" else list(product(*axes))
    return text(f"out y: {x.dtype}[{', '.join(map(str, shape))}]", *(_fill(g, box, _number(value, x)) for box in boxes))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of an axis of the result: where it starts, how long it is, and which index of x is there."""

    start: Index
    extent: Index
    source: Index | None
    """None where x has nothing for it."""


def _pieces(name: str, extent: Index, around: tuple[int, int], mode: str) -> list[_Piece]:
    """The middle, what is before and what is behind, as far as they are there."""
    before, after = around
    place = variable(name)
    found = [_Piece(constant(before), extent, place)]
    sources = _SOURCES[mode](place, extent, before) if mode in _SOURCES else (None, None)
    least = {"reflect": 1, "wrap": 0}.get(mode)
    if least is not None and extent.is_constant and max(around) > extent.const - least:
        raise OperatorError(f"padding {around} of an axis of {extent} by {mode}", why="x is not that long")
    if before:
        found.append(_Piece(ZERO, constant(before), sources[0]))
    if after:
        found.append(_Piece(extent + before, constant(after), sources[1]))
    return found


_SOURCES: Mapping[str, Callable[[Index, Index, int], tuple[Index, Index]]] = {
    "edge": lambda place, extent, before: (ZERO, extent - 1),
    "reflect": lambda place, extent, before: (-place + before, extent - 2 - place),
    "wrap": lambda place, extent, before: (extent - before + place, place),
}
"""Which index of x is ``place`` elements into the stretch before it, and behind it."""


def _slabs(axes: list[list[_Piece]], shape: list[Index]) -> list[tuple[_Piece, ...]]:
    """The middle; then, for each axis, what is outside in it, inside in earlier axes and anywhere in later ones."""
    middle = [pieces[0] for pieces in axes]
    whole = [_Piece(ZERO, extent, None) for extent in shape]
    boxes = [tuple(middle)]
    for dim, (_, *outside) in enumerate(axes):
        boxes += [(*middle[:dim], piece, *whole[dim + 1 :]) for piece in outside]
    return boxes


def _fill(g: Grid, box: tuple[_Piece, ...], value: str) -> str:
    """One statement: the elements of x that are there, or the value."""
    loops = Grid(g.names, tuple(piece.extent for piece in box))
    written = [variable(name) + piece.start for name, piece in zip(g.names, box, strict=True)]
    sources = [piece.source for piece in box]
    read = f"x[{', '.join(map(str, sources))}]" if None not in sources else value
    return f"for {loops.loops}: y[{', '.join(map(str, written))}] = {read}"


def _number(value: float, x: Type) -> str:
    if x.dtype.is_float:
        return repr(value)
    if not isfinite(value):
        raise OperatorError(f"{x} padded with {value}")
    return str(int(value))


OPERATORS = operators(pad)
