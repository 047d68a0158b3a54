"""Linear combinations become sums of products with tables, and mean what they meant."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.program import Program
from dovetail.ir.verify import verify
from dovetail.simulated.tables import with_tables

PAIR = """
in x: f64[10,4]  out v: f64[2,4,4]
for i<4, c<4: v[0,i,c] = x[2*i,c] - 3*x[2*i+2,c]
for p<4, d<4: v[1,p,d] = -x[2*p+1,d] + x[2*p+2,d]*0.5
"""
TILES = """
in x: f64[4,6,3]  temp xt: f64[6,8,3]  temp v: f64[2,2,8,3]  out y: f64[2,2,2,3,3]
for h<6, l<8, c<3 where h>=1, h<=4, l>=1, l<=6: xt[h,l,c] += x[h-1,l-1,c]
for i<2, l<8, c<3: v[0,i,l,c] = xt[2*i,l,c] - xt[2*i+2,l,c]
for i<2, l<8, c<3: v[1,i,l,c] = xt[2*i+1,l,c] + xt[2*i+2,l,c]
for a<2, i<2, j<3, c<3: y[a,0,i,j,c] = v[a,i,2*j,c] - v[a,i,2*j+2,c]
for a<2, i<2, j<3, c<3: y[a,1,i,j,c] = v[a,i,2*j+1,c] + v[a,i,2*j+2,c]
"""
CUT = """
in z: f64[2,3,4]  out y: f64[7,4]
for t<3, k<4: y[3*t,k] = z[0,t,k] + z[1,t,k]
for t<3, k<4 where 3*t+1 < 7: y[3*t+1,k] = z[0,t,k] - z[1,t,k]
for t<3, k<4 where 3*t+2 < 7: y[3*t+2,k] = z[0,t,k] + 4*z[1,t,k]
"""


def anything(program: Program, number: int) -> bool:
    return True


def agreed(text: str) -> tuple[Program, Program]:
    """The two parts, after checking that they are programs and compute together what the text does."""
    program = dovetail.program(text)
    ahead, main = with_tables(program, anything)
    assert ahead is not None
    verify(ahead)
    verify(main)
    arrays = fill(program, 1)
    made = evaluate(ahead, {})
    found = evaluate(main, {t.name: made[t.name] if t.name in made else arrays[t.name] for t in main.inputs})
    for name, array in evaluate(program, arrays).items():
        np.testing.assert_array_equal(found[name], array)
    return ahead, main


def test_combinations_of_the_same_elements_are_one_sum_of_products() -> None:
    ahead, main = agreed(PAIR)
    assert [str(s) for s in main.statements] == [
        "for i0<4, i1<4, e0<2, e1<3: v[e0, i0, i1] += table[e0, e1] * x[e1 + 2 * i0, i1]"
    ]
    np.testing.assert_array_equal(evaluate(ahead, {})["table"], [[1, 0, -3], [0, -1, 0.5]])


def test_two_steps_and_what_was_only_moved_before_are_one() -> None:
    ahead, main = agreed(TILES)
    assert len(main.statements) == 1
    assert {a.tensor for a in main.statements[0].reads()} == {"x", ahead.outputs[0].name}
    assert [str(c) for c in main.statements[0].where] == ["e0_1 + 2 * i1 >= 1", "e1 + 2 * i2 >= 1"]
    assert evaluate(ahead, {})[ahead.outputs[0].name].shape == (2, 2, 3, 3)


@pytest.mark.parametrize("text", [CUT, CUT.replace("3*t+1 < 7", "t <= 1").replace("3*t+2 < 7", "t <= 1")])
def test_results_that_end_inside_a_tile_keep_their_guards_however_they_are_written(text: str) -> None:
    _, main = agreed(text)
    assert [str(c) for c in main.statements[0].where] == ["e0 + 3 * i0 <= 6"]


GUARDED = """
in z: f64[2,3,4]  temp y: f64[9,4]  out o: f64[4]
for t<3, k<4: y[3*t,k] = z[0,t,k] + z[1,t,k]
for t<3, k<4 where t <= 1: y[3*t+1,k] = z[0,t,k] - z[1,t,k]
for k<4: o[k] = y[0,k]
"""


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("one statement", "in x: f64[5] out y: f64[4] for i<4: y[i] = x[i] + x[i+1]"),
        ("no combination", PAIR.replace("x[2*p+2,d]*0.5", "x[2*p+2,d]*x[2*p+2,d]")),
        ("another tensor", PAIR.replace("out v", "in z: f64[10,4] out v").replace("-x[2*p+1,d]", "-z[2*p+1,d]")),
        ("other distances", PAIR.replace("x[2*p+1,d]", "x[p+1,d]")),
        ("two dimensions", PAIR.replace("f64[10,4]", "f64[10,5]").replace("x[2*p+1,d]", "x[2*p,d+1]")),
        ("a guard of one that is no end", GUARDED),
        ("others between", PAIR.replace("for p", "z[0] = x[0,0] for p").replace("out v", "out z: f64[1] out v")),
    ],
)
def test_what_is_not_alike_stays(why: str, text: str) -> None:
    program = dovetail.program(text)
    assert with_tables(program, anything) == (None, program), why


def test_what_no_instruction_does_stays() -> None:
    program = dovetail.program(PAIR)
    assert with_tables(program, lambda found, number: False) == (None, program)


def test_dimensions_of_one_element_are_no_obstacle() -> None:
    changes = (("xt: f64[6", "xt: f64[1,6"), ("xt[", "xt[0,"), (" v: f64[2", " v: f64[1,2"), (" v[", " v[0,"))
    text = TILES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    _, main = agreed(text)
    assert len(main.statements) == 1


def test_what_something_else_reads_is_not_put_into_another() -> None:
    text = TILES.replace("out y", "out kept: f64[2,2,8,3] out y") + "for a<2, i<2, l<8, c<3: kept[a,i,l,c] = v[a,i,l,c]"
    _, main = agreed(text)
    assert [s.out.tensor for s in main.statements] == ["v", "y", "kept"]
