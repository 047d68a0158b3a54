"""Temporaries with a dimension for each digit of a flat index, so that their dimensions can be told apart and ordered.

for n<2, i<3, c<8: v[3*n+i, c] = x[n, i, c]            for n<2, i<3, c<8: v[n, i, c] = x[n, i, c]
for t<6, c<8, k<4: p[t, k] += v[t, c] * w[c, k]   ->   for c<8, k<4, d0<2, d1<3: p[d0, d1, k] += v[d0, d1, c] * w[c, k]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dovetail.ir.expr import Expr, Read, rebuild
from dovetail.ir.index import Access, Index, affine, variable
from dovetail.ir.program import Loop, Program, Statement

Digits = tuple[int, ...]
"""How many values each has, the first counting most."""


def with_digits_apart(program: Program) -> Program:
    """``program`` with every temporary's flat dimensions taken apart that all statements use alike."""
    while True:
        for tensor in program.temps:
            for dimension in range(len(tensor.shape)):
                digits = _digits_of(program, tensor.name, dimension)
                if digits is not None:
                    program = _apart(program, tensor.name, dimension, digits)
                    break
            else:
                continue
            break
        else:
            return program


def _digits_of(program: Program, name: str, dimension: int) -> Digits | None:
    """The digits that a dimension is indexed by; None where there are none, or statements differ."""
    size = program.tensor(name).shape[dimension]
    found: set[Digits] = set()
    for statement, access in _accesses(program, name):
        extents = {loop.name: loop.extent.const for loop in statement.loops}
        index = access.indices[dimension]
        if len(index.terms) == 1 and index.coefficient(*index.names()) == 1 and not index.const:
            loop = next(iter(index.names()))
            if extents.get(loop) != size.const or not _is_alone(statement, loop):
                return None
            continue
        digits = _digits(index, extents, size.const)
        if digits is None:
            return None
        found.add(digits)
    return found.pop() if len(found) == 1 else None


def _digits(index: Index, extents: dict[str, int], size: int) -> Digits | None:
    step, found = 1, []
    for atom, coefficient in sorted(index.terms, key=lambda term: term[1]):
        if not isinstance(atom, str) or atom not in extents or coefficient != step:
            return None
        found.append(extents[atom])
        step *= extents[atom]
    return tuple(reversed(found)) if step == size and len(found) > 1 and not index.const else None


def _is_alone(statement: Statement, loop: str) -> bool:
    """Whether a loop is nowhere a part of a sum, so that its digits can stand for it."""
    accesses = (statement.out, *statement.reads())
    indices = [i for a in accesses for i in a.indices if loop in i.names()]
    plain = all(i == variable(loop) for i in indices) and not any(loop in c.names() for c in statement.where)
    return plain and loop not in {step.name for step in statement.seq}


def _apart(program: Program, name: str, dimension: int, digits: Digits) -> Program:
    """One dimension as several; loops over all of it too."""
    statements = tuple(_counted(program, s, name, dimension, digits) for s in program.statements)
    tensors = []
    for tensor in program.tensors:
        shape = tensor.shape
        if tensor.name == name:
            shape = (*shape[:dimension], *(affine((), extent) for extent in digits), *shape[dimension + 1 :])
        tensors.append(replace(tensor, shape=shape))
    return replace(program, tensors=tuple(tensors), statements=statements)


def _counted(program: Program, statement: Statement, name: str, dimension: int, digits: Digits) -> Statement:
    """A statement with a loop for each digit, and an index for each in every access of the tensor."""
    for access in (statement.out, *statement.reads()):
        if access.tensor == name and len(access.indices[dimension].terms) == 1:
            statement = _with_digits(program, statement, next(iter(access.indices[dimension].names())), digits)
    extents = {loop.name: loop.extent.const for loop in statement.loops}

    def taken_apart(access: Access) -> Access:
        if access.tensor != name:
            return access
        terms = sorted(access.indices[dimension].terms, key=lambda term: -term[1])
        inner = tuple(variable(str(atom)) for atom, _ in terms)
        assert tuple(extents[str(atom)] for atom, _ in terms) == digits
        return Access(name, (*access.indices[:dimension], *inner, *access.indices[dimension + 1 :]))

    def changed(e: Expr) -> Expr:
        return Read(taken_apart(e.access)) if isinstance(e, Read) else e

    return replace(statement, out=taken_apart(statement.out), value=rebuild(statement.value, changed))


def _with_digits(program: Program, statement: Statement, loop: str, digits: Digits) -> Statement:
    """A loop as one for each digit."""
    taken = {x.name for x in statement.all_loops} | {t.name for t in program.tensors}
    names = [name for name in (f"d{n}" for n in range(len(taken) + len(digits))) if name not in taken][: len(digits)]
    terms, step = [], 1
    for name, extent in zip(reversed(names), reversed(digits), strict=True):
        terms.append((name, step))
        step *= extent
    loops = tuple(x for x in statement.loops if x.name != loop)
    new = tuple(Loop(name, affine((), extent)) for name, extent in zip(names, digits, strict=True))
    return statement.substitute({loop: affine(terms)}, (*loops, *new))


def _accesses(program: Program, name: str) -> Iterator[tuple[Statement, Access]]:
    for statement in program.statements:
        for access in (statement.out, *statement.reads()):
            if access.tensor == name:
                yield statement, access
