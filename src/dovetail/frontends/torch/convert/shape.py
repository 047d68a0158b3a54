"""Views and moves: axes exchanged, cut, joined and repeated, tensors put together, and tensors of one value."""

from __future__ import annotations

import numpy as np

from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.context import Context, Conversion, Results

_FAR = 2**31 - 1


def view(context: Context, call: Call) -> Results:
    """The same elements in the shape PyTorch gives."""
    name = "self" if "self" in call.arguments else "a"
    return (context.reshape(call.tensor(name), call.shape),)


def expand(context: Context, call: Call) -> Results:
    return (context.expand(call.tensor("self"), call.shape),)


def broadcast_in_dim(context: Context, call: Call) -> Results:
    """Axis k of the operand becomes axis ``broadcast_dimensions[k]``; the others are new."""
    a = call.tensor("a")
    shape = [1] * len(call.shape)
    for extent, dim in zip(context.shape(a), call.ints("broadcast_dimensions"), strict=True):
        shape[dim] = extent
    return (context.expand(context.reshape(a, shape), call.shape),)


def permute(context: Context, call: Call) -> Results:
    """``dims``, ``permutation``, or all axes backwards."""
    x = call.tensor("self" if "self" in call.arguments else "a")
    rank = context.rank(x)
    named = next((name for name in ("dims", "permutation") if name in call.arguments), None)
    order = tuple(reversed(range(rank))) if named is None else tuple(dim % rank for dim in call.ints(named))
    return (transposed(context, x, order),)


def transpose(context: Context, call: Call) -> Results:
    x = call.tensor("self")
    order = list(range(context.rank(x)))
    if order:
        a, b = (call.whole(name) for name in ("dim0", "dim1"))
        order[a], order[b] = order[b], order[a]
    return (transposed(context, x, tuple(order)),)


def transposed(context: Context, x: str, order: tuple[int, ...]) -> str:
    return x if order == tuple(range(len(order))) else context.node("transpose", x, perm=order)


def slice_(context: Context, call: Call) -> Results:
    x = call.tensor("self")
    start, end, step = (call.maybe_number(name) for name in ("start", "end", "step"))
    low, high = int(start or 0), _FAR if end is None else min(int(end), _FAR)
    return (cut(context, x, call.whole("dim"), low, high, int(step or 1)),)


def cut(context: Context, x: str, dim: int, start: int, end: int, step: int = 1) -> str:
    """``x[..., start:end:step, ...]`` along ``dim``."""
    extent = context.shape(x)[dim]
    if range(extent)[start:end:step] == range(extent):
        return x
    return context.node("slice", x, starts=(start,), ends=(end,), axes=(dim,), steps=(step,))


def select(context: Context, call: Call) -> Results:
    x, dim = call.tensor("self"), call.whole("dim")
    place = call.whole("index") % context.shape(x)[dim]
    return (context.reshape(cut(context, x, dim, place, place + 1), call.shape),)


def flip(context: Context, call: Call) -> Results:
    x = call.tensor("self")
    dims = tuple(dim % max(context.rank(x), 1) for dim in call.ints("dims"))
    dims = tuple(dim for dim in dims if context.rank(x))
    if not dims:
        return (x,)
    count = len(dims)
    backwards = {"starts": (-1,) * count, "ends": (-_FAR,) * count, "axes": dims, "steps": (-1,) * count}
    return (context.node("slice", x, **backwards),)


def concat(context: Context, call: Call) -> Results:
    """Old empty tensors of one axis are left out, as PyTorch does."""
    found = call.tensors("tensors")
    rank = len(call.shape)
    kept = [context.cast(name, call.dtype) for name in found if context.rank(name) == rank]
    kept = [name for name in kept if 0 not in context.shape(name)]
    dim = call.whole("dim") % rank
    return (kept[0] if len(kept) == 1 else context.node("concat", *kept, axis=dim),)


def split(context: Context, call: Call) -> Results:
    x, dim = call.tensor("self"), call.whole("dim")
    extent = context.shape(x)[dim]
    sizes = call.ints("split_sizes" if "split_sizes" in call.arguments else "split_size")
    if "split_size" in call.arguments:
        sizes = tuple(min(sizes[0], extent - at) for at in range(0, extent, sizes[0]))
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return tuple(
        (
            context.reshape(x, (*context.shape(x)[:dim], 0, *context.shape(x)[dim:][1:]))
            if not size
            else cut(context, x, dim, start, start + size)
        )
        if needed
        else None
        for start, size, needed in zip(starts, sizes, call.needed, strict=True)
    )


def unbind(context: Context, call: Call) -> Results:
    x, dim = call.tensor("self"), call.whole("dim")
    shape = tuple(extent.const for extent in call.results[0].shape)
    return tuple(
        context.reshape(cut(context, x, dim, place, place + 1), shape) if needed else None
        for place, needed in enumerate(call.needed)
    )


def repeat(context: Context, call: Call) -> Results:
    """As many copies along each axis: a new axis before each, stretched, then joined with it."""
    x, counts = call.tensor("self"), call.ints("repeats")
    shape = (1,) * (len(counts) - context.rank(x)) + context.shape(x)
    apart = tuple(part for extent in shape for part in (1, extent))
    wide = tuple(part for extent, count in zip(shape, counts, strict=True) for part in (count, extent))
    return (context.reshape(context.expand(context.reshape(x, apart), wide), call.shape),)


def diagonal(context: Context, call: Call) -> Results:
    """The two axes are put last and joined; the diagonal is every (columns + 1)-th element of them."""
    x, offset = call.tensor("self"), call.whole("offset")
    rank = context.rank(x)
    first, second = call.whole("dim1") % rank, call.whole("dim2") % rank
    rest = tuple(dim for dim in range(rank) if dim not in (first, second))
    moved = transposed(context, x, (*rest, first, second))
    rows, columns = context.shape(moved)[-2:]
    start = offset if offset >= 0 else -offset * columns
    flat = context.reshape(moved, (*context.shape(moved)[:-2], rows * columns))
    end = start + (call.shape[-1] - 1) * (columns + 1) + 1
    return (cut(context, flat, len(rest), start, end, columns + 1),)


def unfold(context: Context, call: Call) -> Results:
    """Windows along an axis; places in a window are a new last axis."""
    x, size, step = call.tensor("self"), call.whole("size"), call.whole("step")
    if not context.rank(x):
        return (context.reshape(x, call.shape),)
    dim = call.whole("dimension") % context.rank(x)
    starts = np.arange(call.shape[dim], dtype=np.int64)[:, None] * step
    found = context.node("gather", x, context.constant(starts + np.arange(size, dtype=np.int64)), axis=dim)
    rank = context.rank(found)
    return (transposed(context, found, (*range(dim + 1), *range(dim + 2, rank), dim + 1)),)


def pad(context: Context, call: Call) -> Results:
    """``pad`` counts from the last axis; a negative number cuts."""
    x, pads = call.tensor("self"), call.ints("pad")
    rank = context.rank(x)
    before, after = [0] * rank, [0] * rank
    for number, (low, high) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        dim = rank - 1 - number
        x = cut(context, x, dim, max(-low, 0), context.shape(x)[dim] - max(-high, 0))
        before[dim], after[dim] = max(low, 0), max(high, 0)
    if not any((*before, *after)):
        return (x,)
    if 0 in context.shape(x):
        return (context.expand(context.scalar(call.number("value"), call.dtype), call.shape),)
    return (context.node("pad", x, pads=(*before, *after), value=call.real("value")),)


def full(context: Context, call: Call) -> Results:
    """One value everywhere."""
    name = next(name for name in ("fill_value", "value", "s") if name in call.arguments)
    value = call.tensor(name) if call.is_tensor(name) else context.scalar(call.number(name), call.dtype)
    return (context.expand(context.cast(value, call.dtype), call.shape),)


def filled(value: int) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        return (context.expand(context.scalar(value, call.dtype), call.shape),)

    return convert


_VIEWS = ("view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "view_copy", "squeeze_copy", "unsqueeze_copy")
_OF_DIMS = ("default", "dim", "dims")
_ZEROS = ("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")

CONVERSIONS: dict[str, Conversion] = {
    **{f"aten.{name}.{overload}": view for name in _VIEWS for overload in _OF_DIMS},
    **{f"aten.{name}.default": permute for name in ("permute", "t", "numpy_T", "permute_copy")},
    **{f"aten.{name}.int": found for name, found in (("transpose", transpose), ("transpose_copy", transpose))},
    **{f"aten.{name}": filled(0) for name in (f"{op}.default" for op in _ZEROS)},
    **{f"aten.{name}.default": filled(1) for name in ("ones", "ones_like", "new_ones")},
    "aten.empty.memory_format": filled(0),
    "aten.empty_permuted.default": filled(0),
    "prims.empty_permuted.default": filled(0),
    "prims.empty_strided.default": filled(0),
    "aten.expand.default": expand,
    "aten.expand_copy.default": expand,
    "prims.broadcast_in_dim.default": broadcast_in_dim,
    "prims.transpose.default": permute,
    "prims.split_dim.default": view,
    "prims.collapse_view.default": view,
    "aten.slice.Tensor": slice_,
    "aten.slice_copy.Tensor": slice_,
    "aten.select.int": select,
    "aten.select_copy.int": select,
    "aten.flip.default": flip,
    "aten.cat.default": concat,
    "aten.split.Tensor": split,
    "aten.split_with_sizes.default": split,
    "aten.unbind.int": unbind,
    "aten.repeat.default": repeat,
    "aten.diagonal.default": diagonal,
    "aten.diagonal_copy.default": diagonal,
    "aten.unfold.default": unfold,
    "aten.constant_pad_nd.default": pad,
    "aten.full.default": full,
    "aten.full_like.default": full,
    "aten.new_full.default": full,
    "aten.scalar_tensor.default": full,
    "aten.fill.Scalar": full,
    "aten.fill.Tensor": full,
}
