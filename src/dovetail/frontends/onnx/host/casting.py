"""Conversions between element types on the host: all of ONNX's, also those graphs do not have."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.convert.attributes import integer, malformed, text
from dovetail.frontends.onnx.elements import ELEMENTS, STRING
from dovetail.frontends.onnx.entries import Array
from dovetail.frontends.onnx.host.call import Call, HostFunction, Results

DType = np.dtype[np.generic]
_SATURATING = frozenset(
    np.dtype(kind)
    for kind in (
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)
_POWERS = np.dtype(ml_dtypes.float8_e8m0fnu)


def _bounds(kind: type) -> tuple[int, int]:
    found = ml_dtypes.iinfo(kind)  # type: ignore[no-untyped-call]
    return int(found.min), int(found.max)


_WHOLE = {
    np.dtype(kind): _bounds(kind)
    for kind in (
        ml_dtypes.int2,
        ml_dtypes.uint2,
        ml_dtypes.int4,
        ml_dtypes.uint4,
        np.int8,
        np.uint8,
        np.int16,
        np.uint16,
    )
}


def cast(call: Call) -> Results:
    code = integer(call.node, "to", 0)
    if code not in ELEMENTS:
        raise malformed(call.node, f"there is no element type {code}")
    return (_cast(call, call.array(0), ELEMENTS[code].array, code == STRING),)


def cast_like(call: Call) -> Results:
    like = call.array(1).dtype
    return (_cast(call, call.array(0), like, like.kind == "O"),)


def bit_cast(call: Call) -> Results:
    x, code = call.array(0), integer(call.node, "to", 0)
    if code not in ELEMENTS or x.dtype == object or code == STRING:
        raise malformed(call.node, "bits of strings")
    if ELEMENTS[code].array.itemsize != x.dtype.itemsize:
        raise malformed(call.node, f"elements of {x.dtype} and {ELEMENTS[code].name} have different widths")
    return (np.ascontiguousarray(x).view(ELEMENTS[code].array).reshape(x.shape),)


def quantize_linear(call: Call) -> Results:
    x, zero = call.array(0), call.maybe(2)
    scale = _spread(call, call.array(1), x.shape)
    code = integer(call.node, "output_dtype", 0) or 2
    dtype = ELEMENTS[code].array if zero is None else zero.dtype
    precision = integer(call.node, "precision", 0)
    wide: DType = ELEMENTS[precision].array if precision else np.result_type(x.dtype, scale.dtype)
    with np.errstate(all="ignore"):
        scaled = np.divide(x.astype(wide), scale.astype(wide))
    shift = np.zeros((), dtype) if zero is None else _spread(call, zero, x.shape)
    if dtype in _WHOLE:
        low, high = _WHOLE[dtype]
        places = np.clip(np.rint(scaled.astype(np.float64)), -(2.0**31), 2.0**31 - 1).astype(np.int64)
        return (np.clip(places + shift.astype(np.int64), low, high).astype(dtype),)
    moved = scaled.astype(np.float64) + shift.astype(np.float64)
    return (saturated(moved, dtype) if integer(call.node, "saturate", 1) else _plain(moved, dtype),)


def dequantize_linear(call: Call) -> Results:
    x, zero, given = call.array(0), call.maybe(2), call.array(1)
    scale = _spread(call, given, x.shape).astype(np.float32)
    code = integer(call.node, "output_dtype", 0)
    wide: npt.NDArray[np.float32]
    if x.dtype.kind in "iu":
        shift = np.zeros((), np.int64) if zero is None else _spread(call, zero, x.shape).astype(np.int64)
        wide = (x.astype(np.int64) - shift).astype(np.float32)
    else:
        wide = x.astype(np.float32)
        if zero is not None:
            wide = wide - _spread(call, zero, x.shape).astype(np.float32)
    return ((wide * scale).astype(ELEMENTS[code].array if code else given.dtype),)


def saturated(x: Array, dtype: DType) -> Array:
    """Values beyond the largest become the largest."""
    if dtype not in _SATURATING:
        return _plain(x, dtype)
    most = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    return np.clip(x.astype(np.float32), -most, most).astype(dtype)


def _cast(call: Call, x: Array, dtype: DType, to_text: bool) -> Array:
    if to_text:
        return np.array([str(value) for value in x.reshape(-1)], object).reshape(x.shape)
    if x.dtype == object:
        return _from_text(x, dtype)
    if dtype == _POWERS:
        return _to_powers(x, bool(integer(call.node, "saturate", 1)), text(call.node, "round_mode", "up"))
    return saturated(x, dtype) if integer(call.node, "saturate", 1) else _plain(x, dtype)


def _plain(x: Array, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def _from_text(x: Array, dtype: DType) -> Array:
    words = [str(word).strip() for word in x.reshape(-1)]
    if dtype.kind in "iu":
        numbers = np.array([int(word) for word in words], np.int64)
    else:
        numbers = np.array([float(word) for word in words], np.float64)
    return numbers.reshape(x.shape).astype(dtype)


def _to_powers(x: Array, saturate: bool, how: str) -> Array:
    """Powers of two, by their exponent alone: sign is lost, what is not finite is not a number."""
    bits = x.astype(np.float32).view(np.uint32)
    exponent = ((bits >> 23) & 0xFF).astype(np.int64)
    fraction = (bits & 0x7FFFFF).astype(np.int64)
    finite = exponent != 0xFF
    ups = {
        "up": fraction > 0,
        "down": fraction < 0,
        "nearest": (fraction >= 0x400000) & ((fraction > 0x400000) | (exponent > 0)),
    }
    grown = exponent + np.where(finite & ups[how], 1, 0)
    if saturate:
        grown = np.where(finite, np.minimum(grown, 0xFE), grown)
    return grown.astype(np.uint8).view(_POWERS)


def _spread(call: Call, part: Array, shape: tuple[int, ...]) -> Array:
    """A scale or zero point as it meets ``shape``: one, one for each slice of an axis, or one for each block."""
    if part.size == 1:
        return part.reshape(())
    axis, block = integer(call.node, "axis", 1), integer(call.node, "block_size", 0)
    if not block:
        extents = [1] * len(shape)
        extents[axis] = part.size
        return part.reshape(extents)
    return np.take(np.repeat(part, block, axis), np.arange(shape[axis]), axis)


HOST: dict[tuple[str, str], HostFunction] = {
    ("", "Cast"): cast,
    ("", "CastLike"): cast_like,
    ("", "BitCast"): bit_cast,
    ("", "QuantizeLinear"): quantize_linear,
    ("", "DequantizeLinear"): dequantize_linear,
}
