"""Which elements of its buffers a piece of a nest touches, all loops of it taken together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.sim.costs import Costs, Footprint
from dovetail.sim.special import Specials
from dovetail.sim.steps import CallStep, LoopStep, Step

MOST_ROUNDS = 1024
"""Iterations of a loop that are looked at one by one."""


@dataclass(slots=True)
class Cover:
    """Elements of one buffer, from where the places of a piece count: bit n is element ``low + n``."""

    low: int
    bits: int

    def add(self, low: int, bits: int) -> None:
        if low < self.low:
            self.bits, self.low = self.bits << (self.low - low), low
        self.bits |= bits << (low - self.low)

    def meets(self, footprint: Footprint, offset: int) -> bool:
        """Whether a footprint that starts at ``offset`` shares an element with these."""
        further = offset + footprint.low - self.low
        return (self.bits >> max(further, 0)) & (footprint.bits >> max(-further, 0)) != 0


Covers = dict[str, Cover]


@dataclass(slots=True)
class Reach:
    """Works out covers, each once."""

    specials: Specials
    costs: Costs
    _known: dict[int, Covers | None] = field(default_factory=dict)

    def of(self, steps: tuple[Step, ...]) -> Covers | None:
        """The elements that ``steps``, in which all values are put in, touch in each buffer; None when it is unknown.

        Buffers that no call waits for are left out."""
        key = id(steps[0] if len(steps) == 1 else steps)
        if key not in self._known:
            found: Covers = {}
            self._known[key] = found if all(self.step(step, {}, found) for step in steps) else None
        return self._known[key]

    def step(self, step: Step, env: Mapping[str, int], found: Covers) -> bool:
        """Add what a step touches; False when it is unknown."""
        if isinstance(step, CallStep):
            return self.call(step, env, found)
        if not isinstance(step, LoopStep) or env or step.upper[0].const > MOST_ROUNDS:
            return False
        is_special = self.specials.pays(step.body)
        for value in range(step.upper[0].const):
            if not is_special:
                if not all(self.step(inner, {step.var: value}, found) for inner in step.body):
                    return False
                continue
            special = self.specials.of(step.body, {step.var: value})
            inside, shifts = self.of(special.body), dict(special.shifts)
            if inside is None:
                return False
            for buffer, cover in inside.items():
                _add(found, buffer, cover.low + shifts.get(buffer, 0), cover.bits)
        return True

    def call(self, step: CallStep, env: Mapping[str, int], found: Covers) -> bool:
        cost = self.costs.of(step, tuple([min([i.evaluate(env) for i in indices]) for indices in step.params]))
        for operand in cost.operands:
            place = step.operands[operand.number]
            if place is None or place.buffer not in self.specials.held:
                continue
            if place.offset is None or not operand.footprint.has_bits:
                return False
            _add(found, place.buffer, place.offset.evaluate(env) + operand.footprint.low, operand.footprint.bits)
        return True


def _add(found: Covers, buffer: str, low: int, bits: int) -> None:
    cover = found.get(buffer)
    if cover is None:
        found[buffer] = Cover(low, bits)
    else:
        cover.add(low, bits)
