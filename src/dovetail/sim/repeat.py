"""When one iteration of a loop does what the one before it did, so that many of them can be taken in one step.

Over a stride of iterations every index of the body moves by a constant. What decides the time of an iteration is
compared by these moves:

    conditions, bounds, parameters    must not move, or be decided the same way over the whole range skipped
    places in one buffer              must all move alike, so that what overlaps keeps overlapping

Quotients and remainders move by constants over a stride of their period, ``t % 2`` over two iterations. One whose
period is long for the loop, ``(t + 1) % 64`` of 64 iterations, may move as it does between two of its jumps instead;
then no jump may lie in the range skipped. Places of copies alone do not decide anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd

from dovetail.ir.index import Access, Condition, Index, Quotient
from dovetail.ir.interval import interval
from dovetail.sim.steps import AllocStep, BarrierStep, CallStep, LoopStep, ParallelStep, Step, WaitStep, WhenStep

MOST_STRIDE = 4096
Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Inner:
    """A loop inside: its variable and bounds."""

    var: str
    lower: tuple[Index, ...]
    upper: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A quotient that must not change."""

    quotient: Index


@dataclass(frozen=True, slots=True)
class Larger:
    """Of several indices the smallest counts: one that must not change, or never be smaller than all of the others."""

    index: Index
    others: tuple[Index, ...]
    may_count: bool
    """Whether it may be the smallest while it does not change."""


Check = Inner | Condition | Fixed | Larger


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about the iterations of one loop."""

    stride: int
    """Iterations after which all indices have moved by constants."""
    moves: Mapping[str, int | None]
    """Buffer -> elements by which its places move in a stride; None when they do not move alike."""
    checks: tuple[Check, ...]
    """In the order of the body: loops inside, conditions that must be decided alike, quotients that must not change,
    and indices that must not count."""
    is_regular: bool
    """Whether iterations can be skipped at all."""
    only_starts: bool
    """Whether the body starts calls and does nothing else."""

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


def facts(var: str, delta: int, body: tuple[Step, ...], most: int = MOST_STRIDE) -> Facts:
    """About a loop whose ``var`` moves by ``delta`` in each iteration, over a stride of at most ``most``."""
    synchronous = frozenset(synchronous_buffers(body))
    stride = _stride(var, delta, body, synchronous, most)
    analysis = _Analysis({var: delta * stride}, synchronous)
    analysis.steps(body)
    regular = analysis.is_regular and all(analysis.moves[name] is not None for name in synchronous & analysis.written)
    only_starts = all(isinstance(step, CallStep) and bool(step.token) for step in body)
    return Facts(stride, analysis.moves, tuple(analysis.checks), regular, only_starts)


def move(index: Index, moves: Mapping[str, int], fixed: list[Fixed] | None = None) -> int | None:
    """By how much ``index`` changes when names move; None where that is no constant.

    Given ``fixed``, quotients that do not move by a constant are put there, to be kept from changing."""
    total = 0
    for atom, c in index.terms:
        if isinstance(atom, str):
            total += c * moves.get(atom, 0)
            continue
        if isinstance(atom, Access):
            return None
        inner = move(atom.index, moves, fixed)
        if inner is None or (inner % atom.divisor and fixed is None):
            return None
        if inner % atom.divisor and fixed is not None:
            fixed.append(Fixed(atom.index // atom.divisor))
            total += 0 if isinstance(atom, Quotient) else c * inner
        elif isinstance(atom, Quotient):
            total += c * (inner // atom.divisor)
    return total


@dataclass(slots=True)
class _Analysis:
    """One walk over a body, with how far each name moves."""

    names: dict[str, int]
    synchronous: frozenset[str]
    moves: dict[str, int | None] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
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
            if operand.offset is not None:
                found = self.moved(operand.offset) if operand.buffer in self.synchronous else None
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

    def moved(self, index: Index) -> int | None:
        """How far an index moves, where need be between two of its jumps."""
        found = move(index, self.names)
        if found is None:
            fixed: list[Fixed] = []
            found = move(index, self.names, fixed)
            self.checks.extend(fixed if found is not None else ())
        return found

    def bounds(self, indices: tuple[Index, ...], wanted: int) -> None:
        """The smallest of ``indices`` moves by ``wanted``: those that do not must never be the smallest."""
        steady = [i for i in indices if move(i, self.names) == wanted]
        if not steady:
            steady = [i for i in indices if self.moved(i) == wanted]
        if not steady:
            self.is_regular = False
            return
        for index in indices:
            if index not in steady:
                self.checks.append(Larger(index, tuple(steady), wanted == 0))


def synchronous_buffers(body: tuple[Step, ...]) -> Iterator[str]:
    """The buffers of plain calls: only there does a place decide what waits for what."""
    for step in body:
        if isinstance(step, CallStep) and not step.instruction.is_async:
            yield from (o.buffer for o in step.operands if o is not None)
        elif isinstance(step, LoopStep | ParallelStep | AllocStep):
            yield from synchronous_buffers(step.body)
        elif isinstance(step, WhenStep):
            yield from synchronous_buffers((*step.body, *step.otherwise))


def _stride(var: str, delta: int, body: tuple[Step, ...], synchronous: frozenset[str], most: int) -> int:
    """The fewest iterations after which every quotient and remainder has moved by a whole number.

    Those that would make them more than ``most`` are left out."""
    found, names = 1, {var: delta}
    for index in _indices(body, names, synchronous):
        found = _whole(index, names, found, most)
    return found


def _whole(index: Index, names: Mapping[str, int], stride: int, most: int) -> int:
    """``stride`` made longer, up to ``most``, until the quotients and remainders of an index move by whole numbers."""
    for atom, _ in index.terms:
        if isinstance(atom, str | Access):
            continue
        stride = _whole(atom.index, names, stride, most)
        moved = move(atom.index, {name: distance * stride for name, distance in names.items()}, [])
        if moved is not None and moved % atom.divisor:
            longer = stride * (atom.divisor // gcd(atom.divisor, moved))
            stride = longer if longer <= most else stride
    return stride


def _indices(body: tuple[Step, ...], names: dict[str, int], synchronous: frozenset[str]) -> Iterator[Index]:
    """Every index of a body that decides something; loops whose start moves are added to ``names`` on the way."""
    for step in body:
        if isinstance(step, CallStep):
            yield from (i for indices in step.params for i in indices)
            held = (o for o in step.operands if o is not None and o.buffer in synchronous)
            yield from (o.offset for o in held if o.offset is not None)
        elif isinstance(step, LoopStep):
            yield from (*step.lower, *step.upper)
            names[step.var] = (move(step.lower[0], names) or 0) if step.lower else 0
            yield from _indices(step.body, names, synchronous)
        elif isinstance(step, ParallelStep):
            yield from step.extent
            yield from _indices(step.body, names, synchronous)
        elif isinstance(step, WhenStep):
            yield from (c.index for c in step.conditions)
            yield from _indices((*step.body, *step.otherwise), names, synchronous)
        elif isinstance(step, AllocStep):
            yield from _indices(step.body, names, synchronous)


def _inner_range(inner: Inner, ranges: Ranges) -> tuple[int, int] | None:
    lows = [interval(i, ranges) for i in inner.lower]
    highs = [interval(i, ranges) for i in inner.upper]
    low = max((r[0] for r in lows if r is not None), default=None)
    high = min((r[1] for r in highs if r is not None), default=None)
    return None if low is None or high is None else (low, max(low, high - 1))


def _decided(guard: Condition | Fixed | Larger, ranges: Ranges) -> bool:
    if isinstance(guard, Condition):
        found = interval(guard.index, ranges)
        if found is None:
            return False
        if guard.equal:
            return found[0] == found[1] or not found[0] <= 0 <= found[1]
        return found[0] >= 0 or found[1] < 0
    if isinstance(guard, Fixed):
        return _is_one_value(guard.quotient, ranges)
    spans = [interval(guard.index - other, ranges) for other in guard.others]
    never = any(span is not None and span[0] >= 0 for span in spans)
    return never or (guard.may_count and _is_one_value(guard.index, ranges))


def _is_one_value(index: Index, ranges: Ranges) -> bool:
    found = interval(index, ranges)
    return found is not None and found[0] == found[1]
