"""Dovetail's own plan of a case: searched, simulated and predicted."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import dovetail
from benchmarks.accelerators.cases import Case
from dovetail.base.errors import DovetailError
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.schedule.placed.predict import predict
from dovetail.sim.report import Timing
from dovetail.sim.timed import simulate_time
from dovetail.simulated.kernel import SimulatedKernel
from dovetail.simulated.lowered import lowered
from dovetail.simulated.prepare import prepared
from dovetail.simulated.search import searched_plan
from dovetail.simulated.specialise import default_plan
from dovetail.targets.load import load_target
from dovetail.targets.model import Target
from dovetail.tune.search import Budget

PEAK = {"sw26010": 256, "npu-mv": 4096, "systolic16": 256}
"""Multiply-adds a cycle."""


@dataclass(frozen=True, slots=True)
class Row:
    """A case and what became of it; ``error`` where there is no plan. ``peer``: cycles of what it is compared with."""

    case: Case
    cycles: float = 0.0
    predicted: float = 0.0
    peer: float | None = None
    search_seconds: float = 0.0
    simulation_seconds: float = 0.0
    busy: float = 0.0
    """Cycles in which the unit that multiplies is at work."""
    error: str = ""

    @property
    def works(self) -> bool:
        return not self.error

    @property
    def gain(self) -> float:
        """Cycles of the peer for one of ours; 0 without a plan."""
        return self.peer / self.cycles if self.peer and self.works else 0.0

    @property
    def utilisation(self) -> float:
        """Multiply-adds of the program, out of those the machine could have done meanwhile."""
        return self.case.macs / PEAK.get(self.case.machine, 256) / self.cycles if self.works else 0.0

    @property
    def prediction_error(self) -> float:
        return abs(self.predicted - self.cycles) / self.cycles


def measured(case: Case, budget: float, certify: bool = False) -> Row:
    """Search a plan of ``case`` for ``budget`` seconds (0: the default plan) and time it; compile it if ``certify``."""
    peer = case.hand() if case.hand else None
    program, target = dovetail.program(case.text), load_target(case.target)
    begun = time.perf_counter()
    try:
        main = prepared(program, target)
        plan = searched_plan(program, target, Budget(budget)).best if budget else default_plan(main, target)
        searched = time.perf_counter() - begun
        machine, nest = lowered(main, plan, target)
        if certify:
            compiled(program, case.target, plan)
        begun = time.perf_counter()
        timing = simulate_time(nest, machine)
        simulated = time.perf_counter() - begun
    except DovetailError as error:
        return Row(case, peer=peer, error=str(error).splitlines()[0])
    predicted = predict(nest, machine).cycles
    return Row(case, timing.cycles, predicted, peer, searched, simulated, _busy(target, timing))


def compiled(program: Program, target: str | Path, plan: Plan | None = None) -> SimulatedKernel:
    """A kernel that runs on a simulator."""
    kernel = dovetail.compile(program, target=target, plan=plan)
    assert isinstance(kernel, SimulatedKernel)
    return kernel


def _busy(target: Target, timing: Timing) -> float:
    """Of the unit with the products: the most used of those that are no copy engines."""
    multiplying = {i.unit for i in target.instructions if not i.is_async}
    return max((u.busy_cycles for u in timing.units if not u.is_engine and u.name in multiplying), default=0.0)
