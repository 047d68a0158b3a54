"""Products of a tensor with itself."""

from __future__ import annotations

import numpy as np

from dovetail.ir.apart import apart
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.verify import verify


def test_the_second_factor_is_an_input_of_its_own() -> None:
    program = parse("in x: f32[8, 6]  out y: f32[8, 8]\nfor i<8, j<8, k<3: y[i, j] += x[i, k] * x[j, k + 3]")
    found, same = apart(program)
    verify(found)
    assert same == {"x_again": "x"}
    assert str(found.statements[0]) == "for i<8, j<8, k<3: y[i, j] += x[i, k] * x_again[j, k + 3]"
    arrays = fill(program, 1)
    np.testing.assert_array_equal(
        evaluate(found, {**arrays, "x_again": arrays["x"]})["y"], evaluate(program, arrays)["y"]
    )


def test_a_square_of_each_element_reads_it_once() -> None:
    program = parse("in x: f32[8, 6]  out y: f32[8]\nfor i<8, k<6: y[i] += x[i, k] * x[i, k]")
    assert apart(program) == (program, {})


def test_temporaries_stay_one() -> None:
    program = parse(
        "in x: f32[8, 6]  temp t: f32[8, 6]  out y: f32[8, 8]\n"
        "for i<8, k<6: t[i, k] = exp(x[i, k])\n"
        "for i<8, j<8, k<6: y[i, j] += t[i, k] * t[j, k]"
    )
    assert apart(program) == (program, {})
