"""Images sampled at places that are data: grids, regions of interest, deformed windows, and windows put back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.convert.attributes import integer, integers, malformed, number, text
from dovetail.frontends.onnx.entries import Array
from dovetail.frontends.onnx.host.call import Call, HostFunction, Results
from dovetail.frontends.onnx.host.sampling import sampled

Floats = npt.NDArray[np.float64]


def grid_sample(call: Call) -> Results:
    x, grid = call.array(0), call.array(1)
    mode, padding = text(call.node, "mode", "linear"), text(call.node, "padding_mode", "zeros")
    aligned = bool(integer(call.node, "align_corners", 0))
    dims = x.shape[2:]
    if grid.shape[-1] != len(dims) or grid.shape[0] != x.shape[0]:
        raise malformed(call.node, "the grid does not fit the image")
    made = np.empty((*x.shape[:2], *grid.shape[1:-1]), np.float64)
    for at, image in enumerate(x.astype(np.float64)):
        places = [_placed(grid[at, ..., -1 - dim], extent, aligned) for dim, extent in enumerate(dims)]
        made[at] = sampled(image, places, _MODES.get(mode, mode), padding, aligned)
    return (made.astype(x.dtype),)


def affine_grid(call: Call) -> Results:
    theta, dims = call.array(0), call.ints(1)[2:]
    aligned = bool(integer(call.node, "align_corners", 0))
    call.room((len(theta), *dims, len(dims)), np.dtype(np.float64))
    axes = [np.linspace(-1, 1, n) if aligned else (2 * np.arange(n) + 1) / n - 1 for n in dims]
    places = [*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(dims)]
    made = np.einsum("nij,j...->n...i", theta.astype(np.float64), np.stack(places))
    return (made.astype(theta.dtype),)


def roi_align(call: Call) -> Results:
    x, rois, batches = call.array(0).astype(np.float64), call.array(1).astype(np.float64), call.ints(2)
    node = call.node
    height, width = integer(node, "output_height", 1), integer(node, "output_width", 1)
    how, scale = text(node, "mode", "avg"), number(node, "spatial_scale", 1.0)
    half = text(node, "coordinate_transformation_mode", "half_pixel" if call.opset >= 16 else "output_half_pixel")
    centred = half == "half_pixel"
    ratio = integer(node, "sampling_ratio", 0)
    made = np.zeros(call.room((len(rois), x.shape[1], height, width), x.dtype))
    for at, (roi, batch) in enumerate(zip(rois, batches, strict=True)):
        start, end = roi[1::-1] * scale - 0.5 * centred, roi[:1:-1] * scale - 0.5 * centred
        size = end - start if centred else np.maximum(end - start, 1.0)
        bins = size / (height, width)
        counts = [ratio if ratio > 0 else int(np.ceil(each)) for each in bins]
        made[at] = _pooled(x[batch], start, bins, (height, width), counts, how)
    return (made.astype(call.array(0).dtype),)


def deform_conv(call: Call) -> Results:
    x, w, offset = (call.array(at).astype(np.float64) for at in range(3))
    node, bias, mask = call.node, call.maybe(3), call.maybe(4)
    if x.ndim != 4:
        raise malformed(node, "it takes images of two dimensions")
    kernel = integers(node, "kernel_shape", w.shape[2:])
    strides, dilations = integers(node, "strides", (1, 1)), integers(node, "dilations", (1, 1))
    pads, groups = integers(node, "pads", (0, 0, 0, 0)), integer(node, "group", 1)
    parts, out = integer(node, "offset_group", 1), offset.shape[2:]
    moved = offset.reshape(len(x), parts, *kernel, 2, *out)
    weights = np.ones((len(x), parts, *kernel, *out)) if mask is None else mask.reshape(len(x), parts, *kernel, *out)
    starts = np.meshgrid(*(np.arange(n) * s - p for n, s, p in zip(out, strides, pads, strict=False)), indexing="ij")
    taps = np.meshgrid(*(np.arange(n) * d for n, d in zip(kernel, dilations, strict=True)), indexing="ij")
    made = np.zeros((len(x), len(w), *out))
    for at, image in enumerate(x):
        columns = []
        for part, channels in enumerate(np.split(image, parts)):
            places = [
                t[..., None, None] + s + moved[at, part, :, :, k]
                for k, (s, t) in enumerate(zip(starts, taps, strict=True))
            ]
            columns.append(sampled(channels, places, "linear", "zeros", True) * weights[at, part])
        grouped = np.split(np.concatenate(columns), groups)
        rows = [np.einsum("ockl,cklhw->ohw", v, c) for v, c in zip(np.split(w, groups), grouped, strict=True)]
        made[at] = np.concatenate(rows)
    if bias is not None:
        made += bias.astype(np.float64)[:, None, None]
    return (made.astype(call.array(0).dtype),)


def max_unpool(call: Call) -> Results:
    x, places = call.array(0), call.array(1).astype(np.int64)
    kernel = integers(call.node, "kernel_shape", ())
    strides, pads = (
        integers(call.node, "strides", (1,) * len(kernel)),
        integers(call.node, "pads", (0,) * 2 * len(kernel)),
    )
    sizes = zip(x.shape[2:], strides, kernel, pads, pads[len(kernel) :], strict=False)
    inferred = (*x.shape[:2], *((n - 1) * s - low - high + k for n, s, k, low, high in sizes))
    if places.size and not 0 <= places.min() <= places.max() < prod(inferred):
        raise malformed(call.node, "an index is outside the result")
    flat = np.zeros(prod(call.room(inferred, x.dtype)), x.dtype)
    flat[places.reshape(-1)] = x.reshape(-1)
    if call.maybe(2) is None:
        return (flat.reshape(inferred),)
    made = np.zeros(call.room(call.ints(2), x.dtype), x.dtype)
    made[tuple(map(slice, inferred))] = flat.reshape(inferred)
    return (made,)


def col2im(call: Call) -> Results:
    x, dims, block = call.array(0), call.ints(1), call.ints(2)
    node, rank = call.node, len(dims)
    strides, dilations = integers(node, "strides", (1,) * rank), integers(node, "dilations", (1,) * rank)
    pads = integers(node, "pads", (0,) * 2 * rank)
    grown = [n + low + high for n, low, high in zip(dims, pads, pads[rank:], strict=False)]
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(grown, dilations, block, strides, strict=True)]
    channels = x.shape[1] // prod(block)
    columns = np.moveaxis(x.reshape(len(x), channels, prod(block), *counts), 2, 0)
    made = np.zeros(call.room((len(x), channels, *grown), x.dtype), x.dtype)
    for column, tap in zip(columns, product(*map(range, block)), strict=True):
        cut = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilations, counts, strides, strict=True)
        )
        window = made[(slice(None), slice(None), *cut)]
        np.add(window, column, out=window)
    inner = tuple(slice(low, low + n) for low, n in zip(pads, dims, strict=False))
    return (np.ascontiguousarray(made[(slice(None), slice(None), *inner)]),)


def _placed(grid: Array, extent: int, aligned: bool) -> Floats:
    """From -1..1 to places along an axis, rounded as the grid is."""
    one = grid.dtype.type(1)
    if aligned:
        return np.asarray((grid + one) / 2 * (extent - 1), np.float64)  # type: ignore[operator]
    return np.asarray(((grid + one) * extent - 1) / 2, np.float64)  # type: ignore[operator]


def _pooled(
    image: Floats, start: Floats, bins: Floats, out: tuple[int, int], counts: Sequence[int], how: str
) -> Floats:
    """Samples of each bin of a region, their mean or the largest of what they are made of."""
    height, width = image.shape[1:]
    axes = [
        start[k] + (np.arange(out[k])[:, None] + (np.arange(counts[k]) + 0.5) / max(1, counts[k])) * bins[k]
        for k in (0, 1)
    ]
    y, x = axes[0].reshape(-1, 1), axes[1].reshape(1, -1)
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    low_y, low_x = y.astype(np.int64), x.astype(np.int64)
    high_y, high_x = np.minimum(low_y + 1, height - 1), np.minimum(low_x + 1, width - 1)
    up, left = y - low_y, x - low_x
    corners = [
        ((1 - up) * (1 - left), image[:, low_y, low_x]),
        ((1 - up) * left, image[:, low_y, high_x]),
        (up * (1 - left), image[:, high_y, low_x]),
        (up * left, image[:, high_y, high_x]),
    ]
    weighted = np.stack([weight * inside * value for weight, value in corners])
    samples = weighted.sum(0) if how == "avg" else weighted.max(0)
    binned = samples.reshape(len(image), out[0], counts[0], out[1], counts[1])
    if not binned.size:
        return np.zeros((len(image), *out))
    found: Floats = binned.mean((2, 4)) if how == "avg" else binned.max((2, 4))
    return found


_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""What versions before 20 call them."""

HOST: dict[tuple[str, str], HostFunction] = {
    ("", "GridSample"): grid_sample,
    ("", "AffineGrid"): affine_grid,
    ("", "RoiAlign"): roi_align,
    ("", "DeformConv"): deform_conv,
    ("", "MaxUnpool"): max_unpool,
    ("", "Col2Im"): col2im,
}
