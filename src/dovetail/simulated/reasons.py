"""Why a statement runs on the host: no instruction fits it, or one does and the machine cannot feed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dovetail.base.errors import DovetailError, PlanError, SimulationError
from dovetail.ir.fit import Fit, Misfit
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.mapping.find import find_mappings
from dovetail.schedule.placed.choose import step_of
from dovetail.schedule.placed.lower import placed_nest
from dovetail.schedule.placed.space import Cut, Work, block_choices, plan_node, works
from dovetail.schedule.placed.zeros import zero_target
from dovetail.sim.timed import simulate_time
from dovetail.targets.model import Target


def reasons(program: Program, target: Target, statements: Sequence[int]) -> dict[int, str]:
    """For each of ``statements``, in a line or two, what keeps it from the machine."""
    if not statements:
        return {}
    found = find_mappings(program, target, nodes=False)
    return {n: _reason(program, target, n, found.fits, found.misfits) for n in statements}


def _reason(program: Program, target: Target, number: int, fits: tuple[Fit, ...], misfits: Sequence[Misfit]) -> str:
    fitting = [fit.instruction for fit in fits if fit.statement == number]
    if not fitting:
        near = [m for m in misfits if m.statement == number]
        first = next((m for m in near if not target.instruction(m.instruction).is_copy), near[0] if near else None)
        return "no instruction is near it" if first is None else f"{first.instruction}: {first.reason}"
    for problem in _problems(program, zero_target(target), number, fits):
        return f"{fitting[0]} fits, but {problem.what}" + (f": {problem.why}" if problem.why else "")
    return f"{fitting[0]} fits, but the plan leaves it to the host"


def _problems(program: Program, target: Target, number: int, fits: tuple[Fit, ...]) -> Iterator[DovetailError]:
    """What stands against the smallest tiles of the fits, of each fit the first; none when one can be done."""
    alone = step_of(program, number)
    found: list[DovetailError] = []
    for work in works(program, target, fits, number):
        problem = _problem(replace(work, program=alone, number=0), target)
        if problem is None:
            return
        found.append(problem)
    if not found:
        found.append(PlanError("no copies lead to it", why="or an operand is read in more than one way"))
    yield from found


def _problem(work: Work, target: Target) -> DovetailError | None:
    blocks = {loop: block_choices(work, loop) for loop in work.extents}
    if not all(blocks.values()):
        return PlanError("the loops it would run over do not divide as its parameters want")
    outer = tuple(loop for loop, sizes in blocks.items() if sizes[0] < work.extents[loop])
    cut = Cut(tuple((loop, sizes[0]) for loop, sizes in blocks.items()), outer, frozenset())
    try:
        simulate_time(placed_nest(work.program, Plan((plan_node(work, cut, "s"),)), target), target, most_events=0)
    except (PlanError, SimulationError) as problem:
        return problem
    return None
