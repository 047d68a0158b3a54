"""When one iteration of a loop does what the one before it did, so that many of them can be taken in one step.

Over a stride of iterations every index of the body moves by a constant. What decides the time of an iteration is
compared by these moves:

    conditions, bounds, parameters    must not move, or be decided the same way over the whole range skipped
    places in one buffer              must all move alike, so that what overlaps keeps overlapping
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd, lcm

from dovetail.ir.index import Access, Condition, Index, Quotient
from dovetail.ir.interval import interval
from dovetail.sim.steps import AllocStep, BarrierStep, CallStep, LoopStep, ParallelStep, Step, WaitStep, WhenStep

_MOST_STRIDE = 4096
Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Inner:
    """A loop inside: its variable and bounds."""

    var: str
    lower: tuple[Index, ...]
    upper: tuple[Index, ...]


Check = Inner | Condition | tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about the iterations of one loop."""

    stride: int
    """Iterations after which all indices have moved by constants."""
    moves: Mapping[str, int | None]
    """Buffer -> elements by which its places move in a stride; None when they do not move alike."""
    checks: tuple[Check, ...]
    """In the order of the body: loops inside, conditions that must be decided alike, and groups of indices of which
    one must never be negative."""
    is_regular: bool
    """Whether iterations can be skipped at all."""

    def hold(self, env: Mapping[str, int], var: str, low: int, high: int) -> bool:
        """Whether all is decided alike while ``var`` goes from ``low`` to ``high``."""
        if all(isinstance(check, Inner) for check in self.checks):
            return True
        ranges: Ranges = {name: (value, value) for name, value in env.items()}
        ranges[var] = (low, high)
        for check in self.checks:
            if isinstance(check, Inner):
                found = _inner_range(check, ranges)
                if found is None:
                    return False
                ranges[check.var] = found
            elif not _decided(check, ranges):
                return False
        return True


def facts(var: str, delta: int, body: tuple[Step, ...], stride: int = 0) -> Facts:
    """About a loop whose ``var`` moves by ``delta`` in each iteration; ``stride`` 0 lets it be found."""
    wanted = stride or _stride(var, delta, body)
    analysis = _Analysis({var: delta * wanted})
    analysis.steps(body)
    regular = analysis.is_regular and wanted <= _MOST_STRIDE
    regular = regular and all(analysis.moves[name] is not None for name in analysis.synchronous & analysis.written)
    return Facts(wanted, analysis.moves, tuple(analysis.checks), regular)


def move(index: Index, moves: Mapping[str, int]) -> int | None:
    """By how much ``index`` changes when names move; None where that is no constant."""
    total = 0
    for atom, c in index.terms:
        if isinstance(atom, str):
            total += c * moves.get(atom, 0)
            continue
        if isinstance(atom, Access):
            return None
        inner = move(atom.index, moves)
        if inner is None or inner % atom.divisor:
            return None
        if isinstance(atom, Quotient):
            total += c * (inner // atom.divisor)
    return total


@dataclass(slots=True)
class _Analysis:
    """One walk over a body, with how far each name moves."""

    names: dict[str, int]
    moves: dict[str, int | None] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    synchronous: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    is_regular: bool = True

    def steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if isinstance(step, CallStep):
                self.call(step)
            elif isinstance(step, LoopStep):
                self.loop(step)
            elif isinstance(step, ParallelStep):
                self.bounds(step.extent, 0)
                self.names[step.var] = 0
                self.checks.append(Inner(step.var, (Index(),), step.extent))
                self.steps(step.body)
            elif isinstance(step, WhenStep):
                self.when(step)
            elif isinstance(step, AllocStep):
                self.is_regular &= all(move(i, self.names) == 0 for i in (*step.shape, *step.strides))
                self.steps(step.body)
            else:
                assert isinstance(step, WaitStep | BarrierStep)

    def call(self, step: CallStep) -> None:
        for indices in step.params:
            self.bounds(indices, 0)
        for number, operand in enumerate(step.operands):
            if operand is None:
                continue
            if number == step.written:
                self.written.add(operand.buffer)
            if not step.instruction.is_async:
                self.synchronous.add(operand.buffer)
            if operand.offset is not None:
                found = move(operand.offset, self.names)
                alike = self.moves.setdefault(operand.buffer, found) == found
                self.moves[operand.buffer] = found if alike else None
            else:
                self.moves.setdefault(operand.buffer, 0)

    def loop(self, step: LoopStep) -> None:
        starts = {move(i, self.names) for i in step.lower}
        start = next(iter(starts)) if len(starts) == 1 else 0
        if start is None:
            self.is_regular = False
            start = 0
        if len(starts) > 1:
            self.bounds(tuple(-i for i in step.lower), 0)
        self.bounds(step.upper, start)
        self.names[step.var] = start
        self.checks.append(Inner(step.var, step.lower, step.upper))
        self.steps(step.body)

    def when(self, step: WhenStep) -> None:
        for condition in step.conditions:
            found = move(condition.index, self.names)
            if found is None and any(True for _ in condition.index.reads()):
                self.is_regular = False
            elif found != 0:
                self.checks.append(condition)
        self.steps(step.body)
        self.steps(step.otherwise)

    def bounds(self, indices: tuple[Index, ...], wanted: int) -> None:
        """The smallest of ``indices`` moves by ``wanted``: those that do not must never be the smallest."""
        steady = [i for i in indices if move(i, self.names) == wanted]
        if not steady:
            self.is_regular = False
            return
        for index in indices:
            if move(index, self.names) != wanted:
                self.checks.append(tuple(index - other for other in steady))


def _stride(var: str, delta: int, body: tuple[Step, ...]) -> int:
    """The fewest iterations after which every quotient and remainder has moved by a whole number."""
    found, names = 1, {var: delta}
    for index in _indices(body, names):
        found = lcm(found, _whole(index, names))
        if found > _MOST_STRIDE:
            break
    return found


def _whole(index: Index, names: Mapping[str, int]) -> int:
    found = 1
    for atom, _ in index.terms:
        if isinstance(atom, str | Access):
            continue
        found = lcm(found, _whole(atom.index, names))
        moved = move(atom.index, names)
        if moved is None:
            found = lcm(found, atom.divisor)
        elif moved % atom.divisor:
            found = lcm(found, atom.divisor // gcd(atom.divisor, moved))
    return found


def _indices(body: tuple[Step, ...], names: dict[str, int]) -> Iterator[Index]:
    """Every index of a body; loops whose start moves are added to ``names`` on the way."""
    for step in body:
        if isinstance(step, CallStep):
            yield from (i for indices in step.params for i in indices)
            yield from (o.offset for o in step.operands if o is not None and o.offset is not None)
        elif isinstance(step, LoopStep):
            yield from (*step.lower, *step.upper)
            names[step.var] = (move(step.lower[0], names) or 0) if step.lower else 0
            yield from _indices(step.body, names)
        elif isinstance(step, ParallelStep):
            yield from step.extent
            yield from _indices(step.body, names)
        elif isinstance(step, WhenStep):
            yield from (c.index for c in step.conditions)
            yield from _indices((*step.body, *step.otherwise), names)
        elif isinstance(step, AllocStep):
            yield from _indices(step.body, names)


def _inner_range(inner: Inner, ranges: Ranges) -> tuple[int, int] | None:
    lows = [interval(i, ranges) for i in inner.lower]
    highs = [interval(i, ranges) for i in inner.upper]
    low = max((r[0] for r in lows if r is not None), default=None)
    high = min((r[1] for r in highs if r is not None), default=None)
    return None if low is None or high is None else (low, max(low, high - 1))


def _decided(guard: Condition | tuple[Index, ...], ranges: Ranges) -> bool:
    if isinstance(guard, Condition):
        found = interval(guard.index, ranges)
        if found is None:
            return False
        if guard.equal:
            return found[0] == found[1] or not found[0] <= 0 <= found[1]
        return found[0] >= 0 or found[1] < 0
    spans = [interval(index, ranges) for index in guard]
    return any(span is not None and span[0] >= 0 for span in spans)
