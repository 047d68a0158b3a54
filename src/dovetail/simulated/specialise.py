"""A program with constant extents -> its plan, its nest on a machine, its cycles and its certificate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TypeVar

from dovetail.ir.certificate import Certificate
from dovetail.ir.nest import Nest
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.schedule.placed.choose import default_placed_plan
from dovetail.schedule.placed.padding import finite_tensors
from dovetail.schedule.placed.predict import Prediction, predict
from dovetail.schedule.placed.zeros import zero_target
from dovetail.sim.report import Timing, UnitTime
from dovetail.sim.timed import simulate_time
from dovetail.simulated.certify import certify
from dovetail.simulated.lowered import all_fits, hosted, lowered
from dovetail.simulated.prepare import prepare
from dovetail.simulated.reasons import reasons
from dovetail.simulated.steps import StepTime, step_times
from dovetail.targets.model import Target

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OnHost:
    """A statement that runs on the machine's host unit, and why."""

    statement: int
    text: str
    reason: str

    def __str__(self) -> str:
        reason = self.reason.replace("\n", "\n  ")
        return f"statement {self.statement} on the host: {self.text}\n  {reason}"


@dataclass(frozen=True)
class Specialised:
    """A program for constant extents. ``machine`` is the target with the instructions that its host runs."""

    program: Program
    plan: Plan
    nest: Nest
    machine: Target
    timing: Timing
    certificate: Certificate
    on_host: tuple[OnHost, ...]
    finite: frozenset[str]
    """Arguments that must be finite."""
    ahead: tuple[Program, ...] = ()
    """What makes constants of the program, each from those of the whole program and of the ones before it."""

    @cached_property
    def prediction(self) -> Prediction:
        """Cycles by the analytic model."""
        return predict(self.nest, self.machine)

    @cached_property
    def step_times(self) -> tuple[StepTime, ...]:
        """What a step takes of each sequence of several steps."""
        return step_times(self.program, self.plan, self.nest, self.machine)

    @property
    def unit_at_work(self) -> UnitTime:
        """The unit of the heaviest statement; the host counts last."""
        heaviest = max(self.plan.leaves(), key=lambda leaf: (bool(leaf.instruction), self._points(leaf.statement)))
        instruction = self.machine.instruction(heaviest.instruction or f"host.{heaviest.statement}")
        named = [u for u in self.timing.units if u.name == instruction.unit and u.is_engine is instruction.is_async]
        idle = UnitTime(instruction.unit, instruction.is_async, 1, 0.0, 0.0)
        return max(named or self.timing.units, key=lambda u: u.utilisation, default=idle)

    def _points(self, number: int) -> int:
        return prod(loop.extent.const for loop in self.program.statements[number].all_loops)


def specialise(program: Program, target: Target, given: Plan | None, seconds: dict[str, float]) -> Specialised:
    """``program`` as ``given`` says, or as the default plan does; ``seconds`` learns how long each step took.

    An error instead of a kernel that breaks a rule of the machine or fails its certificate."""

    def timed(name: str, work: Callable[[], T]) -> T:
        begun = time.perf_counter()
        result = work()
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begun
        return result

    parts = prepare(program, target)
    program = parts.main
    plan = given or timed("plan", lambda: default_plan(program, target))
    why = timed("reasons", lambda: reasons(program, target, hosted(plan)))
    machine, nest = timed("nest", lambda: lowered(program, plan, target, why))
    timing = timed("time", lambda: simulate_time(nest, machine))
    certificate = timed("certificate", lambda: certify(program, plan, target, nest, machine, timing))
    on_host = tuple(OnHost(number, str(program.statements[number]), why[number]) for number in hosted(plan))
    finite = finite_tensors(program, plan, machine) | parts.finite
    return Specialised(program, plan, nest, machine, timing, certificate, on_host, finite, parts.ahead)


@lru_cache(maxsize=64)
def default_plan(program: Program, target: Target) -> Plan:
    """The plan that the analytic model thinks best."""
    return default_placed_plan(program, zero_target(target), all_fits(program, target))
