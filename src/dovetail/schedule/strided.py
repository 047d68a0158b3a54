"""Elements that are read in strides, and again and again, are first put side by side.

    for k<64, p<28, q<28, c<256: y[k, p, q] += x[c, 2*p, 2*q] * w[k, c]
 -> for c<256, p<28, q<28: s[c, p, q] = x[c, 2*p, 2*q]
    for k<64, p<28, q<28, c<256: y[k, p, q] += s[c, p, q] * w[k, c]

The copy costs one pass; afterwards the dimensions can be joined, and every vector is one load.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from dovetail.ir.expr import Expr, Read, rebuild
from dovetail.ir.index import Access, Index, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor

WORTH = 32
"""How often each element must be read for a copy to pay."""


def gather_strided(program: Program) -> Program:
    """``program`` with a copy before each statement that reads in strides often enough."""
    tensors, statements = list(program.tensors), list[Statement]()
    for statement in program.statements:
        for access in dict.fromkeys(statement.reads()):
            if not _worth(program, statement, access):
                continue
            name = _fresh(tensors)
            loops = tuple(_loop(statement, i) for i in access.indices if i.terms)
            indices = tuple(variable(loop.name) for loop in loops)
            copied = Access(name, indices)
            shape = tuple(loop.extent for loop in loops)
            tensors.append(Tensor(Role.TEMP, name, program.tensor(access.tensor).dtype, shape))
            statements.append(Statement(loops, copied, Combine.SET, Read(access), line=statement.line))
            statement = replace(statement, value=_replaced(statement.value, access, copied))
        statements.append(statement)
    return replace(program, tensors=tuple(tensors), statements=tuple(statements))


def _worth(program: Program, statement: Statement, access: Access) -> bool:
    """Every dimension is walked by one loop of its own, one of them in strides, and each element is read often."""
    role = program.tensor(access.tensor).role
    if role is Role.CONST or statement.seq or statement.where or access.tensor == statement.out.tensor:
        return False
    used: set[str] = set()
    for index in access.indices:
        if not index.is_affine or len(index.terms) > 1 or any(c < 1 for _, c in index.terms):
            return False
        names = index.names()
        if names & used or names - {loop.name for loop in statement.loops}:
            return False
        used |= names
    if all(c == 1 for i in access.indices for _, c in i.terms):
        return False
    others = [loop.extent for loop in statement.loops if loop.name not in used]
    return all(e.is_constant for e in others) and prod(e.const for e in others) >= WORTH


def _loop(statement: Statement, index: Index) -> Loop:
    (name,) = index.names()
    return next(loop for loop in statement.loops if loop.name == name)


def _replaced(value: Expr, access: Access, copied: Access) -> Expr:
    return rebuild(value, lambda e: Read(copied) if isinstance(e, Read) and e.access == access else e)


def _fresh(tensors: list[Tensor]) -> str:
    names = {t.name for t in tensors}
    return next(name for n in range(len(names) + 1) if (name := f"strided{n}") not in names)
