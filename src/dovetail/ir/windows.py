"""Windows: sums over neighbours, as in convolutions and pooling."""

from __future__ import annotations

from dovetail.ir.index import ONE
from dovetail.ir.program import Program, Statement


def has_windows(program: Program) -> bool:
    """Whether a statement sums over windows: it reads where a loop of its result and one it sums over add up."""
    return any(_has_windows(statement) for statement in program.statements)


def _has_windows(statement: Statement) -> bool:
    summed = {loop.name for loop in statement.reduced if loop.extent != ONE}
    if not summed:
        return False
    indices = (index.names() for access in statement.reads() for index in access.indices)
    return any(names & summed and names - summed for names in indices)
