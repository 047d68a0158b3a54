"""A program on a simulated machine, called like any kernel.

kernel(x, y)              -> the output, or a tuple of outputs, computed in the machine's memories
kernel(x, sizes={"m": 7}) -> where no input's shape tells a run-time size
kernel.cycles             -> what the timed simulation counts; kernel.predicted_cycles beside it
kernel.step_times         -> of a recurrence, what one step takes and how busy each unit is in it

Nests for simulated machines have constant extents, so a program with run-time sizes is planned when it is first called
with them; ``kernel.at(sizes)`` does so ahead of a call. What the kernel says about its plan and its cycles is about the
sizes it was used with last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import CallError
from dovetail.ir.bind import bind_sizes, extents, with_sizes
from dovetail.ir.certificate import Certificate
from dovetail.ir.evaluate import evaluate
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role
from dovetail.runtime.arrays import Parameter, argument
from dovetail.sim.functional import simulate
from dovetail.sim.report import Timing, table
from dovetail.simulated.specialise import OnHost, Specialised, specialise
from dovetail.simulated.steps import StepTime
from dovetail.targets.model import Target

Array = npt.NDArray[np.generic]


@dataclass
class SimulatedKernel:
    """A program compiled for a machine that is simulated; ``given`` is the plan to use instead of the default one."""

    program: Program
    machine: Target
    given: Plan | None = None
    constants: dict[str, Array] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each step of compilation took."""
    threads: int = 1
    form: str = ""
    """Which algorithm it is, and what others would cost."""
    finite: bool = False
    """Whether the algorithm puts zeros where the program has no point."""
    known: dict[tuple[int, ...], Specialised] = field(default_factory=dict, repr=False)
    """By the values of all run-time sizes."""
    used: Specialised | None = field(default=None, repr=False)
    made: dict[tuple[Program, ...], dict[str, Array]] = field(default_factory=dict, repr=False)
    """What was computed ahead from constants that are bound."""

    def __post_init__(self) -> None:
        if not self.program.sizes:
            self.at({})

    def __call__(
        self, *arrays: object, out: object = None, sizes: Mapping[str, int] | None = None
    ) -> Array | tuple[Array, ...]:
        given = [t.name for t in self.program.inputs if t.name not in self.constants]
        if len(arrays) != len(given):
            raise CallError(f"the kernel takes {len(given)} arguments ({', '.join(given)}), got {len(arrays)}")
        values = {name: self._checked(name, value) for name, value in zip(given, arrays, strict=True)} | self.constants
        bound = bind_sizes(self.program, {name: array.shape for name, array in values.items()}, sizes)
        use = self.at(bound)
        values = self._with_ahead(use, values)
        self._check_finite(use, values)
        found = simulate(use.nest, use.machine, values).arrays
        results = [found[t.name].reshape(extents(t, bound)) for t in self.program.outputs]
        if out is not None:
            results = self._into(out, results)
        return results[0] if len(results) == 1 else tuple(results)

    def at(self, sizes: Mapping[str, int]) -> Specialised:
        """The kernel for these run-time sizes, made when they are first asked for."""
        bound = bind_sizes(self.program, {}, sizes)
        key = tuple(bound[s.name] for s in self.program.sizes)
        if key not in self.known:
            fixed = with_sizes(self.program, bound)
            self.known[key] = specialise(fixed, self.machine, self.given, self.seconds)
        self.used = self.known[key]
        return self.used

    def bind(self, constants: Mapping[str, object]) -> None:
        """Constants that are no longer arguments."""
        for name, value in constants.items():
            tensor = next((t for t in self.program.tensors if t.name == name), None)
            if tensor is None or tensor.role is not Role.CONST:
                raise CallError(f"'{name}' is not a constant of the program", hint="declare it: const ...")
            self.constants[name] = self._checked(name, value)
        self.made.clear()

    def explain(self) -> str:
        """What was chosen, what it costs, and why it may be trusted."""
        last = self.last
        origin = f"; plan from the {last.plan.note}" if last.plan.note else ""
        checks = "\n".join(["certificate", *(f"  {check}" for check in last.certificate.checks)])
        early = sum(len(part.statements) for part in last.ahead)
        ahead = [f"{early} statements done ahead, from constants and numbers alone"] if early else []
        parts = [
            f"for {self.target}, simulated{origin}",
            *filter(None, [self.form]),
            *ahead,
            str(last.plan),
            *map(str, last.on_host),
        ]
        return "\n\n".join([*parts, table(last.timing, last.prediction.cycles), checks])

    # -- what the last sizes gave

    @property
    def last(self) -> Specialised:
        """The kernel for the sizes used last."""
        if self.used is None:
            sizes = ", ".join(s.name for s in self.program.sizes)
            raise CallError(
                f"the kernel has no plan yet: it depends on {sizes}", hint="call it first, or kernel.at(sizes)"
            )
        return self.used

    @property
    def target(self) -> str:
        return self.machine.name

    @property
    def plan(self) -> Plan:
        return self.last.plan

    @property
    def certificate(self) -> Certificate:
        return self.last.certificate

    @property
    def timing(self) -> Timing:
        """Cycles, and how busy instructions, units and memories are."""
        return self.last.timing

    @property
    def cycles(self) -> float:
        """As simulated."""
        return self.last.timing.cycles

    @property
    def predicted_cycles(self) -> float:
        """As the analytic model says."""
        return self.last.prediction.cycles

    @property
    def utilisation(self) -> float:
        """The share of the time in which the unit that does most of the work is at work."""
        return self.last.unit_at_work.utilisation

    @property
    def step_times(self) -> tuple[StepTime, ...]:
        """Cycles of a step of each sequence, and how busy units are in it, without what is brought before the steps."""
        return self.last.step_times

    @property
    def on_host(self) -> tuple[OnHost, ...]:
        """Statements that run on the host unit, with the reason."""
        return self.last.on_host

    @property
    def packing_seconds(self) -> float:
        """Nothing is laid out ahead of time."""
        return 0.0

    # -- arguments

    def _with_ahead(self, use: Specialised, values: Mapping[str, Array]) -> dict[str, Array]:
        """What the machine is given: ``values``, and what is made of the constants, once where they are bound."""
        made = self.made.get(use.ahead)
        if made is None:
            made = {}
            for part in use.ahead:
                made |= evaluate(
                    part, {t.name: made[t.name] if t.name in made else values[t.name] for t in part.inputs}
                )
            if all(t.name in self.constants or t.name in made for part in use.ahead for t in part.inputs):
                self.made[use.ahead] = made
        given = {**values, **made}
        return {t.name: given[t.name] for t in use.program.inputs}

    def _check_finite(self, use: Specialised, values: Mapping[str, Array]) -> None:
        """Zeros of a padding add nothing to what they are multiplied with, unless that is infinite or no number."""
        floats = {t.name for t in use.program.inputs if t.dtype.is_float} if self.finite else frozenset[str]()
        for name in sorted(use.finite | floats):
            if not np.isfinite(values[name].astype(np.float64)).all():
                raise CallError(
                    f"argument '{name}' holds infinities or NaN",
                    why="zeros stand where the program has no point, and 0 * inf would be NaN",
                    hint="a plan whose tiles have one iteration along the padded loops, or finite values",
                )

    def _checked(self, name: str, value: object) -> Array:
        tensor = self.program.tensor(name)
        shape = tuple(e.const if e.is_constant else None for e in tensor.shape)
        return argument(Parameter(name, tensor.dtype.name, shape, False), value).array

    def _into(self, out: object, results: list[Array]) -> list[Array]:
        """The caller's own arrays, with the results in them."""
        several = list(out) if isinstance(out, list | tuple) else [out]
        if len(several) != len(results):
            raise CallError(f"out has {len(several)} arrays, the program has {len(results)} outputs")
        wanted = [
            argument(Parameter(t.name, t.dtype.name, found.shape, True), given).array
            for t, given, found in zip(self.program.outputs, several, results, strict=True)
        ]
        for given, found in zip(wanted, results, strict=True):
            np.copyto(given, found)
        return wanted
