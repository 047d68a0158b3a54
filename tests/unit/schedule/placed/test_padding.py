"""Edges: which loops calls always do whole, which guards zeros stand for, which are asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.base.errors import PlanError
from dovetail.ir.parse import parse
from dovetail.ir.plan import Leaf, Plan
from dovetail.ir.program import Program
from dovetail.schedule.placed.frame import Site
from dovetail.schedule.placed.padding import asked, edges_of, exact_loops, finite_tensors, zeroed
from tests.unit.schedule.placed.small import BY_PRODUCT, machine, product, product_plan, tiles, variant

CONVOLUTION = parse("""
    in x: i8[4,6,6]  in w: i8[4,4,3,3]  out y: i32[4,6,6]
    for k<4, p<6, q<6, c<4, r<3, s<3 where p+r>=1, p+r<=6, q+s>=1, q+s<=6:
        y[k,p,q] += x[c,p+r-1,q+s-1] * w[k,c,r,s]
""")
BY_ROWS = Leaf(
    0,
    instruction="product",
    bound=(("i", ("q",)), ("j", ("k",)), ("k", ("c",))),
    operands=(("acc", "y"), ("a", "x"), ("w", "w")),
)


def site(program: Program, plan: Plan) -> Site:
    return Site(program, plan, machine())


def test_fixed_extents_and_rows_of_dense_operands_are_done_whole() -> None:
    assert exact_loops(site(product(), product_plan("i 8")), BY_PRODUCT) == {"j", "k"}


def test_rows_of_a_dense_operand_are_as_long_in_every_call(tmp_path: Path) -> None:
    ranged = variant(
        tmp_path, ("for i<m, j<4, k<4: acc", "for i<m, j<n, k<4: acc"), ('"1..8" }', '"1..8", n = "1..4" }')
    )
    assert exact_loops(Site(product(), product_plan("i 8"), ranged), BY_PRODUCT) == {"j", "k"}


def test_a_guard_on_loops_that_no_call_walks_is_asked() -> None:
    plan = Plan((tiles("p 1, r 1, s 1", BY_ROWS),))
    where = site(CONVOLUTION, plan)
    assert {str(c) for c in asked(where, BY_ROWS)} == {"p + r >= 1", "p + r <= 6"}
    assert zeroed(where, BY_ROWS) == {"x": {2}}


def test_zeros_stand_for_a_guard_only_at_the_end_of_a_tensor() -> None:
    cut = parse(
        "in x: i8[8,8]  in w: i8[8,4]  out y: i32[8,4]\nfor q<8, k<4, c<8 where q<=5: y[q,k] += x[q,c] * w[c,k]"
    )
    assert edges_of(cut, cut.statements[0], cut.statements[0].where[0]) is None
    by = Leaf(0, instruction="product", bound=BY_ROWS.bound, operands=BY_ROWS.operands)
    with pytest.raises(PlanError, match="zeros cannot stand for the points"):
        zeroed(site(cut, Plan((tiles("c 4", by),))), by)


def test_only_sums_of_floats_need_finite_factors() -> None:
    plan = Plan((tiles("p 1, r 1, s 1", BY_ROWS),))
    assert finite_tensors(CONVOLUTION, plan, machine()) == frozenset()
    assert finite_tensors(product(), product_plan("i 8"), machine()) == frozenset()
