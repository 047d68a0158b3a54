"""Operators whose result has as many elements as their values say: sorting, searching, picking."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.convert.attributes import integer, malformed
from dovetail.frontends.onnx.entries import Array
from dovetail.frontends.onnx.host.call import Call, HostFunction, Results

Floats = npt.NDArray[np.float64]


def non_zero(call: Call) -> Results:
    return (np.array(np.nonzero(np.atleast_1d(call.array(0))), np.int64),)


def compress(call: Call) -> Results:
    x, axis = call.array(0), integer(call.node, "axis", None)
    chosen = np.asarray(call.array(1), np.bool_)
    extent = x.size if axis is None else x.shape[axis]
    if len(chosen) > extent:
        chosen = chosen[:extent]
    return (np.compress(chosen, x, axis),)


def unique(call: Call) -> Results:
    x, axis = call.array(0), integer(call.node, "axis", None)
    values, first, inverse, counts = np.unique(x, True, True, True, axis)
    inverse = inverse.reshape(-1)
    if not integer(call.node, "sorted", 1):
        order = np.argsort(first)
        places = np.argsort(order)
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], places[inverse]
    return (values, *(np.asarray(part, np.int64) for part in (first, inverse, counts)))


def top_k(call: Call) -> Results:
    x, axis = call.array(0), integer(call.node, "axis", -1)
    count = call.whole(1, integer(call.node, "k", 0))
    if not 0 <= count <= x.shape[axis]:
        raise malformed(call.node, f"the first {count} of {x.shape[axis]}")
    keys = x if integer(call.node, "largest", 1) == 0 else _turned(x)
    order = np.argsort(keys, axis, kind="stable")
    places = np.take(order, np.arange(count), axis)
    return (np.take_along_axis(x, places, axis), places.astype(np.int64))


def non_max_suppression(call: Call) -> Results:
    boxes, scores = call.array(0).astype(np.float64), call.array(1).astype(np.float64)
    most = call.whole(2, 0)
    overlap, least = _threshold(call, 3, 0.0), _threshold(call, 4, -np.inf)
    centred = bool(integer(call.node, "center_point_box", 0))
    rows: list[tuple[int, int, int]] = []
    for batch in range(scores.shape[0]):
        corners = _corners(boxes[batch], centred)
        for kind in range(scores.shape[1]):
            chosen = _suppress(corners, scores[batch, kind], most, overlap, least)
            rows += [(batch, kind, at) for at in chosen]
    return (np.array(rows, np.int64).reshape(-1, 3),)


def _suppress(corners: Floats, scores: Floats, most: int, overlap: float, least: float) -> list[int]:
    chosen: list[int] = []
    for at in np.argsort(-scores, kind="stable"):
        if len(chosen) >= most:
            break
        if scores[at] > least and all(_overlap(corners[at], corners[other]) <= overlap for other in chosen):
            chosen.append(int(at))
    return chosen


def _corners(boxes: Floats, centred: bool) -> Floats:
    if centred:
        x, y, width, height = boxes.T
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], 1)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], 1)


def _overlap(a: Floats, b: Floats) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    common = float(np.prod(np.maximum(sides, 0)))
    areas = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]))
    return common / (areas - common) if common > 0 else 0.0


def _threshold(call: Call, at: int, default: float) -> float:
    found = call.maybe(at)
    return default if found is None else float(found.reshape(-1)[0])


def _turned(x: Array) -> Array:
    """Keys whose ascending order is the descending one of ``x``, equal ones kept in order."""
    if x.dtype.kind in "iu":
        return np.bitwise_not(x)
    return -x.astype(np.float64)


HOST: dict[tuple[str, str], HostFunction] = {
    ("", "NonZero"): non_zero,
    ("", "Compress"): compress,
    ("", "Unique"): unique,
    ("", "TopK"): top_k,
    ("", "NonMaxSuppression"): non_max_suppression,
}
