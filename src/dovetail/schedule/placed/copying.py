"""Statements that only move elements: into a scratchpad as they will lie in the result, and out again from there.

    for p<14, c<64, r<3 where 0 <= p+r-1 < 14: cols[p, r, c] += x[p+r-1, c]      (cols starts at 0, and is there once)

A block of the result is held; the read is one fill of it, with zeros where the source has ended; the drain is the
result's own. What copies the machine has, and whether lines are cut or follow each other, is found as for any fill.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from dovetail.ir.expr import Read
from dovetail.ir.index import Access, Condition
from dovetail.ir.plan import Leaf
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.targets.model import Instruction, Target

Bound = tuple[tuple[str, tuple[str, ...]], ...]


def moved_access(program: Program, number: int) -> Access | None:
    """What a statement moves as it is, element by element; None where it does anything else."""
    statement = program.statements[number]
    value, out = statement.value, statement.out
    if not isinstance(value, Read) or value.access.tensor == out.tensor or statement.reduced:
        return None
    if not all(_is_plain(i.terms) and i.is_affine for i in (*out.indices, *value.access.indices)):
        return None
    if any(len(i.terms) > 1 or any(c != 1 for _, c in i.terms) for i in out.indices):
        return None
    return value.access if _starts_alone(program, number) and _pads(program, statement, value.access) else None


def _is_plain(terms: tuple[tuple[object, int], ...]) -> bool:
    return all(isinstance(atom, str) and c > 0 for atom, c in terms)


def _starts_alone(program: Program, number: int) -> bool:
    """Whether what it adds to is zero everywhere, or nothing is added to."""
    statement = program.statements[number]
    if statement.combine is Combine.SET:
        return not statement.where
    writers = [n for n, s in enumerate(program.statements) if s.out.tensor == statement.out.tensor]
    is_given = program.tensor(statement.out.tensor).role is Role.INOUT
    return statement.combine is Combine.ADD and writers == [number] and not is_given


def _pads(program: Program, statement: Statement, access: Access) -> bool:
    """Whether every condition only says where the source ends."""
    return all(ending(program, access, condition) for condition in statement.where)


def ending(program: Program, access: Access, condition: Condition) -> list[int]:
    """Dimensions whose first or last index a condition asks for."""
    shape = program.tensor(access.tensor).shape
    return [
        dimension
        for dimension, index in enumerate(access.indices)
        if not condition.equal and condition.index in (index, shape[dimension] - 1 - index)
    ]


def is_copying(program: Program, target: Target, leaf: Leaf) -> bool:
    """Whether a leaf only moves, from main memory."""
    if leaf.instruction not in target.by_name or moved_access(program, leaf.statement) is None:
        return False
    return _leaves_main(target.instruction(leaf.instruction), target)


def copies_into(target: Target) -> Iterator[Instruction]:
    """Copies from main memory, the first into each kind of place."""
    seen: set[tuple[str, str, str]] = set()
    for instruction in target.instructions:
        if not _leaves_main(instruction, target) or instruction.broadcast or instruction.emit:
            continue
        sink = instruction.operand(instruction.program.statements[0].out.tensor)
        key = (sink.memory, sink.layout, str(sink.dtype))
        if key not in seen:
            seen.add(key)
            yield instruction


def touches_main(instruction: Instruction, target: Target) -> bool:
    """Whether it is a copy from or to main memory."""
    return instruction.is_copy and any(o.memory == target.main.name for o in instruction.operands)


def _leaves_main(instruction: Instruction, target: Target) -> bool:
    """Whether it is a copy from main memory to another one."""
    out = instruction.program.statements[0].out.tensor
    main = target.main.name
    return instruction.is_copy and all((o.memory == main) is (o.name != out) for o in instruction.operands)


def bounds_of(instruction: Instruction, statement: Statement) -> Iterator[Bound]:
    """Loops of the result for the loops of a copy: its innermost, or two of them as one, for the innermost; any others
    for those around."""
    walked = [str(i.terms[0][0]) for i in instruction.program.statements[0].out.indices]
    order = [str(i.terms[0][0]) for i in statement.out.indices if i.terms]
    extents = {loop.name: loop.extent.const for loop in statement.loops}
    long = [x for x in order if extents.get(x, 1) > 1] or order[-1:]
    for inner in (long[-1:], long[-2:]):
        others = combinations(long[: -len(inner)], min(len(walked) - 1, len(long) - len(inner)))
        for outer in others if len(inner) == 1 or len(long) > 1 else ():
            groups = [tuple(inner), *((x,) for x in reversed(outer))]
            taken = dict(zip(reversed(walked), groups, strict=False))
            yield tuple((name, taken.get(name, ())) for name in walked)
