"""Operators whose indices are data. What leaves the tensor is found out when the program runs."""

from __future__ import annotations

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ir.index import ZERO, Index
from dovetail.ops.text import Grid, axis_of, grid, need_rank, need_shape, same_dtype, text


def gather(x: Type, indices: Type, *, axis: int = 0) -> str:
    """Slices of x along ``axis``, at ``indices``; a negative one counts from the end."""
    at = axis_of(axis, x.rank)
    need_integers(indices)
    g, i = grid(x.shape), grid(indices.shape, "i")
    shape = ", ".join(map(str, (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])))
    index = ", ".join((*g.names[:at], *i.names, *g.names[at + 1 :]))
    rest = g.without((at,))
    loops = ", ".join(part for part in (rest.loops, i.loops) if part)
    return text(
        f"temp place: i64[{i.shape}]  out y: {x.dtype}[{shape}]",
        f"for {i.loops}: place[{i.index}] = {from_end(f'indices[{i.index}]', x.shape[at])}",
        f"for {loops}: y[{index}] = {g.at('x', {at: f'place[{i.index}]'})}",
    )


def gather_elements(x: Type, indices: Type, *, axis: int = 0) -> str:
    """One element of x for each of ``indices``, which says where along ``axis``; elsewhere the places are the same."""
    at = axis_of(axis, x.rank)
    need_integers(indices)
    need_rank("indices", indices, x.rank, x.rank)
    need_within(indices, x, at)
    i = grid(indices.shape)
    return text(
        f"temp place: i64[{i.shape}]  out y: {x.dtype}[{i.shape}]",
        f"for {i.loops}: place[{i.index}] = {from_end(f'indices[{i.index}]', x.shape[at])}",
        f"for {i.loops}: y[{i.index}] = {i.at('x', {at: f'place[{i.index}]'})}",
    )


def gather_nd(x: Type, indices: Type, *, batch_dims: int = 0) -> str:
    """The last axis of ``indices`` is a place in x, behind the ``batch_dims`` axes that both have; slices follow."""
    rows, depth = nd_rows(x, indices, batch_dims)
    rest = grid(x.shape[batch_dims + depth :], "s")
    batch = rows.names[:batch_dims]
    places = [f"place{k}[{rows.index}]" for k in range(depth)]
    read = ", ".join((*batch, *places, *rest.names))
    index = ", ".join((*rows.names, *rest.names))
    shape = ", ".join(map(str, (*rows.extents, *rest.extents)))
    loops = ", ".join(part for part in (rows.loops, rest.loops) if part)
    return text(
        nd_places(x, indices, rows, batch_dims, depth),
        f"out y: {x.dtype}[{shape}]",
        f"for {loops}: y[{index}] = x[{read}]",
    )


def embedding(table: Type, rows: Type) -> str:
    """Rows of ``table``; a row that is not there is an error."""
    need_rank("table", table, 2, 2)
    need_integers(rows)
    i = grid(rows.shape, "i")
    loops = ", ".join((*filter(None, [i.loops]), f"j<{table.shape[1]}"))
    index = ", ".join((*i.names, "j"))
    shape = ", ".join(map(str, (*rows.shape, table.shape[1])))
    return text(f"out y: {table.dtype}[{shape}]", f"for {loops}: y[{index}] = table[rows[{i.index}], j]")


def reverse_sequence(x: Type, lengths: Type, *, batch_axis: int = 1, time_axis: int = 0) -> str:
    """The first ``lengths[b]`` elements along the time axis backwards, the others as they are."""
    b, t = axis_of(batch_axis, x.rank, "batch_axis"), axis_of(time_axis, x.rank, "time_axis")
    need_shape("lengths", lengths, (x.shape[b],))
    need_integers(lengths)
    g = grid(x.shape)
    row, step = g.names[b], g.names[t]
    place = f"place[{row}, {step}]"
    turned = f"select({step} < lengths[{row}], i64(lengths[{row}]) - 1 - {step}, {step})"
    return text(
        f"temp place: i64[{x.shape[b]}, {x.shape[t]}]  out y: {x.dtype}[{g.shape}]",
        f"for {row}<{x.shape[b]}, {step}<{x.shape[t]}: {place} = {turned}",
        f"for {g.loops}: y[{g.index}] = {g.at('x', {t: place})}",
    )


def cache_update(cache: Type, update: Type, starts: Type | None = None, *, axis: int = -2, mode: str = "linear") -> str:
    """``cache`` with ``update`` in it from ``starts[b]`` on along ``axis``; "circular" goes on at the first place."""
    at = axis_of(axis, cache.rank)
    need_shape("update", update, (*cache.shape[:at], update.shape[at], *cache.shape[at + 1 :]))
    if at == 0 or mode not in ("linear", "circular"):
        raise OperatorError(f"an update along axis {at}, {mode}", hint="not the batch axis; linear or circular")
    same_dtype(cache, update)
    g, rows, steps = grid(cache.shape), cache.shape[0], cache.shape[at]
    first = "0"
    if starts is not None:
        need_shape("starts", starts, (rows,))
        need_integers(starts)
        first = "i64(starts[b])"
    since = f"(t + {steps} - {first}) % {steps}" if mode == "circular" else f"t - {first}"
    place = f"place[d0, d{at}]"
    found = f"({place} >= 0) & ({place} < {update.shape[at]})"
    if update.shape[at] == ZERO:
        return text(f"out y: {cache.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = cache[{g.index}]")
    return text(
        f"temp place: i64[{rows}, {steps}]  temp within: i64[{rows}, {steps}]  out y: {cache.dtype}[{g.shape}]",
        f"for b<{rows}, t<{steps}: place[b, t] = {since}",
        f"for b<{rows}, t<{steps}: within[b, t] = max(min(place[b, t], {update.shape[at] - 1}), 0)",
        f"for {g.loops}: y[{g.index}] = "
        f"select({found}, {g.at('update', {at: f'within[d0, d{at}]'})}, cache[{g.index}])",
    )


def from_end(index: str, extent: Index) -> str:
    """``index`` counted from the first; a negative one counts from the end of ``extent``."""
    return f"select({index} < 0, i64({index}) + {extent}, i64({index}))"


def nd_rows(x: Type, indices: Type, batch_dims: int = 0) -> tuple[Grid, int]:
    """Loops over the places that ``indices`` lists, and how many numbers make one up."""
    need_rank("indices", indices, 1)
    need_integers(indices)
    if not indices.shape[-1].is_constant or not 0 <= batch_dims + indices.shape[-1].const <= x.rank:
        raise OperatorError(f"the last axis of {indices} must say how many of the {x.rank} axes of x it indexes")
    if not 0 <= batch_dims < indices.rank or indices.shape[:batch_dims] != x.shape[:batch_dims]:
        raise OperatorError(f"{x} and {indices} do not share their first {batch_dims} axes")
    return grid(indices.shape[:-1], "i"), indices.shape[-1].const


def nd_places(x: Type, indices: Type, rows: Grid, batch_dims: int, depth: int) -> str:
    """``temp place0, place1, ...``: the numbers of ``indices``, counted from the first."""
    lines = []
    for k in range(depth):
        value = from_end(f"indices[{', '.join((*rows.names, str(k)))}]", x.shape[batch_dims + k])
        lines += [f"temp place{k}: i64[{rows.shape}]", f"for {rows.loops}: place{k}[{rows.index}] = {value}"]
    return text(*lines)


def need_integers(t: Type) -> None:
    if not t.dtype.is_integer:
        raise OperatorError(f"indices are {t}, not integers", hint='cast(i) {dtype = "i64"}')


def need_within(indices: Type, x: Type, at: int) -> None:
    """Refuse indices that reach beyond x in another axis than ``at``."""
    for dim, (have, limit) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if dim != at and have != limit and not (have.is_constant and limit.is_constant and have.const <= limit.const):
            raise OperatorError(f"{indices} reaches beyond {x}", why=f"in axis {dim}")


OPERATORS = operators(gather, gather_elements, gather_nd, embedding, reverse_sequence, cache_update)
