"""Mistakes that random programs and oneDNN's shapes once brought up, each as small as it gets."""

from __future__ import annotations

import pytest

from dovetail.base.errors import PlanError
from dovetail.ir.nest import Barrier, Loop, calls, walk
from dovetail.ir.plan import Hold, Leaf, Plan, Tile
from dovetail.pipeline import compile, program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target
from tests.differential.kernels import assert_exact, uncertified

TARGET = "x86-64-v3"

FOUND = {
    "a sum without loops": ("in x: f32[1]  out y: f32[]\ny[] += x[0]", {}),
    "elements that no point reaches start at the neutral element": (
        "in x: f16[5]  out y: f16[11]\nfor i<5: y[2*i+1] max= x[i]",
        {},
    ),
    "a guard that leaves out whole rows of the output": (
        "in x: f32[8,20]  out y: f32[8]\nfor i<8, k<20 where i >= 2: y[i] += x[i,k]",
        {},
    ),
    "a sum over no iterations": (
        "size n in 0..9  in x: f32[7,n]  out y: f32[7]\nfor i<7, k<n: y[i] += x[i,k]",
        {"n": 0},
    ),
    "the last few elements of a column": ("in x: f32[11,3]  out y: f32[11]\nfor i<11: y[i] = x[i,1] + 1.0", {}),
    "small floats that scatter into an inout": (
        "in x: f32[30]  in i: i32[30]  inout z: bf16[2]\nfor p<30: z[i[p]] += x[p]",
        {},
    ),
    "sums of f64 into f32": ("in x: f64[900]  out y: f32[]\nfor i<900: y[] += x[i] * x[i]", {}),
    "an index read for a dimension of one element": (
        "in w: u8[4,1]  in i: u8[1]  out y: i16[4]\nfor j<4: y[j] = w[j,i[0]]",
        {},
    ),
    "a constant laid out whole and read by masks": (
        "in x: f32[16,31]  const w: f32[16,11]  out y: f32[16,3]\nfor g<16, p<3, r<11: y[g,p] += x[g,9*p+r] * w[g,r]",
        {},
    ),
    "a constant whose shape is known at run time": (
        "size n in 1..30  in x: f32[n,40]  const w: f32[40,n]  out y: f32[n,n]\n"
        "for i<n, j<n, k<40: y[i,j] += x[i,k] * w[k,j]",
        {"n": 29},
    ),
    "a strided read of nothing": (
        "size n in 0..6  const w: u64[2*n]  in x: u64[n,40]  out y: u64[40,n]\n"
        "for i<n, j<40: y[j,i] += x[i,j] * w[2*i]",
        {"n": 0},
    ),
    "places that are computed first": (
        """in x: f32[10,8]  in i: i64[5]  out y: f32[5,8]  temp place: i64[5]
        for a<5: place[a] = select(i[a] < 0, i[a] + 10, i[a])
        for a<5, b<8: y[a,b] = x[place[a],b]""",
        {},
    ),
    "a matrix that two products read in parts": (
        """in h: f32[2,4]  in r: f32[12,4]  out y: f32[2,4]  temp u: f32[2,12]  temp v: f32[2,4]
        for b<2, m<12, k<4: u[b,m] += h[b,k] * r[m,k]
        for b<2, j<4, k<4: v[b,j] += u[b,k] * r[j+8,k]
        for b<2, j<4: y[b,j] = v[b,j] + u[b,j+4]""",
        {},
    ),
    "bytes that are compared as wider integers": (
        "in a: u8[40]  in b: i8[40]  out y: i8[40]\nfor i<40: y[i] = select(a[i] > 3, a[i], b[i])",
        {},
    ),
    "a conversion inside a condition": (
        "in a: i32[20]  in b: i32[20]  out y: f32[20]\nfor i<20: y[i] = select(bool(a[i] & b[i]), 1.0, 2.0)",
        {},
    ),
    "an outer product": (
        "in a: f32[90]  in b: f32[128]  out c: f32[90,128]\nfor i<90, j<128: c[i,j] += a[i] * b[j]",
        {},
    ),
    "an output index of two digits": (
        "in x: f32[6,5,30]  out y: f32[30]\nfor i<6, j<5, k<30: y[5*i+j] += x[i,j,k]",
        {},
    ),
    "an output index whose digits overlap": (
        "in x: f32[6,5,30]  out y: f32[17]\nfor i<6, j<5, k<30: y[2*i+j] += x[i,j,k]",
        {},
    ),
    "extremes of the type that counts iterations": (
        "in x: u64[70]  out y: u64[70]  out z: u64[]\nfor i<70: y[i] = max(x[i], 3)\nfor i<70: z[] max= x[i]",
        {},
    ),
    "two statements into one sum": (
        "in x: f16[40]  in w: f16[30]  out y: f16[]\nfor i<40: y[] += x[i]\nfor i<30: y[] += w[i] * w[i]",
        {},
    ),
    "a small float summed up by steps": (
        "in x: f16[20,9]  out y: f16[9]\nseq t<20: for i<9: y[i] += x[t,i] * x[t,i]",
        {},
    ),
}


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("name", FOUND)
def test_what_was_once_wrong_is_exact(name: str, threads: int) -> None:
    text, sizes = FOUND[name]
    assert_exact(compile(program(text), TARGET, threads, cache=False), sizes or None)


def test_units_meet_after_every_step() -> None:
    text = """in x: f32[9,40000]  out h: f32[10,40000]
    for i<40000: h[0,i] = 0.0
    seq t<9: for i<40000: h[t+1,i] = h[t,39999-i] + x[t,i]"""
    flat = collapse(program(text))
    target = load_target(TARGET)
    nest = build_nest(flat, default_plan(flat, target, 2), target)
    steps = [n for n in walk(nest.body) if isinstance(n, Loop) and any(isinstance(m, Barrier) for m in n.body)]
    assert steps
    assert isinstance(steps[0].body[-1], Barrier)


def test_guards_of_windows_do_not_multiply_the_code() -> None:
    """A depthwise window of 7x7 with stride and padding once gave a million instructions."""
    text = """in x: f32[112,21,21]  const w: f32[112,7,7]  out y: f32[112,9,9]
    for g<112, p<9, q<9, r<7, s<7 where 0 <= 2*p+r-2 < 21, 0 <= 2*q+s-2 < 21:
      y[g,p,q] += x[g,2*p+r-2,2*q+s-2] * w[g,r,s]"""
    flat, target = collapse(program(text)), load_target(TARGET)
    nest = build_nest(flat, default_plan(flat, target, 2), target)
    assert sum(1 for _ in calls(nest.body)) < 5000


def test_lanes_along_a_loop_that_nothing_reads_are_refused() -> None:
    text = "in x: f32[5]  out y: f32[5]\nfor i<5, k<20: y[i] += x[i]"
    with pytest.raises(PlanError, match="does not vary over its lanes"):
        uncertified(program(text), Plan((Leaf(0, "k", 8),)), TARGET, 1)


def test_a_vector_that_begins_inside_a_held_one_is_refused() -> None:
    inner = Tile("u", ((0, "i"),), 1, (Leaf(0, "i", 8),), unrolled=True)
    plan = Plan((Tile("t", ((0, "i"),), 4, (inner,), holds=(Hold("y", "registers"),)),))
    with pytest.raises(PlanError, match="begins inside a vector"):
        uncertified(program("in x: f32[4]  out y: f32[4]\nfor i<4: y[i] = x[i] + 1.0"), plan, TARGET, 1)


@pytest.mark.parametrize(
    ("node", "why"),
    (
        (Tile("t", ((0, "k"),), 4, (Leaf(0),), "core"), "units would meet"),
        (Tile("t", ((0, "i"),), 0, (Leaf(0),)), "no tile"),
        (Tile("t", ((0, "z"),), 1, (Leaf(0),)), "has no loop"),
        (Tile("t", ((1, "i"),), 1, (Leaf(0),)), "does not run inside"),
        (Leaf(0, "z", 8), "no such lanes"),
    ),
)
def test_plans_that_change_the_meaning_are_refused(node: Tile | Leaf, why: str) -> None:
    text = "in x: f32[9,20]  out y: f32[9]\nfor i<9, k<20: y[i] += x[i,k]"
    with pytest.raises(PlanError, match=why):
        uncertified(program(text), Plan((node,)), TARGET, 1)


def test_a_reader_cannot_run_before_the_last_round_of_its_writer() -> None:
    text = """in x: f32[9,20]  out y: f32[9]  temp s: f32[9]
    for i<9, k<20: s[i] += x[i,k]
    for i<9: y[i] = s[i] * 2.0"""
    joined = Plan((Tile("t", ((1, "i"),), 3, (Leaf(0), Leaf(1))),))
    with pytest.raises(PlanError, match="before the last round"):
        uncertified(program(text), joined, TARGET, 1)
    swapped = Plan((Leaf(1), Leaf(0)))
    with pytest.raises(PlanError, match="runs before"):
        uncertified(program(text), swapped, TARGET, 1)


def test_steps_in_another_order_are_refused() -> None:
    text = "in x: f32[9]  inout h: f32[10]\nseq t<9: h[t+1] = h[t] + x[t]"
    for tile in (Tile("t", ((0, "t"),), 3, (Leaf(0),)), Tile("t", ((0, "t"),), 1, (Leaf(0),), downward=True)):
        with pytest.raises(PlanError, match="steps in order"):
            uncertified(program(text), Plan((tile,)), TARGET, 1)
    with pytest.raises(PlanError, match="without its steps"):
        uncertified(program(text), Plan((Leaf(0),)), TARGET, 1)
