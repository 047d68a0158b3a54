"""Compiled code gives the evaluator's bits: random programs under the default plan, and under random plans.

Every test draws its own part of the examples, so that workers can share them.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from dovetail.base.errors import PlanError
from dovetail.ir.plan import plan_from_json
from dovetail.pipeline import compile
from dovetail.schedule.collapse import collapse
from dovetail.targets.load import load_target
from tests.differential.kernels import assert_exact, uncertified
from tests.differential.plans import plans
from tests.property.programs import Case, programs

TARGETS = ("x86-64-v3", "generic", "host")
EXTENTS = (1, 2, 3, 4, 7, 9, 17)
PARTS = 8
EXAMPLES = 125
PLAN_EXAMPLES = 100
CHECKS = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_compile_to_what_the_evaluator_computes(part: int) -> None:
    target, threads = TARGETS[part % len(TARGETS)], 1 + part % 2

    @seeded(part)
    @settings(CHECKS, max_examples=EXAMPLES)
    @given(programs(extents=EXTENTS))
    def check(case: Case) -> None:
        assert_exact(compile(case.program, target, threads, cache=False), case.sizes)

    check()


@pytest.mark.parametrize("part", range(4))
def test_random_plans_compute_the_same_or_are_refused(part: int) -> None:
    """This tests lowering apart from the planner's taste."""
    target, threads = TARGETS[part % 2], 1 + part // 2

    @seeded(part)
    @settings(CHECKS, max_examples=PLAN_EXAMPLES)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(programs(max_statements=2, extents=EXTENTS))
        flat, machine = collapse(case.program), load_target(target)
        plan = data.draw(plans(flat, machine))
        try:
            kernel = uncertified(case.program, plan_from_json(plan.to_json()), target, threads)
        except PlanError:
            event("refused")
            return
        event("run")
        assert_exact(kernel, case.sizes)

    check()
