"""Operators of ONNX that make tensors from a few numbers: constants, ranges, windows, diagonals."""

from __future__ import annotations

from math import ceil, inf, isfinite

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import from_numpy
from dovetail.frontends.onnx.convert.attributes import (
    integer,
    integers,
    malformed,
    number,
    numbers,
    optional,
    required,
    tensor,
    unsupported,
)
from dovetail.frontends.onnx.convert.context import Array, Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import cast, dtype_of, extents, full, need_few, need_rank, one, one_number
from dovetail.frontends.onnx.model import OnnxNode, OnnxSparseTensor
from dovetail.ir.graph.graph import SmallTensor


def constant(context: Context, node: OnnxNode, operands: Operands) -> Results:
    return (context.constant(_constant(node)),)


def constant_of_shape(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (shape,) = required(node, operands, 1)
    given = tensor(node, "value")
    value = np.zeros((), np.float32) if given is None else given.array()
    if value.size != 1:
        raise malformed(node, f"its value has {value.size} elements, not one")
    value = value.reshape(())
    dtype = from_numpy(value.dtype)
    if dtype is None:
        raise unsupported(node, f"programs have no elements of {value.dtype}")
    if dtype.is_float and not np.isfinite(value.astype(np.float64)):
        return (context.node("expand", context.constant(value), shape=extents(node, context, shape)),)
    return (full(context, extents(node, context, shape), value.item(), dtype),)


def arange(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """How many there are must be known; as few as are looked at are a constant."""
    given = required(node, operands, 3)
    start, limit, delta = (context.known(name) for name in given)
    dtype = context.dtype(given[0])
    if any(part.size != 1 for part in (start, limit, delta)):
        raise malformed(node, "its start, limit and step are not one number each")
    first, last, by = start.item(), limit.item(), delta.item()
    if not by or not all(map(isfinite, (first, last, by))):
        raise malformed(node, f"a range from {first} to {last} by {by}")
    count = max(-((first - last) // by) if dtype.is_integer else ceil((last - first) / by), 0)
    one, step = (SmallTensor(dtype, (), (value,)) for value in (first, by))
    return (context.node("arange", count=count, start=one, step=step),)


def eye_like(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    code = integer(node, "dtype", None)
    dtype = context.dtype(x) if code is None else dtype_of(node, code)
    return (context.node("eye", shape=context.shape(x), k=integer(node, "k", 0), dtype=dtype.name),)


def trilu(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    k = optional(operands, 1)
    need_rank(node, context, x, 2)
    diagonal = 0 if k is None else one(node, context, k)
    farthest = max(context.shape(x)[-2:]) + 1
    diagonal = min(max(diagonal, -farthest), farthest)
    return (context.node("triangle", x, upper=integer(node, "upper", 1), k=diagonal),)


def one_hot(context: Context, node: OnnxNode, operands: Operands) -> Results:
    indices, depth, values = required(node, operands, 3)
    count = one_number(node, context, depth)
    if not 1 <= count <= context.limits.extent:
        raise malformed(node, f"a depth of {count}")
    return (context.node("one_hot", indices, values, depth=int(count), axis=integer(node, "axis", -1)),)


def window(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """The sum of cosines that the operator is named after, over ``size`` points."""
    (size,) = required(node, operands, 1)
    count = one(node, context, size)
    need_few(node, context, count)
    dtype = dtype_of(node, integer(node, "output_datatype", 1))
    across = count if integer(node, "periodic", 1) else count - 1
    angle = 2 * np.pi * np.arange(count) / max(across, 1)
    found = sum((c * np.cos(k * angle) for k, c in enumerate(_WINDOWS[node.op])), np.zeros(count))
    return (cast(context, context.constant(np.asarray(found, np.float64)), dtype),)


def mel_weights(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """A matrix from frequencies to mel bins, each a triangle."""
    given = required(node, operands, 5)
    bins, points, rate = (one(node, context, name) for name in given[:3])
    low, high = (one_number(node, context, name) for name in given[3:])
    if min(bins, points, rate) < 1 or not 0 <= low < high < inf:
        raise malformed(node, f"{bins} bins of {points} points from {low} to {high}, {rate} a second")
    need_few(node, context, (bins + 2) * (points + 2))
    dtype = dtype_of(node, integer(node, "output_datatype", 1))
    return (cast(context, context.constant(_mel(bins, points, rate, low, high)), dtype),)


_WINDOWS = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


def _mel(bins: int, points: int, rate: int, low: float, high: float) -> npt.NDArray[np.float64]:
    lowest, highest = (2595 * np.log10(1 + f / 700) for f in (low, high))
    step = (highest - lowest) / (bins + 2)
    mel = np.arange(bins + 2) * step + lowest
    edges = np.minimum((points + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate, points // 2)
    found = np.zeros((points // 2 + 1, bins))
    for k in range(bins):
        left, middle, right = (int(edges[k + n]) for n in range(3))
        if middle == left:
            found[middle, k] = 1
        else:
            found[left : middle + 1, k] = (np.arange(left, middle + 1) - left) / (middle - left)
        if right > middle:
            found[middle:right, k] = (right - np.arange(middle, right)) / (right - middle)
    return found


def _constant(node: OnnxNode) -> Array:
    """The one value that the node has."""
    sparse = node.attributes.get("sparse_value")
    if isinstance(sparse, OnnxSparseTensor):
        return sparse.array()
    given = tensor(node, "value")
    if given is not None:
        return given.array()
    for name in ("value_float", "value_floats"):
        if name in node.attributes:
            found = number(node, name, 0.0) if name == "value_float" else numbers(node, name, ())
            return np.array(found, np.float32)
    for name in ("value_int", "value_ints"):
        if name in node.attributes:
            whole = integer(node, name, 0) if name == "value_int" else integers(node, name, ())
            return np.array(whole, np.int64)
    raise unsupported(node, "its value is not made of numbers")


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "BlackmanWindow"): window,
    ("", "Constant"): constant,
    ("", "ConstantOfShape"): constant_of_shape,
    ("", "EyeLike"): eye_like,
    ("", "HammingWindow"): window,
    ("", "HannWindow"): window,
    ("", "MelWeightMatrix"): mel_weights,
    ("", "OneHot"): one_hot,
    ("", "Range"): arange,
    ("", "Trilu"): trilu,
}
