"""What a program would take on a simulated machine, without simulating it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod

from dovetail.ir.bind import bind_sizes, with_sizes
from dovetail.ir.program import Program
from dovetail.schedule.placed.predict import predict
from dovetail.simulated.lowered import lowered
from dovetail.simulated.prepare import prepared
from dovetail.simulated.specialise import default_plan
from dovetail.targets.model import Target


def estimated_cycles(program: Program, target: Target, sizes: Mapping[str, int] | None = None) -> float:
    """Cycles of one run, predicted for the default plan; what is done ahead, from constants, costs nothing.

    Infinite where main memory does not hold what the program stores. Run-time sizes are as large as they may be where
    ``sizes`` does not say. The plan is kept: compiling the program next does not look for it again."""
    if program.sizes:
        given = {s.name: (sizes or {}).get(s.name, s.high) for s in program.sizes}
        program = with_sizes(program, bind_sizes(program, {}, given))
    main = prepared(program, target)
    if sum(t.dtype.bytes * prod(e.const for e in t.shape) for t in main.tensors) > target.main.bytes:
        return inf
    machine, nest = lowered(main, default_plan(main, target), target)
    return predict(nest, machine).cycles
