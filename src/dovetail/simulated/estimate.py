"""What a program would take on a simulated machine, without simulating it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod

from dovetail.ir.bind import bind_sizes, with_sizes
from dovetail.ir.program import Program
from dovetail.schedule.placed.choose import least_cycles
from dovetail.schedule.placed.predict import predict
from dovetail.schedule.placed.zeros import zero_target
from dovetail.simulated.lowered import all_fits, lowered
from dovetail.simulated.prepare import prepared
from dovetail.simulated.specialise import default_plan
from dovetail.targets.model import Target

SURE = 1.5
"""A program whose lower bound is so many times what another takes is not planned."""


def estimated_cycles(
    program: Program, target: Target, sizes: Mapping[str, int] | None = None, at_most: float = inf
) -> float:
    """Cycles of one run, predicted for the default plan; what is done ahead, from constants, costs nothing.

    Infinite where main memory does not hold what the program stores. Where it surely takes more than ``at_most`` it is
    not planned: the answer is a lower bound, and more than that. Run-time sizes are as large as they may be where
    ``sizes`` does not say. The plan is kept: compiling the program next does not look for it again."""
    if program.sizes:
        given = {s.name: (sizes or {}).get(s.name, s.high) for s in program.sizes}
        program = with_sizes(program, bind_sizes(program, {}, given))
    main = prepared(program, target)
    if sum(t.dtype.bytes * prod(e.const for e in t.shape) for t in main.tensors) > target.main.bytes:
        return inf
    if at_most < inf:
        least = least_cycles(main, zero_target(target), all_fits(main, target))
        if least > SURE * at_most:
            return least
    machine, nest = lowered(main, default_plan(main, target), target)
    return predict(nest, machine).cycles


class Estimates:
    """Estimates of programs that are to be compared: one that cannot be the fastest is not looked at to the end."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.best = inf

    def __call__(self, program: Program) -> float:
        cycles = estimated_cycles(program, self.target, at_most=self.best)
        self.best = min(self.best, cycles)
        return cycles
