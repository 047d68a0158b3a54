"""Every form of a convolution, compiled, computes what the convolution itself means."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.pipeline import compile
from dovetail.rewrite.forms import forms

EXACT = ("im2col", "winograd-2x2")
CASES = {
    "padded, two images": (
        "in x: f32[2,8,9,7] const w: f32[16,8,3,3] out y: f32[2,16,9,7]\n"
        "for n<2, k<16, p<9, q<7, c<8, r<3, s<3 where 0 <= p+r-1 < 9, 0 <= q+s-1 < 7: "
        "y[n,k,p,q] += x[n,c,p+r-1,q+s-1] * w[k,c,r,s]"
    ),
    "followed by a bias": (
        "in x: f32[1,8,10,10] const w: f32[16,8,3,3] const b: f32[16] temp t: f32[1,16,8,8] out y: f32[1,16,8,8]\n"
        "for n<1, k<16, p<8, q<8, c<8, r<3, s<3: t[n,k,p,q] += x[n,c,p+r,q+s] * w[k,c,r,s]\n"
        "for n<1, k<16, p<8, q<8: y[n,k,p,q] = max(t[n,k,p,q] + b[k], 0)"
    ),
    "images innermost": (
        "in x: f32[10,10,8,4] const w: f32[3,3,16,8] out y: f32[8,8,16,4]\n"
        "for p<8, q<8, k<16, n<4, c<8, r<3, s<3: y[p,q,k,n] += x[p+r,q+s,c,n] * w[r,s,k,c]"
    ),
    "few channels": (
        "in x: f32[1,3,11,20] const w: f32[5,3,3,3] out y: f32[1,5,11,20]\n"
        "for n<1, k<5, p<11, q<20, c<3, r<3, s<3 where 0 <= p+r-1 < 11, 0 <= q+s-1 < 20: "
        "y[n,k,p,q] += x[n,c,p+r-1,q+s-1] * w[k,c,r,s]"
    ),
    "every other window": (
        "in x: f32[1,3,21,40] const w: f32[16,3,5,5] out y: f32[1,16,11,20]\n"
        "for n<1, k<16, p<11, q<20, c<3, r<5, s<5 where 0 <= 2*p+r-2 < 21, 0 <= 2*q+s-2 < 40: "
        "y[n,k,p,q] += x[n,c,2*p+r-2,2*q+s-2] * w[k,c,r,s]"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_form_of_a_convolution_computes_it(case: str) -> None:
    program = parse(CASES[case])
    arrays = fill(program, 5)
    wanted = evaluate(program, arrays)["y"]
    largest = evaluate(program, {name: np.abs(array) for name, array in arrays.items()})["y"].max()
    found = list(forms(program, relaxed=True))
    assert found
    for number, form in enumerate(found):
        got = run(form.program, arrays, 1 + number % 2)
        assert np.abs(got - wanted).max() <= (0.0 if form.name in EXACT else 2e-6 * largest), form.name


def run(program: Program, arrays: dict[str, np.ndarray], threads: int) -> np.ndarray:
    kernel = compile(program, "host", threads, cache=False)
    given = [arrays[t.name] for t in program.inputs]
    unbound = kernel(*given)
    kernel.bind({"w": arrays["w"]})
    bound = kernel(*(arrays[t.name] for t in program.inputs if t.name != "w"))
    np.testing.assert_array_equal(unbound, bound)
    assert isinstance(bound, np.ndarray)
    return bound
