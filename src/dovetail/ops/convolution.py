"""Convolutions of ``x[n, c, ...]`` with ``w``, one to three spatial axes; ``pads`` are all before, then all behind."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import Index, variable
from dovetail.ops.text import Grid, named_dtype, need_rank, need_shape, same_dtype, summed
from dovetail.ops.window import Slide, places, slides, taps


def conv(
    x: Type,
    w: Type,
    b: Type | None = None,
    *,
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    groups: int = 1,
    dtype: str = "",
) -> str:
    """``y[n, k, p, q] += x[n, c, p*stride + r*dilation - pad, ...] * w[k, c, r, s]``; a place outside is not there."""
    need_rank("x", x, 3, 5)
    need_rank("w", w, x.rank, x.rank)
    channels = _channels(groups, x.shape[1], w.shape[0])
    need_shape("w", w, (w.shape[0], channels.inner, *w.shape[2:]))
    parts = slides(x.shape[2:], w.shape[2:], strides, pads, dilations)
    counts = [part.count() for part in parts]
    conditions = [c for part, count in zip(parts, counts, strict=True) for c in part.inside(count)]
    value = f"x[n, {channels.read}, {places(parts)}] * w[{channels.written}, {channels.c}, {taps(parts).index}]"
    loops = ", ".join([*channels.summed, taps(parts).loops])
    return _sum(x, w, b, channels, Grid(tuple(p.out for p in parts), tuple(counts)), loops, value, conditions, dtype)


def conv_transpose(
    x: Type,
    w: Type,
    b: Type | None = None,
    *,
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    output_padding: Ints = (),
    groups: int = 1,
    dtype: str = "",
) -> str:
    """The gradient of ``conv`` for its input, ``w[c, k, ...]``: an output gathers from the windows it lies in."""
    need_rank("x", x, 3, 5)
    need_rank("w", w, x.rank, x.rank)
    need_shape("w", w, (x.shape[1], *w.shape[1:]))
    if not w.shape[1].is_constant:
        raise OperatorError(f"w is {w}: the number of its channels is known at run time only")
    channels = _channels(groups, x.shape[1], w.shape[1] * groups)
    parts = slides(x.shape[2:], w.shape[2:], strides, pads, dilations)
    more = output_padding or (0,) * len(parts)
    if len(more) != len(parts) or not all(0 <= n < max(p.stride, p.dilation) for n, p in zip(more, parts, strict=True)):
        raise OperatorError(f"output_padding {output_padding} must be one number an axis, less than its stride")
    counts = [_unwound(part) + extra for part, extra in zip(parts, more, strict=True)]
    origins = [_origin(part) for part in parts]
    conditions = [c for part, origin in zip(parts, origins, strict=True) for c in _has_window(part, origin)]
    read = ", ".join(str(origin // part.stride) for part, origin in zip(parts, origins, strict=True))
    value = f"x[n, {channels.read}, {read}] * w[{channels.read}, {channels.k}, {taps(parts).index}]"
    loops = ", ".join([*channels.summed, taps(parts).loops])
    return _sum(x, w, b, channels, Grid(tuple(p.out for p in parts), tuple(counts)), loops, value, conditions, dtype)


@dataclass(frozen=True, slots=True)
class _Channels:
    """Loops over groups and channels, and the indices they make; loops of one step are left out."""

    kept: tuple[str, ...]
    """Loops over the output's channels."""
    summed: tuple[str, ...]
    inner: Index
    """Input channels of a group."""
    total: Index
    """Output channels of all groups."""
    read: str
    """Channel of the input."""
    written: str
    """Channel of the output."""
    c: str
    """Input channel within its group."""
    k: str
    """Output channel within its group."""


def _channels(groups: int, inputs: Index, outputs: Index) -> _Channels:
    if groups == 1:
        return _Channels((f"k<{outputs}",), (f"c<{inputs}",), inputs, outputs, "c", "k", "c", "k")
    if not (inputs.is_constant and outputs.is_constant):
        raise OperatorError(f"{groups} groups of {inputs} and {outputs} channels", why="not known before run time")
    if groups < 1 or inputs.const % groups or outputs.const % groups:
        raise OperatorError(f"{inputs} input and {outputs} output channels cannot be cut into {groups} groups")
    cs, ks = inputs // groups, outputs // groups
    c, k = ("c" if cs.const > 1 else "0"), ("k" if ks.const > 1 else "0")
    read = f"g * {cs} + c" if cs.const > 1 else "g"
    written = f"g * {ks} + k" if ks.const > 1 else "g"
    kept = (f"g<{groups}", *([f"k<{ks}"] if ks.const > 1 else []))
    return _Channels(kept, (f"c<{cs}",) if cs.const > 1 else (), cs, outputs, read, written, c, k)


def _sum(
    x: Type,
    w: Type,
    b: Type | None,
    channels: _Channels,
    out: Grid,
    loops: str,
    value: str,
    conditions: list[str],
    dtype: str,
) -> str:
    """The sum over channels and taps, and the bias."""
    kind = named_dtype(dtype, same_dtype(x, w))
    if b is not None:
        need_shape("b", b, (channels.total,))
    return summed(
        kind,
        Grid(("n", channels.written, *out.names), (x.shape[0], channels.total, *out.extents)),
        loops,
        value,
        "{t}" if b is None else f"{{t}} + b[{channels.written}]",
        where=", ".join(conditions),
        over=", ".join([f"n<{x.shape[0]}", *channels.kept, out.loops]),
    )


def _unwound(part: Slide) -> Index:
    """The extent whose windows are the input's elements."""
    found = (part.extent - 1) * part.stride + (part.kernel - 1) * part.dilation + 1 - part.before - part.after
    if found.is_constant and found.const < 1:
        raise OperatorError(f"padding {part.before} and {part.after} leaves nothing of an axis")
    return found


def _origin(part: Slide) -> Index:
    """Stride times the window that an output lies in, if a place of the window falls on it."""
    return variable(part.out) + part.before - variable(part.tap) * part.dilation


def _has_window(part: Slide, origin: Index) -> tuple[str, ...]:
    aligned = () if part.stride == 1 else (f"({origin}) % {part.stride} == 0",)
    return (*aligned, f"{origin} >= 0", f"{origin // part.stride} < {part.extent}")


OPERATORS = operators(conv, conv_transpose)
