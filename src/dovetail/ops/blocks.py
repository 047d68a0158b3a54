"""Blocks of pixels as channels and back, and columns of windows as an image."""

from __future__ import annotations

from math import prod

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import Index, constant, variable
from dovetail.ops.text import need_rank, need_shape, text
from dovetail.ops.window import extents, slides


def depth_to_space(x: Type, *, block: int, mode: str = "DCR") -> str:
    """``y[n, c, h*b + i, w*b + j]`` from channel ``(i*b + j)*C + c`` of x (DCR), or ``c*b*b + i*b + j`` (CRD)."""
    need_rank("x", x, 4, 4)
    n, depth, height, width = x.shape
    channels = _whole(depth, block * block)
    forms = {"DCR": f"i * {block * channels} + j * {channels} + c", "CRD": f"c * {block * block} + i * {block} + j"}
    if mode not in forms:
        raise OperatorError(f"depth_to_space cannot order channels by '{mode}'", hint="DCR or CRD")
    shape = f"{n}, {channels}, {height * block}, {width * block}"
    loops = f"n<{n}, c<{channels}, h<{height}, i<{block}, w<{width}, j<{block}"
    return text(
        f"out y: {x.dtype}[{shape}]",
        f"for {loops}: y[n, c, h * {block} + i, w * {block} + j] = x[n, {forms[mode]}, h, w]",
    )


def space_to_depth(x: Type, *, block: int) -> str:
    """``y[n, (i*b + j)*C + c, h, w]`` from ``x[n, c, h*b + i, w*b + j]``."""
    need_rank("x", x, 4, 4)
    n, channels, height, width = x.shape
    rows, columns = _whole(height, block), _whole(width, block)
    if not channels.is_constant:
        raise OperatorError(f"x is {x}: the number of its channels is known at run time only")
    c = channels.const
    loops = f"n<{n}, i<{block}, j<{block}, c<{c}, h<{rows}, w<{columns}"
    return text(
        f"out y: {x.dtype}[{n}, {c * block * block}, {rows}, {columns}]",
        f"for {loops}: y[n, i * {block * c} + j * {c} + c, h, w] = x[n, c, h * {block} + i, w * {block} + j]",
    )


def col2im(x: Type, *, image: Ints, block: Ints, strides: Ints = (), pads: Ints = (), dilations: Ints = ()) -> str:
    """Columns ``x[n, c*block, windows]`` put back where they were taken from; what meets is added."""
    need_rank("x", x, 3, 3)
    parts = slides(tuple(map(constant, image)), extents(block), strides, pads, dilations)
    counts = [part.count().const for part in parts]
    taps = prod(block)
    channels = _whole(x.shape[1], taps)
    need_shape("x", x, (*x.shape[:2], constant(prod(counts))))
    tap, window = _joined([p.tap for p in parts], block), _joined([p.out for p in parts], tuple(counts))
    loops = [f"n<{x.shape[0]}", f"c<{channels}"]
    loops += [f"{p.out}<{count}" for p, count in zip(parts, counts, strict=True)]
    loops += [f"{p.tap}<{extent}" for p, extent in zip(parts, block, strict=True)]
    conditions = [c for part, count in zip(parts, counts, strict=True) for c in part.inside(constant(count))]
    where = f" where {', '.join(conditions)}" if conditions else ""
    shape = ", ".join(map(str, (x.shape[0], channels, *image)))
    place = ", ".join(str(part.place) for part in parts)
    return text(
        f"out y: {x.dtype}[{shape}]",
        f"for {', '.join(loops)}{where}: y[n, c, {place}] += x[n, c * {taps} + {tap}, {window}]",
    )


def _joined(names: list[str], sizes: Ints) -> Index:
    """One index in row-major order."""
    total = constant(0)
    for name, extent in zip(names, sizes, strict=True):
        total = total * extent + variable(name)
    return total


def _whole(extent: Index, parts: int) -> int:
    if parts < 1 or not extent.is_constant or extent.const % parts:
        raise OperatorError(f"an extent of {extent} cannot be cut into {parts} parts")
    return extent.const // parts


OPERATORS = operators(depth_to_space, space_to_depth, col2im)
