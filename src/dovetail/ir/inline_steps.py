"""Values of a step that are only moved, or read part by part, are not made: who reads them computes them.

    seq t<T: for d<32: s[t, d] = u[t, d] + a[t, d]        seq t<T: for d<8: f[t, d] =
    seq t<T: for d<8: p[t, d] = s[t, d + 16]         ->     sigmoid(u[t, d + 16] + a[t, d + 16])
    seq t<T: for d<8: f[t, d] = sigmoid(p[t, d])

Sums are then read part by part themselves (``ir/gates``). As where other statements are merged (``ir/merge``), only
values whose arithmetic is done in the dtype they are stored in go this way.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.expr import Expr, Read, natural_type, rebuild, statement_type, substitute, walk
from dovetail.ir.index import Access, Index, variable
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.ir.steps import steps_apart

_MOST_PARTS = 12
"""Operations and operands of a value that is computed where it is read."""


def with_values_inside(program: Program) -> Program:
    """``program`` without values of steps that are only moved or cut into parts."""
    for group in program.groups():
        for number in group if len(program.statements[group[0]].seq) == 1 else ():
            found = _inside(program, group, number)
            if found is not None:
                return with_values_inside(found)
    return program


def _inside(program: Program, group: tuple[int, ...], number: int) -> Program | None:
    """The program with the value of statement ``number`` in all its readers; None where it stays."""
    maker = program.statements[number]
    tensor = program.tensor(maker.out.tensor)
    if tensor.role is not Role.TEMP or not _each_point(maker) or not _keeps_bits(program, maker):
        return None
    if sum(s.out.tensor == tensor.name for s in program.statements) > 1:
        return None
    readers = [n for n, s in enumerate(program.statements) if any(a.tensor == tensor.name for a in s.reads())]
    if not readers or not all(n in group and n > number for n in readers):
        return None
    if not isinstance(maker.value, Read) and not _is_cut(program, maker, readers):
        return None
    statements = list(program.statements)
    for n in readers:
        changed = _reading(program, maker, number, n)
        if changed is None:
            return None
        statements[n] = changed
    del statements[number]
    tensors = tuple(t for t in program.tensors if t.name != tensor.name)
    return replace(program, tensors=tensors, statements=tuple(statements))


def _each_point(statement: Statement) -> bool:
    """``t[step, i, j] = ...`` over all of its loops, each alone in its place."""
    if statement.combine is not Combine.SET or statement.where:
        return False
    names = [next(iter(index.names()), "") for index in statement.out.indices]
    plain = all(index == variable(name) for index, name in zip(statement.out.indices, names, strict=True) if name)
    return plain and sorted(n for n in names if n) == sorted(loop.name for loop in statement.all_loops)


def _keeps_bits(program: Program, maker: Statement) -> bool:
    dtypes, dtype = program.dtypes, program.tensor(maker.out.tensor).dtype
    if isinstance(maker.value, Read):
        return dtypes[maker.value.access.tensor] == dtype
    small = sum(1 for _ in walk(maker.value)) <= _MOST_PARTS
    return small and natural_type(maker.value, dtypes) == statement_type(maker.value, dtypes, dtype) == dtype


def _is_cut(program: Program, maker: Statement, readers: list[int]) -> bool:
    """Whether every reader takes a part of what is made, and none takes the same."""
    whole = tuple(loop.extent for loop in maker.loops)
    places: list[Access] = []
    for n in readers:
        statement = program.statements[n]
        if tuple(loop.extent for loop in statement.loops) == whole or statement.reduced:
            return False
        own = [a for a in statement.reads() if a.tensor == maker.out.tensor]
        names = {loop.name: variable(f"loop{k}") for k, loop in enumerate(statement.loops)}
        places += dict.fromkeys(a.substitute(names) for a in own)
    return len(places) == len(set(places))


def _reading(program: Program, maker: Statement, number: int, place: int) -> Statement | None:
    """Statement ``place`` with what ``maker`` computes in place of its reads."""
    reader = program.statements[place]
    name = maker.out.tensor
    inside = [e for e in walk(reader.value) if isinstance(e, Read) and e.access.tensor == name]
    if sum(a.tensor == name for a in reader.reads()) != len(inside) or _is_changed(program, maker, number, place):
        return None
    dtypes = program.dtypes
    typed = isinstance(maker.value, Read) or _arithmetic(program, reader) == dtypes[name]
    (step,) = maker.seq
    loops = [_loops(maker, e.access) for e in inside]
    if not typed or any(found.get(step.name, variable(step.name)) != variable(step.name) for found in loops):
        return None

    def change(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.access.tensor != name:
            return e
        return substitute(maker.value, _loops(maker, e.access))

    return replace(reader, value=rebuild(reader.value, change))


def _arithmetic(program: Program, reader: Statement) -> object:
    return statement_type(reader.value, program.dtypes, program.dtypes[reader.out.tensor])


def _loops(maker: Statement, access: Access) -> dict[str, Index]:
    """What each loop of the maker is where ``access`` reads."""
    pairs = zip(maker.out.indices, access.indices, strict=True)
    return {next(iter(mine.names())): theirs for mine, theirs in pairs if mine.names()}


def _is_changed(program: Program, maker: Statement, number: int, place: int) -> bool:
    """Whether something that the maker reads is written, in the same step, before its reader is done."""
    (step,) = maker.seq
    for statement in program.statements[number + 1 : place + 1]:
        for access in maker.reads():
            if access.tensor == statement.out.tensor:
                pairs = zip(access.indices, statement.out.indices, strict=True)
                if not any(steps_apart(one, other, step.name) for one, other in pairs):
                    return True
    return False
