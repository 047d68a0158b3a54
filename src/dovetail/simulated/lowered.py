"""Program and plan -> the nest, and the machine with what its host unit runs in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from dovetail.ir.fit import Fit
from dovetail.ir.nest import Nest
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.mapping.candidates import FINITE
from dovetail.mapping.find import find_mappings
from dovetail.schedule.placed.host import host_target
from dovetail.schedule.placed.lower import placed_nest
from dovetail.schedule.placed.zeros import zero_target
from dovetail.targets.model import Target


def lowered(
    program: Program, plan: Plan, target: Target, reasons: Mapping[int, str] | None = None
) -> tuple[Target, Nest]:
    """``reasons`` are for the message where the machine has no host for a statement that needs one."""
    machine = zero_target(host_target(program, target, hosted(plan), reasons))
    return machine, placed_nest(program, plan, machine)


@lru_cache(maxsize=16)
def all_fits(program: Program, target: Target) -> tuple[Fit, ...]:
    """Whole statements done by single instructions.

    Padding with zeros is taken to add nothing; a kernel asks its arguments whether it does (0 * inf does not)."""
    return find_mappings(program, target, misfits=False, nodes=False, allow=frozenset({FINITE})).fits


def hosted(plan: Plan) -> tuple[int, ...]:
    """The statements that a plan leaves to the host."""
    return tuple(sorted({leaf.statement for leaf in plan.leaves() if not leaf.instruction}))
