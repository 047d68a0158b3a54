"""Operators of ONNX that move elements, and those whose result is a shape."""

from __future__ import annotations

from math import prod

import numpy as np

from dovetail.frontends.onnx.convert.attributes import every, integer, integers, malformed, optional, required, text
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import listed, reshape, transpose, trimmed
from dovetail.frontends.onnx.model import OnnxNode


def shape(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    found = context.shape(x)[integer(node, "start", 0) : integer(node, "end", None)]
    return (context.constant(np.array(found, np.int64)),)


def size(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return (context.constant(np.array(prod(context.shape(x)), np.int64)),)


def convert_reshape(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """0 keeps an extent unless zeros are allowed, -1 is what is left."""
    (x,) = required(node, operands, 1)
    wanted = listed(context, node, operands, "shape", 1)
    if wanted is None:
        raise malformed(node, "it has no shape")
    have = context.shape(x)
    if not integer(node, "allowzero", 0):
        if any(n == 0 and dim >= len(have) for dim, n in enumerate(wanted)):
            raise malformed(node, f"the shape {wanted} keeps an axis that is not there")
        wanted = tuple(have[dim] if n == 0 else n for dim, n in enumerate(wanted))
    if -1 in wanted:
        rest = prod(n for n in wanted if n != -1)
        if wanted.count(-1) > 1 or rest == 0 or prod(have) % rest:
            raise malformed(node, f"{have} cannot be cut into {wanted}")
        wanted = tuple(prod(have) // rest if n == -1 else n for n in wanted)
    return (reshape(context, x, wanted),)


def flatten(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    have = context.shape(x)
    axis = integer(node, "axis", 1)
    at = axis + len(have) if axis < 0 else axis
    return (reshape(context, x, (prod(have[:at]), prod(have[at:]))),)


def squeeze(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    axes = listed(context, node, operands, "axes", 1)
    return (context.node("squeeze", x, **({} if axes is None else {"axes": axes})),)


def unsqueeze(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    axes = listed(context, node, operands, "axes", 1)
    if axes is None:
        raise malformed(node, "it has no axes")
    return (context.node("unsqueeze", x, axes=axes),)


def convert_transpose(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    perm = integers(node, "perm", None)
    return (transpose(context, x, tuple(reversed(range(context.rank(x)))) if perm is None else perm),)


def concat(context: Context, node: OnnxNode, operands: Operands) -> Results:
    given = every(node, operands)
    axis = integer(node, "axis", None)
    if axis is None:
        raise malformed(node, "it has no axis")
    return given if len(given) == 1 else (context.node("concat", *given, axis=axis),)


def split(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """By sizes that are given, or into as many parts as there are outputs; the last one may be smaller."""
    (x,) = required(node, operands, 1)
    axis = integer(node, "axis", 0)
    sizes = listed(context, node, operands, "split", 1)
    have = context.shape(x)
    if not -len(have) <= axis < len(have):
        raise malformed(node, f"axis {axis} of {len(have)}")
    extent, parts = have[axis], len(node.outputs)
    if sizes is None:
        each = -(-extent // integer(node, "num_outputs", parts))
        sizes = tuple(max(0, min(each, extent - part * each)) for part in range(parts))
    return context.nodes("split", x, results=parts, sizes=sizes, axis=axis)


def convert_slice(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    starts, ends = (listed(context, node, operands, name, at) for name, at in (("starts", 1), ("ends", 2)))
    if starts is None or ends is None:
        raise malformed(node, "it does not say from where to where")
    axes = listed(context, node, operands, "axes", 3)
    steps = listed(context, node, operands, "steps", 4)
    at = tuple(range(len(starts))) if axes is None else axes
    return (context.node("slice", x, starts=starts, ends=ends, axes=at, steps=steps or (1,) * len(starts)),)


def expand(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, wanted = required(node, operands, 2)
    target = np.broadcast_shapes(context.shape(x), context.ints(wanted))
    return (x if target == context.shape(x) else context.node("expand", x, shape=tuple(map(int, target))),)


def tile(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, repeats = required(node, operands, 2)
    return (context.node("tile", x, repeats=context.ints(repeats)),)


def pad(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    pads = listed(context, node, operands, "pads", 1)
    if pads is None:
        raise malformed(node, "it has no pads")
    rank = context.rank(x)
    axes = optional(operands, 3)
    if axes is not None:
        at = [axis % rank for axis in context.ints(axes)]
        given, pads = pads, (0,) * (2 * rank)
        spread = list(pads)
        for k, axis in enumerate(at):
            spread[axis], spread[axis + rank] = given[k], given[k + len(at)]
        pads = tuple(spread)
    value = optional(operands, 2)
    filled = float(context.known(value).reshape(())) if value is not None else _attribute_value(node)
    mode = text(node, "mode", "constant")
    return (padded(context, x, pads, mode, filled if mode == "constant" else 0.0),)


def padded(context: Context, x: str, pads: tuple[int, ...], mode: str = "constant", value: float = 0.0) -> str:
    """x with something around it; where a pad is negative, without some of it."""
    rank = context.rank(x)
    if min(pads, default=0) < 0:
        have = context.shape(x)
        starts = tuple(max(0, -n) for n in pads[:rank])
        ends = tuple(extent - max(0, -n) for extent, n in zip(have, pads[rank:], strict=True))
        x = context.node("slice", x, starts=starts, ends=ends)
    more = tuple(max(0, n) for n in pads)
    return context.node("pad", x, pads=more, mode=mode, value=value) if any(more) else x


def center_crop_pad(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, wanted = required(node, operands, 2)
    rank, have = context.rank(x), context.shape(x)
    axes = integers(node, "axes", tuple(range(rank)))
    pads = [0] * (2 * rank)
    for axis, target in zip(axes, context.ints(wanted), strict=True):
        at = axis % rank
        missing = target - have[at]
        before = missing // 2 if missing >= 0 else -(-missing // 2)
        pads[at], pads[at + rank] = before, missing - before
    return (padded(context, x, tuple(pads)),)


def depth_to_space(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return (context.node("depth_to_space", x, block=integer(node, "blocksize", 0), mode=text(node, "mode", "DCR")),)


def space_to_depth(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return (context.node("space_to_depth", x, block=integer(node, "blocksize", 0)),)


def col2im(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, image, block = required(node, operands, 3)
    settings = {name: integers(node, name, ()) for name in ("strides", "pads", "dilations")}
    return (context.node("col2im", x, image=context.ints(image), block=context.ints(block), **settings),)


def reverse_sequence(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, lengths = required(node, operands, 2)
    axes = {"batch_axis": integer(node, "batch_axis", 1), "time_axis": integer(node, "time_axis", 0)}
    return trimmed(node, (context.node("reverse_sequence", x, lengths, **axes),))


def _attribute_value(node: OnnxNode) -> float:
    found = node.attributes.get("value", 0.0)
    return float(found) if isinstance(found, int | float) else 0.0


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "CenterCropPad"): center_crop_pad,
    ("", "Col2Im"): col2im,
    ("", "Concat"): concat,
    ("", "DepthToSpace"): depth_to_space,
    ("", "Expand"): expand,
    ("", "Flatten"): flatten,
    ("", "Pad"): pad,
    ("", "Reshape"): convert_reshape,
    ("", "ReverseSequence"): reverse_sequence,
    ("", "Shape"): shape,
    ("", "Size"): size,
    ("", "Slice"): convert_slice,
    ("", "SpaceToDepth"): space_to_depth,
    ("", "Split"): split,
    ("", "Squeeze"): squeeze,
    ("", "Tile"): tile,
    ("", "Transpose"): convert_transpose,
    ("", "Unsqueeze"): unsqueeze,
}
