"""Neighbouring dimensions that are always walked together become one.

    for k<64, p<56, q<56, c<64: y[k, p, q] += x[c, p, q] * w[k, c]
 -> for k<64, p<3136,      c<64: y[k, p] += x[c, p] * w[k, c]

The arrays stay as they are in memory: only their description changes, so the result is the same bits.
Loops of one iteration go too, and statements of none; what is read in strides and often is copied together first,
or left as it lies (``schedule/flats``).
Steps of a sequence become what a planner can keep in registers (``ir/steps``, ``ir/inline_steps``, ``ir/gates``), and
sequences that need nothing of each other one (``ir/abreast``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dovetail.ir.abreast import with_sequences_abreast
from dovetail.ir.expr import Expr, Position, Read, rebuild, walk
from dovetail.ir.gates import with_parts_apart
from dovetail.ir.index import Access, Condition, Index, affine, constant, variable
from dovetail.ir.inline_steps import with_values_inside
from dovetail.ir.program import Combine, Loop, Program, Statement, Tensor
from dovetail.ir.steps import with_whole_steps
from dovetail.schedule.empty import without_empty_statements
from dovetail.schedule.facts import is_contraction
from dovetail.schedule.strided import gather_strided
from dovetail.schedule.sums import with_wide_sums


def collapse(program: Program, gathers: bool = True) -> Program:
    """``program`` with as few loops and dimensions as describe the same memory accesses.

    ``gathers``: what is read in strides, and often, is copied together first."""
    program = with_wide_sums(without_empty_statements(program))
    program = _without_unit_dimensions(_without_unit_loops(program))
    program = _with_joined_dimensions(gather_strided(program) if gathers else program)
    while (pair := _joinable_in_one(program)) is not None:
        program = _joined(program, *pair)
    return with_parts_apart(with_sequences_abreast(with_values_inside(with_whole_steps(program))))


def joined(program: Program) -> Program:
    """``program`` with dimensions joined that are walked together, and without those of one element: no more."""
    return _with_joined_dimensions(_without_unit_dimensions(program))


def _with_joined_dimensions(program: Program) -> Program:
    while (pair := _joinable(program)) is not None:
        program = _joined(program, *pair)
    return program


def _without_unit_loops(program: Program) -> Program:
    statements = []
    for s in program.statements:
        unit = {loop.name: constant(0) for loop in s.loops if loop.extent == constant(1)}
        statements.append(s.substitute(unit, tuple(loop for loop in s.loops if loop.name not in unit)) if unit else s)
    return replace(program, statements=tuple(statements))


def _without_unit_dimensions(program: Program) -> Program:
    """Dimensions of extent 1 that are always read at 0."""
    unit = {t.name: {d for d, extent in enumerate(t.shape) if extent == constant(1)} for t in program.tensors}
    if not any(unit.values()):
        return program
    for statement in program.statements:
        for access in _direct(statement):
            unit[access.tensor] -= {d for d, index in enumerate(access.indices) if index != constant(0)}

    def change(access: Access) -> Access:
        gone = unit[access.tensor]
        return Access(access.tensor, _without(access.indices, gone)) if gone else access

    tensors = tuple(replace(t, shape=_without(t.shape, unit[t.name])) for t in program.tensors)
    return replace(program, tensors=tensors, statements=tuple(_map_accesses(s, change) for s in program.statements))


def _without(indices: tuple[Index, ...], gone: set[int]) -> tuple[Index, ...]:
    return tuple(index for d, index in enumerate(indices) if d not in gone)


# -- joining

Joint = dict[str, int]
"""Tensor -> the dimension whose pair with the next one is joined."""
Names = dict[int, tuple[str, str]]
"""Statement number -> its outer and inner loop."""


def _joinable(program: Program) -> tuple[Joint, Names] | None:
    """A pair of loops in some statements that walk pairs of whole dimensions everywhere together."""
    direct = [_direct(statement) for statement in program.statements]
    for number, statement in enumerate(program.statements):
        for d in range(len(statement.out.indices) - 1):
            found = _close(program, direct, {statement.out.tensor: d}, {})
            if found is not None and number in found[1]:
                return found
    return None


def _joinable_in_one(program: Program) -> tuple[Joint, Names] | None:
    """A pair of loops of a sum of products, whose tensors nobody else walks with loops of their own in both dimensions.

    for i<8: t[i, 0] = x[i]                            for i<8: t[2*i] = x[i]
    for i<8: t[i, 1] = z[i]                       ->   for i<8: t[2*i + 1] = z[i]
    for i<8, j<2, k<9: y[i, j, k] += t[i, j] * w[k]    for i<16, k<9: y[i, k] += t[i] * w[k]
    """
    for number, statement in enumerate(program.statements):
        if len(program.statements) == 1 or not is_contraction(statement):
            continue
        for access in _direct(statement):
            for d in range(len(access.indices) - 1):
                loops = _pair(statement, access, d)
                joint = None if loops is None else _grow(program, number, *loops, {})
                if loops is None or not joint or not _is_free(program, number, joint):
                    continue
                if all(_whole(program, tensor, at, statement, loops) for tensor, at in joint.items()):
                    return joint, {number: loops}
    return None


def _is_free(program: Program, number: int, joint: Joint) -> bool:
    """Everybody but one statement has a fixed place in one of the two dimensions, or is a copy from elsewhere."""
    for other, statement in enumerate(program.statements):
        for access in _direct(statement):
            d = joint.get(access.tensor)
            if d is None or other == number:
                continue
            places = access.indices[d : d + 2]
            copied = access is statement.out and isinstance(statement.value, Read)
            if not all(i.is_affine for i in places) or not (copied or any(i.is_constant for i in places)):
                return False
    return True


def _close(program: Program, direct: list[list[Access]], joint: Joint, names: Names) -> tuple[Joint, Names] | None:
    """Start from one pair of dimensions and collect every pair that must be joined with it."""
    changed = True
    while changed:
        changed = False
        for tensor, d in list(joint.items()):
            for number, statement in enumerate(program.statements):
                for access in direct[number]:
                    if access.tensor != tensor:
                        continue
                    if _is_copy(statement, joint):
                        continue
                    loops = _pair(statement, access, d)
                    if loops is None or names.get(number, loops) != loops:
                        return None
                    if not _whole(program, tensor, d, statement, loops):
                        return None
                    changed |= number not in names
                    names[number] = loops
        for number, (outer, inner) in list(names.items()):
            grown = _grow(program, number, outer, inner, joint)
            if grown is None:
                return None
            changed |= bool(grown)
            joint |= grown
    return joint, names


def _is_copy(statement: Statement, joint: Joint) -> bool:
    """It fills a temporary from elsewhere in strides: its loops stay two, only the place it writes is spelled anew."""
    if statement.out.tensor not in joint or statement.combine is not Combine.SET or statement.where:
        return False
    value = statement.value
    return isinstance(value, Read) and any(abs(c) > 1 for i in value.access.indices for _, c in i.terms)


def _grow(program: Program, number: int, outer: str, inner: str, joint: Joint) -> Joint | None:
    """Other tensors a statement walks with the same two loops; None when a use forbids joining."""
    statement = program.statements[number]
    if any({outer, inner} & c.names() for c in statement.where) or _counted(statement.value, outer, inner):
        return None
    grown: Joint = {}
    for access in _direct(statement):
        uses = [d for d, i in enumerate(access.indices) if {outer, inner} & i.names()]
        if not uses:
            continue
        if uses != [uses[0], uses[0] + 1] or access.indices[uses[0]] != variable(outer):
            return None
        if access.indices[uses[1]] != variable(inner):
            return None
        known = joint.get(access.tensor, grown.get(access.tensor, uses[0]))
        if known != uses[0]:
            return None
        if access.tensor not in joint:
            grown[access.tensor] = uses[0]
    return grown


def _direct(statement: Statement) -> list[Access]:
    return [statement.out, *statement.reads()]


def _counted(value: Expr, outer: str, inner: str) -> bool:
    return any(isinstance(n, Position) and {outer, inner} & n.index.names() for n in walk(value))


def _pair(statement: Statement, access: Access, d: int) -> tuple[str, str] | None:
    """The two loops that walk dimensions d and d + 1, when each does so alone."""
    first, second = access.indices[d], access.indices[d + 1]
    loops = {loop.name for loop in statement.loops}
    for index in (first, second):
        if index.const or len(index.terms) != 1 or index.terms[0][1] != 1 or index.terms[0][0] not in loops:
            return None
    outer, inner = str(first.terms[0][0]), str(second.terms[0][0])
    return (outer, inner) if outer != inner else None


def _whole(program: Program, tensor: str, d: int, statement: Statement, loops: tuple[str, str]) -> bool:
    """The inner loop covers its whole dimension, and the extents are numbers (or one of them is)."""
    shape = program.tensor(tensor).shape
    extents = {loop.name: loop.extent for loop in statement.loops}
    same = extents[loops[0]] == shape[d] and extents[loops[1]] == shape[d + 1]
    return same and shape[d + 1].is_constant


def _joined(program: Program, joint: Joint, names: Names) -> Program:
    tensors = tuple(_joined_shape(t, joint[t.name]) if t.name in joint else t for t in program.tensors)
    statements = []
    for number, statement in enumerate(program.statements):
        if number in names:
            statement = _joined_statement(statement, joint, *names[number])
        else:
            statement = _map_accesses(statement, lambda a: _flattened(program, a, joint))
        statements.append(statement)
    return replace(program, tensors=tensors, statements=tuple(statements))


def _flattened(program: Program, access: Access, joint: Joint) -> Access:
    """The same place, where two dimensions of its tensor are one."""
    d = joint.get(access.tensor)
    if d is None:
        return access
    merged = access.indices[d] * program.tensor(access.tensor).shape[d + 1].const + access.indices[d + 1]
    return Access(access.tensor, (*access.indices[:d], merged, *access.indices[d + 2 :]))


def _joined_shape(tensor: Tensor, d: int) -> Tensor:
    merged = tensor.shape[d] * tensor.shape[d + 1].const
    return replace(tensor, shape=(*tensor.shape[:d], merged, *tensor.shape[d + 2 :]))


def _joined_statement(statement: Statement, joint: Joint, outer: str, inner: str) -> Statement:
    extents = {loop.name: loop.extent for loop in statement.loops}
    merged = Loop(outer, extents[outer] * extents[inner].const)
    loops = tuple(merged if loop.name == outer else loop for loop in statement.loops if loop.name != inner)

    def change(access: Access) -> Access:
        d = joint.get(access.tensor)
        if d is None:
            return access
        return Access(access.tensor, (*access.indices[:d], variable(outer), *access.indices[d + 2 :]))

    return _map_accesses(replace(statement, loops=loops), change)


def _map_accesses(statement: Statement, change: Callable[[Access], Access]) -> Statement:
    def index(i: Index) -> Index:
        return i.map_atoms(lambda a: affine(((_inside(a), 1),)) if isinstance(a, Access) else None)

    def _inside(access: Access) -> Access:
        return change(Access(access.tensor, tuple(index(i) for i in access.indices)))

    def node(e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(_inside(e.access))
        return Position(index(e.index)) if isinstance(e, Position) else e

    where = tuple(Condition(index(c.index), c.equal) for c in statement.where)
    return replace(statement, out=_inside(statement.out), value=rebuild(statement.value, node), where=where)
