"""Loops of one iteration, for instructions with more loops than a statement has.

    for i<64, k<32: y[i] += a[i, k] * x[k]        ->        for i<64, k<32, u0<1, u1<1: y[i] += a[i, k] * x[k]

A matrix product does a product with one vector when one of its loops runs over ``u0``, once, and is padded.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dovetail.ir.index import constant
from dovetail.ir.program import Loop, Program, Statement

SPARE = 2
"""Loops that are added."""


def with_unit_loops(program: Program, numbers: Collection[int]) -> Program:
    """``program`` with loops of one iteration in these statements."""
    found = [_with_loops(s) if n in numbers else s for n, s in enumerate(program.statements)]
    return replace(program, statements=tuple(found))


def _with_loops(statement: Statement) -> Statement:
    taken = {loop.name for loop in statement.all_loops} | statement.names()
    names = (f"u{n}" for n in range(len(taken) + SPARE))
    free = [name for name in names if name not in taken][:SPARE]
    return replace(statement, loops=(*statement.loops, *(Loop(name, constant(1)) for name in free)))
