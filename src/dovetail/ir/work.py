"""How much a program does at least: arithmetic operations, and bytes that go in and out once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from dovetail.ir.bind import extents
from dovetail.ir.expr import Apply, walk
from dovetail.ir.program import Program, Role, Statement


@dataclass(frozen=True, slots=True)
class Work:
    """``operations`` as the field counts them: points that a condition removes are counted, moves are not."""

    operations: int
    bytes: int


def work(program: Program, sizes: Mapping[str, int]) -> Work:
    """The work of one call; ``sizes`` has the value of every run-time size."""
    visible = [t for t in program.tensors if t.role is not Role.TEMP]
    return Work(
        sum(_operations(statement, sizes) for statement in program.statements),
        sum(tensor.dtype.bytes * prod(extents(tensor, sizes)) for tensor in visible),
    )


def _operations(statement: Statement, sizes: Mapping[str, int]) -> int:
    applied = sum(isinstance(node, Apply) for node in walk(statement.value))
    each = applied + (statement.combine.function is not None)
    return each * prod(loop.extent.evaluate(sizes) for loop in statement.all_loops)
