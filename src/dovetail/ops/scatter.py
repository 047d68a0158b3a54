"""Elements written where data says. Several may reach one place: they are joined, or the last one stays.

"last" keeps, for each place, the number of the last update that reaches it; who wants it reads the update back.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import Index, constant, variable
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
    i = grid(indices.shape, "i")
    places = text(
        f"temp place: i64[{i.shape}]",
        f"for {i.loops}: place[{i.index}] = {from_end(f'indices[{i.index}]', x.shape[at])}",
    )
    written = [f"place[{i.index}]" if dim == at else name for dim, name in enumerate(i.names)]
    return text(places, _scattered(x, updates, i, written, reduction))


def scatter_nd(x: Type, indices: Type, updates: Type, *, reduction: str = "none") -> str:
    """x with slices ``updates`` put where the last axis of ``indices`` says."""
    rows, depth = nd_rows(x, indices)
    rest = grid(x.shape[depth:], "s")
    need_shape("updates", updates, (*rows.extents, *rest.extents))
    points = Grid((*rows.names, *rest.names), (*rows.extents, *rest.extents))
    written = [*(f"place{k}[{rows.index}]" for k in range(depth)), *rest.names]
    return text(nd_places(x, indices, rows, 0, depth), _scattered(x, updates, points, written, reduction))


def unpool(x: Type, indices: Type, *, shape: Ints) -> str:
    """Zeros of ``shape`` with the elements of x at ``indices``, which count in row-major order."""
    need_integers(indices)
    need_shape("indices", indices, x.shape)
    whole = Type(x.dtype, tuple(map(constant, shape)))
    g = grid(x.shape, "i")
    place, written, step = f"indices[{g.index}]", [], elements(whole.shape).const
    for number, extent in enumerate(shape):
        step //= max(extent, 1)
        part = f"{place} // {max(step, 1)}"
        written.append(part if number == 0 else f"({part}) % {max(extent, 1)}")
    return _latest(whole, x, "x", g, written, "0")


def _scattered(x: Type, updates: Type, points: Grid, written: Sequence[str], reduction: str) -> str:
    same_dtype(x, updates)
    g = grid(x.shape)
    if reduction == "none":
        return _latest(x, updates, "updates", points, written, f"x[{g.index}]")
    if reduction not in _JOINS:
        raise OperatorError(f"scatter cannot join by '{reduction}'", hint=f"one of none, {', '.join(_JOINS)}")
    op = _JOINS[reduction]
    return text(
        f"out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: y[{g.index}] {op} x[{g.index}]",
        f"for {points.loops}: y[{', '.join(written)}] {op} updates[{points.index}]",
    )


def _latest(x: Type, updates: Type, name: str, points: Grid, written: Sequence[str], otherwise: str) -> str:
    """The last update that reaches an element, or ``otherwise``."""
    g = grid(x.shape)
    if any(extent == constant(0) for extent in updates.shape):
        return text(f"out y: {x.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = {otherwise}")
    steps: list[int] = []
    for extent in reversed(updates.shape):
        steps.insert(0, elements(updates.shape[len(updates.shape) - len(steps) :]).const)
        if not extent.is_constant:
            raise OperatorError(f"updates are {updates}: how many there are is known at run time only")
    number = sum((variable(n) * step for n, step in zip(points.names, steps, strict=True)), constant(0))
    found = f"found[{g.index}]"
    back = [
        _part(found, step, extent, first=dim == 0)
        for dim, (step, extent) in enumerate(zip(steps, updates.shape, strict=True))
    ]
    return text(
        f"temp last: i64[{g.shape}]  temp found: i64[{g.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {points.loops}: last[{', '.join(written)}] max= {number if points.names else 'i64(0)'}",
        f"for {g.loops}: {found} = max(last[{g.index}], 0)",
        f"for {g.loops}: y[{g.index}] = select(last[{g.index}] < 0, {otherwise}, {name}[{', '.join(back)}])",
    )


def _part(place: str, step: int, extent: Index, first: bool) -> str:
    part = place if step == 1 else f"{place} // {step}"
    return part if first else f"({part}) % {extent}"


OPERATORS = operators(scatter_elements, scatter_nd, unpool)
