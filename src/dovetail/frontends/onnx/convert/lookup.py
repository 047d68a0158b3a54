"""Operators of ONNX whose indices are data."""

from __future__ import annotations

from dovetail.frontends.onnx.convert.attributes import integer, integers, malformed, optional, required, text
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.shape import padded
from dovetail.frontends.onnx.convert.steps import need_rank
from dovetail.frontends.onnx.convert.window import window
from dovetail.frontends.onnx.model import OnnxNode


def gather(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, indices = required(node, operands, 2)
    return (context.node("gather", x, indices, axis=integer(node, "axis", 0)),)


def gather_elements(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, indices = required(node, operands, 2)
    return (context.node("gather_elements", x, indices, axis=integer(node, "axis", 0)),)


def gather_nd(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, indices = required(node, operands, 2)
    return (context.node("gather_nd", x, indices, batch_dims=integer(node, "batch_dims", 0)),)


def scatter_elements(context: Context, node: OnnxNode, operands: Operands) -> Results:
    given = required(node, operands, 3)
    settings = {"axis": integer(node, "axis", 0)}
    return (context.node("scatter_elements", *given, reduction=text(node, "reduction", "none"), **settings),)


def scatter_nd(context: Context, node: OnnxNode, operands: Operands) -> Results:
    given = required(node, operands, 3)
    return (context.node("scatter_nd", *given, reduction=text(node, "reduction", "none")),)


def tensor_scatter(context: Context, node: OnnxNode, operands: Operands) -> Results:
    cache, update = required(node, operands, 2)
    starts = optional(operands, 2)
    axis, mode = integer(node, "axis", -2), text(node, "mode", "linear")
    given = (cache, update) if starts is None else (cache, update, starts)
    return (context.node("cache_update", *given, axis=axis, mode=mode),)


def max_unpool(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """Indices count the elements of the smallest image the windows fit; a larger one has zeros behind it."""
    x, indices = required(node, operands, 2)
    need_rank(node, context, x, 3, 5)
    have = context.shape(x)
    kernel = integers(node, "kernel_shape", ())
    found = window(node, have[2:], kernel)
    rank = len(kernel)
    around = zip(have[2:], found.strides, found.pads[:rank], found.pads[rank:], kernel, strict=True)
    smallest = (*have[:2], *((n - 1) * s + k - a - b for n, s, a, b, k in around))
    image = context.node("unpool", x, indices, shape=smallest)
    asked = optional(operands, 2)
    if asked is None:
        return (image,)
    sizes = context.ints(asked)
    if len(sizes) != len(smallest) or min(smallest) < 0:
        raise malformed(node, f"windows over {smallest}, an image of {sizes}")
    more = tuple(n - m for n, m in zip(sizes, smallest, strict=True))
    return (padded(context, image, (*(0,) * len(more), *more)),)


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "Gather"): gather,
    ("", "GatherElements"): gather_elements,
    ("", "GatherND"): gather_nd,
    ("", "MaxUnpool"): max_unpool,
    ("", "Scatter"): scatter_elements,
    ("", "ScatterElements"): scatter_elements,
    ("", "ScatterND"): scatter_nd,
    ("", "TensorScatter"): tensor_scatter,
}
