"""Values that one statement makes for each element and the next reads there become part of it.

    for i<8: t[i] = x[i] + b[i]                 for i<8: y[i] = max(x[i] + b[i], 0)
    for i<8: y[i] = max(t[i], 0)          ->

Generated code rounds at every operation, with a store between them or without; where it multiplies and adds in one
instruction it now may do so across what were two statements, and round once less. The reference evaluator rounds where
a statement stores. Only values whose arithmetic is done in the dtype they are stored in are merged, so that nothing
wraps or narrows on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Expr, Read, natural_type, rebuild, statement_type, substitute, walk
from dovetail.ir.index import Index, variable
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.ir.verify import verify

_MOST_PARTS = 48
"""Operations and operands of a merged value."""
_MOST_REPEATED = 12
"""Of a value that is read more than once in the same place; code computes it once all the same."""


def merge(program: Program) -> Program:
    """A valid program with fewer statements that computes the same, but for roundings that are left out."""
    found = program
    number = 0
    while number < len(found.statements):
        shorter = _merged(found, number)
        number, found = (number + 1, found) if shorter is None else (0, shorter)
    if found is program:
        return program
    used = {s.out.tensor for s in found.statements}
    gone = {t.name for t in program.temps if t.name not in used}
    found = replace(found, tensors=tuple(t for t in found.tensors if t.name not in gone))
    verify(found)
    return found


def _merged(program: Program, number: int) -> Program | None:
    """The program with statement ``number`` as part of its one reader; None where there is none such."""
    maker = program.statements[number]
    name = maker.out.tensor
    if not _each_point(maker) or program.tensor(name).role is not Role.TEMP or _is_plain_read(maker.value):
        return None
    if sum(s.out.tensor == name for s in program.statements) > 1:
        return None
    places = [n for n, s in enumerate(program.statements) if any(a.tensor == name for a in s.reads())]
    if len(places) != 1 or places[0] <= number:
        return None
    reader = program.statements[places[0]]
    value = _value(program.dtypes, maker, reader)
    if value is None or _changed_between(program, maker, number, places[0]):
        return None
    statements = list(program.statements)
    statements[places[0]] = replace(reader, value=value)
    del statements[number]
    return replace(program, statements=tuple(statements))


def _each_point(statement: Statement) -> bool:
    """``t[i, j] = ...`` over all of its loops, each alone in its place."""
    if statement.combine is not Combine.SET or statement.where or statement.seq:
        return False
    names = [next(iter(index.names()), "") for index in statement.out.indices]
    plain = all(index == variable(name) for index, name in zip(statement.out.indices, names, strict=True) if name)
    return plain and sorted(n for n in names if n) == sorted(loop.name for loop in statement.loops)


def _is_plain_read(value: Expr) -> bool:
    return isinstance(value, Read)


def _value(dtypes: Mapping[str, DType], maker: Statement, reader: Statement) -> Expr | None:
    """What the reader computes with the maker's value in place; None where that is not the same, or too much."""
    name = maker.out.tensor
    dtype = dtypes[name]
    own = statement_type(maker.value, dtypes, dtype)
    if natural_type(maker.value, dtypes) != dtype or own != dtype:
        return None
    if not _each_point(reader) or statement_type(reader.value, dtypes, dtypes[reader.out.tensor]) != dtype:
        return None
    inside = [e for e in walk(reader.value) if isinstance(e, Read) and e.access.tensor == name]
    if sum(a.tensor == name for a in reader.reads()) != len(inside) or len({e.access for e in inside}) != 1:
        return None
    loops = _same_points(maker, reader, inside[0].access.indices)
    parts = sum(1 for _ in walk(maker.value))
    if loops is None or (len(inside) > 1 and parts > _MOST_REPEATED):
        return None
    if sum(1 for _ in walk(reader.value)) + len(inside) * parts > _MOST_PARTS:
        return None
    put = substitute(maker.value, loops)
    return rebuild(reader.value, lambda e: put if isinstance(e, Read) and e.access.tensor == name else e)


def _same_points(maker: Statement, reader: Statement, indices: tuple[Index, ...]) -> dict[str, Index] | None:
    """The reader's loop for each of the maker's, where both walk the same elements."""
    extents = {loop.name: loop.extent for loop in reader.loops}
    found: dict[str, Index] = {}
    for mine, theirs in zip(maker.out.indices, indices, strict=True):
        if mine.is_constant:
            if theirs != mine:
                return None
            continue
        found[next(iter(mine.names()))] = theirs
    own = {loop.name: loop.extent for loop in maker.loops}
    for name, index in found.items():
        other = next(iter(index.names()), "")
        if index != variable(other) or extents.pop(other, None) != own[name]:
            return None
    return None if any(extent != Index((), 1) for extent in extents.values()) else found


def _changed_between(program: Program, maker: Statement, number: int, place: int) -> bool:
    """Whether something that the maker reads is written before its reader is done."""
    read = {access.tensor for access in maker.reads()}
    return any(s.out.tensor in read for s in program.statements[number + 1 : place + 1])
