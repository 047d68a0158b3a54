"""Which result of a program may lie where an operand lies that nobody needs any more.

    for i<8, j<4: y[i, j] = x[i, j] * 2 + b[j]        y may lie where x does; not where b does

One statement, and the operand is read at the element that is written and nowhere else: every point of a statement runs
once, so nothing reads what has been written over. Sums are left alone, since their code may keep parts of a result in
its place; so is anything that is read through another index.
"""

from __future__ import annotations

from dovetail.ir.index import Index
from dovetail.ir.program import Combine, Program, Role, Statement, Tensor


def may_take_over(program: Program) -> tuple[tuple[str, str], ...]:
    """(operand, result) by their names in ``program``."""
    if len(program.statements) != 1 or len(program.outputs) != 1:
        return ()
    (statement,), (result,) = program.statements, program.outputs
    if statement.combine is not Combine.SET or statement.seq or statement.reduced or result.role is not Role.OUT:
        return ()
    operands = (t for t in program.tensors if t.role is Role.IN and _extent(t) == _extent(result))
    return tuple((t.name, result.name) for t in operands if _reads_its_own(statement, t))


def _reads_its_own(statement: Statement, tensor: Tensor) -> bool:
    """Whether each point reads of ``tensor`` the element that it writes of the result, if any."""
    found = [access.indices for access in statement.reads() if access.tensor == tensor.name]
    return bool(found) and all(indices == statement.out.indices for indices in found)


def _extent(tensor: Tensor) -> tuple[tuple[Index, ...], int]:
    return tensor.shape, tensor.dtype.bytes
