"""Statements that only move go by copies, with zeros where the source ends; guards of results only cut the drain."""

from __future__ import annotations

import pytest

from dovetail.base.errors import PlanError
from dovetail.ir.parse import parse
from dovetail.ir.plan import Hold, Leaf, Plan
from dovetail.ir.program import Program
from dovetail.schedule.placed.choose import default_placed_plan, placed_plans
from dovetail.schedule.placed.copying import bounds_of, copies_into, moved_access
from dovetail.schedule.placed.zeros import zero_target
from dovetail.simulated.lowered import all_fits, hosted
from tests.unit.schedule.placed.small import is_exact, machine, tiles

WINDOWS = parse("""
    in x: i32[6,6,4]  out y: i32[6,6,3,3,4]
    for p<6, q<6, r<3, s<3, c<4 where p+r>=1, p+r<=6, q+s>=1, q+s<=6: y[p,q,r,s,c] += x[p+r-1,q+s-1,c]
""")
STRIDED = parse("in x: i32[9,9,4]  out y: i32[4,4,4]\nfor p<4, q<4, c<4: y[p,q,c] = x[2*p+1,2*q,c]")
TURNED = parse("in x: i32[9,12]  out y: i32[12,9]\nfor i<12, j<9: y[i,j] = x[j,i]")
STEPS = parse("in x: i32[5,16]  out y: i32[5,16]\nseq t<5: for i<16: y[t,i] = x[t,i]")


def plan_of(program: Program) -> Plan:
    target = zero_target(machine())
    return default_placed_plan(program, target, all_fits(program, machine()))


@pytest.mark.parametrize("program", [WINDOWS, STRIDED, TURNED, STEPS])
def test_what_only_moves_is_copied_by_the_machine(program: Program) -> None:
    plan = plan_of(program)
    assert not hosted(plan)
    assert is_exact(program, plan)


@pytest.mark.parametrize("program", [WINDOWS, STRIDED])
def test_every_cut_of_a_move_is_exact(program: Program) -> None:
    target = zero_target(machine())
    plans = list(placed_plans(program, target, all_fits(program, machine())))
    assert len(plans) > 20
    built = 0
    for plan in plans[:: max(1, len(plans) // 20)]:
        try:
            assert is_exact(program, plan), plan
            built += 1
        except PlanError as problem:
            assert "padded along several loops" in str(problem) or "is copied by its dimensions" in str(problem)
    assert built > 10


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("a sum", "in x: i8[4,4] out y: i8[4] for i<4, j<4: y[i] += x[i,j]"),
        ("two reads", "in x: i8[4] out y: i8[4] for i<4: y[i] = x[i] + x[i]"),
        ("adds to what is given", "in x: i8[4] inout y: i8[4] for i<4: y[i] += x[i]"),
        ("adds to another's", "in x: i8[4] out y: i8[4] for i<4: y[i] += x[i] for i<4: y[i] += x[i]"),
        ("a guard that is no end", "in x: i8[4] out y: i8[4] for i<4 where i<=2: y[i] += x[i]"),
        ("what is left out is not written", "in x: i8[4] inout y: i8[5] for i<5 where i>=1: y[i] = x[i-1]"),
        ("backwards", "in x: i8[4] out y: i8[4] for i<4: y[i] = x[3-i]"),
        ("spread out", "in x: i8[4] inout y: i8[8] for i<4: y[2*i] = x[i]"),
        ("itself", "inout y: i8[8] for i<4: y[i] = y[i+4]"),
    ],
)
def test_what_does_anything_else_is_no_move(why: str, text: str) -> None:
    assert moved_access(parse(text), 0) is None, why


def test_a_copy_takes_the_innermost_loops_of_the_result_or_two_of_them_as_one() -> None:
    rows = next(copies_into(machine()))
    walked = [str(index) for index in rows.program.statements[0].out.indices]
    found = [dict(bound) for bound in bounds_of(rows, STRIDED.statements[0])]
    assert {walked[0]: ("q",), walked[1]: ("c",)} in found
    assert {walked[0]: ("p",), walked[1]: ("q", "c")} in found


def test_a_leaf_moves_all_that_is_held() -> None:
    copy = next(i for i in copies_into(machine()) if i.name == "load_sums")
    bound = next(bounds_of(copy, STRIDED.statements[0]))
    operands = tuple((o.name, "x" if o.memory == "dram" else "y") for o in copy.operands)
    leaf = Leaf(0, instruction=copy.name, bound=bound, operands=operands)
    memory = next(o.memory for o in copy.operands if o.memory != "dram")
    plan = Plan((tiles("p 2, q 2", leaf, holds=(Hold("y", memory),)),))
    with pytest.raises(PlanError, match="moves a part of what is held"):
        is_exact(STRIDED, plan)


CUT = """
    in a: i8[4,4,8]  in b: i8[8,4]  out c: i32[10,4]
    for t<4, u<4, j<4, k<8 where 4*t+u<10: c[4*t+u,j] += a[t,u,k] * b[k,j]
"""
"""Of the last tile of four rows only two are there."""


def test_where_the_result_ends_nothing_needs_to_be_zero() -> None:
    program = parse(CUT)
    plan = plan_of(program)
    assert not hosted(plan)
    assert is_exact(program, plan)


def test_a_point_that_is_not_there_overwrites_nothing() -> None:
    program = parse("""
        in a: i32[8,16]  in b: i32[8,16]  out y: i32[9,16]
        for j<16: y[0,j] = 5
        for i<9, j<16 where i >= 1: y[i,j] = a[i-1,j] + b[i-1,j]
    """)
    plan = plan_of(program)
    assert is_exact(program, plan)
