"""About how long a whole program takes on a processor: the model that chooses its plan, added up.

The same for every way to write a computation, so that they can be compared: sums of products by their best order with
all bytes they move, everything else by its vectors and lines; what depends on constants alone costs nothing.
"""

from __future__ import annotations

from dovetail.ir.fit import Fit
from dovetail.ir.program import Program
from dovetail.schedule.ahead import split_ahead
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import estimated_cycles
from dovetail.schedule.facts import facts_of
from dovetail.schedule.machine import machine_of
from dovetail.targets.model import Target


def estimate_cycles(program: Program, target: Target, threads: int, tile_fits: tuple[Fit, ...] = ()) -> float:
    """Cycles of one call of ``program`` on ``threads`` units of ``target``, which must be a processor."""
    return estimated_cycles(collapse(split_ahead(program).main), target, threads, tile_fits)


def arithmetic_cycles(program: Program, target: Target, threads: int) -> float:
    """Cycles of its arithmetic alone, in whole vectors on all units: what no plan goes below."""
    flat = collapse(split_ahead(program).main)
    machine = machine_of(target)
    total = 0.0
    for number in range(len(flat.statements)):
        facts = facts_of(flat, number)
        width = machine.lane_counts(facts)[0]
        total += facts.points / width * machine.operation_cycles(facts, width)
    return total / threads
