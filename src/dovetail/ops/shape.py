"""Operators that move elements: axes exchanged, split and joined, tensors cut and put together."""

from __future__ import annotations

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import SmallTensor, Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import ONE, ZERO, Index, constant
from dovetail.ops.reshape import reshaped
from dovetail.ops.text import Grid, axes_of, axis_of, broadcast, declare, elements, grid, same_dtype, text

_MOST_VALUES = 256


def transpose(x: Type, *, perm: Ints | None = None) -> str:
    """Axis ``perm[k]`` of x becomes axis k; all axes backwards where no order is given."""
    order = tuple(reversed(range(x.rank))) if perm is None else perm
    if sorted(order) != list(range(x.rank)):
        raise OperatorError(f"perm {order} is not an order of the {x.rank} axes of {x}")
    g = grid(x.shape)
    out = Grid(tuple(g.names[k] for k in order), tuple(g.extents[k] for k in order))
    return text(f"out y: {x.dtype}[{out.shape}]", f"for {out.loops}: y[{out.index}] = x[{g.index}]")


def reshape(x: Type, *, shape: Ints, allow_zero: int = 0) -> str:
    """The same elements in row-major order; -1 stands for what is left, 0 for the extent that is there (or 0)."""
    if allow_zero and -1 not in shape:
        return reshaped(x, tuple(map(constant, shape)))
    return reshaped(x, _wanted(x, shape))


def flatten(x: Type, *, axis: int = 1) -> str:
    """Two axes: all before ``axis``, and all from it on."""
    at = x.rank if axis == x.rank else axis_of(axis, x.rank)
    return reshaped(x, (elements(x.shape[:at]), elements(x.shape[at:])))


def squeeze(x: Type, *, axes: Ints | None = None) -> str:
    """Axes of extent 1 left out: these, or all such."""
    gone = axes_of(axes, x.rank) if axes is not None else tuple(d for d, e in enumerate(x.shape) if e == ONE)
    for dim in gone:
        if x.shape[dim] != ONE:
            raise OperatorError(f"axis {dim} of {x} has extent {x.shape[dim]}, not 1")
    return reshaped(x, tuple(e for dim, e in enumerate(x.shape) if dim not in gone))


def unsqueeze(x: Type, *, axes: Ints) -> str:
    """Axes of extent 1 put in; ``axes`` are those of the result."""
    rank = x.rank + len(axes)
    new, rest = axes_of(axes, rank), iter(x.shape)
    return reshaped(x, tuple(ONE if dim in new else next(rest) for dim in range(rank)))


def expand(x: Type, *, shape: Ints) -> str:
    """Axes of extent 1 repeated; -1 keeps an extent."""
    if len(shape) < x.rank:
        raise OperatorError(f"shape {shape} has fewer axes than {x}")
    front = len(shape) - x.rank
    kept = [x.shape[dim - front] if n == -1 and dim >= front else constant(n) for dim, n in enumerate(shape)]
    out = grid(broadcast(x, Type(x.dtype, tuple(kept))))
    return text(f"out y: {x.dtype}[{out.shape}]", f"for {out.loops}: y[{out.index}] = {out.read('x', x)}")


def concat(*x: Type, axis: int) -> str:
    """One behind the other along ``axis``."""
    at, first = axis_of(axis, x[0].rank), x[0]
    same_dtype(*x)
    for t in x[1:]:
        if t.rank != first.rank or any(
            a != b for k, (a, b) in enumerate(zip(t.shape, first.shape, strict=True)) if k != at
        ):
            raise OperatorError(f"{first} and {t} differ in more than axis {at}")
    offset, lines = ZERO, []
    for number, t in enumerate(x):
        g = grid(t.shape)
        lines.append(f"for {g.loops}: {g.at('y', {at: g.variables()[at] + offset})} = x{number}[{g.index}]")
        offset += t.shape[at]
    return text(f"out {declare('y', first.dtype, (*first.shape[:at], offset, *first.shape[at + 1 :]))}", *lines)


def split(x: Type, *, sizes: Ints, axis: int = 0) -> str:
    """As many results as ``sizes``, which say how much of ``axis`` each has."""
    at = axis_of(axis, x.rank)
    if min((*sizes, 0)) < 0 or constant(sum(sizes)) != x.shape[at]:
        raise OperatorError(f"sizes {sizes} do not make up axis {at} of {x}", why=f"its extent is {x.shape[at]}")
    offset, lines = 0, []
    for number, size in enumerate(sizes):
        g = grid((*x.shape[:at], constant(size), *x.shape[at + 1 :]))
        lines.append(f"out y{number}: {x.dtype}[{g.shape}]")
        lines.append(f"for {g.loops}: y{number}[{g.index}] = {g.at('x', {at: g.variables()[at] + offset})}")
        offset += size
    return text(*lines)


def slice_(x: Type, *, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None) -> str:
    """Every ``step``-th element from start to before end, as Python slices count."""
    at = tuple(range(len(starts))) if axes is None else axes
    by = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(at) == len(by):
        raise OperatorError(f"starts {starts}, ends {ends}, axes {at} and steps {by} are not as many")
    axes_of(at, x.rank)
    shape, places = list(x.shape), {}
    for start, end, axis, step in zip(starts, ends, at, by, strict=True):
        dim = axis_of(axis, x.rank)
        first, shape[dim] = _cut(x.shape[dim], start, end, step)
        places[dim] = grid(x.shape).variables()[dim] * step + first
    g = grid(shape)
    return text(f"out y: {x.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = {g.at('x', dict(places))}")


def constant_(*, value: SmallTensor) -> str:
    """A few numbers as a tensor."""
    shape = tuple(map(constant, value.shape))
    if elements(shape).const != len(value.values) or len(value.values) > _MOST_VALUES:
        raise OperatorError(
            f"{len(value.values)} values for a tensor of shape {list(value.shape)}", why=f"at most {_MOST_VALUES}"
        )
    lines = [f"out y: {value.dtype}[{', '.join(map(str, value.shape))}]"]
    for number, element in enumerate(value.values):
        index: list[str] = []
        rest = number
        for extent in reversed(value.shape):
            index.insert(0, str(rest % extent))
            rest //= extent
        lines.append(f"y[{', '.join(index)}] = {element!r}")
    return text(*lines)


def _wanted(x: Type, shape: Ints) -> tuple[Index, ...]:
    """Numbers for 0 and -1."""
    if shape.count(-1) > 1 or min((*shape, 0)) < -1:
        raise OperatorError(f"shape {shape} leaves more than one extent open")
    if any(n == 0 and dim >= x.rank for dim, n in enumerate(shape)):
        raise OperatorError(f"shape {shape} keeps an axis that {x} does not have")
    kept = [x.shape[dim] if n == 0 else constant(n) for dim, n in enumerate(shape)]
    if -1 not in shape:
        return tuple(kept)
    rest = list(x.shape)
    factor = 1
    for dim, extent in enumerate(kept):
        if extent in rest and not extent.is_constant:
            rest.remove(extent)
        elif dim != shape.index(-1):
            factor *= extent.const
    total = elements(tuple(rest))
    if factor == 0 or total % factor != ZERO:
        raise OperatorError(f"the elements of {x} cannot be cut into shape {shape}")
    kept[shape.index(-1)] = total // factor
    return tuple(kept)


def _cut(extent: Index, start: int, end: int, step: int) -> tuple[Index, Index]:
    """The first index and the number of elements of a slice."""
    if step == 0:
        raise OperatorError("a slice with step 0")
    if extent.is_constant:
        kept = range(extent.const)[start:end:step]
        return constant(kept.start), constant(len(kept))
    if step < 0:
        raise OperatorError(f"a run-time extent, {extent}, cannot be walked backwards")
    first = constant(start) if start >= 0 else extent + start
    stop = extent if end > _FAR else constant(end) if end >= 0 else extent + end
    return first, (stop - first + (step - 1)) // step


_FAR = 2**31 - 1
"""An end beyond every extent means the end of the axis."""

OPERATORS = operators(transpose, reshape, flatten, squeeze, unsqueeze, expand, concat, split, slice_, constant_)
