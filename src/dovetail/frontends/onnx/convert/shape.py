"""Operators of ONNX that move elements, and those whose result is a shape."""

from __future__ import annotations

from math import prod

import numpy as np

from dovetail.frontends.onnx.convert.attributes import every, integer, integers, malformed, optional, required, text
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import extents, listed, one_number, reshape, transpose, trimmed
from dovetail.frontends.onnx.model import OnnxNode

_TOGETHER = 64
"""How many tensors are put together at once: each is a statement, and statements are checked against each other."""


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
    _, name = required(node, operands, 2)
    wanted = extents(node, context, name)
    have = context.shape(x)
    if not integer(node, "allowzero", 0):
        if any(n == 0 and dim >= len(have) for dim, n in enumerate(wanted)):
            raise malformed(node, f"the shape {wanted} keeps an axis that is not there")
        wanted = tuple(have[dim] if n == 0 else n for dim, n in enumerate(wanted))
    if -1 in wanted:
        rest = prod(n for n in wanted if n != -1)
        if wanted.count(-1) > 1 or rest <= 0 or prod(have) % rest:
            raise malformed(node, f"{have} cannot be cut into {wanted}")
        wanted = tuple(prod(have) // rest if n == -1 else n for n in wanted)
    if min(wanted, default=0) < 0:
        raise malformed(node, f"the shape {wanted} has a negative extent")
    return (reshape(context, x, wanted),)


def flatten(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    have = context.shape(x)
    axis = integer(node, "axis", 1)
    at = axis + len(have) if axis < 0 else axis
    if not 0 <= at <= len(have):
        raise malformed(node, f"axis {axis} of {len(have)}")
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
    while len(given) > _TOGETHER:
        parts = [given[at : at + _TOGETHER] for at in range(0, len(given), _TOGETHER)]
        given = tuple(context.node("concat", *part, axis=axis) for part in parts)
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
        if integer(node, "num_outputs", parts) != parts:
            raise malformed(node, "num_outputs is not the number of its outputs")
        each = -(-extent // parts)
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
    have, asked = context.shape(x), extents(node, context, wanted)
    rank = max(len(have), len(asked))
    own, other = ((1,) * (rank - len(part)) + part for part in (have, asked))
    if any(n != m and 1 not in (n, m) for n, m in zip(own, other, strict=True)) or min(asked, default=0) < 0:
        raise malformed(node, f"{have} cannot be stretched to {asked}")
    target = tuple(m if n == 1 else n for n, m in zip(own, other, strict=True))
    return (x if target == have else context.node("expand", x, shape=target),)


def tile(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, repeats = required(node, operands, 2)
    return (context.node("tile", x, repeats=extents(node, context, repeats)),)


def pad(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    pads = listed(context, node, operands, "pads", 1)
    if pads is None:
        raise malformed(node, "it has no pads")
    rank = context.rank(x)
    axes = optional(operands, 3)
    if axes is not None:
        at = checked_axes(node, context.ints(axes), rank)
        given, spread = pads, [0] * (2 * rank)
        if len(given) != 2 * len(at):
            raise malformed(node, f"{len(given)} pads for {len(at)} axes")
        for k, axis in enumerate(at):
            spread[axis], spread[axis + rank] = given[k], given[k + len(at)]
        pads = tuple(spread)
    if len(pads) != 2 * rank:
        raise malformed(node, f"{len(pads)} pads for {rank} axes")
    value = optional(operands, 2)
    filled = one_number(node, context, value) if value is not None else _attribute_value(node)
    mode = text(node, "mode", "constant")
    return (padded(context, x, pads, mode, filled if mode == "constant" else 0.0),)


def padded(context: Context, x: str, pads: tuple[int, ...], mode: str = "constant", value: float = 0.0) -> str:
    """x with something around it; where a pad is negative, without some of it."""
    rank = context.rank(x)
    if min(pads, default=0) < 0:
        have = context.shape(x)
        starts = tuple(max(0, -n) for n in pads[:rank])
        ends = tuple(max(0, extent - max(0, -n)) for extent, n in zip(have, pads[rank:], strict=True))
        x = context.node("slice", x, starts=starts, ends=ends)
    more = tuple(max(0, n) for n in pads)
    return context.node("pad", x, pads=more, mode=mode, value=value) if any(more) else x


def center_crop_pad(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, wanted = required(node, operands, 2)
    rank, have = context.rank(x), context.shape(x)
    axes = checked_axes(node, integers(node, "axes", tuple(range(rank))), rank)
    pads = [0] * (2 * rank)
    targets = context.ints(wanted)
    if len(targets) != len(axes) or min(targets, default=0) < 0:
        raise malformed(node, f"extents {targets} for {len(axes)} axes")
    for at, target in zip(axes, targets, strict=True):
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


def checked_axes(node: OnnxNode, axes: tuple[int, ...], rank: int) -> list[int]:
    """Axes counted from the first, each once."""
    found = [axis + rank if axis < 0 else axis for axis in axes]
    if len(set(found)) < len(found) or not all(0 <= axis < rank for axis in found):
        raise malformed(node, f"axes {axes} of {rank}")
    return found


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
