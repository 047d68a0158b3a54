"""Layers of ONNX models: convolutions, pooling."""

from __future__ import annotations

from math import prod

from dovetail.frontends.onnx.convert.attributes import (
    integer,
    integers,
    malformed,
    optional,
    required,
    text,
    unsupported,
)
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import need_rank, trimmed
from dovetail.frontends.onnx.convert.window import shared, window
from dovetail.frontends.onnx.model import OnnxNode


def conv(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, w = required(node, operands, 2)
    bias = optional(operands, 2)
    found = window(node, context.shape(x)[2:], context.shape(w)[2:])
    given = (x, w) if bias is None else (x, w, bias)
    return (context.node("conv", *given, groups=integer(node, "group", 1), **found.settings()),)


def conv_transpose(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """An ``output_shape`` that is asked for decides the padding."""
    x, w = required(node, operands, 2)
    bias = optional(operands, 2)
    need_rank(node, context, x, 3, 5)
    spatial, kernel = context.shape(x)[2:], context.shape(w)[2:]
    rank, mode = len(spatial), text(node, "auto_pad", "NOTSET")
    strides = integers(node, "strides", ()) or (1,) * rank
    dilations = integers(node, "dilations", ()) or (1,) * rank
    pads = integers(node, "pads", ()) or (0,) * (2 * rank)
    more = integers(node, "output_padding", ()) or (0,) * rank
    wanted = integers(node, "output_shape", ())
    if mode in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = tuple(n * s for n, s in zip(spatial, strides, strict=True))
    if any(len(part) != rank for part in (strides, dilations, more, kernel)) or len(pads) != 2 * rank:
        raise malformed(node, f"its window does not have {rank} axes")
    if wanted and len(wanted) not in (rank, rank + 2):
        raise malformed(node, f"output_shape {wanted} for {rank} axes")
    if wanted:
        axes = zip(spatial, strides, more, kernel, dilations, wanted[-rank:], strict=True)
        totals = [s * (n - 1) + o + (k - 1) * d + 1 - out for n, s, o, k, d, out in axes]
        pads = shared([max(n, 0) for n in totals], upper=mode == "SAME_UPPER")
        more = tuple(o + max(-n, 0) for o, n in zip(more, totals, strict=True))
    elif mode == "VALID":
        pads = (0,) * (2 * rank)
    settings = {"strides": strides, "dilations": dilations, "pads": pads, "output_padding": more}
    given = (x, w) if bias is None else (x, w, bias)
    return (context.node("conv_transpose", *given, groups=integer(node, "group", 1), **settings),)


def max_pool(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    found = window(node, context.shape(x)[2:], ())
    ceil = integer(node, "ceil_mode", 0)
    settings = {"kernel": found.kernel, "ceil_mode": ceil, **found.settings()}
    if len(node.outputs) < 2:
        return (context.node("max_pool", x, **settings),)
    order = integer(node, "storage_order", 0)
    return context.nodes("max_pool_indices", x, results=2, column_major=order, **settings)


def average_pool(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    found = window(node, context.shape(x)[2:], ())
    settings = {name: integer(node, name, 0) for name in ("ceil_mode", "count_include_pad")}
    return (context.node("average_pool", x, kernel=found.kernel, **settings, **found.settings()),)


def lp_pool(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    found = window(node, context.shape(x)[2:], ())
    settings = {"ceil_mode": integer(node, "ceil_mode", 0), "p": integer(node, "p", 2)}
    return (context.node("lp_pool", x, kernel=found.kernel, **settings, **found.settings()),)


def global_average_pool(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return (context.node("global_average_pool", x),)


def global_max_pool(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    need_rank(node, context, x, 3)
    return (context.node("reduce_max", x, axes=tuple(range(2, context.rank(x)))),)


def global_lp_pool(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    need_rank(node, context, x, 3)
    if prod(context.shape(x)[2:]) == 0:
        raise unsupported(node, "nothing is in its windows")
    names = {1: "reduce_l1", 2: "reduce_l2"}
    p = integer(node, "p", 2)
    if p not in names:
        return (context.node("lp_pool", x, kernel=context.shape(x)[2:], p=p),)
    return trimmed(node, (context.node(names[p], x, axes=tuple(range(2, context.rank(x)))),))


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "AveragePool"): average_pool,
    ("", "Conv"): conv,
    ("", "ConvTranspose"): conv_transpose,
    ("", "GlobalAveragePool"): global_average_pool,
    ("", "GlobalLpPool"): global_lp_pool,
    ("", "GlobalMaxPool"): global_max_pool,
    ("", "LpPool"): lp_pool,
    ("", "MaxPool"): max_pool,
}
