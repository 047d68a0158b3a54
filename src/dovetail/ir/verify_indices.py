"""Every index lies inside its dimension, at every point and for every value of the sizes.

Three tries, cheapest first: intervals; the corner where the index is largest, in terms of the sizes and helped by one
condition; isl, which is exact and gives the offending point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.base.errors import VerifyError
from dovetail.ir.domain import (
    condition_text,
    index_text,
    is_indirect,
    loop_constraints,
    loop_ranges,
    size_constraints,
    static_conditions,
    variables,
)
from dovetail.ir.index import Access, Condition, Index
from dovetail.ir.interval import interval
from dovetail.ir.program import Loop, Program, Statement
from dovetail.poly.sets import first_point, set_text

Ranges = Mapping[str, tuple[int, int]]


def check_indices(program: Program, statement: Statement) -> None:
    """Raise a VerifyError for an index that leaves its tensor. Indirect indices are checked when the program runs."""
    ranges = loop_ranges(program, statement)
    seen: set[tuple[Index, Index]] = set()
    for access in (statement.out, *statement.reads()):
        for dim, (index, extent) in enumerate(zip(access.indices, program.tensor(access.tensor).shape, strict=True)):
            if (index, extent) in seen or is_indirect(index):
                continue
            seen.add((index, extent))
            if not _inside(statement, index, extent, ranges):
                _prove(program, statement, access, dim, extent)


def _inside(statement: Statement, index: Index, extent: Index, ranges: Ranges) -> bool:
    """Whether intervals show that ``0 <= index < extent``."""
    found, limit = interval(index, ranges), interval(extent, ranges)
    assert found is not None and limit is not None
    low, high = found[0] >= 0, found[1] < limit[0]
    return (low or _not_negative(statement, index, ranges)) and (
        high or _not_negative(statement, extent - 1 - index, ranges)
    )


def _not_negative(statement: Statement, index: Index, ranges: Ranges) -> bool:
    """Whether ``index >= 0`` follows from its value at a corner, or from one condition and the corner."""
    if _corner(statement, index, ranges) >= 0:
        return True
    for condition in static_conditions(statement):
        if _corner(statement, index - condition.index, ranges) >= 0:
            return True
        if condition.equal and _corner(statement, index + condition.index, ranges) >= 0:
            return True
    return False


def _corner(statement: Statement, index: Index, ranges: Ranges) -> int:
    """A lower bound of ``index``: every loop at the end that makes it smaller, then sizes by their range."""
    ends: dict[str, Index] = {}
    for loop in statement.all_loops:
        factor = index.coefficient(loop.name)
        if factor:
            ends[loop.name] = Index() if factor > 0 else loop.extent - 1
    moved = Index(tuple(t for t in index.terms if t[0] not in ends), index.const)
    for name, end in ends.items():
        moved += end * index.coefficient(name)
    found = interval(moved, ranges)
    return -1 if found is None else found[0]


def _prove(program: Program, statement: Statement, access: Access, dim: int, extent: Index) -> None:
    """Ask isl for a point outside: first over the loops that matter, and if there is one, over all of them."""
    index = access.indices[dim]
    conditions = _connected(statement, index.names() | extent.names())
    names = (index.names() | extent.names()).union(*(c.names() for c in conditions))
    loops = [loop for loop in statement.all_loops if loop.name in names]
    if _outside(program, loops, conditions, index, extent) is not None:
        point = _outside(program, statement.all_loops, static_conditions(statement), index, extent)
        if point is not None:
            raise _refusal(statement, access, dim, extent, point)


def _outside(
    program: Program, loops: Sequence[Loop], conditions: Sequence[Condition], index: Index, extent: Index
) -> dict[str, int] | None:
    """A point where ``index`` is not in its dimension."""
    order = [*(size.name for size in program.sizes), *(loop.name for loop in loops)]
    text = index_text(index)
    constraints = [
        *size_constraints(program.sizes),
        *loop_constraints(loops),
        *map(condition_text, conditions),
        f"({text} < 0 or {text} >= {index_text(extent)})",
    ]
    point = first_point(set_text(variables(order), constraints))
    return None if point is None else dict(zip(order, point, strict=True))


def _connected(statement: Statement, names: frozenset[str]) -> tuple[Condition, ...]:
    """Conditions that share a loop with ``names``, directly or through one another; constant ones always count."""
    chosen: list[Condition] = []
    rest = list(static_conditions(statement))
    grown = True
    while grown:
        grown = False
        for condition in tuple(rest):
            if not condition.names() or condition.names() & names:
                names |= condition.names()
                chosen.append(condition)
                rest.remove(condition)
                grown = True
    return tuple(chosen)


def _refusal(statement: Statement, access: Access, dim: int, extent: Index, values: Mapping[str, int]) -> VerifyError:
    index = access.indices[dim]
    shown = [name for name in values if name in index.names() | extent.names()]
    at = " at " + ", ".join(f"{name}={values[name]}" for name in shown) if shown else ""
    value, size = index.evaluate(values), extent.evaluate(values)
    return VerifyError(
        f"{access}: index {value} of dimension {dim} (extent {size}){at}",
        where=statement.place,
        why=f"{index} must lie in 0..{size - 1}" if size else "the dimension is empty",
        hint=f"a smaller loop, a larger '{access.tensor}', or a condition: where 0 <= {index} < {extent}"
        if size
        else None,
    )
