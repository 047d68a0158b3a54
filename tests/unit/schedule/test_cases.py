"""Small run-time sizes with plans of their own."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.base.errors import PlanError
from dovetail.ir.plan import Case, plan_from_json
from dovetail.pipeline import compile, program
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target

TEXT = """size m in 1..300
in a: f32[m, 40]  in b: f32[40, 56]  out c: f32[m, 56]
for i<m, j<56, k<40: c[i, j] += a[i, k] * b[k, j]"""


def test_a_wide_range_of_sizes_gets_several_plans_that_read_back() -> None:
    plan = default_plan(program(TEXT), load_target("x86-64-v3"), 2)
    assert [case.most for case in plan.cases] == sorted(case.most for case in plan.cases) and plan.cases
    assert plan_from_json(plan.to_json()) == plan
    assert str(plan).startswith("when m <= ")


def test_one_kernel_is_exact_on_both_sides_of_every_border() -> None:
    kernel = compile(program(TEXT), threads=2, cache=False)
    rng = np.random.default_rng(0)
    b = rng.integers(-4, 5, (40, 56)).astype(np.float32)
    for m in (1, 2, 3, 15, 16, 17, 18, 131, 300):
        a = rng.integers(-4, 5, (m, 40)).astype(np.float32)
        assert np.array_equal(kernel(a, b), a @ b)


def test_a_case_outside_the_range_of_its_size_is_refused() -> None:
    given, target = program(TEXT), load_target("x86-64-v3")
    plan = default_plan(given, target, 1)
    wrong = replace(plan, cases=(Case("m", 300, replace(plan, cases=())),))
    with pytest.raises(PlanError, match="no part of that size's range"):
        build_nest(given, wrong, target)
