"""Single elements of the reference are those of the whole."""

import numpy as np
import pytest

from dovetail.certify.sample import evaluate_at, points_needed
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
)


@pytest.mark.parametrize("text", PROGRAMS)
def test_every_element_alone_is_what_it_is_among_all(text: str) -> None:
    program = parse(text)
    arrays = fill(program, 5)
    whole = evaluate(program, arrays)
    for tensor in program.outputs:
        for element in np.ndindex(whole[tensor.name].shape):
            assert evaluate_at(program, arrays, {}, tensor.name, element) == whole[tensor.name][element]


def test_one_element_of_a_product_needs_one_sum() -> None:
    assert points_needed(parse(PROGRAMS[0]), {}, "c", (2, 3)) == 7
