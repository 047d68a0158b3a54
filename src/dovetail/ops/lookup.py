"""Operators whose indices are data. What leaves the tensor is found out when the program runs."""

from __future__ import annotations

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ops.text import axis_of, grid, need_rank, text


def gather(x: Type, indices: Type, *, axis: int = 0) -> str:
    """Slices of x along ``axis``, at ``indices``; a negative one counts from the end."""
    at = axis_of(axis, x.rank)
    _need_integers(indices)
    g, i = grid(x.shape), grid(indices.shape, "i")
    shape = ", ".join(map(str, (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])))
    index = ", ".join((*g.names[:at], *i.names, *g.names[at + 1 :]))
    rest = g.without((at,))
    loops = ", ".join(part for part in (rest.loops, i.loops) if part)
    return text(
        f"temp place: i64[{i.shape}]  out y: {x.dtype}[{shape}]",
        f"for {i.loops}: place[{i.index}] = "
        f"select(indices[{i.index}] < 0, i64(indices[{i.index}]) + {x.shape[at]}, i64(indices[{i.index}]))",
        f"for {loops}: y[{index}] = {g.at('x', {at: f'place[{i.index}]'})}",
    )


def embedding(table: Type, rows: Type) -> str:
    """Rows of ``table``; a row that is not there is an error."""
    need_rank("table", table, 2, 2)
    _need_integers(rows)
    i = grid(rows.shape, "i")
    loops = ", ".join((*filter(None, [i.loops]), f"j<{table.shape[1]}"))
    index = ", ".join((*i.names, "j"))
    shape = ", ".join(map(str, (*rows.shape, table.shape[1])))
    return text(f"out y: {table.dtype}[{shape}]", f"for {loops}: y[{index}] = table[rows[{i.index}], j]")


def _need_integers(t: Type) -> None:
    if not t.dtype.is_integer:
        raise OperatorError(f"indices are {t}, not integers", hint='cast(i) {dtype = "i64"}')


OPERATORS = operators(gather, embedding)
