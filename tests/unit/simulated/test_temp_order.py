"""Temporaries with a dimension for each digit, in the order of what they are made from."""

from __future__ import annotations

import numpy as np

import dovetail
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.program import Program
from dovetail.ir.verify import verify
from dovetail.simulated.digits import with_digits_apart
from dovetail.simulated.temp_order import with_ordered_loops, with_ordered_temps

FLAT = """
in x: f64[2,3,5,4]  const w: f64[4,6]  temp v: f64[30,4]  temp p: f64[30,6]  out y: f64[2,3,5,6]
for n<2, i<3, j<5, c<4: v[15*n+5*i+j,c] = x[n,i,j,c] + x[n,i,j,c]
for t<30, k<6, c<4: p[t,k] += v[t,c] * w[c,k]
for n<2, i<3, j<5, k<6: y[n,i,j,k] = p[15*n+5*i+j,k] * 2
"""
WINDOWS = """
in x: f64[6,6,4,8]  const w: f64[3,3,5,4]  temp cols: f64[8,4,3,3,4,4]  out y: f64[4,4,5,8]
for n<8, c<4, r<3, s<3, p<4, q<4: cols[n,c,r,s,p,q] = x[p+r,q+s,c,n]
for n<8, k<5, p<4, q<4, c<4, r<3, s<3: y[p,q,k,n] += cols[n,c,r,s,p,q] * w[r,s,k,c]
"""


def same(program: Program, changed: Program) -> Program:
    verify(changed)
    arrays = fill(program, 2)
    for name, array in evaluate(program, arrays).items():
        np.testing.assert_array_equal(evaluate(changed, arrays)[name], array)
    return changed


def shapes(program: Program) -> dict[str, tuple[int, ...]]:
    return {t.name: tuple(e.const for e in t.shape) for t in program.temps}


def test_flat_indices_are_taken_apart_and_so_are_loops_over_all_of_them() -> None:
    program = dovetail.program(FLAT)
    assert shapes(same(program, with_digits_apart(program))) == {"v": (2, 3, 5, 4), "p": (2, 3, 5, 6)}


def test_digits_that_differ_between_statements_stay_flat() -> None:
    program = dovetail.program(FLAT.replace("= p[15*n+5*i+j,k]", "= p[29-15*n-5*i-j,k]"))
    assert shapes(same(program, with_digits_apart(program)))["p"] == (30, 6)


def test_what_is_stored_follows_what_it_is_made_of_sums_behind_and_the_innermost_last() -> None:
    program = dovetail.program(WINDOWS)
    assert shapes(same(program, with_ordered_temps(program)))["cols"] == (4, 4, 3, 3, 4, 8)


def test_only_temporaries_that_are_named_change() -> None:
    program = dovetail.program(WINDOWS)
    assert with_ordered_temps(program, {"other"}) == program


def test_what_is_in_order_stays() -> None:
    program = with_digits_apart(dovetail.program(FLAT))
    assert with_ordered_temps(program) == program


def test_loops_follow_the_dimensions_of_the_result() -> None:
    program = with_ordered_temps(dovetail.program(WINDOWS))
    looped = same(dovetail.program(WINDOWS), with_ordered_loops(program))
    assert [loop.name for loop in looped.statements[0].loops] == ["p", "q", "r", "s", "c", "n"]
    assert [loop.name for loop in looped.statements[1].loops] == ["p", "q", "k", "n", "r", "s", "c"]
