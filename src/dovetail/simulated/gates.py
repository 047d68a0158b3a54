"""The statements of a step taken apart where others read a part of them, and in an order in which units work at once.

    seq t<8: for j<128, k<64: y[t, j] += h[t, k] * u[k, j]       seq t<8: for j<64, k<64: y_1[t, j] += h[t, k] * u[k, j]
    seq t<8: for j<128: s[t, j] = tanh(y[t, j])             ->   seq t<8: for j<64, k<64: y_2[t, j] += ... u[k, 64 + j]
    seq t<8: for j<64: h[t + 1, j] = s[t, j] * s[t, 64 + j]      seq t<8: for j<64: s_1[t, j] = tanh(y_1[t, j])
                                                                 seq t<8: for j<64: s_2[t, j] = tanh(y_2[t, j])
                                                                 seq t<8: for j<64: h[t + 1, j] = s_1[t, j] * s_2[t, j]

A machine issues its calls in order, and a call waits for what it reads. So a product is followed by the next one, and
only then by what is made of the first: that runs on another unit while the second product does. Products on which most
depends come first. Every value is computed as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from dovetail.ir.expr import Apply, Expr, Read, rebuild
from dovetail.ir.index import Access, Index, constant, variable
from dovetail.ir.interval import interval
from dovetail.ir.program import Loop, Program, Role, Statement, Tensor
from dovetail.mapping.typed import typed

Dimension = tuple[str, int]
"""Of a tensor."""
Cuts = Mapping[Dimension, frozenset[int]]
"""Where a dimension is cut: the first index of every part but the first."""
MOST_PARTS = 16
"""Into which a dimension is cut."""


def with_gates_apart(program: Program) -> Program:
    """``program`` with the statements of every sequence taken apart and put in order."""
    for group in reversed(program.groups()):
        statements = [program.statements[n] for n in group]
        if len(statements[0].seq) != 1 or not any(s.reduced for s in statements):
            continue
        step = _with_moves(_Step(program, tuple(statements)))
        found = _ordered(_apart(step, _all_cuts(step)))
        before, after = program.statements[: group[0]], program.statements[group[-1] + 1 :]
        program = replace(found.program, statements=(*before, *found.statements, *after))
    return program


def with_rows_apart(program: Program, number: int, loop: str, count: int) -> Program:
    """``program`` with the first ``count`` iterations of a loop of a statement as a statement by themselves."""
    several = tuple(_cut(program.statements[number], {loop: frozenset({count})}))
    before, after = program.statements[:number], program.statements[number + 1 :]
    return replace(program, statements=(*before, *several, *after))


@dataclass(frozen=True, slots=True)
class _Step:
    """The statements of a step; ``program`` has their tensors."""

    program: Program
    statements: tuple[Statement, ...]

    @property
    def seq(self) -> str:
        return self.statements[0].seq[0].name

    def accesses(self) -> Iterator[tuple[Statement, Access]]:
        for statement in self.statements:
            for access in dict.fromkeys((statement.out, *statement.reads())):
                yield statement, access

    def is_own(self, name: str) -> bool:
        """Whether a tensor is a temporary of the steps alone."""
        outside = (s for s in self.program.statements if s.seq != self.statements[0].seq)
        used = any(a.tensor == name for s in outside for a in (s.out, *s.reads()))
        return self.program.tensor(name).role is Role.TEMP and not used


# -- moves


def _with_moves(step: _Step) -> _Step:
    """What the steps keep in another dtype than a statement computes in is widened, or rounded, by a statement."""
    written = {s.out.tensor for s in step.statements}
    tensors = {t.name: t for t in step.program.tensors}
    taken = set(tensors)
    statements: list[Statement] = []
    for statement in step.statements:
        if statement.reduced or not isinstance(statement.value, Apply):
            statements.append(statement)
            continue
        dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
        own = typed(statement.value, dtypes, dtypes[statement.out.tensor]).dtype
        moved: dict[Access, Access] = {}
        for access in dict.fromkeys((*statement.reads(), statement.out)):
            if access.tensor in written and dtypes[access.tensor] != own:
                name = _unused(access.tensor, taken)
                shape = tuple(x.extent for x in statement.all_loops)
                tensors[name] = Tensor(Role.TEMP, name, own, shape)
                moved[access] = Access(name, tuple(variable(x.name) for x in statement.all_loops))
        statements += _moved(statement, moved)
    return _Step(replace(step.program, tensors=tuple(tensors.values())), tuple(statements))


def _moved(statement: Statement, moved: Mapping[Access, Access]) -> Iterator[Statement]:
    """The statement on what its accesses have become, between the statements that move those."""

    def value(e: Expr) -> Expr:
        return Read(moved[e.access]) if isinstance(e, Read) and e.access in moved else e

    for access, new in moved.items():
        if access != statement.out:
            yield replace(statement, out=new, value=Read(access))
    out = moved.get(statement.out, statement.out)
    yield replace(statement, out=out, value=rebuild(statement.value, value))
    if out != statement.out:
        yield replace(statement, value=Read(out))


# -- parts


def _apart(step: _Step, cuts: Cuts) -> _Step:
    """Statements and temporaries cut at ``cuts``."""
    if any(len(places) >= MOST_PARTS for places in cuts.values()):
        return step
    statements = [part for s in step.statements for part in _parts(s, cuts)]
    return _with_parts_named(_Step(step.program, tuple(statements)), cuts)


def _all_cuts(step: _Step) -> Cuts:
    """Where each dimension of what the steps write is cut, so that what is read of it is made by itself."""
    written = {s.out.tensor for s in step.statements}
    cuts: dict[Dimension, frozenset[int]] = {}
    whole: set[Dimension] = set()
    for statement, access in step.accesses():
        extents = {x.name: x.extent.const for x in statement.loops if x not in statement.reduced}
        for d, index in enumerate(access.indices):
            if access.tensor not in written or index.names() == {step.seq}:
                continue
            size = step.program.tensor(access.tensor).shape[d].const
            loop = _walks(index, extents)
            if loop is None:
                whole.add((access.tensor, d))
            else:
                ends = {index.const, index.const + extents[loop]} - {0, size}
                cuts[access.tensor, d] = cuts.get((access.tensor, d), frozenset()) | ends
    return _spread(step, {key: places for key, places in cuts.items() if key not in whole})


def _spread(step: _Step, cuts: Cuts) -> Cuts:
    """The same, and what follows from them: a statement's result is cut as what it reads, and the other way round."""
    while True:
        found = dict(cuts)
        for statement in step.statements:
            loops = _loop_cuts(statement, found)
            for access in (statement.out, *statement.reads()):
                for d, index in enumerate(access.indices):
                    loop = next((x for x in loops if index.names() == {x}), None)
                    if loop is not None and (access.tensor, d) in found:
                        found[access.tensor, d] |= {index.const + place for place in loops[loop]}
        if found == cuts:
            return found
        cuts = found


def _loop_cuts(statement: Statement, cuts: Cuts) -> dict[str, frozenset[int]]:
    """Where the loops of a statement are cut."""
    extents = {x.name: x.extent.const for x in statement.loops if x not in statement.reduced}
    found: dict[str, frozenset[int]] = {}
    for access in (statement.out, *statement.reads()):
        for d, index in enumerate(access.indices):
            loop = _walks(index, extents)
            if loop is not None:
                inside = {p - index.const for p in cuts.get((access.tensor, d), ())}
                here = frozenset(p for p in inside if 0 < p < extents[loop])
                found[loop] = found.get(loop, frozenset()) | here
    return found


def _walks(index: Index, extents: Mapping[str, int]) -> str | None:
    """The loop that an index is, from some place on; None where it is anything else."""
    names = index.names()
    if len(names) != 1 or not index.is_affine:
        return None
    loop = next(iter(names))
    return loop if loop in extents and index.coefficient(loop) == 1 else None


def _parts(statement: Statement, cuts: Cuts) -> Iterator[Statement]:
    """A statement for each part of its loops."""
    return _cut(statement, {loop: places for loop, places in _loop_cuts(statement, cuts).items() if places})


def _cut(statement: Statement, found: Mapping[str, frozenset[int]]) -> Iterator[Statement]:
    extents = {x.name: x.extent.const for x in statement.loops}
    ranges = [list(pairwise([0, *sorted(places), extents[loop]])) for loop, places in found.items()]
    for chosen in product(*ranges):
        part = dict(zip(found, chosen, strict=True))
        loops = tuple(
            Loop(x.name, constant(part[x.name][1] - part[x.name][0])) if x.name in part else x for x in statement.loops
        )
        moved = {loop: variable(loop) + begin for loop, (begin, _) in part.items() if begin}
        yield statement.substitute(moved, loops)


def _with_parts_named(step: _Step, cuts: Cuts) -> _Step:
    """Temporaries of the steps of which every statement uses one part are a tensor for each part."""
    for (name, d), places in cuts.items():
        if not places or not step.is_own(name):
            continue
        size = step.program.tensor(name).shape[d].const
        parts = list(pairwise([0, *sorted(places), size]))
        if all(_part_of(s, a, d, parts) is not None for s, a in step.accesses() if a.tensor == name):
            step = _with_parts(step, name, d, parts)
    return step


def _part_of(statement: Statement, access: Access, dimension: int, parts: Sequence[tuple[int, int]]) -> int | None:
    """Which part an access lies in; None where it lies in several."""
    index = access.indices[dimension]
    extents = {x.name: x.extent.const for x in statement.all_loops}
    loop = _walks(index, extents)
    if loop is None:
        return None
    low, high = index.const, index.const + extents[loop]
    return next((n for n, (begin, end) in enumerate(parts) if begin <= low and high <= end), None)


def _with_parts(step: _Step, name: str, dimension: int, parts: Sequence[tuple[int, int]]) -> _Step:
    taken = {t.name for t in step.program.tensors}
    names: list[str] = []
    for _ in parts:
        names.append(_unused(name, taken))
    old = step.program.tensor(name)
    tensors: list[Tensor] = []
    for new, (begin, end) in zip(names, parts, strict=True):
        shape = (*old.shape[:dimension], constant(end - begin), *old.shape[dimension + 1 :])
        tensors.append(replace(old, name=new, shape=shape))

    def moved(statement: Statement, access: Access) -> Access:
        if access.tensor != name:
            return access
        number = _part_of(statement, access, dimension, parts)
        assert number is not None
        index = access.indices[dimension] - parts[number][0]
        return Access(names[number], (*access.indices[:dimension], index, *access.indices[dimension + 1 :]))

    def changed(statement: Statement) -> Statement:
        def value(e: Expr) -> Expr:
            return Read(moved(statement, e.access)) if isinstance(e, Read) else e

        return replace(statement, out=moved(statement, statement.out), value=rebuild(statement.value, value))

    kept = tuple(t for t in step.program.tensors if t.name != name)
    others = tuple(s for s in step.program.statements if s.seq != step.statements[0].seq)
    statements = tuple(changed(s) for s in step.statements)
    return _Step(replace(step.program, tensors=(*kept, *tensors), statements=(*others, *statements)), statements)


def _unused(name: str, taken: set[str]) -> str:
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"


# -- order


def _ordered(step: _Step) -> _Step:
    """Products by what depends on them; after each of them what follows from the one before it."""
    needs = _needs(step)
    products = _products(step, needs)
    done: list[int] = []

    def do(number: int) -> None:
        if number not in done:
            for other in sorted(needs[number]):
                do(other)
            done.append(number)

    for n, one in enumerate(products):
        do(one)
        for number in range(len(step.statements)):
            if number not in products and not _behind(needs, number) & set(products[n:]):
                do(number)
    for number in range(len(step.statements)):
        do(number)
    return _Step(step.program, tuple(step.statements[n] for n in done))


def _products(step: _Step, needs: Sequence[frozenset[int]]) -> list[int]:
    """Statements that sum, those with the longest chain of others behind them first."""
    length = [1] * len(needs)
    for number in reversed(range(len(needs))):
        for other in needs[number]:
            length[other] = max(length[other], length[number] + 1)
    found = [n for n, s in enumerate(step.statements) if s.reduced]
    return sorted(found, key=lambda n: -length[n])


def _needs(step: _Step) -> list[frozenset[int]]:
    """For each statement those before it in the step that write what it reads, or that it adds to."""
    found: list[frozenset[int]] = []
    for number, statement in enumerate(step.statements):
        mine: set[int] = set()
        for access in (statement.out, *statement.reads()):
            for other in range(number):
                out = step.statements[other].out
                if out.tensor == access.tensor and _meet(step, (step.statements[other], out), (statement, access)):
                    mine.add(other)
        found.append(frozenset(mine))
    return found


def _meet(step: _Step, first: tuple[Statement, Access], second: tuple[Statement, Access]) -> bool:
    """Whether two accesses of a tensor may be of the same element, in one step."""
    for mine, other in zip(first[1].indices, second[1].indices, strict=True):
        if mine.names() == other.names() == {step.seq} and mine.terms == other.terms:
            if mine.const != other.const:
                return False
            continue
        one, two = (_reach(statement, index) for statement, index in ((first[0], mine), (second[0], other)))
        if one is not None and two is not None and (one[1] < two[0] or two[1] < one[0]):
            return False
    return True


def _reach(statement: Statement, index: Index) -> tuple[int, int] | None:
    return interval(index, {x.name: (0, x.extent.const - 1) for x in statement.all_loops})


def _behind(needs: Sequence[frozenset[int]], number: int) -> frozenset[int]:
    """All that a statement follows from, itself among it."""
    found, waiting = {number}, [number]
    while waiting:
        for other in needs[waiting.pop()]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return frozenset(found)
