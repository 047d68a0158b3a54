"""Which map runs on which unit: a small problem of constraints, solved exactly.

    units   sm > warpgroup > lane                     the chain of a target, outermost first; a grid by its dimensions
    sites   maps that may be spread, each inside at most one other
    values  arrays that are stored, where, and at which sites they are written and read

A site runs in sequence or takes a stretch of the chain, ``map@sm*warpgroup``. Legal is what keeps to three rules.

    nesting   the first stretch on a path begins at the outermost unit, the next where the last ended: an inner unit is
              used only inside its outer one, and each once
    sharing   a value that instances of a unit read together lies in a memory that all of them see, or it is a copy, and
              an instruction of the target sends it to all of them
    results   a value that instances of a unit write together lies in a memory that all of them see

Sharing and results forbid units to single sites, nesting ties a site to those around it: counting, drawing evenly and
enumerating the solutions need no search that could fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod
from random import Random

from dovetail.base.errors import RewriteError
from dovetail.targets.model import MemoryKind, Target

Stretch = tuple[int, int]
"""Units of a chain from the first number up to the second; equal numbers: none, the map runs in sequence."""
Assignment = tuple[Stretch, ...]
"""A stretch for each site."""
Cost = Callable[["Problem", Assignment], float]
SEQUENTIAL: Stretch = (0, 0)
MOST_SOLUTIONS = 100_000
"""How many solutions ``cheapest`` looks at."""


@dataclass(frozen=True, slots=True)
class Level:
    """One unit of a chain, or one dimension of its grid."""

    name: str
    unit: str
    depth: int
    """The unit's place in the target's list."""
    dimension: int
    count: int


@dataclass(frozen=True, slots=True)
class Site:
    """A map that may be spread. ``parent`` is the number of the site around it, -1 for none; sites come before those
    inside them."""

    name: str
    parent: int
    extent: int = 1


@dataclass(frozen=True, slots=True)
class Value:
    """An array in a memory. ``scope`` is the innermost site around the place where it is made, -1 for none."""

    name: str
    memory: str
    scope: int
    writes: tuple[int, ...]
    """Sites that each write a part of it."""
    reads: tuple[int, ...]
    """Sites that each read of it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Sites of a term, the values they share, and a machine."""

    sites: tuple[Site, ...]
    values: tuple[Value, ...]
    target: Target
    chain: tuple[Level, ...]
    forbidden: tuple[Mapping[int, str], ...]
    """For each site the levels it must not use, and why."""

    def children(self, parent: int) -> tuple[int, ...]:
        return tuple(n for n, site in enumerate(self.sites) if site.parent == parent)

    def around(self, site: int, scope: int) -> Iterator[int]:
        """``site`` and those around it, out to ``scope``, which is not one of them."""
        while site not in (scope, -1):
            yield site
            site = self.sites[site].parent

    def text(self, stretch: Stretch) -> str:
        """``sm*warpgroup``; a whole grid by its unit's name; "" in sequence."""
        return stretch_text(self.chain, stretch)


def problem(sites: tuple[Site, ...], values: tuple[Value, ...], target: Target) -> Problem:
    """The problem, with what memories forbid worked out. A RewriteError where a value is in no memory of the target."""
    chain = unit_chain(target)
    bare = Problem(sites, values, target, chain, ())
    forbidden: list[dict[int, str]] = [{} for _ in sites]
    for value in values:
        seen = _sight(value, target)
        for kind, ends in (("write", value.writes), ("read", value.reads)):
            for site in dict.fromkeys(s for end in ends for s in bare.around(end, value.scope)):
                for number, level in enumerate(chain):
                    copied = kind == "read" and not value.writes and _is_broadcast(value.memory, level, target)
                    if level.depth > seen or copied:
                        continue
                    owner = target.memory(value.memory).per
                    why = f"'{value.name}' lies in '{value.memory}', one for each {owner}, and all of them {kind} it"
                    forbidden[site].setdefault(number, why)
    return Problem(sites, values, target, chain, tuple(forbidden))


def unit_chain(target: Target) -> tuple[Level, ...]:
    """What works in parallel, outermost first: units of which there are several, a grid dimension by dimension."""
    found: list[Level] = []
    for depth, unit in enumerate(target.units):
        several = [d for d, count in enumerate(unit.count) if count > 1] if not unit.runs else []
        for d in several:
            name = unit.name if len(several) == 1 else f"{unit.name}.{d}"
            found.append(Level(name, unit.name, depth, d, unit.count[d]))
    return tuple(found)


def stretch_text(chain: tuple[Level, ...], stretch: Stretch) -> str:
    """The names of a stretch of a chain."""
    levels = chain[stretch[0] : stretch[1]]
    names: list[str] = []
    for level in levels:
        whole = [x for x in chain if x.unit == level.unit]
        names.append(level.unit if all(x in levels for x in whole) else level.name)
    return "*".join(dict.fromkeys(names))


def broken(problem: Problem, assignment: Assignment) -> tuple[str, ...]:
    """Every rule that ``assignment`` breaks, in words; nothing when it is legal."""
    reasons: list[str] = []
    for number, stretch in enumerate(assignment):
        if stretch[0] == stretch[1]:
            continue
        site = problem.sites[number]
        before = _used(problem, assignment, site.parent)
        if stretch[0] != before:
            reasons.append(_misnested(problem, number, stretch, before))
        for level in range(*stretch):
            if level in problem.forbidden[number]:
                name = problem.chain[level].name
                reasons.append(f"{site.name} on {name}: {problem.forbidden[number][level]}")
    return tuple(reasons)


def _misnested(problem: Problem, number: int, stretch: Stretch, before: int) -> str:
    site, text = problem.sites[number], problem.text(stretch)
    if stretch[0] < before:
        again = problem.text((stretch[0], min(before, stretch[1])))
        return f"{site.name} on {text}: a map around it is on {again} already"
    missing = problem.text((before, stretch[0]))
    return f"{site.name} on {text}: it is not inside a map on {missing}"


def _used(problem: Problem, assignment: Assignment, site: int) -> int:
    """How much of the chain a site and those around it take."""
    return max((assignment[s][1] for s in problem.around(site, -1)), default=0)


def is_legal(problem: Problem, assignment: Assignment) -> bool:
    return not broken(problem, assignment)


def solutions(problem: Problem) -> Iterator[Assignment]:
    """All legal assignments, in a fixed order; the first has every map in sequence."""

    def rest(number: int, so_far: Assignment) -> Iterator[Assignment]:
        if number == len(problem.sites):
            yield so_far
            return
        start = _used(problem, so_far, problem.sites[number].parent)
        for stretch in _choices(problem, number, start):
            yield from rest(number + 1, (*so_far, stretch))

    return rest(0, ())


def _choices(problem: Problem, number: int, start: int) -> Iterator[Stretch]:
    """What a site may take when ``start`` levels are taken around it."""
    yield SEQUENTIAL
    for end in range(start + 1, len(problem.chain) + 1):
        if end - 1 in problem.forbidden[number]:
            return
        yield (start, end)


def count(problem: Problem) -> int:
    """How many legal assignments there are, without going through them."""
    return prod(_counts(problem)[n][0] for n in problem.children(-1))


def _counts(problem: Problem) -> list[list[int]]:
    """For each site and each number of levels taken around it, the assignments of the sites inside it and itself."""
    found = [[0] * (len(problem.chain) + 1) for _ in problem.sites]
    for number in reversed(range(len(problem.sites))):
        inside = problem.children(number)
        for start in range(len(problem.chain) + 1):
            ends = [max(start, end) for _, end in _choices(problem, number, start)]
            found[number][start] = sum(prod(found[child][end] for child in inside) for end in ends)
    return found


def draw(problem: Problem, seed: int) -> Assignment:
    """One legal assignment, each as likely as any other; the same for the same seed."""
    random, counts = Random(seed), _counts(problem)
    found: list[Stretch] = []
    for number, site in enumerate(problem.sites):
        start = _used(problem, tuple(found), site.parent)
        choices = list(_choices(problem, number, start))
        inside = problem.children(number)
        weights = [prod(counts[child][max(start, end)] for child in inside) for _, end in choices]
        found.append(random.choices(choices, weights)[0])
    return tuple(found)


def cheapest(problem: Problem, cost: Cost, most: int = MOST_SOLUTIONS) -> Assignment:
    """The legal assignment that costs least, the first of equals; a RewriteError where there are more than ``most``."""
    there_are = count(problem)
    if there_are > most:
        raise RewriteError(
            f"{there_are} ways to spread the maps, the limit is {most}",
            hint="draw some of them, or spread parts of the term by themselves",
        )
    return min(islice(solutions(problem), most), key=lambda assignment: cost(problem, assignment))


def steps(problem: Problem, assignment: Assignment) -> float:
    """A plain cost: iterations that follow one another on the busiest instance."""

    def below(number: int) -> int:
        stretch = assignment[number]
        instances = prod(level.count for level in problem.chain[stretch[0] : stretch[1]])
        inner = sum(below(child) for child in problem.children(number))
        return -(-problem.sites[number].extent // instances) * max(1, inner)

    return float(sum(below(site) for site in problem.children(-1)))


def _sight(value: Value, target: Target) -> int:
    """The number of the unit each of which has a memory of its own; units further in share it. -1: all units do."""
    found = next((m for m in target.memories if m.name == value.memory), None)
    placed = [m.name for m in target.memories if m.kind is not MemoryKind.CACHE]
    if found is None or found.kind is MemoryKind.CACHE:
        why = "it fills itself" if found is not None else f"'{target.name}' has no such memory"
        what = f"'{value.name}' cannot be put into '{value.memory}'"
        raise RewriteError(what, why=why, hint=f"one of {', '.join(placed)}")
    return next((n for n, unit in enumerate(target.units) if unit.name == found.per), -1)


def _is_broadcast(memory: str, level: Level, target: Target) -> bool:
    """Whether some copy puts the same into that memory of all instances."""
    return any(
        i.broadcast == level.unit
        and i.along in (None, level.dimension)
        and i.operand(i.program.statements[0].out.tensor).memory == memory
        for i in target.instructions
        if i.is_copy
    )
