"""About how long a whole program takes on a processor: the model that chooses its plan, added up.

The same for every way to write a computation, so that they can be compared: sums of products by their best order with
all bytes they move, everything else by its vectors and lines; what depends on constants alone costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from dovetail.ir.fit import Fit
from dovetail.ir.program import Program
from dovetail.schedule.ahead import split_ahead
from dovetail.schedule.default import MANY_TILINGS, estimated_cycles
from dovetail.schedule.facts import facts_of
from dovetail.schedule.flats import flats
from dovetail.schedule.machine import Machine, machine_of
from dovetail.targets.model import Target

TileFits = Callable[[Program, Target], tuple[Fit, ...]]
"""How instructions that do whole tiles fit a program that is collapsed."""


def no_fits(flat: Program, target: Target) -> tuple[Fit, ...]:
    """For targets without such instructions."""
    return ()


def estimate_cycles(program: Program, target: Target, threads: int, tile_fits: TileFits = no_fits) -> float:
    """Cycles of one call of ``program`` on ``threads`` units of ``target``, which must be a processor."""
    ways = flats(split_ahead(program).main)
    return min(estimated_cycles(flat, target, threads, tile_fits(flat, target)) for flat in ways)


def fastest_flat(ways: tuple[Program, ...], target: Target, threads: int, tile_fits: TileFits = no_fits) -> Program:
    """Of the ways to collapse a program the one that is estimated to be the fastest."""
    if len(ways) == 1:
        return ways[0]
    return min(ways, key=lambda flat: estimated_cycles(flat, target, threads, tile_fits(flat, target), MANY_TILINGS))


def arithmetic_cycles(program: Program, target: Target, threads: int) -> float:
    """Cycles of its arithmetic alone, in whole vectors on all units: what no plan goes below."""
    machine = machine_of(target)
    return min(_arithmetic(flat, machine) for flat in flats(split_ahead(program).main)) / threads


def _arithmetic(flat: Program, machine: Machine) -> float:
    total = 0.0
    for number in range(len(flat.statements)):
        facts = facts_of(flat, number)
        width = machine.lane_counts(facts)[0]
        total += facts.points / width * machine.operation_cycles(facts, width)
    return total
