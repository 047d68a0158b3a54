"""Images of another size: elements repeated, picked, or mixed by tables of places and weights."""

from __future__ import annotations

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ops.lookup import need_integers
from dovetail.ops.text import Grid, axis_of, grid, need_rank, need_shape, summed, text


def upsample(x: Type, *, factors: Ints) -> str:
    """Every element ``factors[k]`` times over along axis k; neighbours along the last axis are written together."""
    if len(factors) != x.rank or min(factors, default=1) < 1:
        raise OperatorError(f"factors {factors} must be {x.rank} numbers of at least 1")
    g = grid(x.shape)
    loops, written, read = [], [], []
    for dim, (name, extent, factor) in enumerate(zip(g.names, g.extents, factors, strict=True)):
        if dim == x.rank - 1:
            loops.append(f"{name}<{extent * factor}")
            written.append(name)
            read.append(f"{name} // {factor}")
            continue
        loops += [f"{name}<{extent}", *([f"r{name}<{factor}"] if factor > 1 else [])]
        written.append(f"{name} * {factor} + r{name}" if factor > 1 else name)
        read.append(name)
    shape = ", ".join(str(extent * factor) for extent, factor in zip(g.extents, factors, strict=True))
    return text(f"out y: {x.dtype}[{shape}]", f"for {', '.join(loops)}: y[{', '.join(written)}] = x[{', '.join(read)}]")


def pick(x: Type, *places: Type, axes: Ints) -> str:
    """``x[..., places[k][i], ...]`` along each of ``axes``."""
    if len(axes) != len(places):
        raise OperatorError(f"{len(places)} lists of places for axes {axes}")
    shape, reads = list(x.shape), {}
    g = grid(x.shape)
    for number, (axis, t) in enumerate(zip(axes, places, strict=True)):
        need_integers(t)
        need_rank("places", t, 1, 1)
        at = axis_of(axis, x.rank)
        shape[at], reads[at] = t.shape[0], f"places{number}[{g.names[at]}]"
    out = Grid(g.names, tuple(shape))
    return text(f"out y: {x.dtype}[{out.shape}]", f"for {out.loops}: y[{out.index}] = {g.at('x', dict(reads))}")


def resample(x: Type, places: Type, weights: Type, *, axis: int) -> str:
    """``sum over k of x[..., places[i, k], ...] * weights[i, k]`` along ``axis``."""
    need_integers(places)
    need_rank("places", places, 2, 2)
    need_shape("weights", weights, places.shape)
    at = axis_of(axis, x.rank)
    if not x.dtype.is_float:
        raise OperatorError(f"{x.dtype} values are mixed", hint='cast(x) {dtype = "f32"}')
    g = grid(x.shape)
    out = Grid(g.names, (*x.shape[:at], places.shape[0], *x.shape[at + 1 :]))
    value = f"{g.at('x', {at: f'places[{g.names[at]}, k]'})} * weights[{g.names[at]}, k]"
    return summed(x.dtype, out, f"k<{places.shape[1]}", value)


OPERATORS = operators(upsample, pick, resample)
