"""Moves that are read or written through."""

from __future__ import annotations

import pytest

from dovetail.ir.inline import inline
from dovetail.ir.parse import parse

CASES = {
    "a product reads across axes": (
        "in x: f32[2, 3]  in w: f32[2, 4]  temp t: f32[3, 2]  out y: f32[3, 4]\n"
        "for a<2, b<3: t[b, a] = x[a, b]\n"
        "for i<3, j<2, k<4: y[i, k] += t[i, j] * w[j, k]",
        "for i<3, j<2, k<4: y[i, k] += x[j, i] * w[j, k]",
    ),
    "heads are read where they lie": (
        "in x: f32[1, 8, 12]  temp r: f32[1, 8, 3, 4]  temp t: f32[1, 3, 8, 4]  out y: f32[1, 3, 8, 4]\n"
        "for s<8, h<3, d<4: r[0, s, h, d] = x[0, s, 4 * h + d]\n"
        "for b<1, h<3, s<8, d<4: t[b, h, s, d] = r[b, s, h, d]\n"
        "for b<1, h<3, s<8, d<4: y[b, h, s, d] = exp(t[b, h, s, d])",
        "for b<1, h<3, s<8, d<4: y[b, h, s, d] = exp(x[0, s, d + 4 * h])",
    ),
    "a product writes across axes": (
        "in p: f32[4, 5]  in v: f32[5, 6]  temp c: f32[4, 6]  out y: f32[6, 4]\n"
        "for i<4, j<6, k<5: c[i, j] += p[i, k] * v[k, j]\n"
        "for a<4, b<6: y[b, a] = c[a, b]",
        "for i<4, j<6, k<5: y[j, i] += p[i, k] * v[k, j]",
    ),
    "heads are joined as they are written": (
        "in p: f32[2, 8, 8]  in v: f32[2, 8, 3]  temp c: f32[2, 8, 3]  out y: f32[8, 6]\n"
        "for h<2, i<8, j<3, k<8: c[h, i, j] += p[h, i, k] * v[h, k, j]\n"
        "for s<8, h<2, d<3: y[s, 3 * h + d] = c[h, s, d]",
        "for h<2, i<8, j<3, k<8: y[i, 3 * h + j] += p[h, i, k] * v[h, k, j]",
    ),
    "a reduced loop is split": (
        "in c: f32[2, 8, 3]  in w: f32[4, 6]  temp t: f32[8, 6]  out y: f32[8, 4]\n"
        "for s<8, h<2, d<3: t[s, 3 * h + d] = c[h, s, d]\n"
        "for s<8, o<4, i<6: y[s, o] += t[s, i] * w[o, i]",
        "for s<8, o<4, i0<2, i1<3: y[s, o] += c[i0, s, i1] * w[o, 3 * i0 + i1]",
    ),
    "padding guards what is read through": (
        "in x: f32[5]  temp t: f32[1, 5]  out y: f32[5]\n"
        "for i<5: t[0, i] = x[i]\n"
        "for p<5, r<3 where p + r >= 1, p + r <= 5: y[p] max= t[0, p + r - 1]",
        "for p<5, r<3 where p + r >= 1, p + r <= 5: y[p] max= x[p + r - 1]",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_move_goes(case: str) -> None:
    before, after = CASES[case]
    assert "\n".join(map(str, inline(parse(before)).statements)) == after


STAYS = {
    "an output": "in x: f32[2, 3]  out y: f32[3, 2]\nfor a<2, b<3: y[b, a] = x[a, b]",
    "another dtype": "in x: f32[2]  temp t: f16[2]  out y: f32[2]\nfor a<2: t[a] = x[a]\nfor a<2: y[a] = exp(t[a])",
    "a quotient in a loop that is kept": (
        "in x: f32[2, 3, 4]  temp t: f32[3, 8]  out y: f32[3, 8]\n"
        "for a<2, b<3, c<4: t[b, 4 * a + c] = x[a, b, c]\n"
        "for i<3, j<8: y[i, j] = exp(t[i, j])"
    ),
    "what it moves is written later": (
        "in x: f32[2]  inout z: f32[2]  temp t: f32[2]  out y: f32[2]\n"
        "for a<2: t[a] = z[a]\n"
        "for a<2: z[a] = x[a] + 1\n"
        "for a<2: y[a] = exp(t[a])"
    ),
    "a place that is found by it": (
        "in x: f32[4]  in p: i64[4]  temp t: i64[4]  out y: f32[4]\nfor a<4: t[a] = p[3 - a]\nfor a<4: y[a] = x[t[a]]"
    ),
    "two parts": (
        "in x: f32[2]  in z: f32[2]  temp t: f32[4]  out y: f32[4]\n"
        "for a<2: t[a] = x[a]\n"
        "for a<2: t[a + 2] = z[a]\n"
        "for a<4: y[a] = exp(t[a])"
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_a_move_stays(case: str) -> None:
    program = parse(STAYS[case])
    assert inline(program) is program
