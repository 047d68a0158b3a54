"""Small run-time sizes with plans of their own."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.base.errors import PlanError
from dovetail.ir.nest import When, walk
from dovetail.ir.plan import Case, Hold, Leaf, Plan, Tile, plan_from_json
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
    for m in (1, 2, 3, 4, 5, 6, 7, 15, 16, 17, 18, 131, 300):
        a = rng.integers(-4, 5, (m, 40)).astype(np.float32)
        assert np.array_equal(kernel(a, b), a @ b)


def test_a_case_has_a_register_tile_for_the_largest_of_its_sizes() -> None:
    wide = TEXT.replace("40", "512").replace("56", "512")
    plan = default_plan(program(wide), load_target("x86-64-v3"), 2)
    case = next(case for case in plan.cases if case.most == 4)
    assert "of 0.i by 4" in str(case.plan)


def test_rows_that_are_left_over_share_their_loads() -> None:
    """Three rows of a tile of four are one piece: each vector of b is loaded once for all of them, as for four."""
    target = load_target("x86-64-v3")
    steps = Tile("kt", ((0, "k"),), 1, (Leaf(0, "j", 8),))
    columns = Tile("jt", ((0, "j"),), 8, (steps,), holds=(Hold("c", "registers"),))
    plan = Plan((Tile("it", ((0, "i"),), 4, (columns,)),))
    three, four = (program(TEXT.replace("1..300", f"{m}..{m}")) for m in (3, 4))
    loads = [str(build_nest(p, plan, target)).count("call load.f32x8(") for p in (three, four)]
    assert loads == [1, 1]


def test_a_case_outside_the_range_of_its_size_is_refused() -> None:
    given, target = program(TEXT), load_target("x86-64-v3")
    plan = default_plan(given, target, 1)
    wrong = replace(plan, cases=(Case("m", 300, replace(plan, cases=())),))
    with pytest.raises(PlanError, match="no part of that size's range"):
        build_nest(given, wrong, target)


@pytest.mark.parametrize("rows", [7, 9, 14])
def test_rows_left_over_are_one_piece_for_each_number_of_them(rows: int) -> None:
    flat, machine = program(TEXT.replace("1..300", "1..3000")), load_target("x86-64-v4")
    sums = Tile("k1", ((0, "k"),), 1, (Leaf(0, "j", 16),))
    inner = Tile("j1", ((0, "j"),), 16, (sums,), holds=(Hold("c", "registers"),))
    nest = build_nest(flat, Plan((Tile("i1", ((0, "i"),), rows, (inner,)),)), machine)
    asked = [node.conditions for node in walk(nest.body) if isinstance(node, When)]
    pieces = [several for several in asked if all(c.index.names() == {"m"} for c in several)]
    assert len(pieces) == rows - 1
    assert all(len(several) == 2 for several in pieces)  # at least so many, and at most
