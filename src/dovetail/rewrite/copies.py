"""A sum of one term is the term.

    temp t: f32[8]                               temp t: f32[8]
    for i<8: t[i] += x[i]                 ->     for i<8: t[i] = x[i]

Rules fill what is not there with zeros by adding what is there to them; where all is there, nothing needs to be added.
The sign of a zero may change, as it may when sums are reordered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dovetail.ir.canonical import canonicalise
from dovetail.ir.program import Combine, Program, Role, Statement


def plain_copies(program: Program) -> Program:
    """Temporaries that are summed from one term everywhere are set instead."""
    writers = Counter(statement.out.tensor for statement in program.statements)
    temps = {tensor.name for tensor in program.tensors if tensor.role is Role.TEMP}

    def is_copy(statement: Statement) -> bool:
        alone = statement.out.tensor in temps and writers[statement.out.tensor] == 1
        once = statement.combine is Combine.ADD and not (statement.reduced or statement.where or statement.seq)
        return alone and once and _covers(program, statement)

    if not any(map(is_copy, program.statements)):
        return program
    statements = tuple(replace(s, combine=Combine.SET) if is_copy(s) else s for s in program.statements)
    return canonicalise(replace(program, statements=statements))


def _covers(program: Program, statement: Statement) -> bool:
    """Whether each index is a loop over its whole dimension, or the only one there is."""
    extents = {loop.name: loop.extent for loop in statement.loops}
    shape = program.tensor(statement.out.tensor).shape
    for index, extent in zip(statement.out.indices, shape, strict=True):
        single = index.is_constant and extent.is_constant and extent.const == 1
        name = next(iter(index.names()), "")
        plain = len(index.terms) == 1 and not index.const and index.terms[0][1] == 1 and extents.get(name) == extent
        if not (single or plain):
            return False
    return True
