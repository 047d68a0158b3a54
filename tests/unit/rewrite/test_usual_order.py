"""Convolutions are turned into the order that rules know, and back."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.rewrite.usual_order import in_usual_order, restored

USUAL = """
in x: f64[2,5,8,9]  const w: f64[6,5,3,4]  out y: f64[2,6,6,6]
for n<2, k<6, p<6, q<6, c<5, r<3, s<4: y[n,k,p,q] += x[n,c,p+r,q+s] * w[k,c,r,s]
"""
BATCH_LAST = """
in x: f64[8,9,5,2]  const w: f64[3,4,6,5]  out y: f64[6,6,6,2]
for n<2, k<6, p<6, q<6, c<5, r<3, s<4: y[p,q,k,n] += w[r,s,k,c] * x[p+r,q+s,c,n]
"""
CHANNELS_LAST = """
in x: f64[2,8,9,5]  const w: f64[3,4,5,6]  temp t: f64[2,6,6,6]  out y: f64[2,6,6,6]
for n<2, k<6, p<6, q<6, c<5, r<3, s<4: t[n,p,q,k] += x[n,p+r,q+s,c] * w[r,s,c,k]
for n<2, p<6, q<6, k<6: y[n,p,q,k] = t[n,p,q,k] + 1
"""


@pytest.mark.parametrize("text", [BATCH_LAST, CHANNELS_LAST])
def test_batch_and_channels_come_first(text: str) -> None:
    turned, _ = in_usual_order(parse(text))
    shapes = {t.name: tuple(e.const for e in t.shape) for t in turned.tensors}
    assert shapes["x"] == (2, 5, 8, 9)
    assert shapes["w"] == (6, 5, 3, 4)
    assert shapes["t" if "t" in shapes else "y"] == (2, 6, 6, 6)
    assert str(turned.statements[0].out).split("[")[1] == "n, k, p, q]"


@pytest.mark.parametrize("text", [USUAL, BATCH_LAST, CHANNELS_LAST])
def test_the_caller_finds_his_tensors_as_they_were(text: str) -> None:
    program = parse(text)
    turned, orders = in_usual_order(program)
    back = restored(turned, orders)
    assert [t for t in back.tensors if t.name != "t"] == [t for t in program.tensors if t.name != "t"]
    arrays = fill(program, 1)
    np.testing.assert_array_equal(evaluate(back, arrays)["y"], evaluate(program, arrays)["y"])


@pytest.mark.parametrize(
    "text",
    [
        USUAL,
        "in a: f64[4,5]  in b: f64[5,6]  out c: f64[4,6]\nfor i<4, j<6, k<5: c[i,j] += a[i,k] * b[k,j]",
        "in x: f64[6]  out y: f64[4]\nfor i<4, r<3: y[i] += x[i+r]",
    ],
)
def test_what_is_in_order_or_has_no_windows_stays(text: str) -> None:
    program = parse(text)
    assert in_usual_order(program) == (program, {})
