"""Statements that become part of the next."""

from __future__ import annotations

import pytest

from dovetail.ir.merge import merge
from dovetail.ir.parse import parse

CASES = {
    "a bias and an activation": (
        "in x: f32[4, 8]  in w: f32[8, 8]  in b: f32[8]  temp t: f32[4, 8]  temp u: f32[4, 8]  out y: f32[4, 8]\n"
        "for i<4, j<8, k<8: t[i, j] += x[i, k] * w[k, j]\n"
        "for i<4, j<8: u[i, j] = t[i, j] + b[j]\n"
        "for a<4, c<8: y[a, c] = max(u[a, c], 0)",
        "for i<4, j<8, k<8: t[i, j] += x[i, k] * w[k, j]\nfor a<4, c<8: y[a, c] = max(t[a, c] + b[c], 0)",
    ),
    "a value read twice": (
        "in x: f32[8]  temp t: f32[8]  out y: f32[8]\nfor i<8: t[i] = x[i] + 1.0\nfor i<8: y[i] = t[i] * sigmoid(t[i])",
        "for i<8: y[i] = (x[i] + 1.0) * sigmoid(x[i] + 1.0)",
    ),
    "axes of one": (
        "in x: f32[8]  temp t: f32[1, 8]  out y: f32[8]\nfor i<8: t[0, i] = exp(x[i])\nfor i<8: y[i] = -t[0, i]",
        "for i<8: y[i] = -exp(x[i])",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_statement_becomes_part_of_its_reader(case: str) -> None:
    before, after = CASES[case]
    assert "\n".join(map(str, merge(parse(before)).statements)) == after


STAYS = {
    "small floats are rounded when they are stored": (
        "in x: f16[8]  temp t: f16[8]  out y: f16[8]\nfor i<8: t[i] = x[i] + 1.0\nfor i<8: y[i] = t[i] * t[i]"
    ),
    "small integers wrap when they are stored": (
        "in x: i8[8]  temp t: i8[8]  out y: i32[8]\nfor i<8: t[i] = x[i] + x[i]\nfor i<8: y[i] = t[i] + 1"
    ),
    "one value for many": (
        "in x: f32[4, 8]  in s: f32[4]  temp t: f32[4]  out y: f32[4, 8]\n"
        "for i<4: t[i] = exp(s[i])\n"
        "for i<4, j<8: y[i, j] = x[i, j] - t[i]"
    ),
    "two readers": (
        "in x: f32[8]  temp t: f32[8]  out y: f32[8]  out z: f32[8]\n"
        "for i<8: t[i] = exp(x[i])\n"
        "for i<8: y[i] = t[i] + 1\n"
        "for i<8: z[i] = t[i] - 1"
    ),
    "a reduction": ("in x: f32[8]  temp t: f32[8]  out y: f32[]\nfor i<8: t[i] = exp(x[i])\nfor i<8: y[] += t[i]"),
    "what it reads is changed before": (
        "inout z: f32[8]  temp t: f32[8]  out y: f32[8]\n"
        "for i<8: t[i] = exp(z[i])\n"
        "for i<8: z[i] = 1.0\n"
        "for i<8: y[i] = t[i] + 1"
    ),
    "elements at other places": (
        "in x: f32[8]  temp t: f32[8]  out y: f32[8]\nfor i<8: t[i] = exp(x[i])\nfor i<8: y[i] = t[7 - i] + 1"
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_a_statement_stays(case: str) -> None:
    program = parse(STAYS[case])
    assert merge(program) is program
