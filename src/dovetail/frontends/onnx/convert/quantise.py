"""Quantised operators of ONNX: products are summed as i32, then scaled, rounded and saturated."""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES
from dovetail.frontends.onnx.convert.attributes import integer, optional, required, unsupported
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.contraction import centred
from dovetail.frontends.onnx.convert.steps import cast, dtype_of, need_computable, reshape
from dovetail.frontends.onnx.convert.window import window
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ir.graph.graph import Attribute

_PAIRS = "DequantizeLinear, MatMul, QuantizeLinear"


def quantise(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, scale = required(node, operands, 2)
    zero = optional(operands, 2)
    need_computable(node, context, x, scale, zero)
    settings = _settings(node)
    asked = integer(node, "output_dtype", 0)
    if asked:
        settings["dtype"] = dtype_of(node, asked).name
    precision = integer(node, "precision", 0)
    if precision:
        scale = cast(context, scale, dtype_of(node, precision))
        x = cast(context, x, dtype_of(node, precision))
    given = (x, scale) if zero is None else (x, scale, zero)
    return (context.node("quantise", *given, **settings),)


def dequantise(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, scale = required(node, operands, 2)
    zero = optional(operands, 2)
    need_computable(node, context, x, scale, zero)
    settings = _settings(node)
    asked = integer(node, "output_dtype", 0)
    if asked:
        settings["dtype"] = dtype_of(node, asked).name
    given = (x, scale) if zero is None else (x, scale, zero)
    return (context.node("dequantise", *given, **settings),)


def dynamic_quantise(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return context.nodes("dynamic_quantise", x, results=3)


def conv_integer(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, w = required(node, operands, 2)
    return (_conv(context, node, x, w, optional(operands, 2), optional(operands, 3)),)


def quantised_conv(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = required(node, operands, 8)
    total = _conv(context, node, x, w, x_zero, w_zero)
    bias = optional(operands, 8)
    rest = (1,) * max(context.rank(x) - 2, 0)
    if bias is not None:
        total = context.node("add", total, reshape(context, bias, (*context.shape(bias), *rest)))
    if context.shape(w_scale) not in ((), (1,)):
        w_scale = reshape(context, w_scale, (*context.shape(w_scale), *rest))
    return (_requantised(context, total, (x_scale, w_scale), y_scale, y_zero),)


def quantised_matmul(context: Context, node: OnnxNode, operands: Operands) -> Results:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = required(node, operands, 8)
    if context.dtype(y_zero).name == "i8":
        raise unsupported(
            node, "what does not fit i8 saturates by the standard's text and wraps by its reference", _PAIRS
        )
    total = context.node("matmul", centred(context, a, a_zero, -2), centred(context, b, b_zero, -1))
    if len(context.shape(a_scale)) == 1 and context.shape(a_scale) != (1,):
        a_scale = reshape(context, a_scale, (*context.shape(a_scale), 1))
    return (_requantised(context, total, (a_scale, b_scale), y_scale, y_zero),)


def _conv(context: Context, node: OnnxNode, x: str, w: str, x_zero: str | None, w_zero: str | None) -> str:
    found = window(node, context.shape(x)[2:], context.shape(w)[2:])
    left, right = centred(context, x, x_zero, 1), centred(context, w, w_zero, 0)
    return context.node("conv", left, right, groups=integer(node, "group", 1), **found.settings())


def _requantised(context: Context, total: str, scales: tuple[str, str], y_scale: str, y_zero: str) -> str:
    """A sum of products of two scales as a quantised value of a third."""
    one, other = (cast(context, _single(context, name), DTYPES["f32"]) for name in scales)
    factor = context.node(
        "div", context.node("mul", one, other), cast(context, _single(context, y_scale), DTYPES["f32"])
    )
    scaled = context.node("mul", cast(context, total, DTYPES["f32"]), factor)
    return context.node("quantise", scaled, context.scalar(1.0, DTYPES["f32"]), _single(context, y_zero))


def _single(context: Context, name: str) -> str:
    """One number without axes, where it is one."""
    return reshape(context, name, ()) if context.shape(name) == (1,) else name


def _settings(node: OnnxNode) -> dict[str, Attribute]:
    return {"axis": integer(node, "axis", 1), "block": integer(node, "block_size", 0)}


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "ConvInteger"): conv_integer,
    ("", "DequantizeLinear"): dequantise,
    ("", "DynamicQuantizeLinear"): dynamic_quantise,
    ("", "QLinearConv"): quantised_conv,
    ("", "QLinearMatMul"): quantised_matmul,
    ("", "QuantizeLinear"): quantise,
}
