"""Products that go on from each other, with rows between them: attention.

for h<12, i<m, j<n, l<64: s[h, i, j] += q[i, h, l] * k[j, h, l]          all of one h, and of some i of it,
for h<12, i<m, j<n: ...                    softmax of s[h, i, :]    ->   before the next: what is made between the two
for h<12, i<m, d<64, j<n: o[i, h, d] += p[h, i, j] * v[j, h, d]          products is still near when it is read
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.ir.index import Access, Index, variable
from dovetail.ir.program import Combine, Program, Role
from dovetail.schedule.facts import Facts

Walk = dict[int, str]
"""A loop that all statements walk in step: its name in each."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Neighbouring statements, two of them products at least, and the loops that they walk in step."""

    numbers: tuple[int, ...]
    batch: tuple[Walk, ...]
    """Loops that walk all operands of the products: nothing is read in two of their iterations."""
    rows: Walk
    """A loop that does not, if there is one: what the others read at it is read again at the next."""
    scratch: tuple[str, ...]
    """Temporaries that simple statements make here for others here."""


def chain_from(program: Program, start: int, done: set[int], facts: Callable[[int], Facts]) -> Chain | None:
    """The longest chain that begins with ``start``; None where its products share no loop, or there is one alone."""
    if not facts(start).is_contraction:
        return None
    walks = [_walk(program, start, loop, done, facts) for loop in facts(start).kept]
    longest = max((len(walk) for walk in walks), default=0)
    numbers = tuple(range(start, start + longest))
    products = [n for n in numbers if facts(n).is_contraction]
    walks = [walk for walk in walks if len(walk) == longest]
    batch = tuple(w for w in walks if all(_walks_all(facts(n), w[n]) for n in products))
    if len(products) < 2 or not batch or not _is_closed(program, numbers):
        return None
    rows = next((w for w in walks if w not in batch), {})
    return Chain(numbers, batch, rows, _scratch(program, numbers))


def _walk(program: Program, start: int, loop: str, done: set[int], facts: Callable[[int], Facts]) -> Walk:
    """``loop`` of the first statement in those that follow, as far as they go."""
    dims: dict[str, int] = {}
    found: Walk = {}
    for number in range(start, len(program.statements)):
        statement = program.statements[number]
        if number in done or statement.seq or statement.where or not facts(number).is_plain:
            break
        own = [a for a in statement.reads() if a.tensor in dims]
        names = [loop] if number == start else [n for n in facts(number).kept if _all_at(own, n, dims)]
        names = [n for n in names if _extent(program, number, n) == _extent(program, start, loop)]
        at = next(((n, d) for n in names if (d := _dimension(statement.out, n)) is not None), None)
        if at is None or statement.out.tensor in dims or any(True for a in statement.reads() for _ in a.reads()):
            break
        found[number], dims[statement.out.tensor] = at
    return found


def _all_at(accesses: list[Access], loop: str, dims: dict[str, int]) -> bool:
    """Whether all read what the chain has made at the loop's own place."""
    return bool(accesses) and all(a.indices[dims[a.tensor]] == variable(loop) for a in accesses)


def _dimension(access: Access, loop: str) -> int | None:
    return next((d for d, index in enumerate(access.indices) if index == variable(loop)), None)


def _extent(program: Program, number: int, loop: str) -> Index:
    return next(x.extent for x in program.statements[number].loops if x.name == loop)


def _walks_all(facts: Facts, loop: str) -> bool:
    return all(loop in use.access.names() for use in facts.reads)


def _is_closed(program: Program, numbers: tuple[int, ...]) -> bool:
    """Whether what is made here is new, and made here alone."""
    made = [program.statements[n].out.tensor for n in numbers]
    writers = [s.out.tensor for s in program.statements]
    new = all(program.tensor(t).role in (Role.TEMP, Role.OUT) and writers.count(t) == 1 for t in made)
    outside = {a.tensor for n, s in enumerate(program.statements) if n not in numbers for a in s.reads()}
    return new and outside.isdisjoint(t for t in made if program.tensor(t).role is Role.TEMP)


def _scratch(program: Program, numbers: tuple[int, ...]) -> tuple[str, ...]:
    simple = [s for n in numbers if (s := program.statements[n]).combine is Combine.SET]
    return tuple(s.out.tensor for s in simple if program.tensor(s.out.tensor).role is Role.TEMP)
