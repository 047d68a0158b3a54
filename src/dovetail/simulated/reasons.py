"""Why a statement runs on the host: no instruction fits it, or one does and the machine cannot feed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dovetail.base.errors import DovetailError, PlanError, SimulationError
from dovetail.ir.expr import Cast, Read
from dovetail.ir.fit import Fit, Misfit
from dovetail.ir.index import Access
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.mapping.candidates import FINITE
from dovetail.mapping.find import find_mappings
from dovetail.schedule.placed.choose import only
from dovetail.schedule.placed.lower import placed_nest
from dovetail.schedule.placed.paths import path
from dovetail.schedule.placed.space import Cut, Work, block_choices, plan_node, works
from dovetail.schedule.placed.zeros import zero_target
from dovetail.sim.timed import simulate_time
from dovetail.targets.model import Target


def reasons(program: Program, target: Target, statements: Sequence[int]) -> dict[int, str]:
    """For each of ``statements``, in a line or two, what keeps it from the machine."""
    if not statements:
        return {}
    found = find_mappings(program, target, nodes=False, allow=frozenset({FINITE}))
    return {n: _reason(program, target, n, found.fits, found.misfits) for n in statements}


def _reason(program: Program, target: Target, number: int, fits: tuple[Fit, ...], misfits: Sequence[Misfit]) -> str:
    fitting = [fit for fit in fits if fit.statement == number]
    if not fitting:
        near = [m for m in misfits if m.statement == number]
        copies = {name for i in target.instructions if i.is_copy for name in (i.name, i.family)}
        first = next((m for m in near if m.instruction not in copies), near[0] if near else None)
        return "no instruction is near it" if first is None else f"{first.instruction}: {first.reason}"
    return next(
        _against(program, zero_target(target), fitting),
        f"{fitting[0].instruction} fits, but the plan leaves it to the host",
    )


def _against(program: Program, target: Target, fits: Sequence[Fit]) -> Iterator[str]:
    """What stands against each of the fits of a statement; nothing when one of them can be done."""
    number = fits[0].statement
    alone = only(program, number)
    built: list[str] = []
    unplanned: list[str] = []
    for fit in fits:
        work = next(works(program, target, (fit,), number), None)
        if work is None:
            unplanned.append(f"{fit.instruction} fits, but {_unplanned(fit, target)}")
            continue
        problem = _problem(replace(work, program=alone, number=0), target)
        if problem is None:
            return
        why = f"\n{problem.why}" if problem.why else ""
        hint = problem.hint
        if isinstance(problem, SimulationError):
            source = target.instruction(fit.instruction).source
            hint = f"more 'bytes' in that [[memory]], or smaller extents in {source}, key 'computes'"
        try_this = f"\nwould help: {hint}" if hint else ""
        built.append(f"{fit.instruction} fits, but {problem.what}{why}{try_this}")
    yield from (*built, *unplanned)


def _unplanned(fit: Fit, target: Target) -> str:
    """Why no plan is made of a fit."""
    for operand in fit.operands:
        value = operand.value
        while isinstance(value, Cast):
            value = value.arg
        if not isinstance(value, Access | Read):
            return f"only with '{value}' in a tensor of its own: give it a statement and a temp"
    main = target.main.name
    for wanted in target.instruction(fit.instruction).operands:
        if wanted.memory != main and path(target, main, wanted.memory) is None:
            return f"no copies lead from '{main}' to '{wanted.memory}'"
    return "an operand is read in more than one way, or not by plain sums of loops"


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
