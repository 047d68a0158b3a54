"""Softmax and the norms of ONNX. Before opset 13 softmax took all axes from ``axis`` on as one."""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES, DType
from dovetail.frontends.onnx.convert.attributes import (
    integer,
    integers,
    malformed,
    number,
    optional,
    required,
    unsupported,
)
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import cast, dtype_of, need_rank, reshape, rows, scalar_like, trimmed
from dovetail.frontends.onnx.model import OnnxNode


def batch_norm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """In inference from the statistics that are given, in training from those of the batch."""
    x, scale, bias, mean, variance = required(node, operands, 5)
    epsilon = number(node, "epsilon", 1e-5)
    if not integer(node, "spatial", 1):
        raise unsupported(node, "statistics of each element apart", "spatial = 1")
    if context.opset >= 14 and integer(node, "training_mode", 0):
        return trimmed(node, _trained(context, node, (x, scale, bias, mean, variance), epsilon))
    own, wide = context.dtype(x), _wide(context, x, scale, mean)
    given = (cast(context, name, wide) for name in (x, scale, bias, mean, variance))
    return (cast(context, context.node("batch_norm", *given, epsilon=epsilon), own),)


def layer_norm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, scale = required(node, operands, 2)
    bias = optional(operands, 2)
    settings = {"axis": integer(node, "axis", -1), "epsilon": number(node, "epsilon", 1e-5)}
    given = (x, scale) if bias is None else (x, scale, bias)
    if len(node.outputs) == 1:
        return (context.node("layer_norm", *given, **settings),)
    kept = dtype_of(node, integer(node, "stash_type", 1))
    y, mean, factor = context.nodes("layer_norm", *given, results=3, statistics=1, **settings)
    return trimmed(node, (y, cast(context, mean, kept), cast(context, factor, kept)))


def rms_norm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, scale = required(node, operands, 2)
    own = context.dtype(scale)
    wide = _wide(context, x, scale)
    settings = {"axis": integer(node, "axis", -1), "epsilon": number(node, "epsilon", 1e-5)}
    found = context.node("rms_norm", cast(context, x, wide), cast(context, scale, wide), **settings)
    return (cast(context, found, own),)


def group_norm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """Before opset 21 scale and bias are one for each group."""
    x, scale, bias = required(node, operands, 3)
    need_rank(node, context, x, 2)
    groups = integer(node, "num_groups", 0)
    channels = context.shape(x)[1]
    if groups < 1 or channels % groups:
        raise malformed(node, f"{channels} channels are not {groups} groups")
    if context.opset < 21 and context.shape(scale) == (groups,):
        scale, bias = (_each(context, name, channels // groups) for name in (scale, bias))
    own, wide = context.dtype(x), _wide(context, x, scale)
    given = (cast(context, name, wide) for name in (x, scale, bias))
    found = context.node("group_norm", *given, groups=groups, epsilon=number(node, "epsilon", 1e-5))
    return (cast(context, found, own),)


def instance_norm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    given = required(node, operands, 3)
    need_rank(node, context, given[0], 2)
    groups = context.shape(given[0])[1]
    return (context.node("group_norm", *given, groups=groups, epsilon=number(node, "epsilon", 1e-5)),)


def mean_variance_norm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return (context.node("mean_variance_norm", x, axes=integers(node, "axes", (0, 2, 3))),)


def lp_norm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return (context.node("lp_norm", x, axis=integer(node, "axis", -1), p=integer(node, "p", 2)),)


def local_response_norm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    if not 1 <= integer(node, "size", 1) <= context.limits.extent:
        raise malformed(node, "its size must be at least 1")
    settings = {
        "alpha": number(node, "alpha", 1e-4),
        "beta": number(node, "beta", 0.75),
        "bias": number(node, "bias", 1.0),
    }
    return (context.node("local_response_norm", x, size=integer(node, "size", 1), **settings),)


def _along(op: str) -> Conversion:
    """An operator along one axis; in old opsets along all from it on."""

    def convert(context: Context, node: OnnxNode, operands: Operands) -> Results:
        (x,) = required(node, operands, 1)
        if context.opset >= 13:
            return (context.node(op, x, axis=integer(node, "axis", -1)),)
        flat, shape = rows(context, x, integer(node, "axis", 1))
        return (reshape(context, context.node(op, flat, axis=1), shape),)

    return convert


def _trained(context: Context, node: OnnxNode, given: tuple[str, ...], epsilon: float) -> Results:
    x, scale, _, mean, _ = given
    need_rank(node, context, x, 2)
    own, wide = context.dtype(x), _wide(context, x, scale, mean)
    x, scale, bias, mean, variance = (cast(context, name, wide) for name in given)
    axes = (0, *range(2, context.rank(x)))
    momentum = number(node, "momentum", 0.9)
    here = context.node("reduce_mean", x, axes=axes, keepdims=0)
    apart = context.node("sub", x, context.node("reduce_mean", x, axes=axes, keepdims=1))
    spread = context.node("reduce_mean", context.node("mul", apart, apart), axes=axes, keepdims=0)
    y = context.node("batch_norm", x, scale, bias, here, spread, epsilon=epsilon)
    results = [cast(context, y, own)]
    for kept, new, like in ((mean, here, given[3]), (variance, spread, given[4])):
        old = context.node("mul", kept, scalar_like(context, kept, momentum))
        more = context.node("mul", new, scalar_like(context, new, 1 - momentum))
        results.append(cast(context, context.node("add", old, more), context.dtype(like)))
    return tuple(results)


def _each(context: Context, x: str, times: int) -> str:
    """Every element ``times`` over."""
    (count,) = context.shape(x)
    column = reshape(context, x, (count, 1))
    return reshape(context, context.node("expand", column, shape=(count, times)), (count * times,))


def _wide(context: Context, *names: str) -> DType:
    """The dtype of all of these; f32 where they differ."""
    found = {context.dtype(name) for name in names}
    return found.pop() if len(found) == 1 else DTYPES["f32"]


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "BatchNormalization"): batch_norm,
    ("", "GroupNormalization"): group_norm,
    ("", "Hardmax"): _along("hardmax"),
    ("", "InstanceNormalization"): instance_norm,
    ("", "LayerNormalization"): layer_norm,
    ("", "LogSoftmax"): _along("log_softmax"),
    ("", "LpNormalization"): lp_norm,
    ("", "LRN"): local_response_norm,
    ("", "MeanVarianceNormalization"): mean_variance_norm,
    ("", "RMSNormalization"): rms_norm,
    ("", "Softmax"): _along("softmax"),
}
