"""Bodies of loops with a value of the loop put in: what can be decided is decided, and equal bodies are one object.

    conditions    dropped where they hold for all values of the loops inside, with their body where they never do
    bounds        loops inside count from 0 where their bounds are numbers; those of one iteration are opened
    places        counted from the first one of each buffer; how far that lies from where it was is a shift

So rows of an image that differ only in where they lie have the same body, whatever is looked up ahead in them. What
is spread over units is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.ir.index import ZERO, Access, Atom, Condition, Index, Quotient, Remainder, constant
from dovetail.ir.interval import interval
from dovetail.sim.steps import AllocStep, CallStep, LoopStep, OperandStep, ParallelStep, Step, WhenStep

Ranges = Mapping[str, tuple[int, int]]
Values = Mapping[str, Index]
Shifts = tuple[tuple[str, int], ...]
"""Buffer -> by how many elements its places are further on than they stand in a body."""

LEAST_STEPS = 4
"""Calls and waits in a body that is worth it without loops and conditions inside."""
MOST_USELESS = 64
"""Values of a loop whose bodies are mostly different."""


@dataclass(frozen=True, slots=True)
class Special:
    """A body for one value of its loop."""

    body: tuple[Step, ...]
    """The same object for all that do the same."""
    shifts: Shifts


@dataclass(slots=True)
class _Family:
    """What a body has become by the values of its loop."""

    body: tuple[Step, ...]
    pays: bool
    members: dict[tuple[tuple[str, int], ...], Special] = field(default_factory=dict)
    kinds: set[int] = field(default_factory=set)

    def add(self, key: tuple[tuple[str, int], ...], member: Special) -> None:
        self.members[key] = member
        self.kinds.add(id(member.body))
        if len(self.members) >= MOST_USELESS and 2 * len(self.kinds) > len(self.members):
            self.pays = False


@dataclass(slots=True)
class Specials:
    """All bodies that were made; ``held`` are the buffers in which places decide what waits for what."""

    held: frozenset[str]
    _families: dict[int, _Family] = field(default_factory=dict)
    _steps: dict[tuple[object, ...], Step] = field(default_factory=dict)
    _bodies: dict[tuple[int, ...], tuple[Step, ...]] = field(default_factory=dict)
    _atoms: dict[Quotient | Remainder, Quotient | Remainder] = field(default_factory=dict)

    def pays(self, body: tuple[Step, ...]) -> bool:
        """Whether there is something to decide in ``body``, and its values have bodies in common."""
        return self.family(body).pays

    def of(self, body: tuple[Step, ...], values: Mapping[str, int]) -> Special:
        """``body``, which pays, with the ``values`` of the loops around that are not put in yet."""
        family, key = self.family(body), tuple(values.items())
        found = family.members.get(key)
        if found is None:
            found = self.make(body, {name: constant(value) for name, value in values.items()})
            family.add(key, found)
        return found

    def family(self, body: tuple[Step, ...]) -> _Family:
        key = id(body[0] if len(body) == 1 else body)
        found = self._families.get(key)
        if found is None:
            deep = any(isinstance(step, LoopStep | WhenStep | AllocStep) for step in body)
            pays = (deep or len(body) >= LEAST_STEPS) and not has_parallel(body)
            found = self._families[key] = _Family(body, pays)
        return found

    def make(self, body: tuple[Step, ...], values: Values) -> Special:
        """``body`` with ``values`` put in."""
        steps = _Putter(self, dict(values)).put(body)
        shifts: dict[str, int] = {}
        _find_shifts(steps, shifts)
        return Special(self.body(steps, shifts), tuple((b, s) for b, s in shifts.items() if s))

    def body(self, steps: tuple[Step, ...], shifts: Mapping[str, int]) -> tuple[Step, ...]:
        made = tuple([self.step(step, shifts) for step in steps])
        return self._bodies.setdefault(tuple([id(step) for step in made]), made)

    def step(self, step: Step, shifts: Mapping[str, int]) -> Step:
        """The one step that does what ``step`` does, its places moved back by ``shifts``."""
        if isinstance(step, CallStep):
            operands = tuple([_moved(o, shifts) for o in step.operands])
            offsets = tuple([None if o is None else o.offset for o in operands])
            return self.one(("call", step.number, step.params, offsets), _call(step, step.params, operands))
        if isinstance(step, LoopStep):
            body = self.body(step.body, shifts)
            head = (step.var, step.lower, step.upper, step.step, step.down)
            return self.one(("loop", *head, id(body)), LoopStep(*head, body))
        if isinstance(step, WhenStep):
            body, other = self.body(step.body, shifts), self.body(step.otherwise, shifts)
            return self.one(("when", step.conditions, id(body), id(other)), WhenStep(step.conditions, body, other))
        if isinstance(step, AllocStep):
            body = self.body(step.body, shifts)
            made = AllocStep(step.buffer, step.shape, step.strides, step.units, body)
            return self.one(("alloc", step.buffer.name, step.shape, step.strides, step.units, id(body)), made)
        return self.one(("other", id(step)), step)

    def one(self, key: tuple[object, ...], step: Step) -> Step:
        return self._steps.setdefault(key, step)

    def rounded(self, atom: Quotient | Remainder) -> Index:
        """``atom`` alone, with what its divisor goes into taken out; equal ones are one object."""
        index, divisor = atom.index, atom.divisor
        rest = Index(tuple([(a, c % divisor) for a, c in index.terms if c % divisor]), index.const % divisor)
        if isinstance(atom, Remainder):
            return Index(((self.shared(Remainder(rest, divisor)), 1),)) if rest.terms else rest
        whole = tuple([(a, c // divisor) for a, c in index.terms if c // divisor])
        left = ((self.shared(Quotient(rest, divisor)), 1),) if rest.terms else ()
        return Index((*whole, *left), index.const // divisor)

    def shared(self, atom: Quotient | Remainder) -> Quotient | Remainder:
        return self._atoms.setdefault(atom, atom)


def has_parallel(steps: tuple[Step, ...]) -> bool:
    """Whether a part of ``steps`` is spread over units."""
    for step in steps:
        if isinstance(step, ParallelStep):
            return True
        if isinstance(step, LoopStep | AllocStep | WhenStep) and has_parallel(step.body):
            return True
        if isinstance(step, WhenStep) and has_parallel(step.otherwise):
            return True
    return False


@dataclass(slots=True)
class _Putter:
    """One walk over a body: ``values`` to put in, ``ranges`` of the loops around that have none."""

    specials: Specials
    values: dict[str, Index]
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    counted: dict[str, tuple[object, ...]] = field(default_factory=dict)
    """What each loop met so far counts from and to."""
    atoms: dict[int, Index] = field(default_factory=dict)
    """Quotients and remainders met so far, and what has become of them."""

    def put(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        found: list[Step] = []
        for step in steps:
            if isinstance(step, CallStep):
                found.append(self.call(step))
            elif isinstance(step, LoopStep):
                found += self.loop(step)
            elif isinstance(step, WhenStep):
                found += self.when(step)
            elif isinstance(step, AllocStep):
                shape, strides = (tuple(i.substitute(self.values) for i in t) for t in (step.shape, step.strides))
                found.append(AllocStep(step.buffer, shape, strides, step.units, self.put(step.body)))
            else:
                found.append(step)
        return tuple(found)

    def call(self, step: CallStep) -> CallStep:
        params = tuple([self.smallest(indices) for indices in step.params])
        return _call(step, params, tuple([self.place(o) for o in step.operands]))

    def loop(self, step: LoopStep) -> tuple[Step, ...]:
        lower = self.smallest(step.lower) if len(step.lower) == 1 else self.largest(step.lower)
        upper = self.smallest(step.upper)
        lows, highs = ([interval(i, self.ranges) for i in found] for found in (lower, upper))
        low, high = max(r[0] for r in lows if r is not None), min(r[1] for r in highs if r is not None) - 1
        if high < low:
            return ()
        if any(i.terms for i in (*lower, *upper)):
            self.enter(step.var, None, (low, high))
            body = self.put(step.body)
            return (LoopStep(step.var, lower, upper, step.step, step.down, body),) if body else ()
        count = (high - low) // step.step + 1
        first, delta = (low + (count - 1) * step.step, -step.step) if step.down else (low, step.step)
        if count == 1:
            self.enter(step.var, constant(first), (first, first))
            return self.put(step.body)
        index = None if (first, delta) == (0, 1) else Index(((step.var, delta),), first)
        self.enter(step.var, index, (0, count - 1))
        body = self.put(step.body)
        return (LoopStep(step.var, (ZERO,), (constant(count),), 1, False, body),) if body else ()

    def enter(self, var: str, value: Index | None, span: tuple[int, int]) -> None:
        """Into a loop; what is known of atoms does not hold where a loop of the same name counts otherwise."""
        if self.counted.setdefault(var, (value, span)) != (value, span):
            self.counted[var] = (value, span)
            self.atoms.clear()
        self.ranges[var] = span
        self.values.pop(var, None)
        if value is not None:
            self.values[var] = value

    def when(self, step: WhenStep) -> tuple[Step, ...]:
        undecided: list[Condition] = []
        for condition in step.conditions:
            index = self.simple(condition.index)
            decided = _decision(index, condition.equal, self.ranges)
            if decided is False:
                return self.put(step.otherwise)
            if decided is None:
                undecided.append(Condition(index, condition.equal))
        if not undecided:
            return self.put(step.body)
        body, other = self.put(step.body), self.put(step.otherwise)
        return (WhenStep(tuple(undecided), body, other),) if body or other else ()

    def place(self, operand: OperandStep | None) -> OperandStep | None:
        if operand is None or operand.offset is None:
            return operand
        offset = self.simple(operand.offset) if operand.buffer in self.specials.held else ZERO
        return operand if offset is operand.offset else _at(operand, offset)

    def smallest(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        """Those of ``indices`` that can be the smallest."""
        left = [self.simple(i) for i in indices]
        if len(left) > 1 and not any(i.terms for i in left):
            return (constant(min(i.const for i in left)),)
        for index in list(left) if len(left) > 1 else ():
            if any(other is not index and _never_smaller(index, other, self.ranges) for other in left):
                left.remove(index)
        return tuple(left)

    def largest(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        return tuple([-i for i in self.smallest(tuple([-i for i in indices]))])

    def simple(self, index: Index) -> Index:
        """``index`` with values put in, quotients and remainders resolved where the ranges allow."""
        if not index.terms:
            return index
        const = index.const
        names: dict[str, int] = {}
        others: dict[Atom, int] = {}
        for atom, factor in index.terms:
            new = self.values.get(atom) if isinstance(atom, str) else self.atom(atom)
            for found, c in ((atom, 1),) if new is None else new.terms:
                if isinstance(found, str):
                    names[found] = names.get(found, 0) + c * factor
                else:
                    others[found] = others.get(found, 0) + c * factor
            const += 0 if new is None else new.const * factor
        return Index((*sorted(t for t in names.items() if t[1]), *(t for t in others.items() if t[1])), const)

    def atom(self, atom: Quotient | Remainder | Access) -> Index | None:
        """What an atom becomes; None where it stays."""
        if isinstance(atom, Access):
            return None
        found = self.atoms.get(id(atom))
        if found is None:
            inner, divisor = self.simple(atom.index), atom.divisor
            span = interval(inner, self.ranges)
            if span is not None and span[0] // divisor == span[1] // divisor:
                whole = span[0] // divisor
                found = constant(whole) if isinstance(atom, Quotient) else inner - whole * divisor
            else:
                found = self.specials.rounded(type(atom)(inner, divisor))
            self.atoms[id(atom)] = found
        return found


def _decision(index: Index, equal: bool, ranges: Ranges) -> bool | None:
    """What is known of a condition; None where it depends."""
    found = interval(index, ranges)
    if found is None:
        return None
    low, high = found
    if equal:
        return low == 0 if low == high else (None if low <= 0 <= high else False)
    return True if low >= 0 else (False if high < 0 else None)


def _never_smaller(index: Index, other: Index, ranges: Ranges) -> bool:
    found = interval(index - other, ranges)
    return found is not None and found[0] >= 0


def _call(step: CallStep, params: tuple[tuple[Index, ...], ...], operands: tuple[OperandStep | None, ...]) -> CallStep:
    return CallStep(step.call, step.instruction, params, operands, step.token, step.written, step.text, step.number)


def _at(operand: OperandStep, offset: Index) -> OperandStep:
    return OperandStep(operand.buffer, operand.memory, offset, operand.part)


def _find_shifts(steps: tuple[Step, ...], shifts: dict[str, int]) -> None:
    """The constant of the first place in each buffer."""
    for step in steps:
        if isinstance(step, CallStep):
            for operand in step.operands:
                if operand is not None and operand.offset is not None:
                    shifts.setdefault(operand.buffer, operand.offset.const)
        elif isinstance(step, LoopStep | AllocStep):
            _find_shifts(step.body, shifts)
        elif isinstance(step, WhenStep):
            _find_shifts((*step.body, *step.otherwise), shifts)


def _moved(operand: OperandStep | None, shifts: Mapping[str, int]) -> OperandStep | None:
    if operand is None or operand.offset is None or not shifts.get(operand.buffer):
        return operand
    return _at(operand, operand.offset - shifts[operand.buffer])
