"""Statements that make one tensor part by part, and what follows on it, under the same loops.

for i<m, j<n: t[0, i, j] = x[i, j] + x[i + 1, j]                 tile over i on all four, t in scratch of one i:
for i<m, j<n: t[1, i, j] = x[i, j] - x[i + 1, j]            ->     tile over j of the first two, x[i, j] loaded once
for i<m, j<n, k<2: y[0, i, j, k] = t[k, i, 2*j]                    tile over j, k of the last two
for i<m, j<n, k<2: y[1, i, j, k] = t[k, i, 2*j + 1]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.ir.index import Access, Index, variable
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.schedule.facts import Facts, facts_of, is_contraction


@dataclass(frozen=True, slots=True)
class Bundle:
    """Neighbouring statements over the same loops that write the same tensor at fixed distances."""

    numbers: tuple[int, ...]
    names: tuple[dict[str, str], ...]
    """For each: its own name of every loop of the first."""
    tensor: str

    def pairs(self, loop: str) -> tuple[tuple[int, str], ...]:
        """A loop of the first statement, in all of them."""
        return tuple((number, names[loop]) for number, names in zip(self.numbers, self.names, strict=True))


@dataclass(frozen=True, slots=True)
class BundleRun:
    """Bundles each of which goes on from the one before. ``shared``: loops that all walk in step, by the names that
    the first statement of each has for them; ``scratch``: tensors that only pass between them."""

    bundles: tuple[Bundle, ...]
    shared: tuple[tuple[str, ...], ...]
    scratch: tuple[str, ...]


def bundle_run(
    program: Program, start: int, done: set[int], facts: Callable[[int], Facts] | None = None
) -> BundleRun | None:
    """The bundles from ``start`` on; None where there is no second statement to go with the first."""
    known = facts or (lambda number: facts_of(program, number))
    first = _bundle(program, start, done, known)
    if first is None or len(first.numbers) < 2:
        return None
    bundles, scratch = [first], list[str]()
    shared: list[tuple[str, ...]] = [(loop.name,) for loop in program.statements[start].loops]
    while True:
        following = _bundle(program, bundles[-1].numbers[-1] + 1, done, known)
        aligned = None if following is None else _aligned(program, bundles[-1], following)
        if following is None or not aligned:
            break
        both = [(*names, aligned[names[-1]]) for names in shared if names[-1] in aligned]
        if not both:
            break
        scratch.append(bundles[-1].tensor)
        bundles.append(following)
        shared = both
    return BundleRun(tuple(bundles), tuple(shared), tuple(scratch))


def _bundle(program: Program, start: int, done: set[int], facts: Callable[[int], Facts]) -> Bundle | None:
    if start >= len(program.statements) or start in done or not _is_simple(program, start, facts):
        return None
    first = program.statements[start]
    numbers, names = [start], [{loop.name: loop.name for loop in first.loops}]
    for number in range(start + 1, len(program.statements)):
        same = None if number in done else _same_loops(program, start, number)
        if same is None or not _is_simple(program, number, facts):
            break
        numbers.append(number)
        names.append(same)
    return Bundle(tuple(numbers), tuple(names), first.out.tensor)


def _is_simple(program: Program, number: int, facts: Callable[[int], Facts]) -> bool:
    """One value for every point, from anything but the tensor itself."""
    statement = program.statements[number]
    if statement.seq or statement.combine is not Combine.SET or is_contraction(statement):
        return False
    known = facts(number)
    own = any(access.tensor == statement.out.tensor for access in statement.reads())
    return known.is_plain and not known.reduced and not own and not any(True for _ in statement.out.reads())


def _same_loops(program: Program, first: int, number: int) -> dict[str, str] | None:
    """Loops of the first statement by the name that another has for them, where both write alike."""
    one, other = program.statements[first], program.statements[number]
    if one.out.tensor != other.out.tensor or len(one.loops) != len(other.loops):
        return None
    names: dict[str, str] = {}
    for mine, theirs in zip(one.out.indices, other.out.indices, strict=True):
        if not _pair_up(mine, theirs, names):
            return None
    extents = {loop.name: loop.extent for loop in other.loops}
    return names if all(extents.get(names.get(loop.name, "")) == loop.extent for loop in one.loops) else None


def _pair_up(mine: Index, theirs: Index, names: dict[str, str]) -> bool:
    """Whether both are the same but for the names of loops, which are noted, and a number."""
    own = sorted((mine.coefficient(n), n) for n in mine.names())
    found = sorted((theirs.coefficient(n), n) for n in theirs.names())
    if [c for c, _ in own] != [c for c, _ in found] or len({c for c, _ in own}) < len(own):
        return False
    return all(names.setdefault(name, other) == other for (_, name), (_, other) in zip(own, found, strict=True))


def _aligned(program: Program, before: Bundle, after: Bundle) -> dict[str, str] | None:
    """Loops of ``before`` that ``after`` walks in step, by name, where nothing but ``after`` reads what was made."""
    tensor = program.tensor(before.tensor)
    readers = {n for n, s in enumerate(program.statements) for a in s.reads() if a.tensor == tensor.name}
    writers = {n for n, s in enumerate(program.statements) if s.out.tensor == tensor.name}
    conditional = any(program.statements[n].where for n in before.numbers)
    if tensor.role is not Role.TEMP or not readers or conditional:
        return None
    if not readers <= set(after.numbers) or writers != set(before.numbers):
        return None
    found: dict[str, str] = {}
    first, second = program.statements[before.numbers[0]], program.statements[after.numbers[0]]
    extents = {loop.name: loop.extent for loop in first.loops}
    for d, index in enumerate(first.out.indices):
        name = next(iter(index.names()), "")
        if index != variable(name):
            continue
        other = _walker(program, after, tensor.name, d)
        if other and _extent(second, other) == extents.get(name):
            found[name] = other
    return found


def _walker(program: Program, bundle: Bundle, tensor: str, dimension: int) -> str:
    """The loop, by the name of the first statement, that alone walks a dimension in all reads of a bundle."""
    walkers: set[str] = set()
    for number, names in zip(bundle.numbers, bundle.names, strict=True):
        back = {own: name for name, own in names.items()}
        for access in _reads(program.statements[number], tensor):
            index = access.indices[dimension]
            name = next(iter(index.names()), "")
            walkers.add(back.get(name, "") if index == variable(name) else "")
    return walkers.pop() if len(walkers) == 1 else ""


def _reads(statement: Statement, tensor: str) -> list[Access]:
    return [access for access in statement.reads() if access.tensor == tensor]


def _extent(statement: Statement, loop: str) -> Index:
    return next(x.extent for x in statement.loops if x.name == loop)
