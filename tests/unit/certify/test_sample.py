"""Single elements of the reference are those of the whole."""

import numpy as np
import pytest

from dovetail.certify.sample import evaluate_at, points_needed, written_elements
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse

PROGRAMS = (
    "in a: f32[6,7] in b: f32[7,8] out c: f32[6,8]\nfor i<6, j<8, k<7: c[i,j] += a[i,k] * b[k,j]",
    "in x: f32[5,9] temp m: f32[5] out y: f32[5,9]\n"
    "for i<5, j<9: m[i] max= x[i,j]\nfor i<5, j<9: y[i,j] = x[i,j] - m[i]",
    "in x: f32[9] const w: f32[3] out y: f32[9]\nfor p<9, r<3 where 0 <= p+r-1 < 9: y[p] += x[p+r-1] * w[r]",
    "in t: f32[9,4] in n: i32[6] out y: f32[6,4]\nfor i<6, j<4: y[i,j] = t[n[i],j]",
    "in x: f32[4] inout z: f32[2]\nfor i<4: z[i//2] += x[i]",
    "in x: f32[4] out y: f32[8]\nfor i<4: y[i] = x[i]\nfor i<4: y[i+4] = x[i] + 1",
    "in x: f32[7] out y: f32[]\nfor i<7: y[] += x[i]",
    "in x: f32[3,4] out y: f32[12]\nfor i<3, j<4: y[4*i+j] = x[i,j]",
    "in x: f32[3,4] out y: f32[10]\nfor i<3, j<4 where 4*i+j < 10: y[4*i+j] = x[i,j]",
    "in x: f32[6] out y: f32[12]\nfor i<6: y[2*i] = x[i]\nfor i<6: y[2*i+1] = x[i] + 1",
    "in x: f32[6] out y: f32[9]\nfor i<6, j<4: y[i+j] += x[i]",
)


@pytest.mark.parametrize("text", PROGRAMS)
def test_every_element_alone_is_what_it_is_among_all(text: str) -> None:
    program = parse(text)
    arrays = fill(program, 5)
    whole = evaluate(program, arrays)
    for tensor in program.outputs:
        for element in np.ndindex(whole[tensor.name].shape):
            assert evaluate_at(program, arrays, {}, tensor.name, element) == whole[tensor.name][element]


def test_one_element_of_digits_needs_one_point() -> None:
    assert points_needed(parse(PROGRAMS[7]), {}, "y", (9,)) == 1


def test_a_statement_that_never_gets_there_is_not_run() -> None:
    assert points_needed(parse(PROGRAMS[9]), {}, "y", (5,)) == 1


def test_every_statement_that_writes_an_output_is_asked_for_an_element() -> None:
    found = list(written_elements(parse(PROGRAMS[9]), {}))
    assert [place[0] % 2 for _, place in found] == [0, 1]
    assert not list(written_elements(parse(PROGRAMS[0]), {}))


def test_one_element_of_a_product_needs_one_sum() -> None:
    assert points_needed(parse(PROGRAMS[0]), {}, "c", (2, 3)) == 7
