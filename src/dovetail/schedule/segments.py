"""Statements of a step that run on one tile: sums, then what each of their elements becomes.

    seq t<T: for b<B, g<4, j<n, k<n: u[t, b, g, j] += h[t, b, k] * r[g, j, k]   -- a sum
    seq t<T: for b<B, j<n: c[t + 1, b, j] = u[t, b, 0, j] * c[t, b, j] + ...    -- points of the loops b, j
    seq t<T: for b<B, j<n: h[t + 1, b, j] = u[t, b, 3, j] * ...

Sums may read what earlier steps wrote, points what the same point has made in this step: no unit waits for another
inside a segment. Units meet between two segments of which one needs the other; segments of recurrences that are walked
abreast come in the order in which they are ready, so that units meet as often as for one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dovetail.ir.index import Access, Index, variable
from dovetail.ir.program import Combine, Program, Role, Statement, touch
from dovetail.ir.steps import steps_apart
from dovetail.schedule.facts import Facts


@dataclass
class Segment:
    """``names``: for each statement, its own name of every loop of the first point; ``inside``: loops that a sum has
    beside those and its reduction, one for the parts of an element."""

    sums: list[int] = field(default_factory=list)
    points: list[int] = field(default_factory=list)
    names: dict[int, dict[str, str]] = field(default_factory=dict)
    inside: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def numbers(self) -> list[int]:
        return [*self.sums, *self.points]

    @property
    def loops(self) -> tuple[str, ...]:
        """The loops that all statements walk together, by the names of the first point."""
        return tuple(self.names[self.points[0]]) if self.points else ()

    def pairs(self, loop: str) -> tuple[tuple[int, str], ...]:
        return tuple((n, self.names[n][loop]) for n in self.numbers)


Parts = list[Segment | int]
"""Segments and single statements, in the order in which they run."""


def segments(program: Program, group: tuple[int, ...], facts: Callable[[int], Facts]) -> Parts:
    """The statements of ``group`` in segments of at least two; others by themselves."""
    maker = _Maker(program, facts)
    for number in group:
        maker.add(number)
    maker.close()
    return _as_ready(program, maker.found)


def _as_ready(program: Program, parts: Parts) -> Parts:
    """First what needs nothing that this step makes, then what needs the first, and so on."""
    numbers = [(part,) if isinstance(part, int) else tuple(part.numbers) for part in parts]
    statements = [[program.statements[n] for n in part] for part in numbers]
    turns: list[int] = []
    for place, mine in enumerate(statements):
        needed = [turns[n] for n in range(place) if touch(statements[n], mine)]
        turns.append(max(needed, default=-1) + 1)
    return [part for _, part in sorted(zip(turns, parts, strict=True), key=lambda found: found[0])]


class _Maker:
    def __init__(self, program: Program, facts: Callable[[int], Facts]) -> None:
        self.program, self.facts = program, facts
        self.found: Parts = []
        self.open = Segment()
        self.pending: list[int] = []
        """Sums of which no point has been seen yet."""

    def add(self, number: int) -> None:
        statement = self.program.statements[number]
        if self.is_sum(statement, number):
            if self.needs_open(statement):
                self.close()
            self.pending.append(number)
            return
        if self.is_point(statement, number) and (self.extended(number) or self.begins_another(number)):
            return
        if self.needs_open(statement) or self.is_needed(statement):
            self.close()
        if self.is_point(statement, number) and not self.open.points and self.begins(number):
            return
        self.found.append(number)

    def close(self) -> None:
        """What is open is done; sums that nobody asked for at their own points go first."""
        self.found += self.pending
        self.pending = []
        self.finish()

    def finish(self) -> None:
        """No more of the open segment; sums may still be asked for."""
        self.found += [self.open] if len(self.open.numbers) > 1 else self.open.numbers
        self.open = Segment()

    # -- statements

    def is_sum(self, statement: Statement, number: int) -> bool:
        facts = self.facts(number)
        temporary = self.program.tensor(statement.out.tensor).role is Role.TEMP
        once = sum(s.out.tensor == statement.out.tensor for s in self.program.statements) == 1
        plain = facts.is_contraction and facts.is_plain and bool(facts.reduced) and not statement.where
        return plain and temporary and once and facts.dynamic.isdisjoint(facts.reduced)

    def is_point(self, statement: Statement, number: int) -> bool:
        facts = self.facts(number)
        plain = statement.combine is Combine.SET and not statement.where and facts.is_plain
        return plain and not facts.reduced and not any(True for _ in statement.out.reads()) and bool(facts.kept)

    def needs_open(self, statement: Statement) -> bool:
        """Whether a statement reads what the open segment makes in this step."""
        return any(self.made_now(access) for access in statement.reads())

    def made_now(self, access: Access) -> list[int]:
        """The statements of the open segment that may have written what ``access`` reads, in this step."""
        found = []
        for number in (*self.pending, *self.open.numbers):
            statement = self.program.statements[number]
            if statement.out.tensor != access.tensor:
                continue
            (step,) = statement.seq[-1:]
            pairs = zip(statement.out.indices, access.indices, strict=True)
            if not any(steps_apart(own, theirs, step.name) for own, theirs in pairs):
                found.append(number)
        return found

    def is_needed(self, statement: Statement) -> bool:
        """Whether the open segment touches what a statement writes, so that this cannot go first."""
        for number in (*self.pending, *self.open.numbers):
            other = self.program.statements[number]
            if statement.out.tensor in {other.out.tensor, *(a.tensor for a in other.reads())}:
                return True
        return False

    # -- points

    def begins(self, number: int) -> bool:
        """A segment of points alone."""
        self.open.names[number] = {loop: loop for loop in self.facts(number).kept}
        self.open.points.append(number)
        return True

    def begins_another(self, number: int) -> bool:
        """Whether a point, with sums that nobody has asked for, is the first of a segment beside the open one."""
        statements = self.program.statements
        begun = [statements[n] for n in (number, *self.pending)]
        if not self.open.points or touch([statements[n] for n in self.open.numbers], begun):
            return False
        before, self.open = self.open, Segment()
        if not self.extended(number):
            self.open = before
            return False
        another, self.open = self.open, before
        self.finish()
        self.open = another
        return True

    def extended(self, number: int) -> bool:
        """Whether a point joins the open segment; it is noted there then."""
        statement = self.program.statements[number]
        own = [(access, self.made_now(access)) for access in statement.reads()]
        own = [(access, makers) for access, makers in own if makers]
        if not own or any(len(makers) != 1 for _, makers in own):
            return False
        names = dict[int, dict[str, str]]()
        inside = dict[int, tuple[str, ...]]()
        mine: dict[str, str] | None = None if self.open.points else {n: n for n in self.facts(number).kept}
        for access, (maker,) in own:
            known = self.open.names.get(maker)
            if known is not None:
                found = self.through(known, maker, access, statement)
                if found is None or (mine is not None and found != mine):
                    return False
                mine = found
        if mine is None:
            return False
        for access, (maker,) in own:
            if maker in self.open.names:
                continue
            aligned = self.aligned(maker, access, mine)
            if aligned is None or names.get(maker, aligned[0]) != aligned[0]:
                return False
            if inside.get(maker, aligned[1]) != aligned[1]:
                return False
            names[maker], inside[maker] = aligned
        if not self.same_extents(number, mine, names):
            return False
        self.open.names |= names | {number: mine}
        self.open.inside |= inside
        self.open.sums += [n for n in self.pending if n in names]
        self.pending = [n for n in self.pending if n not in names]
        self.open.points.append(number)
        return True

    def through(self, known: dict[str, str], maker: int, access: Access, statement: Statement) -> dict[str, str] | None:
        """The loops of ``statement`` for those of the segment, by an access to what ``maker`` made at its point."""
        out = self.program.statements[maker].out
        loops = {loop.name for loop in statement.loops}
        back = {own: loop for loop, own in known.items()}
        found: dict[str, str] = {}
        for own, theirs in zip(out.indices, access.indices, strict=True):
            name = next(iter(own.names()), "")
            if own == variable(name) and name in back:
                other = next(iter(theirs.names()), "")
                if theirs != variable(other) or other not in loops or found.get(back[name], other) != other:
                    return None
                found[back[name]] = other
            elif own == variable(name) and name in self.open.inside.get(maker, ()):
                if not theirs.is_constant:
                    return None
            elif own != theirs:
                return None
        return found if set(found) == set(known) and set(found.values()) == loops else None

    def aligned(
        self, maker: int, access: Access, mine: dict[str, str]
    ) -> tuple[dict[str, str], tuple[str, ...]] | None:
        """The loops of a sum for those of the segment, and those that it has beside them."""
        facts = self.facts(maker)
        back = {own: loop for loop, own in mine.items()}
        found: dict[str, str] = {}
        inside: list[str] = []
        for own, theirs in zip(facts.statement.out.indices, access.indices, strict=True):
            name = next(iter(own.names()), "")
            other = next(iter(theirs.names()), "")
            if own == variable(name) and name in facts.kept:
                if theirs == variable(other) and other in back:
                    found[back[other]] = name
                elif theirs.is_constant and name not in facts.dynamic:
                    inside.append(name)
                else:
                    return None
            elif own != theirs:
                return None
        return (found, tuple(inside)) if set(found) == set(mine) else None

    def same_extents(self, number: int, mine: dict[str, str], names: dict[int, dict[str, str]]) -> bool:
        first = self.open.points[0] if self.open.points else number
        known = self.open.names.get(first, mine)
        everyone = {number: mine, **names}
        return all(
            self.extent(n, own) == self.extent(first, known[loop])
            for n, loops in everyone.items()
            for loop, own in loops.items()
        )

    def extent(self, number: int, name: str) -> Index:
        return next(loop.extent for loop in self.program.statements[number].loops if loop.name == name)
