"""Floats as small integers and back: ``q = round(x / scale) + zero``, saturated.

Scale and zero are one number, one for each index along ``axis``, or one for each ``block`` of them.
"""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ir.index import ONE, constant, variable
from dovetail.ops.text import accumulator, axis_of, grid, named_dtype, need_shape, text


def quantise(x: Type, scale: Type, zero: Type | None = None, *, dtype: str = "", axis: int = 1, block: int = 0) -> str:
    """The quotient is rounded to its dtype, then half to even; what does not fit the dtype is its nearest bound."""
    kind = named_dtype(dtype, DTYPES["u8"] if zero is None else zero.dtype)
    if not kind.is_integer or (zero is not None and zero.dtype != kind):
        raise OperatorError(f"quantised to {kind}", hint="an integer dtype, which is that of zero")
    g, place = grid(x.shape), _place(x, scale, axis, block)
    wide = _wide(x, scale)
    shift = "" if zero is None else f" + {wide}({_read('zero', zero, scale, place)})"
    divided = f"{wide}(x[{g.index}]) / {wide}({_read('scale', scale, scale, place)})"
    return text(
        f"temp ratio: {wide}[{g.shape}]  out y: {kind}[{g.shape}]",
        f"for {g.loops}: ratio[{g.index}] = {divided}",
        f"for {g.loops}: y[{g.index}] = {kind}(round(ratio[{g.index}]){shift})",
    )


def dequantise(
    x: Type, scale: Type, zero: Type | None = None, *, dtype: str = "", axis: int = 1, block: int = 0
) -> str:
    """``(x - zero) * scale``, in the dtype of scale or another."""
    kind = named_dtype(dtype, scale.dtype)
    g, place = grid(x.shape), _place(x, scale, axis, block)
    wide = _wide(scale, scale)
    whole = f"i64(x[{g.index}])" if x.dtype.is_integer else f"{wide}(x[{g.index}])"
    if zero is not None:
        element = _read("zero", zero, scale, place)
        whole += f" - i64({element})" if x.dtype.is_integer else f" - {wide}({element})"
    value = f"{wide}({whole}) * {wide}({_read('scale', scale, scale, place)})"
    return text(f"out y: {kind}[{g.shape}]", f"for {g.loops}: y[{g.index}] = {kind}({value})")


def dynamic_quantise(x: Type) -> str:
    """x as u8, the scale that fits all of it and 0, and the zero."""
    if x.dtype.name != "f32":
        raise OperatorError(f"x is {x}, not of f32")
    g = grid(x.shape)
    return text(
        f"out y: u8[{g.shape}]  out scale: f32[]  out zero: u8[]  temp low: f32[]  temp high: f32[]  temp shift: f32[]",
        f"temp first: f32[]  temp last: f32[]  temp ratio: f32[{g.shape}]  temp start: f32[]",
        f"for {g.loops}: low[] min= x[{g.index}]",
        f"for {g.loops}: high[] max= x[{g.index}]",
        "first[] = min(low[], 0.0)",
        "last[] = max(high[], 0.0)",
        "scale[] = select(last[] == first[], 1.0, last[] - first[]) / 255.0",
        "start[] = -first[] / scale[]",
        "shift[] = round(min(max(start[], 0.0), 255.0))",
        "zero[] = u8(shift[])",
        f"for {g.loops}: ratio[{g.index}] = x[{g.index}] / scale[]",
        f"for {g.loops}: y[{g.index}] = u8(round(ratio[{g.index}]) + shift[])",
    )


def _place(x: Type, scale: Type, axis: int, block: int) -> str:
    """Which element of scale belongs to an element of x."""
    if scale.rank == 0 or (scale.rank == 1 and scale.shape[0] == ONE and not block):
        return "0" if scale.rank else ""
    at = axis_of(axis, x.rank)
    g = grid(x.shape)
    if block < 0:
        raise OperatorError(f"blocks of {block}")
    if not block:
        need_shape("scale", scale, (x.shape[at],))
        return g.names[at]
    blocks = (x.shape[at] + (block - 1)) // block
    need_shape("scale", scale, (*x.shape[:at], blocks, *x.shape[at + 1 :]))
    return g.at("", {at: variable(g.names[at]) // block}).removeprefix("[").removesuffix("]")


def _read(name: str, t: Type, scale: Type, place: str) -> str:
    if t.rank == 0 or t.shape == (constant(1),):
        return f"{name}[{'0' if t.rank else ''}]"
    need_shape(name, t, scale.shape)
    return f"{name}[{place}]"


def _wide(x: Type, scale: Type) -> DType:
    if not scale.dtype.is_float:
        raise OperatorError(f"scale is {scale}, not of floats")
    return DTYPES["f64"] if DTYPES["f64"] in (x.dtype, scale.dtype) else accumulator(scale.dtype)


OPERATORS = operators(quantise, dequantise, dynamic_quantise)
