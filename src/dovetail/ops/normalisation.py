"""Softmax and the norms. Means and variances are kept in the dtype that sums are kept in."""

from __future__ import annotations

from dovetail.base.dtypes import DType
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import constant
from dovetail.ops.pooling import norm_forms
from dovetail.ops.text import (
    Grid,
    accumulator,
    axes_of,
    axis_of,
    broadcast,
    count,
    grid,
    need_rank,
    need_shape,
    same_dtype,
    text,
)


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
    x: Type,
    scale: Type | None = None,
    bias: Type | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    statistics: int = 0,
) -> str:
    """Over ``axis`` and all axes behind it; with ``statistics`` the mean and the factor are results too."""
    g, rest, inner, wide = _behind(x, axis)
    number = count(inner.extents, wide)
    kept = f"{', '.join((*rest.names, *('0' for _ in inner.names)))}" if statistics else rest.index
    shape = f"{', '.join((*map(str, rest.extents), *('1' for _ in inner.names)))}" if statistics else rest.shape
    role = "out" if statistics else "temp"
    return text(
        f"temp total: {wide}[{rest.shape}]  temp apart: {wide}[{g.shape}]  temp square: {wide}[{rest.shape}]",
        f"out y: {x.dtype}[{g.shape}]  {role} mean: {wide}[{shape}]  {role} factor: {wide}[{shape}]",
        f"for {g.loops}: total[{rest.index}] += x[{g.index}]",
        f"for {rest.loops}: mean[{kept}] = total[{rest.index}] / ({number})",
        f"for {g.loops}: apart[{g.index}] = x[{g.index}] - mean[{kept}]",
        f"for {g.loops}: square[{rest.index}] += apart[{g.index}] * apart[{g.index}]",
        f"for {rest.loops}: factor[{kept}] = rsqrt(square[{rest.index}] / ({number}) + {epsilon!r})",
        f"for {g.loops}: y[{g.index}] = apart[{g.index}] * factor[{kept}]{_affine(x, inner, scale, bias)}",
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


def group_norm(x: Type, scale: Type, bias: Type, *, groups: int, epsilon: float = 1e-5) -> str:
    """Mean and variance over the channels of a group and all places; scale and bias are one for each channel."""
    need_rank("x", x, 2)
    channels = x.shape[1]
    if groups < 1 or not channels.is_constant or channels.const % groups:
        raise OperatorError(f"{channels} channels cannot be cut into {groups} groups")
    for name, t in (("scale", scale), ("bias", bias)):
        need_shape(name, t, (channels,))
    same_dtype(x, scale, bias)
    each, wide, spatial = channels.const // groups, accumulator(x.dtype), grid(x.shape[2:])
    c = f"g * {each} + c" if each > 1 else "g"
    member = f"c<{each}, " if each > 1 else ""
    rows, own = f"n<{x.shape[0]}, g<{groups}", ", ".join(("n", c, *spatial.names))
    loops = f"{rows}, {member}{spatial.loops}".rstrip(", ")
    number = count((constant(each), *spatial.extents), wide)
    shape = ", ".join(map(str, x.shape))
    return text(
        f"temp total: {wide}[{x.shape[0]}, {groups}]  temp mean: {wide}[{x.shape[0]}, {groups}]",
        f"temp apart: {wide}[{shape}]  temp square: {wide}[{x.shape[0]}, {groups}]",
        f"temp factor: {wide}[{x.shape[0]}, {groups}]  out y: {x.dtype}[{shape}]",
        f"for {loops}: total[n, g] += x[{own}]",
        f"for {rows}: mean[n, g] = total[n, g] / ({number})",
        f"for {loops}: apart[{own}] = x[{own}] - mean[n, g]",
        f"for {loops}: square[n, g] += apart[{own}] * apart[{own}]",
        f"for {rows}: factor[n, g] = rsqrt(square[n, g] / ({number}) + {epsilon!r})",
        f"for {loops}: y[{own}] = apart[{own}] * factor[n, g] * scale[{c}] + bias[{c}]",
    )


def mean_variance_norm(x: Type, *, axes: Ints, epsilon: float = 1e-9) -> str:
    """``(x - mean) / (deviation + epsilon)`` over ``axes``."""
    g, gone, wide = grid(x.shape), axes_of(axes, x.rank), accumulator(x.dtype)
    rest, number = g.without(gone), count(g.keep(gone).extents, wide)
    return text(
        f"temp total: {wide}[{rest.shape}]  temp apart: {wide}[{g.shape}]  temp square: {wide}[{rest.shape}]",
        f"temp deviation: {wide}[{rest.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: total[{rest.index}] += x[{g.index}]",
        f"for {g.loops}: apart[{g.index}] = x[{g.index}] - total[{rest.index}] / ({number})",
        f"for {g.loops}: square[{rest.index}] += apart[{g.index}] * apart[{g.index}]",
        f"for {rest.loops}: deviation[{rest.index}] = sqrt(square[{rest.index}] / ({number})) + {epsilon!r}",
        f"for {g.loops}: y[{g.index}] = apart[{g.index}] / deviation[{rest.index}]",
    )


def lp_norm(x: Type, *, axis: int = -1, p: int = 2) -> str:
    """x divided by its ``p``-norm along ``axis``; 0 where that is 0."""
    g, rest, wide = _along(x, axis)
    power, root = norm_forms(p)
    norm = f"norm[{rest.index}]"
    return text(
        f"temp total: {wide}[{rest.shape}]  temp norm: {wide}[{rest.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: total[{rest.index}] += {power.format(x=f'x[{g.index}]')}",
        f"for {rest.loops}: {norm} = {root.format(t=f'total[{rest.index}]')}",
        f"for {g.loops}: y[{g.index}] = select({norm} == 0.0, 0.0, x[{g.index}] / {norm})",
    )


def local_response_norm(x: Type, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> str:
    """x divided by a power of the squares of the ``size`` channels around it."""
    need_rank("x", x, 2)
    g, wide = grid(x.shape), accumulator(x.dtype)
    if size < 1:
        raise OperatorError(f"{size} channels around one")
    before = (size - 1) // 2
    other = g.at("x", {1: f"d1 + w - {before}"})
    inside = f"d1 + w >= {before}, d1 + w - {before} < {x.shape[1]}"
    factor = f"{alpha / size!r} * squares[{g.index}] + {bias!r}"
    return text(
        f"temp squares: {wide}[{g.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}, w<{size} where {inside}: squares[{g.index}] += {other} * {other}",
        f"for {g.loops}: y[{g.index}] = x[{g.index}] / pow({factor}, {beta!r})",
    )


def hardmax(x: Type, *, axis: int = -1) -> str:
    """1 at the first place of the largest along ``axis``, 0 elsewhere."""
    g, rest, _ = _along(x, axis)
    at = axis_of(axis, x.rank)
    found = f"x[{g.index}] == top[{rest.index}]"
    return text(
        f"temp top: {x.dtype}[{rest.shape}]  temp first: i64[{rest.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: top[{rest.index}] max= x[{g.index}]",
        f"for {g.loops}: first[{rest.index}] min= select({found}, d{at}, {x.shape[at]})",
        f"for {g.loops}: y[{g.index}] = select(first[{rest.index}] == d{at}, 1, 0)",
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
    """`` * scale[...] + bias[...]``, as far as they are given, stretched to the axes of ``inner``, or to all of x's."""
    found = ""
    for name, t, sign in (("scale", scale, "*"), ("bias", bias, "+")):
        if t is not None:
            same_dtype(x, t)
            around = inner if t.rank <= len(inner.names) else grid(x.shape)
            if broadcast(Type(t.dtype, around.extents), t) != around.extents:
                raise OperatorError(f"{name} is {t}, which does not fit {x}")
            found += f" {sign} {around.read(name, t)}"
    return found


OPERATORS = operators(
    softmax,
    log_softmax,
    hardmax,
    batch_norm,
    layer_norm,
    rms_norm,
    group_norm,
    mean_variance_norm,
    lp_norm,
    local_response_norm,
)
