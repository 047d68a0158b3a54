"""``reduce`` -> a sum that is not stored yet: one loop more, merged with sums of the same ``op=`` inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.base.dtypes import compute_type
from dovetail.base.errors import TermError
from dovetail.ir.expr import Expr, joined
from dovetail.ir.functional.normalise_steps import fold
from dovetail.ir.functional.normalise_values import (
    Array,
    Case,
    Cell,
    Closure,
    Part,
    Sum,
    Value,
    default_type,
    fix,
    is_neutral,
    operation,
)
from dovetail.ir.functional.term import Setting
from dovetail.ir.index import Condition, Index, variable
from dovetail.ir.program import Combine, Loop

if TYPE_CHECKING:
    from dovetail.ir.functional.normalise_terms import Evaluation

Fixed = tuple[tuple[str, int], ...]


def reduce_(evaluation: Evaluation, settings: tuple[Setting, ...], args: tuple[Value, ...]) -> Value:
    """A sum where the function is an ``op=`` or one lifted over arrays, else the last state of a scan."""
    function, start, data = args
    if not isinstance(data, Array) or not isinstance(function, Closure):
        raise TermError("reduce of what is not an array")
    if function.combine is None:
        return fold(evaluation, function, start, data)
    return _lifted(evaluation, *function.combine, start, data)


def _lifted(evaluation: Evaluation, combine: Combine, depth: int, start: Value, data: Array) -> Value:
    """A reduction of arrays element by element is an array of reductions."""
    if depth == 0:
        assert isinstance(start, Cell)
        return _sum(evaluation, combine, start, data)
    assert isinstance(start, Array)

    def column(index: Index) -> Array:
        def at(i: Index) -> Value:
            row = data.at(i)
            assert isinstance(row, Array)
            return row.at(index)

        return Array(lambda: data.size, at)

    return Array(lambda: start.size, lambda i: _lifted(evaluation, combine, depth - 1, start.at(i), column(i)))


def _sum(evaluation: Evaluation, combine: Combine, start: Cell, data: Array) -> Cell:
    loop = evaluation.store.loop(data.size)
    cell = data.at(variable(loop.name))
    assert isinstance(cell, Cell)
    unrolled = _unrolled(evaluation, combine, start, cell, loop)
    if unrolled is not None:
        return unrolled
    known = joined((start.dtype, cell.dtype))
    own = compute_type(known) if known is not None else default_type(Cell((*start.cases, *cell.cases), None))
    groups: dict[Fixed, list[Part]] = {}
    for case in map(fix, cell.cases):
        outer = tuple(pair for pair in case.fixed if pair[0] != loop.name)
        loops = (loop,) if outer == case.fixed else ()
        groups.setdefault(outer, []).extend(_parts(evaluation, combine, start, cell, case, loops))
    groups = groups or {(): []}
    cases = (Case((), Sum(combine, tuple(parts), start, own), fixed) for fixed, parts in _grouped(groups).items())
    return Cell(tuple(cases), own)


def _parts(
    evaluation: Evaluation, combine: Combine, start: Cell, cell: Cell, case: Case, loops: tuple[Loop, ...]
) -> list[Part]:
    body = case.body
    if isinstance(body, Sum) and cell.dtype == body.own and _merges(body, combine, start):
        return [Part((*loops, *p.loops), (*case.where, *p.where), p.value, p.dtype) for p in body.parts]
    return [Part(loops, case.where, evaluation.store.settle(case, cell.dtype), cell.dtype)]


def _merges(inner: Sum, combine: Combine, start: Cell) -> bool:
    """Whether a reduction inside another is more of the same: its start adds nothing."""
    again = combine in (Combine.MAX, Combine.MIN) and inner.start == start
    return inner.combine is combine and (again or is_neutral(inner.start, combine, inner.own))


def _grouped(groups: dict[Fixed, list[Part]]) -> dict[Fixed, list[Part]]:
    """Parts by the outer loops that are fixed for them; conditions instead, where these differ from part to part."""
    if len({tuple(name for name, _ in fixed) for fixed in groups}) == 1:
        return groups
    parts = []
    for fixed, found in groups.items():
        where = tuple(Condition(variable(name) - value, equal=True) for name, value in fixed)
        parts += [Part(p.loops, (*where, *p.where), p.value, p.dtype) for p in found]
    return {(): parts}


def _unrolled(evaluation: Evaluation, combine: Combine, start: Cell, cell: Cell, loop: Loop) -> Cell | None:
    """A reduction of the elements of ``array(...)`` as one expression; None where they are not that plain."""
    assert combine.function is not None
    terms: dict[Fixed, list[tuple[int, Expr]]] = {}
    for case in map(fix, cell.cases):
        values = dict(case.fixed)
        if loop.name not in values or case.where or isinstance(case.body, Sum):
            return None
        outer = tuple(pair for pair in case.fixed if pair[0] != loop.name)
        terms.setdefault(outer, []).append((values[loop.name], case.body))
    if not cell.cases or any(len(found) != _count(loop) for found in terms.values()):
        return None
    dtype = default_type(cell)
    cases = []
    for outer, found in terms.items():
        first, *rest = [body for _, body in sorted(found, key=lambda term: term[0])]
        for other in rest:
            first = operation(combine.function, (first, other), (dtype, dtype))
        cases.append(Case((), first, outer))
    total = Cell(tuple(cases), compute_type(dtype))
    return total if is_neutral(start, combine, dtype) else evaluation.scalar(combine.function, (start, total))


def _count(loop: Loop) -> int:
    return loop.extent.const if loop.extent.is_constant else -1
