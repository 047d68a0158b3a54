"""Temporaries with their dimensions in the order of what they are made from, or of what is made from them.

    in x: f64[8,8,64,128]  temp cols: f64[128,64,3,3,6,6]
    for n<128, c<64, r<3, s<3, p<6, q<6: cols[n,c,r,s,p,q] = x[p+r,q+s,c,n]       ->   cols[p,q,r,s,c,n]

A copy instruction moves rows; where neighbours in one tensor lie far apart in the other it moves single elements. The
innermost dimension stays innermost, dimensions that a statement sums up stand behind those that it keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dovetail.ir.index import Access, Atom, Index
from dovetail.ir.program import Program, Role, Statement
from dovetail.ir.reorder import with_dimensions

Order = tuple[int, ...]
"""The old dimension for each new one."""


def with_ordered_temps(program: Program, names: Iterable[str] | None = None) -> Program:
    """``program`` with the dimensions of temporaries in order, where the innermost is not as it should be.

    Of all, or of those with these ``names``."""
    written = dict.fromkeys(s.out.tensor for s in program.statements)
    temps = {t.name for t in program.temps} & set(written if names is None else names)
    for name in (x for x in written if x in temps):
        order = _order(program, name)
        if order is not None and order != tuple(range(len(order))):
            program = with_dimensions(program, name, order)
    return program


def with_ordered_loops(program: Program) -> Program:
    """``program`` with the loops of each statement in the order of its result's dimensions, then of what it reads.

    Loops that follow each other in a tensor are done as one only where they do so in the statement too."""
    return replace(program, statements=tuple(_looped(s) for s in program.statements))


def _looped(statement: Statement) -> Statement:
    met = [
        str(a) for access in (statement.out, *statement.reads()) for i in access.indices for a, _ in _largest_first(i)
    ]
    place = {name: n for n, name in reversed(list(enumerate(met)))}
    return replace(statement, loops=tuple(sorted(statement.loops, key=lambda loop: place.get(loop.name, len(met)))))


def _largest_first(index: Index) -> list[tuple[Atom, int]]:
    return sorted(index.terms, key=lambda term: -term[1])


def _order(program: Program, name: str) -> Order | None:
    """None where the order does not matter, or cannot be told."""
    beside = _beside(program, name)
    readers = [s for s in program.statements if any(a.tensor == name for a in s.reads())]
    if beside is None or not readers or any(s.seq for s in readers):
        return None
    own, reference = beside
    if any(len(index.terms) > 1 for index in own.indices):
        return None
    loops = [str(index.terms[0][0]) if index.terms else "" for index in own.indices]
    moving = [loop for loop in loops if loop]
    last = reference.indices[-1].names() & set(moving)
    if len(set(moving)) < len(moving) or not last or loops[-1] in last:
        return None
    summed = _summed(readers[0], name)
    first = {loop: n for n, index in reversed(list(enumerate(reference.indices))) for loop in index.names()}

    def place(dimension: int) -> tuple[int, int, int]:
        loop = loops[dimension]
        rank = 0 if loop not in first else 3 if loop in last else 2 if dimension in summed else 1
        return rank, first.get(loop, 0), dimension

    return tuple(sorted(range(len(loops)), key=place))


def _beside(program: Program, name: str) -> tuple[Access, Access] | None:
    """How a statement touches the temporary, and a tensor that it makes it of, or writes from it.

    First what it is made of, if that is the caller's; then a result; then another temporary."""
    roles = {t.name: t.role for t in program.tensors}
    writer = next(s for s in program.statements if s.out.tensor == name)
    sources = {roles[a.tensor]: a for a in writer.reads() if a.names() & writer.out.names() and not writer.seq}
    given = sources.get(Role.IN) or sources.get(Role.INOUT)
    if given is not None:
        return writer.out, given
    for statement in program.statements:
        own = [a for a in statement.reads() if a.tensor == name]
        if own and roles[statement.out.tensor] is Role.OUT:
            return own[0], statement.out
    other = sources.get(Role.TEMP) or sources.get(Role.CONST)
    return None if other is None else (writer.out, other)


def _summed(statement: Statement, name: str) -> frozenset[int]:
    """Dimensions of a tensor that a statement sums up."""
    reduced = {loop.name for loop in statement.reduced}
    access = next(a for a in statement.reads() if a.tensor == name)
    return frozenset(d for d, index in enumerate(access.indices) if index.names() & reduced)
