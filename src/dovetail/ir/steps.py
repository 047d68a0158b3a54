"""Steps of a ``seq`` brought to what a planner can keep in registers: what a step makes is a value of that step.

What only follows a sequence, step by step, becomes part of its steps:

    seq t<T: for j<8: h[t + 1, j] = ...            seq t<T: for j<8: h[t + 1, j] = ...
    for t<T, j<8: y[t, j] = h[t + 1, j]       ->   seq t<T: for j<8: y[t, j] = h[t + 1, j]

A state that its own step reads is a value first:

    seq t<T: for j<8: h[t + 1, j] = ...            seq t<T: for j<8: h_now[t, j] = ...
    seq t<T: for j<8: y[t, j] = h[t + 1, j]   ->   seq t<T: for j<8: h[t + 1, j] = h_now[t, j]
                                                   seq t<T: for j<8: y[t, j] = h_now[t, j]

Nothing is computed otherwise than before, so every value keeps its bits.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.expr import Expr, Read, rebuild, walk
from dovetail.ir.index import Access, Index, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor


def with_whole_steps(program: Program) -> Program:
    """``program`` with what follows a sequence in its steps, and states as values of their steps."""
    if not any(s.seq for s in program.statements):
        return program
    return _with_values(_with_followers(program))


# -- statements that follow


def _with_followers(program: Program) -> Program:
    while (shorter := _joined(program)) is not None:
        program = shorter
    return program


def _joined(program: Program) -> Program | None:
    """The program with one more statement in the steps of the sequence before it."""
    for group in program.groups():
        seq = program.statements[group[0]].seq
        if len(seq) != 1:
            continue
        for number in range(group[-1] + 1, len(program.statements)):
            found = _as_step(program, group, number)
            if found is not None and _is_free(program, group[-1] + 1, number):
                statements = list(program.statements)
                del statements[number]
                statements.insert(group[-1] + 1, found)
                longer = replace(program, statements=tuple(statements))
                if len(longer.groups()) == len(program.groups()) - 1:  # sequences that were apart stay so
                    return longer
    return None


def _as_step(program: Program, group: tuple[int, ...], number: int) -> Statement | None:
    """Statement ``number`` as one of the steps of ``group``; None where it is not about one step after the other."""
    statement = program.statements[number]
    (step,) = program.statements[group[0]].seq
    if statement.seq or statement.combine is not Combine.SET:
        return None
    made = {program.statements[n].out.tensor: n for n in group}
    loops = {_step_loop(program.statements[made[a.tensor]], a, step) for a in statement.reads() if a.tensor in made}
    if len(loops) != 1 or any(True for _ in statement.out.reads()):
        return None
    (name,) = loops
    extents = {loop.name: loop.extent for loop in statement.loops}
    free = step.name == name or step.name not in extents
    if extents.get(name) != step.extent or name not in statement.out.names() or not free:
        return None
    writers = [program.statements[n].out.tensor for n in group]
    if any(writers.count(a.tensor) > 1 for a in statement.reads()) or _is_touched(program, group, statement):
        return None
    rest = tuple(loop for loop in statement.loops if loop.name != name)
    return replace(statement.substitute({name: variable(step.name)}, rest), seq=(step,))


def _step_loop(writer: Statement, access: Access, step: Loop) -> str:
    """The loop with which ``access`` reads what ``writer`` makes in one step; "" where it reads of several."""
    moving = [d for d, index in enumerate(writer.out.indices) if step.name in index.names()]
    if len(moving) != 1 or not writer.out.indices[moving[0]].is_affine:
        return ""
    own, theirs = writer.out.indices[moving[0]], access.indices[moving[0]]
    name = next((str(n) for n, c in theirs.terms if c == own.coefficient(step.name)), "")
    return name if name and own.substitute({step.name: variable(name)}) == theirs and len(theirs.names()) == 1 else ""


def _is_touched(program: Program, group: tuple[int, ...], statement: Statement) -> bool:
    """Whether the group reads or writes what ``statement`` makes."""
    name = statement.out.tensor
    return any(name in {s.out.tensor, *(a.tensor for a in s.reads())} for s in (program.statements[n] for n in group))


def _is_free(program: Program, first: int, number: int) -> bool:
    """Whether statement ``number`` needs nothing of those from ``first`` on, nor they of it, nor of each other's."""
    statement = program.statements[number]
    mine = {a.tensor for a in statement.reads()}
    for other in program.statements[first:number]:
        theirs = {a.tensor for a in other.reads()}
        if other.out.tensor in mine or statement.out.tensor in theirs or statement.out.tensor == other.out.tensor:
            return False
    return True


# -- states that are read in the step that makes them


def _with_values(program: Program) -> Program:
    for group in program.groups():
        if len(program.statements[group[0]].seq) != 1:
            continue
        for number in group:
            found = _with_value(program, group, number)
            if found is not None:
                return _with_values(found)
    return program


def _with_value(program: Program, group: tuple[int, ...], number: int) -> Program | None:
    """The program where what statement ``number`` adds to a state is a value first, if its step reads it later on."""
    writer = program.statements[number]
    (step,) = writer.seq
    state = program.tensor(writer.out.tensor)
    dimension = _next_step(writer, step)
    once = sum(program.statements[n].out.tensor == state.name for n in group) == 1
    if dimension is None or state.role is Role.INOUT or writer.where or not once or isinstance(writer.value, Read):
        return None
    later = [n for n in group if n > number and _reads(program.statements[n], state.name, dimension, writer)]
    if not later:
        return None
    taken = {t.name for t in program.tensors} | {s.name for s in program.sizes}
    taken |= {loop.name for s in program.statements for loop in s.all_loops}
    shape = (*state.shape[:dimension], step.extent, *state.shape[dimension + 1 :])
    now = Tensor(Role.TEMP, _fresh(f"{state.name}_now", taken), state.dtype, shape)

    def value(access: Access) -> Access:
        return Access(now.name, (*access.indices[:dimension], variable(step.name), *access.indices[dimension + 1 :]))

    def change(e: Expr) -> Expr:
        here = isinstance(e, Read) and e.access.tensor == state.name
        return Read(value(e.access)) if here and isinstance(e, Read) and _is_here(e, dimension, writer) else e

    statements = list(program.statements)
    for n in later:
        statements[n] = replace(statements[n], value=rebuild(statements[n].value, change))
    statements[number : number + 1] = [
        replace(writer, out=value(writer.out)),
        replace(writer, value=Read(value(writer.out))),
    ]
    return replace(program, tensors=(*program.tensors, now), statements=tuple(statements))


def _next_step(writer: Statement, step: Loop) -> int | None:
    """The dimension along which a state goes from step to step: ``t + 1`` where it is written."""
    found = [d for d, index in enumerate(writer.out.indices) if step.name in index.names()]
    if len(found) != 1 or writer.combine is not Combine.SET or any(True for _ in writer.out.reads()):
        return None
    index = writer.out.indices[found[0]]
    plain = index.is_affine and index == variable(step.name) + index.const and index.const > 0
    return found[0] if plain else None


def _reads(statement: Statement, state: str, dimension: int, writer: Statement) -> bool:
    """Whether the value of ``statement``, and nothing else of it, reads ``state`` where its step has written it."""
    inside = [e for e in walk(statement.value) if isinstance(e, Read) and e.access.tensor == state]
    here = [e for e in inside if _is_here(e, dimension, writer)]
    return bool(here) and sum(a.tensor == state for a in statement.reads()) == len(inside)


def _is_here(e: Read, dimension: int, writer: Statement) -> bool:
    return e.access.indices[dimension] == writer.out.indices[dimension]


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def steps_apart(one: Index, other: Index, step: str) -> bool:
    """Whether two indices are never the same in one step: ``t`` and ``t + 1``."""
    gap = one - other
    return step in one.names() and one.is_affine and other.is_affine and gap.is_constant and gap.const != 0
