"""Softmax and the norms. Means and variances are kept in the dtype that sums are kept in."""

from __future__ import annotations

from dovetail.base.dtypes import DType
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ops.text import Grid, accumulator, axis_of, count, grid, need_rank, need_shape, same_dtype, text


def softmax(x: Type, *, axis: int = -1) -> str:
    g, rest, wide = _along(x, axis)
    return text(
        f"temp top: {x.dtype}[{rest.shape}]  temp e: {wide}[{g.shape}]  temp total: {wide}[{rest.shape}]",
        f"out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: top[{rest.index}] max= x[{g.index}]",
        f"for {g.loops}: e[{g.index}] = exp(x[{g.index}] - top[{rest.index}])",
        f"for {g.loops}: total[{rest.index}] += e[{g.index}]",
        f"for {g.loops}: y[{g.index}] = e[{g.index}] / total[{rest.index}]",
    )


def log_softmax(x: Type, *, axis: int = -1) -> str:
    g, rest, wide = _along(x, axis)
    return text(
        f"temp top: {x.dtype}[{rest.shape}]  temp total: {wide}[{rest.shape}]  temp shift: {wide}[{rest.shape}]",
        f"out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: top[{rest.index}] max= x[{g.index}]",
        f"for {g.loops}: total[{rest.index}] += exp(x[{g.index}] - top[{rest.index}])",
        f"for {rest.loops}: shift[{rest.index}] = log(total[{rest.index}])",
        f"for {g.loops}: y[{g.index}] = x[{g.index}] - top[{rest.index}] - shift[{rest.index}]",
    )


def batch_norm(x: Type, scale: Type, bias: Type, mean: Type, variance: Type, *, epsilon: float = 1e-5) -> str:
    """As in inference: mean and variance of each channel are given."""
    need_rank("x", x, 2)
    operands = {"scale": scale, "bias": bias, "mean": mean, "variance": variance}
    for name, t in operands.items():
        need_shape(name, t, x.shape[1:2])
    dtype = same_dtype(x, *operands.values())
    g, wide = grid(x.shape), accumulator(x.dtype)
    return text(
        f"temp factor: {wide}[{x.shape[1]}]  out y: {dtype}[{g.shape}]",
        f"for d1<{x.shape[1]}: factor[d1] = scale[d1] / sqrt(variance[d1] + {epsilon!r})",
        f"for {g.loops}: y[{g.index}] = (x[{g.index}] - mean[d1]) * factor[d1] + bias[d1]",
    )


def layer_norm(
    x: Type, scale: Type | None = None, bias: Type | None = None, *, axis: int = -1, epsilon: float = 1e-5
) -> str:
    """Over ``axis`` and all axes behind it."""
    g, rest, inner, wide = _behind(x, axis)
    number = count(inner.extents, wide)
    return text(
        f"temp total: {wide}[{rest.shape}]  temp mean: {wide}[{rest.shape}]  temp apart: {wide}[{g.shape}]",
        f"temp square: {wide}[{rest.shape}]  temp factor: {wide}[{rest.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: total[{rest.index}] += x[{g.index}]",
        f"for {rest.loops}: mean[{rest.index}] = total[{rest.index}] / ({number})",
        f"for {g.loops}: apart[{g.index}] = x[{g.index}] - mean[{rest.index}]",
        f"for {g.loops}: square[{rest.index}] += apart[{g.index}] * apart[{g.index}]",
        f"for {rest.loops}: factor[{rest.index}] = rsqrt(square[{rest.index}] / ({number}) + {epsilon!r})",
        f"for {g.loops}: y[{g.index}] = apart[{g.index}] * factor[{rest.index}]{_affine(x, inner, scale, bias)}",
    )


def rms_norm(x: Type, scale: Type | None = None, *, axis: int = -1, epsilon: float = 1e-5) -> str:
    """Over ``axis`` and all axes behind it."""
    g, rest, inner, wide = _behind(x, axis)
    return text(
        f"temp square: {wide}[{rest.shape}]  temp factor: {wide}[{rest.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: square[{rest.index}] += x[{g.index}] * x[{g.index}]",
        f"for {rest.loops}: factor[{rest.index}] = "
        f"rsqrt(square[{rest.index}] / ({count(inner.extents, wide)}) + {epsilon!r})",
        f"for {g.loops}: y[{g.index}] = x[{g.index}] * factor[{rest.index}]{_affine(x, inner, scale, None)}",
    )


def _along(x: Type, axis: int) -> tuple[Grid, Grid, DType]:
    """All loops, those of the other axes, and the dtype of sums."""
    need_rank("x", x, 1)
    g = grid(x.shape)
    return g, g.without((axis_of(axis, x.rank),)), accumulator(x.dtype)


def _behind(x: Type, axis: int) -> tuple[Grid, Grid, Grid, DType]:
    """All loops, those before ``axis``, those from it on, and the dtype of sums."""
    need_rank("x", x, 1)
    g, first = grid(x.shape), axis_of(axis, x.rank)
    return g, g.keep(range(first)), g.keep(range(first, x.rank)), accumulator(x.dtype)


def _affine(x: Type, inner: Grid, scale: Type | None, bias: Type | None) -> str:
    """`` * scale[...] + bias[...]``, as far as they are given."""
    found = ""
    for name, t, sign in (("scale", scale, "*"), ("bias", bias, "+")):
        if t is not None:
            need_shape(name, t, inner.extents)
            same_dtype(x, t)
            found += f" {sign} {name}[{inner.index}]"
    return found


OPERATORS = operators(softmax, log_softmax, batch_norm, layer_norm, rms_norm)
