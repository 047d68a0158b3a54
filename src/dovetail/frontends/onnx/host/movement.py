"""Elements moved on the host: for strings and other types graphs do not have, and where shapes are values."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.convert.attributes import integer, integers, malformed, tensor, text
from dovetail.frontends.onnx.entries import Array, HostValue
from dovetail.frontends.onnx.host.call import Call, HostFunction, Results

Ints = npt.NDArray[np.int64]
MOST_AXES = 32
"""More than this NumPy cannot broadcast."""


def reshape(call: Call) -> Results:
    x = call.array(0)
    asked = call.ints(1) if call.maybe(1) is not None else integers(call.node, "shape", ())
    keep = integer(call.node, "allowzero", 0)
    shape = [x.shape[at] if n == 0 and not keep else n for at, n in enumerate(asked)]
    return (x.reshape(shape),)


def flatten(call: Call) -> Results:
    x, axis = call.array(0), integer(call.node, "axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return (x.reshape(prod(x.shape[:axis]), -1) if x.size else x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:])),)


def transpose(call: Call) -> Results:
    return (np.ascontiguousarray(np.transpose(call.array(0), integers(call.node, "perm", None))),)


def concat(call: Call) -> Results:
    axis = integer(call.node, "axis", 1 if call.opset < 4 else 0)
    return (np.concatenate([call.array(at) for at in range(len(call.operands))], axis),)


def split(call: Call) -> Results:
    x, axis = call.array(0), integer(call.node, "axis", 0)
    sizes = call.ints(1) if call.maybe(1) is not None else integers(call.node, "split", None)
    if sizes is None:
        count = integer(call.node, "num_outputs", len(call.node.outputs))
        if count != len(call.node.outputs):
            raise malformed(call.node, f"{count} parts for {len(call.node.outputs)} outputs")
        each = -(-x.shape[axis] // count)
        sizes = tuple(min(each, max(0, x.shape[axis] - each * at)) for at in range(count))
    if sum(sizes) != x.shape[axis] or min(sizes) < 0:
        raise malformed(call.node, f"parts of {sizes} do not make up {x.shape[axis]}")
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def concat_sequence(call: Call) -> Results:
    items = [item for item in call.list(0) if isinstance(item, np.ndarray)]
    axis = integer(call.node, "axis", 0)
    return (np.stack(items, axis) if integer(call.node, "new_axis", 0) else np.concatenate(items, axis),)


def split_to_sequence(call: Call) -> Results:
    x, axis, given = call.array(0), integer(call.node, "axis", 0), call.maybe(1)
    extent = x.shape[axis]
    each = 1 if given is None else max(1, call.ints(1)[0])
    ends = np.cumsum(call.ints(1)) if given is not None and given.ndim else np.arange(each, extent + each, each)
    if given is not None and given.ndim and ends[-1] != extent:
        raise malformed(call.node, f"parts of {call.ints(1)} do not make up {extent}")
    parts: list[HostValue] = list(np.split(x, ends[:-1], axis))
    if given is None and not integer(call.node, "keepdims", 1):
        parts = [np.squeeze(part, axis) for part in parts if isinstance(part, np.ndarray)]
    return (parts,)


def slice_(call: Call) -> Results:
    x = call.array(0)
    if call.opset < 10:
        starts, ends = integers(call.node, "starts", ()), integers(call.node, "ends", ())
        axes: Sequence[int] = integers(call.node, "axes", tuple(range(len(starts))))
        steps: Sequence[int] = (1,) * len(starts)
    else:
        starts, ends = call.ints(1), call.ints(2)
        axes = call.ints(3) if call.maybe(3) is not None else tuple(range(len(starts)))
        steps = call.ints(4) if call.maybe(4) is not None else (1,) * len(starts)
    cut = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        lowest = -x.shape[axis] - 1
        cut[axis] = slice(start, None if step < 0 and end <= lowest else end, step)
    return (np.ascontiguousarray(x[tuple(cut)]),)


def squeeze(call: Call) -> Results:
    axes = call.ints(1) if call.maybe(1) is not None else integers(call.node, "axes", None)
    return (np.squeeze(call.array(0), None if axes is None else tuple(axes)),)


def unsqueeze(call: Call) -> Results:
    axes = call.ints(1) if call.maybe(1) is not None else integers(call.node, "axes", ())
    return (np.expand_dims(call.array(0), tuple(axes)),)


def expand(call: Call) -> Results:
    x, shape = call.array(0), call.ints(1)
    if len(shape) > MOST_AXES:
        raise malformed(call.node, f"{len(shape)} axes")
    wanted = call.room(np.broadcast_shapes(x.shape, tuple(shape)), x.dtype)
    return (np.ascontiguousarray(np.broadcast_to(x, wanted)),)


def tile(call: Call) -> Results:
    x, times = call.array(0), call.ints(1)
    call.room([extent * count for extent, count in zip(x.shape, times, strict=True)], x.dtype)
    return (np.tile(x, times),)


def gather(call: Call) -> Results:
    x, axis = call.array(0), integer(call.node, "axis", 0)
    return (np.take(x, _indices(call, call.array(1), x.shape[axis]), axis),)


def gather_elements(call: Call) -> Results:
    x, axis = call.array(0), integer(call.node, "axis", 0)
    return (np.take_along_axis(x, _indices(call, call.array(1), x.shape[axis]), axis),)


def gather_nd(call: Call) -> Results:
    x, indices, batch = call.array(0), call.array(1).astype(np.int64), integer(call.node, "batch_dims", 0)
    lead = x.shape[:batch]
    depth = indices.shape[-1]
    flat = x.reshape(prod(lead), *x.shape[batch:])
    places = indices.reshape(prod(lead), -1, depth)
    rows = np.arange(len(flat))[:, None]
    found = flat[(rows, *(places[..., at] for at in range(depth)))]
    return (found.reshape(*indices.shape[:-1], *x.shape[batch + depth :]),)


def shape(call: Call) -> Results:
    found = call.array(0).shape
    start, end = integer(call.node, "start", 0), integer(call.node, "end", None)
    return (np.array(found[slice(start, end)], np.int64),)


def size(call: Call) -> Results:
    return (np.array(call.array(0).size, np.int64),)


def constant_of_shape(call: Call) -> Results:
    value = tensor(call.node, "value")
    fill = np.zeros(1, np.float32) if value is None else value.array()
    return (np.full(call.room(call.ints(0), fill.dtype), fill.reshape(-1)[0], fill.dtype),)


def range_(call: Call) -> Results:
    start, limit, delta = call.array(0), call.array(1), call.array(2)
    count = max(0, int(np.ceil((limit.astype(np.float64) - start.astype(np.float64)) / delta.astype(np.float64))))
    call.room((count,), np.dtype(np.int64))
    steps = np.arange(count).astype(start.dtype)
    return (np.asarray(np.add(start, np.multiply(steps, delta)), start.dtype),)


def where(call: Call) -> Results:
    return (np.where(call.array(0), call.array(1), call.array(2)),)


def equal(call: Call) -> Results:
    return (np.asarray(call.array(0) == call.array(1), np.bool_),)


def pad(call: Call) -> Results:
    x, mode = call.array(0), text(call.node, "mode", "constant")
    pads = call.ints(1) if call.maybe(1) is not None else integers(call.node, "pads", ())
    axes = call.ints(3) if call.maybe(3) is not None else tuple(range(x.ndim))
    widths = [(0, 0)] * x.ndim
    for at, axis in enumerate(axes):
        widths[axis] = (pads[at], pads[at + len(axes)])
    cut = tuple(slice(max(0, -low), x.shape[at] - max(0, -high)) for at, (low, high) in enumerate(widths))
    grown = [(max(0, low), max(0, high)) for low, high in widths]
    call.room([extent + low + high for extent, (low, high) in zip(x.shape, grown, strict=True)], x.dtype)
    if mode == "constant":
        fill = call.maybe(2)
        value = np.zeros((), x.dtype) if fill is None or not fill.size else fill.reshape(-1)[0]
        return (np.pad(x[cut], grown, constant_values=value),)
    return (np.pad(x[cut], grown, _PAD_MODES[mode]),)  # type: ignore[call-overload]


def reverse_sequence(call: Call) -> Results:
    x, lengths = call.array(0), call.ints(1)
    batch, time = integer(call.node, "batch_axis", 1), integer(call.node, "time_axis", 0)
    moved = np.moveaxis(x, (batch, time), (0, 1)).copy()
    for row, length in zip(moved, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return (np.ascontiguousarray(np.moveaxis(moved, (0, 1), (batch, time))),)


def scatter_elements(call: Call) -> Results:
    x, axis = call.array(0).copy(), integer(call.node, "axis", 0)
    places = _indices(call, call.array(1), x.shape[axis])
    at: list[Ints] = list(np.indices(places.shape, np.int64, sparse=True))
    at[axis] = places
    return (_put(call, x, tuple(at), call.array(2)),)


def scatter_nd(call: Call) -> Results:
    x, indices = call.array(0).copy(), call.array(1).astype(np.int64)
    return (_put(call, x, tuple(indices[..., at] for at in range(indices.shape[-1])), call.array(2)),)


def _put(call: Call, x: Array, at: tuple[Ints, ...], updates: Array) -> Array:
    how = text(call.node, "reduction", "none")
    if how == "none":
        x[at] = updates
    else:
        _REDUCTIONS[how].at(x, at, updates)
    return x


def _indices(call: Call, indices: Array, extent: int) -> Ints:
    found = indices.astype(np.int64)
    if found.size and (found.min() < -extent or found.max() >= extent):
        raise malformed(call.node, f"an index is outside an axis of {extent}")
    return found


_PAD_MODES = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}

HOST: dict[tuple[str, str], HostFunction] = {
    ("", "Reshape"): reshape,
    ("", "Flatten"): flatten,
    ("", "Transpose"): transpose,
    ("", "Concat"): concat,
    ("", "Split"): split,
    ("", "ConcatFromSequence"): concat_sequence,
    ("", "SplitToSequence"): split_to_sequence,
    ("", "Slice"): slice_,
    ("", "Squeeze"): squeeze,
    ("", "Unsqueeze"): unsqueeze,
    ("", "Expand"): expand,
    ("", "Tile"): tile,
    ("", "Gather"): gather,
    ("", "GatherElements"): gather_elements,
    ("", "GatherND"): gather_nd,
    ("", "Shape"): shape,
    ("", "Size"): size,
    ("", "ConstantOfShape"): constant_of_shape,
    ("", "Range"): range_,
    ("", "Where"): where,
    ("", "Equal"): equal,
    ("", "Pad"): pad,
    ("", "ReverseSequence"): reverse_sequence,
    ("", "Scatter"): scatter_elements,
    ("", "ScatterElements"): scatter_elements,
    ("", "ScatterND"): scatter_nd,
}
