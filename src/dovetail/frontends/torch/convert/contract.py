"""Products of matrices, convolutions, softmax and the norms."""

from __future__ import annotations

from math import prod

import numpy as np

from dovetail.base.dtypes import compute_type
from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.context import Context, Conversion, Results
from dovetail.frontends.torch.convert.reduce import reduced


def product(first: str, second: str) -> Conversion:
    """``mm``, ``bmm``, ``mv``, ``dot``."""

    def convert(context: Context, call: Call) -> Results:
        return (context.node("matmul", call.tensor(first), call.tensor(second)),)

    return convert


def _sum_with(first: str, second: str) -> Conversion:
    """``beta * self + alpha * first @ second``; self does not count where beta is 0."""

    def convert(context: Context, call: Call) -> Results:
        return _scaled_sum(context, call, context.node("matmul", call.tensor(first), call.tensor(second)))

    return convert


def _scaled_sum(context: Context, call: Call, found: str) -> Results:
    alpha, beta = call.number("alpha"), call.number("beta")
    if alpha != 1:
        found = context.node("mul", found, context.scalar(alpha, call.dtype))
    if beta == 0:
        return (context.expand(found, call.shape),)
    added = call.tensor("self")
    if beta != 1:
        added = context.node("mul", added, context.scalar(beta, call.dtype))
    return (context.node("add", found, added),)


def convolution(context: Context, call: Call) -> Results:
    """One to three spatial axes; ``transposed`` is the gradient of one for its input."""
    x, w, b = call.tensor("input"), call.tensor("weight"), call.maybe("bias")
    spatial = context.rank(x) - 2
    strides, padding, dilations = (_each(call.ints(name), spatial) for name in ("stride", "padding", "dilation"))
    operands = (x, w) if b is None else (x, w, b)
    if call.flag("transposed"):
        more = _each(call.ints("output_padding"), spatial)
        found = context.node(
            "conv_transpose",
            *operands,
            strides=strides,
            pads=padding * 2,
            dilations=dilations,
            output_padding=more,
            groups=call.whole("groups"),
        )
    else:
        found = context.node(
            "conv", *operands, strides=strides, pads=padding * 2, dilations=dilations, groups=call.whole("groups")
        )
    return (found,)


def _each(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return values * count if len(values) == 1 else values


def _softmax(op: str) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        x = context.cast(call.tensor("self"), call.dtype)
        if not context.rank(x):
            return (context.reshape(context.node(op, context.reshape(x, (1,)), axis=0), ()),)
        return (context.node(op, x, axis=call.whole("dim")),)

    return convert


def layer_norm(context: Context, call: Call) -> Results:
    """The norm; mean and 1 / deviation where they are needed."""
    x, eps = call.tensor("input"), call.real("eps")
    count = len(call.ints("normalized_shape"))
    first = context.rank(x) - count
    scale, bias = call.maybe("weight"), call.maybe("bias")
    if scale is None and bias is not None:
        scale = context.constant(np.ones(context.shape(bias), context.dtype(bias).numpy))
    affine = [name for name in (scale, bias) if name is not None]
    found = context.node("layer_norm", x, *affine, axis=first, epsilon=eps)
    middle, factor = _statistics(context, call, x, tuple(range(first, context.rank(x))), eps)
    return (found, middle, factor)


def group_norm(context: Context, call: Call) -> Results:
    """Each group of channels is one row."""
    x, groups, eps = call.tensor("input"), call.whole("group"), call.real("eps")
    shape, scale, bias = context.shape(x), call.maybe("weight"), call.maybe("bias")
    rows = context.reshape(x, (shape[0], groups, prod(shape[1:]) // groups))
    found = context.reshape(context.node("layer_norm", rows, axis=-1, epsilon=eps), shape)
    if scale is None and bias is not None:
        scale = context.constant(np.ones(context.shape(bias), context.dtype(bias).numpy))
    if scale is not None:
        found = context.node("scale", found, *((scale,) if bias is None else (scale, bias)), axis=1)
    middle, factor = _statistics(context, call, rows, (2,), eps)
    kept = [None if name is None else context.reshape(name, (shape[0], groups)) for name in (middle, factor)]
    return (found, *kept)


def batch_norm(context: Context, call: Call) -> Results:
    """With the mean and variance that were seen in training."""
    x = call.tensor("input")
    wide, channels = context.dtype(call.tensor("running_mean")), context.shape(x)[1]
    scale, bias = (call.maybe(name) for name in ("weight", "bias"))
    scale = scale or context.constant(np.ones(channels, wide.numpy))
    bias = bias or context.constant(np.zeros(channels, wide.numpy))
    rest = (scale, bias, call.tensor("running_mean"), call.tensor("running_var"))
    given = context.cast(x, wide)
    found = context.node("batch_norm", given, *(context.cast(n, wide) for n in rest), epsilon=call.real("eps"))
    nothing = context.constant(np.zeros(0, compute_type(wide).numpy))
    return (context.cast(found, call.dtype), nothing, nothing)


def _statistics(
    context: Context, call: Call, x: str, dims: tuple[int, ...], eps: float
) -> tuple[str | None, str | None]:
    """Mean and 1 / deviation of rows, as far as they are needed."""
    if not any(call.needed[1:]):
        return None, None
    wide = compute_type(context.dtype(x))
    x = context.cast(x, wide)
    middle = reduced(context, "reduce_mean", x, dims, 1)
    apart = context.node("sub", x, middle)
    spread = reduced(context, "reduce_mean", context.node("mul", apart, apart), dims, 1)
    factor = context.node("rsqrt", context.node("add", spread, context.scalar(eps, wide)))
    first, second = (t.dtype for t in call.results[1:3])
    return context.cast(middle, first), context.cast(factor, second)


CONVERSIONS: dict[str, Conversion] = {
    "aten.mm.default": product("self", "mat2"),
    "aten.bmm.default": product("self", "mat2"),
    "aten.mv.default": product("self", "vec"),
    "aten.dot.default": product("self", "tensor"),
    "aten.addmm.default": _sum_with("mat1", "mat2"),
    "aten.addmv.default": _sum_with("mat", "vec"),
    "aten.baddbmm.default": _sum_with("batch1", "batch2"),
    "aten.convolution.default": convolution,
    "aten._softmax.default": _softmax("softmax"),
    "aten._log_softmax.default": _softmax("log_softmax"),
    "aten.native_layer_norm.default": layer_norm,
    "aten.native_group_norm.default": group_norm,
    "aten._native_batch_norm_legit_no_training.default": batch_norm,
}
