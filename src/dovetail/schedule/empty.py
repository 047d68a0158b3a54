"""Statements without any point go; what they would have started from is set.

out y: f32[8]   for i<8, k<0: y[i] += x[i, k]   ->   for e0<8: y[e0] = 0.0
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.expr import Literal
from dovetail.ir.index import Access, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Statement


def without_empty_statements(program: Program) -> Program:
    """``program`` without statements that have a loop of no iterations."""
    if not any(_is_empty(s) for s in program.statements):
        return program
    full = [s for s in program.statements if not _is_empty(s)]
    written = {s.out.tensor for s in full}
    found: list[Statement] = []
    for statement in program.statements:
        if not _is_empty(statement):
            found.append(statement)
        elif statement.out.tensor not in written:
            written.add(statement.out.tensor)
            found += _neutral(program, statement)
    return replace(program, statements=tuple(found))


def _is_empty(statement: Statement) -> bool:
    return any(loop.extent.is_constant and loop.extent.const <= 0 for loop in statement.all_loops)


def _neutral(program: Program, statement: Statement) -> list[Statement]:
    tensor = program.tensor(statement.out.tensor)
    empty = any(e.is_constant and e.const <= 0 for e in tensor.shape)
    if tensor.role is Role.INOUT or statement.combine is Combine.SET or empty:
        return []
    loops = tuple(Loop(f"e{d}", extent) for d, extent in enumerate(tensor.shape))
    out = Access(tensor.name, tuple(variable(loop.name) for loop in loops))
    return [
        Statement(loops, out, Combine.SET, Literal(statement.combine.neutral(tensor.dtype)), (), (), statement.line)
    ]
