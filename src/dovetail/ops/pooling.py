"""The largest or the mean of each window of ``x[n, c, ...]``; ``pads`` are all before, then all behind."""

from __future__ import annotations

from math import prod

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import variable
from dovetail.ops.text import Grid, accumulator, count, elements, grid, need_rank, summed, text
from dovetail.ops.window import Slide, extents, places, slides, taps


def max_pool(
    x: Type, *, kernel: Ints, strides: Ints = (), pads: Ints = (), dilations: Ints = (), ceil_mode: int = 0
) -> str:
    """Padding is never the largest."""
    parts, out = _over(x, kernel, strides, pads, dilations, ceil_mode)
    where = _inside(parts, out)
    value = f"x[n, c, {places(parts)}]"
    return summed(x.dtype, out, taps(parts).loops, value, op="max=", where=", ".join(where))


def max_pool_indices(
    x: Type,
    *,
    kernel: Ints,
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    ceil_mode: int = 0,
    column_major: int = 0,
) -> str:
    """The largest of each window, and which element of x it is, the first if there are several.

    Elements are counted in row-major order, or with the spatial axes backwards.
    """
    parts, out = _over(x, kernel, strides, pads, dilations, ceil_mode)
    conditions = ", ".join(_inside(parts, out))
    where = f" where {conditions}" if conditions else ""
    element = f"x[n, c, {places(parts)}]"
    place = variable("n") * elements(x.shape[1:]).const + variable("c") * elements(x.shape[2:]).const
    for part, step in zip(parts, _steps(x), strict=True):
        place += part.place * step
    found = f"{element} == y[{out.index}]"
    if x.dtype.is_float:
        found = f"({found}) | isnan({element})"
    first = f"first[{out.index}]"
    loops = f"{out.loops}, {taps(parts).loops}"
    return text(
        f"temp first: i64[{out.shape}]  out y: {x.dtype}[{out.shape}]  out indices: i64[{out.shape}]",
        f"for {loops}{where}: y[{out.index}] max= {element}",
        f"for {loops}{where}: {first} min= select({found}, {place}, {elements(x.shape)})",
        f"for {out.loops}: indices[{out.index}] = {_backwards(x, first) if column_major else first}",
    )


def lp_pool(
    x: Type,
    *,
    kernel: Ints,
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    ceil_mode: int = 0,
    p: int = 2,
) -> str:
    """The ``p``-norm of each window; padding counts as 0."""
    parts, out = _over(x, kernel, strides, pads, dilations, ceil_mode)
    power, root = norm_forms(p)
    value = power.format(x=f"x[n, c, {places(parts)}]")
    return summed(x.dtype, out, taps(parts).loops, value, root, where=", ".join(_inside(parts, out)))


def average_pool(
    x: Type,
    *,
    kernel: Ints,
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> str:
    """The sum of a window, divided by how many of its places lie in the input (or in the padding around it)."""
    parts, out = _over(x, kernel, strides, pads, dilations, ceil_mode)
    where = ", ".join(_inside(parts, out))
    value = f"x[n, c, {places(parts)}]"
    counted = _inside(parts, out, padded=bool(count_include_pad))
    if not counted:
        return summed(x.dtype, out, taps(parts).loops, value, f"{{t}} / {float(prod(kernel))}", where=where)
    wide, spatial = accumulator(x.dtype), out.without((0, 1))
    return text(
        f"temp counted: {wide}[{spatial.shape}]",
        f"for {spatial.loops}, {taps(parts).loops} where {', '.join(counted)}: counted[{spatial.index}] += 1.0",
        summed(x.dtype, out, taps(parts).loops, value, f"{{t}} / counted[{spatial.index}]", where=where),
    )


def global_average_pool(x: Type) -> str:
    """The mean over all spatial axes, which stay with extent 1."""
    need_rank("x", x, 3)
    g = grid(x.shape)
    out, inner = g.keep((0, 1)), g.without((0, 1))
    index = ", ".join((*out.names, *("0" for _ in inner.names)))
    shape = ", ".join((out.shape, *("1" for _ in inner.names)))
    wide = accumulator(x.dtype)
    return text(
        f"temp total: {wide}[{out.shape}]",
        f"out y: {x.dtype}[{shape}]",
        f"for {g.loops}: total[{out.index}] += x[{g.index}]",
        f"for {out.loops}: y[{index}] = total[{out.index}] / ({count(inner.extents, wide)})",
    )


def _over(
    x: Type, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints, ceil_mode: int
) -> tuple[list[Slide], Grid]:
    """How windows slide over the spatial axes of ``x``, and the loops over all of them."""
    need_rank("x", x, 3, 5)
    parts = slides(x.shape[2:], extents(kernel), strides, pads, dilations)
    counts = tuple(part.count(bool(ceil_mode)) for part in parts)
    return parts, Grid(("n", "c", *(part.out for part in parts)), (*x.shape[:2], *counts))


def norm_forms(p: int) -> tuple[str, str]:
    """What is summed for a ``p``-norm, of ``{x}``, and what becomes of the sum ``{t}``."""
    if p < 1:
        raise OperatorError(f"there is no {p}-norm")
    forms = {1: ("abs({x})", "{t}"), 2: ("{x} * {x}", "sqrt({t})")}
    return forms.get(p, (f"pow(abs({{x}}), {float(p)})", f"pow({{t}}, {1 / p!r})"))


def _steps(x: Type) -> list[int]:
    """How many elements lie between neighbours along each spatial axis."""
    return [elements(x.shape[dim + 1 :]).const for dim in range(2, x.rank)]


def _backwards(x: Type, place: str) -> str:
    """An element's number in row-major order -> its number with the spatial axes backwards."""
    size = elements(x.shape[2:]).const
    total, factor = f"{place} // {size} * {size}", 1
    for extent, step in zip(x.shape[2:], _steps(x), strict=True):
        total += f" + {place} // {step} % {extent} * {factor}"
        factor *= extent.const
    return total


def _inside(parts: list[Slide], out: Grid, padded: bool = False) -> list[str]:
    """Conditions under which a place is in the input, or with ``padded`` in the padding around it."""
    found: list[str] = []
    for part, windows in zip(parts, out.extents[2:], strict=True):
        found += part.inside(windows, *((part.before, part.after) if padded else ()))
    return found


OPERATORS = operators(max_pool, max_pool_indices, lp_pool, average_pool, global_average_pool)
