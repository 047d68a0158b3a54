"""Temporaries that only hold moved elements are not made: their readers read, or their writers write, where the
elements come from or go to.

    for a<2, b<3: t[b, a] = x[a, b]                   for i<3, j<2, k<3: y[i, k] += x[j, i] * w[j, k]
    for i<3, j<2, k<3: y[i, k] += t[i, j] * w[j, k]   ->

    for i<4, j<6, k<5: c[i, j] += p[i, k] * v[k, j]   for i<4, j<6, k<5: y[j, i] += p[i, k] * v[k, j]
    for a<4, b<6: y[b, a] = c[a, b]                   ->

Nothing is computed, so nothing is rounded: every value keeps its bits. What would need a quotient or a remainder in an
index stays, but for a reduced loop, which is split into the two:

    for s<8, h<2, d<3: t[s, 3*h + d] = c[h, s, d]     for s<8, o<4, i0<2, i1<3:
    for s<8, o<4, i<6: y[s, o] += t[s, i] * w[o, i]   ->  y[s, o] += c[i0, s, i1] * w[o, 3*i0 + i1]
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.expr import Expr, Read, rebuild, walk
from dovetail.ir.index import ONE, ZERO, Access, Index, variable
from dovetail.ir.inline_index import Places, inverse, simplified, split_reduced
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.ir.verify import verify


def inline(program: Program) -> Program:
    """A valid program that computes the same bits, with as few moves as the rules above can do without."""
    found = program
    while (shorter := _without_a_move(found)) is not None:
        found = shorter
    if found is program:
        return program
    used = {s.out.tensor for s in found.statements} | {a.tensor for s in found.statements for a in s.reads()}
    gone = {t.name for t in found.tensors if t.role is Role.TEMP and t.name not in used}
    found = replace(found, tensors=tuple(t for t in found.tensors if t.name not in gone))
    verify(found)
    return found


def _without_a_move(program: Program) -> Program | None:
    for number, statement in enumerate(program.statements):
        if not _is_move(program, statement):
            continue
        found = _read_through(program, number)
        found = _written_through(program, number) if found is None else found
        if found is not None:
            return found
    return None


def _is_move(program: Program, statement: Statement) -> bool:
    """``t[...] = x[...]`` of one dtype, at places that loops alone decide."""
    value = statement.value
    if statement.combine is not Combine.SET or statement.where or statement.seq or not isinstance(value, Read):
        return False
    accesses = (statement.out, value.access)
    if any(True for access in accesses for _ in access.reads()) or value.access.tensor == statement.out.tensor:
        return False
    return program.tensor(value.access.tensor).dtype == program.tensor(statement.out.tensor).dtype


# -- readers of what is moved


def _read_through(program: Program, number: int) -> Program | None:
    """The program without the move ``number``: who reads what it makes reads what it moves."""
    move = program.statements[number]
    name = move.out.tensor
    if program.tensor(name).role is not Role.TEMP or len(_writers(program, name)) > 1:
        return None
    assert isinstance(move.value, Read)
    source = move.value.access.tensor
    if any(writer >= number for writer in _writers(program, source)) or program.tensor(source).role is Role.INOUT:
        return None
    places = inverse(move, program.tensor(name).shape)
    if places is None:
        return None
    statements: list[Statement] = []
    for place, statement in enumerate(program.statements):
        if place == number:
            continue
        changed = _reading(program, statement, name, move, places)
        if changed is None:
            return None
        statements.append(changed)
    return replace(program, statements=tuple(statements))


def _reading(
    program: Program,
    statement: Statement,
    name: str,
    move: Statement,
    places: Places,
) -> Statement | None:
    """``statement`` with the source in place of ``name``; None where its indices would not be affine."""
    inside = [node for node in walk(statement.value) if isinstance(node, Read) and node.access.tensor == name]
    if sum(access.tensor == name for access in statement.reads()) != len(inside):
        return None
    if not inside:
        return statement
    assert isinstance(move.value, Read)
    source = move.value.access

    def change(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.access.tensor != name:
            return e
        loops = {loop: _part(e.access.indices[dim], step, extent) for loop, (dim, step, extent) in places.items()}
        return Read(source.substitute(loops))

    taken = {t.name for t in program.tensors} | {size.name for size in program.sizes}
    sizes = {size.name: (size.low, size.high) for size in program.sizes}
    found = replace(statement, value=rebuild(statement.value, change))
    return split_reduced(simplified(found, sizes), sizes, taken, source.tensor)


def _part(index: Index, step: int, extent: int | None) -> Index:
    """One digit of ``index``: the loop that walks in steps of ``step``."""
    part = index // step
    return part if extent is None else part % extent


# -- the writer of what is moved


def _written_through(program: Program, number: int) -> Program | None:
    """The program without the move ``number``: who makes what it moves writes where it goes."""
    move = program.statements[number]
    assert isinstance(move.value, Read)
    source, target = move.value.access, program.tensor(move.out.tensor)
    made = program.tensor(source.tensor)
    writers = _writers(program, made.name)
    if made.role is not Role.TEMP or _readers(program, made.name) != [number] or target.role is Role.INOUT:
        return None
    makers = [program.statements[n] for n in writers]
    alone = len(makers) == 1 and len(_writers(program, target.name)) == 1
    if any(s.seq for s in makers) or max(writers) > number or not (alone or all(map(_sets, makers))):
        return None
    if any(access.tensor == target.name for s in program.statements[: number + 1] for access in s.reads()):
        return None
    loops = _places_in(source, move, made.shape)
    if loops is None:
        return None
    statements = list(program.statements)
    for maker, writer in zip(writers, makers, strict=True):
        values = {loop: writer.out.indices[dim] if dim is not None else ZERO for loop, dim in loops.items()}
        out = move.out.substitute(values)
        if not all(index.is_affine for index in out.indices):
            return None
        statements[maker] = replace(writer, out=out)
    del statements[number]
    return replace(program, statements=tuple(statements))


def _sets(statement: Statement) -> bool:
    """Whether it writes what it reaches, and no neutral element elsewhere."""
    return statement.combine is Combine.SET and not statement.where


def _places_in(source: Access, move: Statement, shape: tuple[Index, ...]) -> dict[str, int | None] | None:
    """For each loop of the move the dimension it walks, where together they walk all of the source once."""
    extents = {loop.name: loop.extent for loop in move.loops}
    found: dict[str, int | None] = {name: None for name, extent in extents.items() if extent == ONE}
    for dim, (index, extent) in enumerate(zip(source.indices, shape, strict=True)):
        if index == ZERO and extent == ONE:
            continue
        name = next(iter(index.names()), "")
        if index != variable(name) or extents.get(name) != extent or found.get(name) is not None:
            return None
        found[name] = dim
    return found if found.keys() == extents.keys() else None


def _writers(program: Program, tensor: str) -> list[int]:
    return [number for number, s in enumerate(program.statements) if s.out.tensor == tensor]


def _readers(program: Program, tensor: str) -> list[int]:
    """Statements that read ``tensor``, as a value or to find a place."""
    return [n for n, s in enumerate(program.statements) if any(access.tensor == tensor for access in s.reads())]
