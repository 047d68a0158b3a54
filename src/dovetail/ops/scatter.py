"""Elements written where data says. Several may reach one place: they are joined, or the last one stays.

The last is found first: ``last`` keeps, for each place, the number of the last update that reaches it; then every
element reads its update back, or what it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import ZERO, constant, variable
from dovetail.ops.lookup import from_end, nd_places, nd_rows, need_integers, need_within
from dovetail.ops.text import Grid, axis_of, elements, grid, need_rank, need_shape, same_dtype, text

_JOINS = {"add": "+=", "mul": "*=", "max": "max=", "min": "min="}


def scatter_elements(x: Type, indices: Type, updates: Type, *, axis: int = 0, reduction: str = "none") -> str:
    """x with ``updates`` put at ``indices`` along ``axis``, at their own places in the other axes."""
    at = axis_of(axis, x.rank)
    need_integers(indices)
    need_rank("indices", indices, x.rank, x.rank)
    need_shape("updates", updates, indices.shape)
    need_within(indices, x, at)
    i, g = grid(indices.shape, "i"), grid(x.shape)
    places = text(
        f"temp place: i64[{i.shape}]",
        f"for {i.loops}: place[{i.index}] = {from_end(f'indices[{i.index}]', x.shape[at])}",
    )
    written = [f"place[{i.index}]" if dim == at else name for dim, name in enumerate(i.names)]
    if reduction != "none":
        return text(places, _joined(x, updates, i, written, reduction))
    if ZERO in indices.shape:
        return _unchanged(x)
    same_dtype(x, updates)
    reached = Grid(g.names, tuple(x.shape[dim] if dim == at else n for dim, n in enumerate(indices.shape)))
    last = f"last[{g.index}]"
    return text(
        places,
        f"temp last: i64[{reached.shape}]  temp found: i64[{reached.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {i.loops}: last[{', '.join(written)}] max= {i.names[at]}",
        f"for {reached.loops}: found[{g.index}] = max({last}, 0)",
        f"for {reached.loops}: y[{g.index}] = "
        f"select({last} < 0, x[{g.index}], {g.at('updates', {at: f'found[{g.index}]'})})",
        *_beyond(x, reached),
    )


def scatter_nd(x: Type, indices: Type, updates: Type, *, reduction: str = "none") -> str:
    """x with slices ``updates`` put where the last axis of ``indices`` says."""
    rows, depth = nd_rows(x, indices)
    rest = grid(x.shape[depth:], "s")
    need_shape("updates", updates, (*rows.extents, *rest.extents))
    same_dtype(x, updates)
    written = [f"place{k}[{rows.index}]" for k in range(depth)]
    places = nd_places(x, indices, rows, 0, depth)
    if reduction != "none":
        points = Grid((*rows.names, *rest.names), (*rows.extents, *rest.extents))
        return text(places, _joined(x, updates, points, [*written, *rest.names], reduction))
    if ZERO in updates.shape:
        return _unchanged(x)
    outer = grid(x.shape[:depth])
    every = Grid((*outer.names, *rest.names), x.shape)
    back, number = _numbered(rows, f"found[{outer.index}]")
    return text(
        places,
        f"temp last: i64[{outer.shape}]  temp found: i64[{outer.shape}]  out y: {x.dtype}[{every.shape}]",
        f"for {rows.loops}: last[{', '.join(written)}] max= {number}",
        f"for {outer.loops}: found[{outer.index}] = max(last[{outer.index}], 0)",
        f"for {every.loops}: y[{every.index}] = "
        f"select(last[{outer.index}] < 0, x[{every.index}], updates[{', '.join((*back, *rest.names))}])",
    )


def unpool(x: Type, indices: Type, *, shape: Ints) -> str:
    """Zeros of ``shape`` with the elements of x at ``indices``, which count in row-major order."""
    need_integers(indices)
    need_shape("indices", indices, x.shape)
    if ZERO in x.shape:
        raise OperatorError(f"{x} has no elements to put back")
    whole, g = grid(tuple(map(constant, shape))), grid(x.shape, "i")
    place, written, step = f"indices[{g.index}]", [], elements(whole.extents).const
    for number, extent in enumerate(shape):
        step //= max(extent, 1)
        part = f"{place} // {max(step, 1)}"
        written.append(part if number == 0 else f"({part}) % {max(extent, 1)}")
    back, count = _numbered(g, f"found[{whole.index}]")
    return text(
        f"temp last: i64[{whole.shape}]  temp found: i64[{whole.shape}]  out y: {x.dtype}[{whole.shape}]",
        f"for {g.loops}: last[{', '.join(written)}] max= {count}",
        f"for {whole.loops}: found[{whole.index}] = max(last[{whole.index}], 0)",
        f"for {whole.loops}: y[{whole.index}] = select(last[{whole.index}] < 0, 0, x[{', '.join(back)}])",
    )


def _joined(x: Type, updates: Type, points: Grid, written: Sequence[str], reduction: str) -> str:
    """All updates of an element and itself, by one operation."""
    same_dtype(x, updates)
    if reduction not in _JOINS:
        raise OperatorError(f"scatter cannot join by '{reduction}'", hint=f"one of none, {', '.join(_JOINS)}")
    g, op = grid(x.shape), _JOINS[reduction]
    return text(
        f"out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: y[{g.index}] {op} x[{g.index}]",
        f"for {points.loops}: y[{', '.join(written)}] {op} updates[{points.index}]",
    )


def _unchanged(x: Type) -> str:
    g = grid(x.shape)
    return text(f"out y: {x.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = x[{g.index}]")


def _beyond(x: Type, reached: Grid) -> list[str]:
    """Copies of what no index can reach: what is outside in one axis, inside in earlier and anywhere in later ones."""
    lines = []
    for dim, (inside, extent) in enumerate(zip(reached.extents, x.shape, strict=True)):
        if inside == extent:
            continue
        loops = Grid(reached.names, (*reached.extents[:dim], extent - inside, *x.shape[dim + 1 :]))
        place = loops.at("", {dim: variable(loops.names[dim]) + inside})
        lines.append(f"for {loops.loops}: y{place} = x{place}")
    return lines


def _numbered(points: Grid, found: str) -> tuple[list[str], str]:
    """The indices of the point whose number in row-major order is ``found``, and the number of a point."""
    back: list[str] = []
    number, step = constant(0), 1
    for name, extent in zip(reversed(points.names), reversed(points.extents), strict=True):
        if not extent.is_constant:
            raise OperatorError(f"an extent of {extent} updates is known at run time only")
        part = found if step == 1 else f"{found} // {step}"
        back.insert(0, part if name == points.names[0] else f"({part}) % {extent}")
        number += variable(name) * step
        step *= extent.const
    return back, str(number) if points.names else "i64(0)"


OPERATORS = operators(scatter_elements, scatter_nd, unpool)
