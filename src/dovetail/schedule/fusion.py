"""Which later statements can run on a register tile while it is still in registers: fusion as placement."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.ir.index import Index, variable
from dovetail.ir.plan import Leaf
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.schedule.facts import Facts
from dovetail.schedule.tiling import Tiling


@dataclass(frozen=True, slots=True)
class Followers:
    """Pointwise statements over the same output, in order; ``loops`` gives each one's name for a kept loop."""

    statements: tuple[int, ...] = ()
    loops: dict[int, dict[str, str]] | None = None
    between: tuple[str, ...] = ()
    """Temporaries that pass only between them, and stay in registers."""

    def pairs(self, number: int, loop: str) -> tuple[tuple[int, str], ...]:
        """The loop and the same loop of every follower."""
        names = self.loops or {}
        return ((number, loop), *((n, names[n][loop]) for n in self.statements if loop in names[n]))

    def leaf(self, number: int, tiling: Tiling) -> Leaf:
        names = (self.loops or {})[number]
        lanes = names.get(tiling.lanes, "")
        return Leaf(number, lanes, tiling.width if lanes else 1)


def followers_of(program: Program, facts: Facts, done: set[int]) -> Followers:
    """The longest run of pointwise statements right after ``facts`` that read its result where it was made."""
    if facts.statement.seq or program.tensor(facts.out.access.tensor).role is not Role.TEMP:
        return Followers()
    chain: list[int] = []
    loops: dict[int, dict[str, str]] = {}
    made = {facts.out.access.tensor: facts.statement.out.indices}
    for number in range(facts.number + 1, len(program.statements)):
        statement = program.statements[number]
        names = _same_points(program, facts, statement, made)
        if names is None or number in done:
            break
        chain.append(number)
        loops[number] = names
        back = {new: variable(old) for old, new in names.items()}
        made[statement.out.tensor] = tuple(i.substitute(back) for i in statement.out.indices)
    between = tuple(
        program.statements[n].out.tensor
        for n in chain
        if program.tensor(program.statements[n].out.tensor).role is Role.TEMP
    )
    if not chain or _read_later(program, chain, (facts.out.access.tensor, *between)):
        return Followers()
    return Followers(tuple(chain), loops, between)


def _same_points(
    program: Program, facts: Facts, statement: Statement, made: dict[str, tuple[Index, ...]]
) -> dict[str, str] | None:
    """Kept loop -> the statement's own name for it, when it is pointwise over exactly those loops."""
    if statement.combine is not Combine.SET or statement.where or statement.seq:
        return None
    own = [a for a in statement.reads() if a.tensor in made]
    if not own or len(statement.loops) != len(facts.kept):
        return None
    first = made[own[0].tensor]
    names: dict[str, str] = {}
    for mine, theirs in zip(first, own[0].indices, strict=True):
        for loop in facts.kept:
            if mine == variable(loop) and len(theirs.terms) == 1 and not theirs.const:
                names[loop] = str(theirs.terms[0][0])
    extents = {loop.name: loop.extent for loop in statement.loops}
    wanted = {loop.name: loop.extent for loop in facts.statement.loops}
    if set(names) != set(facts.kept) or any(extents.get(names[n]) != wanted[n] for n in names):
        return None
    forward = {old: variable(new) for old, new in names.items()}
    for access in own:
        expected = tuple(i.substitute(forward) for i in made[access.tensor])
        if access.indices != expected:
            return None
    written = statement.out.names()
    return names if set(names.values()) <= written else None


def _read_later(program: Program, chain: list[int], tensors: tuple[str, ...]) -> bool:
    """Someone outside the chain reads a temporary of it."""
    return any(
        access.tensor in tensors
        for number, statement in enumerate(program.statements)
        if number not in chain
        for access in statement.reads()
    )
