"""DeepBench's GRUs step by step on the matrix-vector machine: right with data, cycles of a step, and how busy it is.

Weights are brought to the machine once, before the steps. A step costs the same whatever their number, so sequences
are cut to ``MOST_STEPS``; with data a few steps are run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from benchmarks.accelerators.cases import Case, deepbench_cells
from benchmarks.accelerators.exact import ExactCase, Verdict, check
from benchmarks.accelerators.programs import F8, F16, Cell, Types, cell
from benchmarks.accelerators.subject import PEAK, Row
from dovetail.base.dtypes import dtype
from dovetail.base.errors import DovetailError
from dovetail.ir.parse import parse
from dovetail.schedule.placed.predict import predict
from dovetail.sim.timed import simulate_time
from dovetail.simulated.lowered import lowered
from dovetail.simulated.prepare import prepared
from dovetail.simulated.specialise import default_plan
from dovetail.simulated.steps import StepTime, step_times
from dovetail.targets.load import load_target

MACHINE, UNIT, MEMORY = "npu-mv", "matrix_vector", "matrix"
MOST_STEPS = 187
"""DeepBench's shortest long sequence."""
STEPS_WITH_DATA = 2
LARGE = 1024
"""From so many units on a step is judged."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A cell with weights of one dtype."""

    shape: Cell
    types: Types

    @property
    def label(self) -> str:
        return f"{self.types} {self.shape.label}"

    @property
    def step_macs(self) -> int:
        """Multiply-adds of a step: those of the state."""
        return self.shape.batch * self.shape.gates * self.shape.hidden**2

    @property
    def weights(self) -> int:
        """Bytes of the recurrent weights."""
        return self.shape.gates * self.shape.hidden**2 * dtype(self.types.weights).bytes

    @property
    def fits(self) -> bool:
        return self.weights <= load_target(MACHINE).memory(MEMORY).bytes

    @property
    def is_judged(self) -> bool:
        return self.shape.hidden >= LARGE and self.fits and self.shape.steps > 1


@dataclass(frozen=True, slots=True)
class Stepped:
    """A recurrence, its cycles, and those of a step (None where there is one step only)."""

    recurrence: Recurrence
    row: Row
    step: StepTime | None
    exact: Verdict

    @property
    def utilisation(self) -> float:
        """Multiply-adds of a step, out of those that the unit could have done meanwhile."""
        return self.recurrence.step_macs / PEAK[MACHINE] / self.step.cycles if self.step is not None else 0.0

    @property
    def ceiling(self) -> float:
        """The same if nothing waited but for the busiest unit or copies."""
        if self.step is None:
            return 0.0
        return min(1.0, self.recurrence.step_macs / PEAK[MACHINE] / max(busy for _, busy in self.step.busy))

    @property
    def why(self) -> str:
        """What keeps it from more."""
        if self.step is None:
            return "one step: its weights are brought for it alone"
        room = load_target(MACHINE).memory(MEMORY).bytes
        if not self.recurrence.fits:
            size = self.recurrence.weights
            return f"{size / 2**20:.1f} MiB of weights for {room / 2**20:.0f}: the rest passes in each step"
        waits = self.step.cycles - self.recurrence.step_macs / PEAK[MACHINE]
        return f"{waits:.0f} cycles of latency from the last product to the next state"

    def __str__(self) -> str:
        if self.row.error:
            return f"{self.recurrence.label}: {self.row.error}"
        right = "exact" if self.exact.is_exact else self.exact.error or f"{self.exact.wrong} WRONG"
        if self.step is None:
            return f"{self.recurrence.label}: {self.row.cycles:,.0f} cycles, {right}; {self.why}"
        shares = f"{self.step.cycles:,.0f} cycles a step, {100 * self.utilisation:.1f} % of the {UNIT} unit"
        return f"{self.recurrence.label}: {shares} (ceiling {100 * self.ceiling:.1f} %), {right}; {self.why}"


def recurrences() -> Iterator[Recurrence]:
    """DeepBench's GRUs, each once; where the weights do not fit, also with weights half as large."""
    shapes = [replace(c, steps=min(c.steps, MOST_STEPS)) for c in deepbench_cells() if c.kind == "gru"]
    for shape in dict.fromkeys(shapes):
        yield Recurrence(shape, F16)
        if not Recurrence(shape, F16).fits:
            yield Recurrence(shape, F8)


def stepped(one: Recurrence) -> Stepped:
    """Plan, simulate, and run a few steps with data."""
    text = cell(one.shape, one.types)
    case = Case(one.label, MACHINE, text, one.shape.macs)
    short = replace(one.shape, steps=min(one.shape.steps, STEPS_WITH_DATA))
    target = load_target(MACHINE)
    begun = perf_counter()
    try:
        main = prepared(parse(text), target)
        plan = default_plan(main, target)
        planned = perf_counter() - begun
        machine, nest = lowered(main, plan, target)
        begun = perf_counter()
        timing = simulate_time(nest, machine)
        seconds = perf_counter() - begun
        steps = step_times(main, plan, nest, machine)
    except DovetailError as error:
        row = Row(case, error=str(error).splitlines()[0])
        return Stepped(one, row, None, Verdict(ExactCase(one.label, MACHINE, text), 0, 0, row.error))
    busy = sum(u.busy_cycles for u in timing.units if u.name == UNIT)
    row = Row(case, timing.cycles, predict(nest, machine).cycles, None, planned, seconds, busy)
    verdict = check(ExactCase(one.label, MACHINE, cell(short, one.types)))
    return Stepped(one, row, steps[0] if steps else None, verdict)
