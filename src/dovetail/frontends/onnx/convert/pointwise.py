"""Elementwise operators of ONNX: tables of those that are one operator of ours, and functions for the others."""

from __future__ import annotations

from functools import reduce

import numpy as np

from dovetail.base.dtypes import DTYPES, Kind
from dovetail.frontends.onnx.convert.attributes import (
    every,
    integer,
    malformed,
    number,
    optional,
    required,
    text,
    unsupported,
)
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import cast, dtype_of, full, need_computable, one_number, plain, trimmed
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ir.graph.graph import Attribute

_SAME = {
    1: {
        "Abs": "abs",
        "Acos": "acos",
        "Acosh": "acosh",
        "Asin": "asin",
        "Asinh": "asinh",
        "Atan": "atan",
        "Atanh": "atanh",
        "BitwiseNot": "not",
        "Ceil": "ceil",
        "Cos": "cos",
        "Cosh": "cosh",
        "Erf": "erf",
        "Exp": "exp",
        "Floor": "floor",
        "HardSwish": "hard_swish",
        "IsNaN": "is_nan",
        "Log": "log",
        "Mish": "mish",
        "Neg": "neg",
        "Not": "not",
        "Reciprocal": "reciprocal",
        "Relu": "relu",
        "Round": "round",
        "Sigmoid": "sigmoid",
        "Sign": "sign",
        "Sin": "sin",
        "Sinh": "sinh",
        "Softplus": "softplus",
        "Softsign": "softsign",
        "Sqrt": "sqrt",
        "Tan": "tan",
        "Tanh": "tanh",
    },
    2: {
        "Add": "add",
        "And": "and",
        "BitwiseAnd": "and",
        "BitwiseOr": "or",
        "BitwiseXor": "xor",
        "Div": "div",
        "Equal": "equal",
        "Greater": "greater",
        "GreaterOrEqual": "greater_equal",
        "Less": "less",
        "LessOrEqual": "less_equal",
        "Mul": "mul",
        "Or": "or",
        "PRelu": "prelu",
        "Sub": "sub",
        "Xor": "xor",
    },
    3: {"Where": "select"},
}
_WITH = {
    "Celu": ("celu", {"alpha": ("alpha", 1.0)}),
    "Elu": ("elu", {"alpha": ("alpha", 1.0)}),
    "HardSigmoid": ("hard_sigmoid", {"alpha": ("alpha", 0.2), "beta": ("beta", 0.5)}),
    "LeakyRelu": ("leaky_relu", {"alpha": ("alpha", 0.01)}),
    "Selu": ("selu", {"alpha": ("alpha", 1.6732631921768188), "gamma": ("gamma", 1.0507010221481323)}),
    "Shrink": ("shrink", {"bias": ("bias", 0.0), "bound": ("lambd", 0.5)}),
    "Swish": ("swish", {"alpha": ("alpha", 1.0)}),
    "ThresholdedRelu": ("thresholded_relu", {"alpha": ("alpha", 1.0)}),
}
"""Our operator, and for each attribute of it ONNX's name and default."""
_EXACT = 2**53
"""Whole numbers up to this are floats too."""


def identity(context: Context, node: OnnxNode, operands: Operands) -> Results:
    return required(node, operands, 1)


def gelu(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return (context.node("gelu", x, approximate=text(node, "approximate", "none")),)


def maximum(context: Context, node: OnnxNode, operands: Operands) -> Results:
    return (reduce(lambda a, b: context.node("max", a, b), every(node, operands)),)


def minimum(context: Context, node: OnnxNode, operands: Operands) -> Results:
    return (reduce(lambda a, b: context.node("min", a, b), every(node, operands)),)


def total(context: Context, node: OnnxNode, operands: Operands) -> Results:
    return (reduce(lambda a, b: context.node("add", a, b), every(node, operands)),)


def mean(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (found,) = total(context, node, operands)
    return (context.node("div", found, context.scalar(len(operands), context.dtype(found))),)


def clip(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """Bounds that are constants become attributes; others are compared with."""
    (x,) = required(node, operands, 1)
    low, high = optional(operands, 1), optional(operands, 2)
    settings: dict[str, Attribute] = {}
    for name, bound, attribute in (("low", low, "min"), ("high", high, "max")):
        known = number(node, attribute, None) if bound is None else _bound(context, bound)
        if known is not None:
            settings[name] = known
        elif bound is not None:
            x = context.node("clip", x, **settings) if settings else x
            settings = {}
            x = context.node("max" if name == "low" else "min", x, _single(context, bound))
    return (context.node("clip", x, **settings) if settings else x,)


def convert_cast(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    need_computable(node, context, x)
    to = integer(node, "to", None)
    if to is None:
        raise malformed(node, "it does not say to what")
    return (cast(context, x, dtype_of(node, to)),)


def cast_like(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, like = required(node, operands, 2)
    need_computable(node, context, x, like)
    return (cast(context, x, context.dtype(like)),)


def bit_cast(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    need_computable(node, context, x)
    target = dtype_of(node, integer(node, "to", 0))
    source = context.dtype(x)
    if Kind.BOOL in (source.kind, target.kind) and source != target:
        raise unsupported(node, f"the bits of {source} as {target}", "Cast")
    return (context.node("bitcast", x, dtype=target.name),)


def power(context: Context, node: OnnxNode, operands: Operands) -> Results:
    a, b = required(node, operands, 2)
    same = context.dtype(a) == context.dtype(b)
    return (context.node("pow" if same and context.dtype(a).is_float else "power", a, b),)


def modulo(context: Context, node: OnnxNode, operands: Operands) -> Results:
    a, b = required(node, operands, 2)
    return (context.node("fmod" if integer(node, "fmod", 0) else "mod", a, b),)


def bit_shift(context: Context, node: OnnxNode, operands: Operands) -> Results:
    a, b = required(node, operands, 2)
    direction = text(node, "direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise malformed(node, "its direction is neither LEFT nor RIGHT")
    return (context.node(f"shift_{direction.lower()}", a, b),)


def is_inf(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    need_computable(node, context, x)
    signs = {name: integer(node, f"detect_{name}", 1) for name in ("negative", "positive")}
    return (context.node("is_inf", x, **signs),)


def dropout(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """As in inference: x, and a mask that keeps everything."""
    (x,) = required(node, operands, 1)
    ratio, training = optional(operands, 1), optional(operands, 2)
    kept = ratio is not None and training is not None and one_number(node, context, ratio) == 0.0
    if training is not None and one_number(node, context, training) and not kept:
        raise unsupported(node, "it drops elements at random")
    mask = (full(context, context.shape(x), 1, DTYPES["bool"]),) if len(node.outputs) > 1 else ()
    return (x, *mask)


def _with(op: str, attributes: dict[str, tuple[str, float]]) -> Conversion:
    def convert(context: Context, node: OnnxNode, operands: Operands) -> Results:
        (x,) = required(node, operands, 1)
        settings = {ours: number(node, theirs, default) for ours, (theirs, default) in attributes.items()}
        return trimmed(node, (context.node(op, x, **settings),))

    return convert


def _bound(context: Context, name: str) -> float | None:
    """A bound that never changes, if it can stand as an attribute."""
    found = context.fixed(name)
    if found is None or found.size != 1:
        return None
    value = float(found.astype(np.float64).reshape(()))
    return value if value == value and (context.dtype(name).is_float or abs(value) < _EXACT) else None


def _single(context: Context, name: str) -> str:
    """One number without axes."""
    return name if context.rank(name) == 0 else context.node("reshape", name, shape=())


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    **{("", name): plain(op, count) for count, table in _SAME.items() for name, op in table.items()},
    **{("", name): _with(op, attributes) for name, (op, attributes) in _WITH.items()},
    ("", "BitCast"): bit_cast,
    ("", "BitShift"): bit_shift,
    ("", "Cast"): convert_cast,
    ("", "CastLike"): cast_like,
    ("", "Clip"): clip,
    ("", "Dropout"): dropout,
    ("", "Gelu"): gelu,
    ("", "Identity"): identity,
    ("", "IsInf"): is_inf,
    ("", "Max"): maximum,
    ("", "Mean"): mean,
    ("", "Min"): minimum,
    ("", "Mod"): modulo,
    ("", "Pow"): power,
    ("", "Sum"): total,
}
