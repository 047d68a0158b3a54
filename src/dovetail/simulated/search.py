"""The best plan that a budget finds on a simulated machine: plans of the space, estimates first, judged by prediction.

A prediction takes hundredths of a second whatever the extents, so that a minute sees a thousand plans. The cycles that
are told are simulated ones: the best plan and the default plan are both simulated in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dovetail.base.errors import PlanError
from dovetail.ir.nest import Nest
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.schedule.placed.choose import placed_plans
from dovetail.schedule.placed.predict import predict
from dovetail.schedule.placed.zeros import zero_target
from dovetail.sim.timed import simulate_time
from dovetail.simulated.lowered import all_fits, lowered
from dovetail.simulated.prepare import prepared
from dovetail.targets.model import Target
from dovetail.tune.search import Budget, Found, Progress, search


def searched_plan(
    program: Program, target: Target, budget: Budget, seen: Callable[[Progress], None] = lambda progress: None
) -> Found[Plan]:
    """The plan of ``program`` (no run-time sizes) with the fewest predicted cycles of those that the budget reaches.

    Its costs are simulated cycles, the first cost that of the default plan, which it never falls behind."""
    program = prepared(program, target)
    plans = placed_plans(program, zero_target(target), all_fits(program, target))
    default: list[Plan] = []

    def predicted(plan: Plan) -> float | None:
        default.extend([plan] if not default else [])
        built = _built(program, plan, target)
        return None if built is None else predict(built[1], built[0]).cycles

    found = search(plans, predicted, budget, seen)
    if found is None:
        raise PlanError(f"no plan for '{target.name}' can be built within the budget", hint="a larger budget")
    simulated = {
        plan.to_json(): (cycles, plan) for cycles, plan in _simulated(program, (default[0], found.best), target)
    }
    cost, best = min(simulated.values(), key=lambda row: row[0])
    first = simulated.get(default[0].to_json(), (cost, best))[0]
    return Found(best, cost, first, found.measured, found.failed, found.stopped_by)


def _simulated(program: Program, plans: tuple[Plan, ...], target: Target) -> Iterator[tuple[float, Plan]]:
    for plan in plans:
        built = _built(program, plan, target)
        if built is not None:
            yield simulate_time(built[1], built[0]).cycles, plan


def _built(program: Program, plan: Plan, target: Target) -> tuple[Target, Nest] | None:
    """The nest of a plan and its machine; None where it cannot be built."""
    try:
        return lowered(program, plan, target)
    except PlanError:
        return None
