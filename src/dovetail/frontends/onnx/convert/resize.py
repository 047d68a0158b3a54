"""``Resize``: where each element of the result lies in the input is worked out here, axis by axis, as tables.

An output i lies at x of its axis; the elements around it, base + 1 - taps/2 to base + taps/2 with base = ceil(x) - 1,
are mixed by weights of ``ratio = x - base``, which is in (0, 1]. Places outside are those of the nearest edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import isfinite

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES
from dovetail.frontends.onnx.convert.attributes import (
    integer,
    integers,
    malformed,
    number,
    numbers,
    optional,
    required,
    text,
)
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.shape import checked_axes
from dovetail.frontends.onnx.convert.steps import cast, need_few, reshape, scalar_like
from dovetail.frontends.onnx.model import OnnxNode

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis that changes: its extent before and after, their ratio, and the part of it that is looked at."""

    at: int
    extent: int
    count: int
    scale: float
    roi: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Style:
    """The attributes of a node."""

    mode: str
    where: str
    nearest: str
    antialias: bool
    cubic: float
    exclude: bool


def resize(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    if context.opset < 11:
        return upsample(context, node, operands)
    mode = text(node, "mode", "nearest")
    style = Style(
        mode,
        text(node, "coordinate_transformation_mode", "half_pixel"),
        text(node, "nearest_mode", "round_prefer_floor"),
        bool(integer(node, "antialias", 0)),
        number(node, "cubic_coeff_a", -0.75),
        bool(integer(node, "exclude_outside", 0)),
    )
    axes = _axes(context, node, operands, x)
    return (_resized(context, node, x, axes, style, number(node, "extrapolation_value", 0.0)),)


def upsample(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """As it was before opset 11: places are divided by the scale, and rounded down where nothing is mixed."""
    (x,) = required(node, operands, 1)
    given = optional(operands, 1)
    scales = numbers(node, "scales", ()) if given is None else tuple(map(float, context.known(given).reshape(-1)))
    have = context.shape(x)
    _check(node, context, scales, len(have))
    axes = [Axis(at, n, int(n * s), s, (0, 1)) for at, (n, s) in enumerate(zip(have, scales, strict=True))]
    style = Style(text(node, "mode", "nearest"), "asymmetric", "floor", False, -0.75, False)
    return (_resized(context, node, x, axes, style, 0.0),)


def _axes(context: Context, node: OnnxNode, operands: Operands, x: str) -> list[Axis]:
    """What becomes of each axis, by scales or by sizes."""
    have = context.shape(x)
    at = checked_axes(node, integers(node, "axes", tuple(range(len(have)))), len(have))
    roi = _floats(context, optional(operands, 1)) or (*(0.0,) * len(at), *(1.0,) * len(at))
    if not all(map(isfinite, roi)):
        raise malformed(node, "its roi is not made of numbers")
    scales, sizes = _floats(context, optional(operands, 2)), _floats(context, optional(operands, 3))
    if scales:
        _check(node, context, scales, len(at))
        counts = [int(s * have[dim]) for s, dim in zip(scales, at, strict=True)]
    elif sizes and 0 not in (have[dim] for dim in at):
        _check(node, context, sizes, len(at))
        counts = [int(n) for n in sizes]
        scales = tuple(n / have[dim] for n, dim in zip(counts, at, strict=True))
        policy = text(node, "keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = (min if policy == "not_larger" else max)(scales)
            scales, counts = (one,) * len(at), [int(one * have[dim] + 0.5) for dim in at]
    else:
        raise malformed(node, "it has neither scales nor sizes")
    looked = [(roi[k], roi[k + len(at)]) for k in range(len(at))] if len(roi) == 2 * len(at) else [(0.0, 1.0)] * len(at)
    return [Axis(dim, have[dim], counts[k], scales[k], looked[k]) for k, dim in enumerate(at)]


def _resized(context: Context, node: OnnxNode, x: str, axes: list[Axis], style: Style, beyond: float) -> str:
    own = context.dtype(x)
    cropped = style.where == "tf_crop_and_resize"
    axes = [a for a in axes if cropped or a.count != a.extent or a.scale != 1]
    for axis in axes:
        need_few(node, context, int(axis.count * (2 + 4 / min(axis.scale, 1.0))))
    if any(a.extent == 0 or a.count < 0 for a in axes):
        raise malformed(node, "an axis without elements cannot be resized")
    if not axes:
        return x
    origins = [_origin(node, axis, style.where) for axis in axes]
    if style.mode == "nearest":
        found = _picked(context, x, axes, [_nearest(o, a, style.nearest) for o, a in zip(origins, axes, strict=True)])
    elif style.mode in ("linear", "cubic", "bilinear"):
        found = _mixed(context, x, axes, origins, style)
    else:
        raise malformed(node, f"there is no mode '{style.mode}'")
    if cropped:
        outside = [np.logical_or(o < 0, o > a.extent - 1) for o, a in zip(origins, axes, strict=True)]
        found = _extrapolated(context, found, axes, outside, beyond)
    return cast(context, found if own.is_float or style.mode == "nearest" else context.node("round", found), own)


def _picked(context: Context, x: str, axes: list[Axis], tables: list[Whole]) -> str:
    """Elements repeated where every one is repeated as often; otherwise by tables."""
    factors = [1] * context.rank(x)
    for axis, table in zip(axes, tables, strict=True):
        factor = axis.count // axis.extent
        if axis.count != factor * axis.extent or not np.array_equal(table, np.arange(axis.count) // max(factor, 1)):
            lists = [context.constant(table) for table in tables]
            return context.node("pick", x, *lists, axes=tuple(a.at for a in axes))
        factors[axis.at] = factor
    return context.node("upsample", x, factors=tuple(factors))


def _mixed(context: Context, x: str, axes: list[Axis], origins: list[Floats], style: Style) -> str:
    """One axis after the other, those first that leave the least to do for the others."""
    wide = context.dtype(x) if context.dtype(x).is_float else DTYPES["f32"]
    weight = DTYPES["f64"] if wide.name == "f64" else DTYPES["f32"]
    x = cast(context, x, wide)
    for axis, origin in sorted(zip(axes, origins, strict=True), key=lambda pair: pair[0].scale):
        places, weights = _taps(origin, axis, style)
        table = context.constant(weights.astype(weight.numpy))
        x = context.node("resample", x, context.constant(places), table, axis=axis.at)
    return x


def _origin(node: OnnxNode, axis: Axis, where: str) -> Floats:
    """Where each output lies in the input."""
    i = np.arange(axis.count, dtype=np.float64)
    length = axis.scale * axis.extent
    last = axis.extent - 1
    if where == "align_corners":
        return i * 0.0 if length == 1 else i * last / (length - 1)
    if where == "asymmetric":
        return i / axis.scale
    if where == "tf_crop_and_resize":
        low, high = axis.roi
        part = np.full_like(i, (high - low) * last / 2) if length == 1 else i * (high - low) * last / (length - 1)
        return part + low * last
    if where == "pytorch_half_pixel":
        return np.full_like(i, -0.5) if length == 1 else (i + 0.5) / axis.scale - 0.5
    if where not in ("half_pixel", "half_pixel_symmetric"):
        raise malformed(node, f"there is no coordinate_transformation_mode '{where}'")
    offset = axis.extent / 2 * (1 - axis.count / length) if where == "half_pixel_symmetric" else 0.0
    return offset + (i + 0.5) / axis.scale - 0.5


def _nearest(origin: Floats, axis: Axis, mode: str) -> Whole:
    base = np.ceil(origin) - 1
    ratio = origin - base
    upper = {
        "round_prefer_floor": ratio > 0.5,
        "round_prefer_ceil": ratio >= 0.5,
        "floor": ratio == 1,
        "ceil": np.ones_like(ratio, bool),
    }
    found = base + upper.get(mode, ratio > 0.5)
    return np.asarray(np.clip(found, 0, axis.extent - 1), np.int64)


def _taps(origin: Floats, axis: Axis, style: Style) -> tuple[Whole, Floats]:
    """Places and weights of the elements around each output."""
    narrow = min(axis.scale, 1.0) if style.antialias else 1.0
    reach = 2 if style.mode == "cubic" else 1
    first = int(np.floor(-reach / narrow) + 1)
    steps = np.arange(first, 2 - first)
    base = np.ceil(origin) - 1
    apart = np.abs((steps - (origin - base)[:, None]) * narrow)
    weights = _cubic(apart, style.cubic) if style.mode == "cubic" else np.clip(1 - apart, 0, 1)
    if style.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    places = base[:, None] + steps
    if style.exclude:
        weights = np.where((places < 0) | (places >= axis.extent), 0, weights)
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.asarray(np.clip(places, 0, axis.extent - 1), np.int64), np.asarray(weights, np.float64)


def _cubic(x: Floats, a: float) -> Floats:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _extrapolated(
    context: Context, x: str, axes: list[Axis], outside: list[npt.NDArray[np.bool_]], value: float
) -> str:
    """``value`` where any of the places is outside of its axis."""
    masks = []
    for axis, mask in zip(axes, outside, strict=True):
        if mask.any():
            shape = tuple(len(mask) if dim == axis.at else 1 for dim in range(context.rank(x)))
            masks.append(reshape(context, context.constant(mask), shape))
    if not masks:
        return x
    return context.node(
        "select", reduce(lambda a, b: context.node("or", a, b), masks), scalar_like(context, x, value), x
    )


def _check(node: OnnxNode, context: Context, given: tuple[float, ...], wanted: int) -> None:
    """Refuse scales or sizes of which there is not one for each axis, or that are none."""
    if len(given) != wanted or not all(0 < n <= context.limits.extent for n in given):
        raise malformed(node, f"{given} are not scales or sizes of {wanted} axes")


def _floats(context: Context, name: str | None) -> tuple[float, ...]:
    return () if name is None else tuple(map(float, context.known(name).reshape(-1)))


CONVERSIONS: dict[tuple[str, str], Conversion] = {("", "Resize"): resize, ("", "Upsample"): upsample}
