"""Sums that are read part by part, each part as long as the others, have those parts as a dimension.

    seq t<T: for m<32, k<8: u[t, m] += h[t, k] * r[m, k]
    seq t<T: for j<8: y[t, j] = u[t, j] * u[t, j + 24]
 -> seq t<T: for g<4, j<8, k<8: u[t, g, j] += h[t, k] * r[g, j, k]
    seq t<T: for j<8: y[t, j] = u[t, 0, j] * u[t, 3, j]

All parts of an element are then neighbours in the loops, and one register tile holds them. Only descriptions change:
tensors that a caller sees keep their bytes. Parts that nobody reads are not computed, where those that are read are
neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.ir.expr import Expr, Position, Read, rebuild
from dovetail.ir.index import Access, Condition, Index, affine, constant, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor


@dataclass(frozen=True, slots=True)
class _Parts:
    """Dimension ``dimension`` of what statement ``number`` makes by its loop ``loop``: parts of ``length`` elements."""

    number: int
    loop: str
    dimension: int
    length: int
    first: int
    count: int
    """Of the parts that are read."""
    whole: int
    """How many parts there are."""


def with_parts_apart(program: Program) -> Program:
    """``program`` where sums in steps that are read part by part have a dimension of parts."""
    for number, statement in enumerate(program.statements):
        parts = _parts(program, number) if statement.seq and statement.reduced else None
        if parts is not None:
            return with_parts_apart(_split(program, parts))
    return program


def _parts(program: Program, number: int) -> _Parts | None:
    """How the sum of statement ``number`` falls into parts; None where it does not."""
    statement = program.statements[number]
    tensor = program.tensor(statement.out.tensor)
    once = sum(s.out.tensor == tensor.name for s in program.statements) == 1
    if tensor.role is not Role.TEMP or statement.combine is Combine.SET or statement.where or not once:
        return None
    extents = {loop.name: loop.extent for loop in statement.loops}
    for dimension, index in enumerate(statement.out.indices):
        name = next(iter(index.names()), "")
        if index != variable(name) or not extents.get(name, variable(name)).is_constant:
            continue
        places = _read_places(program, tensor.name, dimension)
        total = extents[name].const
        length = next(iter(places))[0] if places else 0
        alike = bool(places) and all(own == length and first % length == 0 for own, first in places)
        if alike and 1 < length < total and total % length == 0 and not _is_counted(statement, name):
            used = [first // length for _, first in places]
            low, high = min(used), max(used)
            return _Parts(number, name, dimension, length, low, high - low + 1, total // length)
    return None


def _read_places(program: Program, tensor: str, dimension: int) -> set[tuple[int, int]]:
    """(length of the loop, where it begins) of all reads along a dimension; (1, 1) for one that is no such stretch."""
    found: set[tuple[int, int]] = set()
    for statement in program.statements:
        extents = {loop.name: loop.extent for loop in statement.loops}
        for access in statement.reads():
            if access.tensor == tensor:
                index = access.indices[dimension]
                name = next(iter(index.names()), "")
                extent = extents.get(name, variable("?"))
                plain = index.is_affine and index == variable(name) + index.const and extent.is_constant
                found.add((extent.const, index.const) if plain and extent.const > 0 else (1, 1))
    return set() if (1, 1) in found else found


def _is_counted(statement: Statement, loop: str) -> bool:
    """Whether the loop is used for anything but a dimension of its own."""
    accesses = [statement.out, *statement.reads()]
    inside = [i for a in accesses for i in a.indices if loop in i.names()]
    found = False

    def look(e: Expr) -> Expr:
        nonlocal found
        found |= isinstance(e, Position) and loop in e.index.names()
        return e

    rebuild(statement.value, look)
    return found or any(index != variable(loop) for index in inside)


def _split(program: Program, parts: _Parts) -> Program:
    statement = program.statements[parts.number]
    dims = {statement.out.tensor: parts.dimension}
    for access in statement.reads():
        along = [d for d, i in enumerate(access.indices) if parts.loop in i.names()]
        if len(along) == 1 and access.tensor not in dims and _can_split(program, access.tensor, along[0], parts):
            dims[access.tensor] = along[0]
    taken = {t.name for t in program.tensors} | {s.name for s in program.sizes}
    taken |= {loop.name for s in program.statements for loop in s.all_loops}
    gate, unit = _fresh("g", taken), _fresh("j", taken | {_fresh("g", taken)})
    loops: list[Loop] = []
    for loop in statement.loops:
        own = (Loop(gate, constant(parts.count)), Loop(unit, constant(parts.length)))
        loops += own if loop.name == parts.loop else (loop,)
    whole = (variable(gate) + parts.first) * parts.length + variable(unit)
    made = statement.out.tensor
    statements = [
        replace(s.substitute({parts.loop: whole}, tuple(loops)), seq=s.seq) if n == parts.number else s
        for n, s in enumerate(program.statements)
    ]
    tensors = tuple(_in_parts(t, dims, parts, made) for t in program.tensors)
    found = tuple(_with_accesses(s, dims, parts, made) for s in statements)
    return replace(program, tensors=tensors, statements=found)


def _in_parts(tensor: Tensor, dims: Mapping[str, int], parts: _Parts, made: str) -> Tensor:
    d = dims.get(tensor.name)
    if d is None:
        return tensor
    count = parts.count if tensor.name == made else parts.whole
    shape = (*tensor.shape[:d], constant(count), constant(parts.length), *tensor.shape[d + 1 :])
    return replace(tensor, shape=shape)


def _can_split(program: Program, name: str, d: int, parts: _Parts) -> bool:
    """Whether everybody walks dimension ``d`` of a tensor inside one part at a time."""
    tensor = program.tensor(name)
    if tensor.shape[d] != constant(parts.whole * parts.length):
        return False
    for number, statement in enumerate(program.statements):
        extents = {loop.name: loop.extent for loop in statement.loops}
        for access in (statement.out, *statement.reads()):
            if access.tensor != name:
                continue
            index = access.indices[d]
            loop = next(iter(index.names()), "")
            own = number == parts.number and index == variable(parts.loop)
            whole = extents.get(loop) == constant(parts.length) and index.const % parts.length == 0
            if not own and not (whole and index.is_affine and index == variable(loop) + index.const):
                return False
    return True


def _with_accesses(statement: Statement, dims: Mapping[str, int], parts: _Parts, made: str) -> Statement:
    def place(access: Access) -> Access:
        indices = tuple(i.map_atoms(atom) for i in access.indices)
        d = dims.get(access.tensor)
        if d is None:
            return Access(access.tensor, indices)
        index = indices[d]
        which, along = _digits(index, parts.length)
        which = which - parts.first if access.tensor == made else which
        return Access(access.tensor, (*indices[:d], which, along, *indices[d + 1 :]))

    def atom(old: object) -> Index | None:
        return affine(((place(old), 1),)) if isinstance(old, Access) else None

    def value(e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(place(e.access))
        return Position(e.index.map_atoms(atom)) if isinstance(e, Position) else e

    where = tuple(Condition(c.index.map_atoms(atom), c.equal) for c in statement.where)
    return replace(statement, out=place(statement.out), value=rebuild(statement.value, value), where=where)


def _digits(index: Index, length: int) -> tuple[Index, Index]:
    """Which part an index is in, and where in it: terms and numbers that are multiples of the length, and the rest."""
    high = affine(((atom, c // length) for atom, c in index.terms if c % length == 0), index.const // length)
    low = affine(((atom, c) for atom, c in index.terms if c % length), index.const % length)
    return high, low


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
