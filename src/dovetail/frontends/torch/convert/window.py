"""Pooling. A missing first axis is put in and taken out again."""

from __future__ import annotations

from math import prod

import numpy as np

from dovetail.base.dtypes import compute_type
from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.context import Context, Conversion, Results
from dovetail.frontends.torch.convert.reduce import reduced


def max_pool(context: Context, call: Call) -> Results:
    """The largest of each window, and its place in the input's spatial axes where that is needed."""
    x, shape = _batched(context, call)
    kernel, strides, padding = _windows(context, call, x)
    dilations = _each(call.ints("dilation"), len(kernel)) or (1,) * len(kernel)
    how = {"kernel": kernel, "strides": strides, "pads": padding * 2, "dilations": dilations}
    ceil = int(call.flag("ceil_mode"))
    found = context.node("max_pool", x, **how, ceil_mode=ceil)
    if not any(call.needed[1:]):
        return (context.reshape(found, shape), None)
    values, places = context.nodes("max_pool_indices", x, results=2, **how, ceil_mode=ceil)
    plane = context.scalar(prod(context.shape(x)[2:]), context.dtype(places))
    return (context.reshape(values, shape), context.reshape(context.node("mod", places, plane), shape))


def average_pool(context: Context, call: Call) -> Results:
    """The mean of each window, or its sum divided by ``divisor_override``."""
    x, shape = _batched(context, call)
    kernel, strides, padding = _windows(context, call, x)
    counted = int(call.flag("count_include_pad"))
    divisor = call.maybe_number("divisor_override") if "divisor_override" in call.arguments else None
    if divisor is None:
        ceil = int(call.flag("ceil_mode"))
        found = context.node(
            "average_pool",
            x,
            kernel=kernel,
            strides=strides,
            pads=padding * 2,
            ceil_mode=ceil,
            count_include_pad=counted,
        )
        return (context.reshape(found, shape),)
    windows = call.shape[-len(kernel) :]
    ends = [
        max((count - 1) * step + size - extent - before, 0)
        for count, step, size, extent, before in zip(
            windows, strides, kernel, context.shape(x)[2:], padding, strict=True
        )
    ]
    wide = context.node("pad", x, pads=(0, 0, *padding, 0, 0, *ends))
    found = context.node("average_pool", wide, kernel=kernel, strides=strides)
    found = _first(context, found, (*context.shape(x)[:2], *windows))
    factor = context.scalar(float(prod(kernel)) / float(divisor), context.dtype(x))
    return (context.reshape(context.node("mul", found, factor), shape),)


def _adaptive(op: str) -> Conversion:
    """Windows that share an axis among as many as are wanted: axis by axis, places gathered and then reduced."""

    def convert(context: Context, call: Call) -> Results:
        if any(call.needed[1:]):
            raise call.unsupported("the places of the largest elements are needed")
        x, wanted = call.tensor("self"), call.ints("output_size")
        x = context.cast(x, compute_type(call.dtype))
        first = context.rank(x) - len(wanted)
        for number, count in enumerate(_each(wanted, len(call.shape) - first)):
            x = _shared(context, x, first + number, count, op)
        return (context.cast(x, call.dtype), *(None for _ in call.needed[1:]))

    return convert


def _shared(context: Context, x: str, dim: int, count: int, op: str) -> str:
    """Axis ``dim`` cut into ``count`` windows, each reduced to one element."""
    shape = context.shape(x)
    extent = shape[dim]
    if extent % count == 0:
        apart = context.reshape(x, (*shape[:dim], count, extent // count, *shape[dim + 1 :]))
        return reduced(context, op, apart, (dim + 1,), 0)
    starts = np.arange(count) * extent // count
    ends = -(-(np.arange(1, count + 1) * extent) // count)
    longest = int((ends - starts).max())
    places = starts[:, None] + np.arange(longest)
    inside = places < ends[:, None]
    found = context.node("gather", x, context.constant(np.where(inside, places, starts[:, None])), axis=dim)
    if op == "reduce_max":
        return reduced(context, op, found, (dim + 1,), 0)
    behind = (1,) * (len(shape) - dim - 1)
    dtype = context.dtype(x)
    mask = context.constant(inside.reshape(count, longest, *behind))
    kept = context.node("select", mask, found, context.scalar(0.0, dtype))
    total = reduced(context, "reduce_sum", kept, (dim + 1,), 0)
    lengths = (ends - starts).astype(np.float64).reshape(count, *behind).astype(dtype.numpy)
    return context.node("div", total, context.constant(lengths))


def _batched(context: Context, call: Call) -> tuple[str, tuple[int, ...]]:
    """The operand with its first axis, and the shape of the result."""
    x = call.tensor("self")
    rank = len(call.ints("kernel_size"))
    spatial = rank if rank > 1 else _SPATIAL[call.op.split(".")[1].removesuffix("_with_indices")[-2]]
    return (x if context.rank(x) == spatial + 2 else context.reshape(x, (1, *context.shape(x)))), call.shape


_SPATIAL = {"1": 1, "2": 2, "3": 3}


def _windows(context: Context, call: Call, x: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, strides and padding, a number for each spatial axis."""
    spatial = context.rank(x) - 2
    kernel = _each(call.ints("kernel_size"), spatial)
    strides = _each(call.ints("stride"), spatial) or kernel
    return kernel, strides, _each(call.ints("padding"), spatial) or (0,) * spatial


def _each(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return values * count if len(values) == 1 else values


def _first(context: Context, x: str, shape: tuple[int, ...]) -> str:
    """As much of each axis as ``shape`` has."""
    if context.shape(x) == shape:
        return x
    return context.node("slice", x, starts=(0,) * len(shape), ends=shape)


CONVERSIONS: dict[str, Conversion] = {
    "aten.max_pool2d_with_indices.default": max_pool,
    "aten.max_pool3d_with_indices.default": max_pool,
    "aten.avg_pool1d.default": average_pool,
    "aten.avg_pool2d.default": average_pool,
    "aten.avg_pool3d.default": average_pool,
    "aten._adaptive_avg_pool2d.default": _adaptive("reduce_mean"),
    "aten._adaptive_avg_pool3d.default": _adaptive("reduce_mean"),
    "aten.adaptive_max_pool2d.default": _adaptive("reduce_max"),
    "aten.adaptive_max_pool3d.default": _adaptive("reduce_max"),
}
