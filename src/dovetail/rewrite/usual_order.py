"""Convolutions in the one order of dimensions that rules know: batch, channels, rows, columns.

    out y: f64[8,8,16,4]  in x: f64[10,10,8,4]  const w: f64[3,3,16,8]     y[p,q,k,n] += x[p+r,q+s,c,n] * w[r,s,k,c]
 -> out y: f64[4,16,8,8]  in x: f64[4,8,10,10]  const w: f64[16,8,3,3]     y[n,k,p,q] += x[n,c,p+r,q+s] * w[k,c,r,s]

How tensors lie is the caller's; the same elements are found at other places, and put back when rules have been applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dovetail.ir.expr import Apply, Read
from dovetail.ir.index import Access, Index
from dovetail.ir.program import Program, Role, Statement
from dovetail.ir.reorder import inverse, with_dimensions

Order = tuple[int, ...]
BEHIND = 2
"""The rank of dimensions that windows slide over."""


def in_usual_order(program: Program) -> tuple[Program, dict[str, Order]]:
    """``program`` with the tensors of its first convolution turned, and how; as it is where they are in order."""
    orders: dict[str, Order] = {}
    for statement in program.statements:
        found = _orders(statement)
        if found is not None:
            orders = {name: order for name, order in found.items() if order != tuple(sorted(order))}
            break
    for name, order in orders.items():
        program = with_dimensions(program, name, order)
    return program, orders


def restored(program: Program, orders: dict[str, Order]) -> Program:
    """``program`` with the caller's tensors in their own order again."""
    given = {t.name for t in program.tensors if t.role is not Role.TEMP}
    for name, order in orders.items():
        if name in given:
            program = with_dimensions(program, name, inverse(order))
    return program


def _orders(statement: Statement) -> dict[str, Order] | None:
    """The order of the dimensions of image, filter and result; None where no window is summed over."""
    value = statement.value
    if not isinstance(value, Apply) or value.function != "mul" or not all(isinstance(a, Read) for a in value.args):
        return None
    summed = {loop.name for loop in statement.reduced}
    factors = [arg.access for arg in value.args if isinstance(arg, Read)]
    image = next((a for a in factors if any(_slides(index, summed) for index in a.indices)), None)
    if image is None or len({a.tensor for a in (statement.out, *factors)}) < len(factors) + 1:
        return None
    filters = next(a for a in factors if a is not image)
    slid = [index.names() for index in image.indices if _slides(index, summed)]
    weighed = filters.names()

    def of_image(index: Index) -> tuple[int, int]:
        return (BEHIND, 0) if _slides(index, summed) else (int(bool(index.names() & summed)), 0)

    def of_filter(index: Index) -> tuple[int, int]:
        along = _along(index, slid)
        return (BEHIND, along) if along >= 0 else (int(bool(index.names() & summed)), 0)

    def of_result(index: Index) -> tuple[int, int]:
        along = _along(index, slid)
        return (BEHIND, along) if along >= 0 else (int(bool(index.names() & weighed)), 0)

    return {
        image.tensor: _sorted(image, of_image),
        filters.tensor: _sorted(filters, of_filter),
        statement.out.tensor: _sorted(statement.out, of_result),
    }


def _slides(index: Index, summed: set[str]) -> bool:
    """Whether an index has a loop of the result and one that is summed over."""
    return bool(index.names() & summed) and bool(index.names() - summed)


def _along(index: Index, slid: Sequence[frozenset[str]]) -> int:
    """The window dimension that an index belongs to; -1: none."""
    return next((n for n, names in enumerate(slid) if index.names() & names), -1)


def _sorted(access: Access, rank: Callable[[Index], tuple[int, int]]) -> Order:
    return tuple(sorted(range(len(access.indices)), key=lambda d: (rank(access.indices[d]), d)))
