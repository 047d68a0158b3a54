"""One computation, one text: pairs that must agree, look-alikes that must not."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dovetail.ir.canonical import canonicalise, digest
from dovetail.ir.evaluate import Array, evaluate
from dovetail.ir.parse import parse
from dovetail.ir.program import Program

V = "in x: i32[8]  in z: i32[8]  out y: i32[8]\n"
M = "in a: i32[4,6]  in b: i32[6,5]  out c: i32[4,5]\n"
R = "in x: i32[24]  out y: i32[4,6]\n"
C = "in x: i32[1,3,6,6]  const w: i32[4,3,3,3]  out y: i32[1,4,6,6]\n"
T = "in x: i32[8]  in z: i32[8]  out y: i32[8]  temp s: i32[8]  temp t: i32[8]\n"
N = "size n in 1..64  in x: i32[4*n]  out y: i32[4*n]\n"
H = "in x: i32[5,4]  inout h: i32[6,4]  out y: i32[8]\n"

CONV = "for n<1, k<4, p<6, q<6, c<3, r<3, s<3 where 0 <= p+r-1 < 6, 0 <= q+s-1 < 6: "
CONV_BODY = "y[n,k,p,q] += x[n,c,p+r-1,q+s-1] * w[k,c,r,s]"

EQUAL = {
    "loop names": (V + "for i<8: y[i] = x[i]", V + "for lane<8: y[lane] = x[lane]"),
    "loop order": (
        M + "for i<4, j<5, k<6: c[i,j] += a[i,k] * b[k,j]",
        M + "for k<6, j<5, i<4: c[i,j] += a[i,k] * b[k,j]",
    ),
    "operand order": (
        M + "for i<4, j<5, k<6: c[i,j] += a[i,k] * b[k,j]",
        M + "for i<4, j<5, k<6: c[i,j] += b[k,j] * a[i,k]",
    ),
    "operands of max": (V + "for i<8: y[i] = max(x[i], z[i])", V + "for i<8: y[i] = max(z[i], x[i])"),
    "operands of == in a select": (
        V + "for i<8: y[i] = select(x[i] == z[i], x[i], 3)",
        V + "for i<8: y[i] = select(z[i] == x[i], x[i], 3)",
    ),
    "nested operands": (
        V + "for i<8: y[i] = (x[i] + z[i]) * (x[i] + 3)",
        V + "for i<8: y[i] = (3 + x[i]) * (z[i] + x[i])",
    ),
    "a transposed convolution of names": (
        C + CONV + CONV_BODY,
        C + "for s<3, r<3, c<3, q<6, p<6, k<4, n<1 where 0 <= q+s-1 < 6, 0 <= p+r-1 < 6: "
        "y[n,k,p,q] += w[k,c,r,s] * x[n,c,p+r-1,q+s-1]",
    ),
    "a unit batch": (C + CONV + CONV_BODY, C + CONV.replace("n<1, ", "") + CONV_BODY.replace("[n,", "[0,")),
    "conditions as one or two": (
        V + "for i<8 where 1 <= i < 7: y[i] = x[i]",
        V + "for i<8 where i < 7, i >= 1: y[i] = x[i]",
    ),
    "conditions with a common factor": (
        V + "for i<8 where 2*i >= 3: y[i] = x[i]",
        V + "for i<8 where i >= 2: y[i] = x[i]",
    ),
    "conditions that imply each other": (
        V + "for i<8 where i >= 2, i > 0: y[i] = x[i]",
        V + "for i<8 where i >= 2: y[i] = x[i]",
    ),
    "equations either way": (
        V + "for i<8, j<8 where i == 2*j: y[i] += x[j]",
        V + "for i<8, j<8 where 2*j == i, i == 2*j: y[i] += x[j]",
    ),
    "a condition the bounds imply": (
        V + "for i<8 where i < 8, 0 <= 2*i <= 14: y[i] = x[i]",
        V + "for i<8: y[i] = x[i]",
    ),
    "a condition on two loops that the bounds imply": (
        R + "for i<4, j<6 where i + j < 9: y[i,j] = x[6*i+j]",
        R + "for i<4, j<6: y[i,j] = x[6*i+j]",
    ),
    "a condition the size implies": (N + "for i<4*n where i < 4*n: y[i] = x[i]", N + "for i<4*n: y[i] = x[i]"),
    "two conditions no point meets": (
        V + "for i<8, j<2 where i > 8: y[i] += x[i]",
        V + "for i<8, j<2 where j == 5: y[i] += x[i]",
    ),
    "spelling of a sum": (V + "for i<7: y[i+1] = x[2*(i+1) - i - 1]", V + "for i<7: y[1+i] = x[i+1]"),
    "a remainder the bounds resolve": (V + "for i<8: y[i] = x[i % 8]", V + "for i<8: y[i] = x[i]"),
    "a quotient the bounds resolve": (V + "for i<8: y[i] = x[i + (i // 8)]", V + "for i<8: y[i] = x[i]"),
    "quotient and remainder of an odd loop": (V + "for i<7: y[i] = x[3*(i//3) + i%3]", V + "for i<7: y[i] = x[i]"),
    "a remainder spelled by a quotient": (V + "for i<7: y[i] += x[i - 3*(i//3)]", V + "for i<7: y[i] += x[i%3]"),
    "a quotient of a quotient": (V + "for i<7: y[i] = x[i//2//2]", V + "for i<7: y[i] = x[i//4]"),
    "a quotient of a shifted quotient": (V + "for i<5: y[i] = x[(i//2 + 1)//2]", V + "for i<5: y[i] = x[(i+2)//4]"),
    "a remainder of a remainder": (V + "for i<7: y[i] = x[i%6%3]", V + "for i<7: y[i] = x[i%3]"),
    "a quotient above one": (V + "for i<5: y[i] = x[(4*i) // 3]", V + "for i<5: y[i] = x[i + i//3]"),
    "a scaled quotient": (V + "for i<7: y[i] = x[2*i // 4]", V + "for i<7: y[i] = x[i // 2]"),
    "a quotient with a small part": (
        R + "for i<3, j<4: y[i,j] = x[(4*i + j) // 8 + j]",
        R + "for i<3, j<4: y[i,j] = x[i // 2 + j]",
    ),
    "a split axis": (V + "for a<2, b<4: y[4*a+b] = x[4*a+b]", V + "for i<8: y[i] = x[i]"),
    "an axis split twice": (V + "for a<2, b<2, c<2: y[4*a+2*b+c] = x[c+2*b+4*a]", V + "for i<8: y[i] = x[i]"),
    "a split axis with a stride": (
        "in x: i32[16] out y: i32[8] for a<2, b<4: y[4*a+b] = x[8*a+2*b+1]",
        "in x: i32[16] out y: i32[8] for i<8: y[i] = x[2*i+1]",
    ),
    "a split reduction": (
        M + "for i<4, j<5, k0<2, k1<3: c[i,j] += a[i,3*k0+k1] * b[3*k0+k1,j]",
        M + "for i<4, j<5, k<6: c[i,j] += a[i,k] * b[k,j]",
    ),
    "a reshape by quotient and remainder": (
        R + "for i<24: y[i//6, i%6] = x[i]",
        R + "for i<4, j<6: y[i,j] = x[6*i+j]",
    ),
    "a reshape in three parts": (
        "in x: i32[24] out y: i32[2,3,4] for i<24: y[i//12, i//4%3, i%4] = x[i]",
        "in x: i32[24] out y: i32[2,3,4] for a<2, b<3, c<4: y[a,b,c] = x[12*a+4*b+c]",
    ),
    "repeating by quotient": (
        "in x: i32[4] out y: i32[8] for i<8: y[i] = x[i//2]",
        "in x: i32[4] out y: i32[8] for i<4, j<2: y[2*i+j] = x[i]",
    ),
    "a loop seen only modulo two": (
        V + "for a<2, c<4: y[(a + c) % 2] += x[a]",
        V + "for a<2, c<2, d<2: y[(a + d) % 2] += x[a]",
    ),
    "a split axis of run-time extent": (N + "for i<n, j<4: y[4*i+j] = x[4*i+j]", N + "for i<4*n: y[i] = x[i]"),
    "a run-time extent taken apart": (
        "size n in 1..64 in x: i32[4*n] out y: i32[n,4] for i<4*n: y[i//4, i%4] = x[i]",
        "size n in 1..64 in x: i32[4*n] out y: i32[n,4] for i<n, j<4: y[i,j] = x[4*i+j]",
    ),
    "a repeated sum": (V + "for i<8, r<3, s<4: y[i] += x[i]", V + "for i<8, r<2, s<6: y[i] += x[i]"),
    "a loop's own value": (V + "for i<8: y[i] = i32(i)", V + "for a<4, b<2: y[2*a+b] = i32(2*a + b)"),
    "names of temporaries": (
        T + "for i<8: s[i] = x[i] * x[i]; for i<8: y[i] = s[i] + z[i]",
        T + "for i<8: t[i] = x[i] * x[i]; for i<8: y[i] = t[i] + z[i]",
    ),
    "order of temporaries": (
        T + "for i<8: s[i] = x[i] * x[i]; for i<8: t[i] = z[i] - x[i]; for i<8: y[i] = s[i] - t[i]",
        T + "for i<8: s[i] = z[i] - x[i]; for i<8: t[i] = x[i] * x[i]; for i<8: y[i] = t[i] - s[i]",
    ),
    "temporaries that look alike until they are read": (
        T + "for i<8: s[i] = x[i]; for i<8: t[i] = x[i]; for i<8: y[i] = s[i] - 2 * t[i]",
        T + "for i<8: s[i] = x[i]; for i<8: t[i] = x[i]; for i<8: y[i] = t[i] - 2 * s[i]",
    ),
    "dead statements": (
        T + "for i<8: s[i] = x[i]; for i<8: t[i] = s[i]; for i<8: y[i] = x[i]",
        T + "for i<8: y[i] = x[i]",
    ),
    "a dead recurrence": (
        "in x: i32[4] out y: i32[4] temp h: i32[5] seq t<4: h[t+1] = h[t] + x[t]; for i<4: y[i] = x[i]",
        "in x: i32[4] out y: i32[4] for i<4: y[i] = x[i]",
    ),
    "order of outputs written": (
        "in x: i32[4] out y: i32[4] out z: i32[4] for i<4: y[i] = x[i]; for i<4: z[i] = -x[i]",
        "in x: i32[4] out y: i32[4] out z: i32[4] for i<4: z[i] = -x[i]; for i<4: y[i] = x[i]",
    ),
    "order of contributions": (
        V + "for i<8: y[i] += x[i]; for i<4, j<2: y[i] += z[i+j]",
        V + "for i<4, j<2: y[i] += z[i+j]; for i<8: y[i] += x[i]",
    ),
    "names of steps": (
        H + "seq t<5: for i<4: h[t+1,i] = h[t,i] + x[t,i]",
        H + "seq step<5: for t<4: h[step+1,t] = x[step,t] + h[step,t]",
    ),
    "split steps": (
        "in x: i32[4] inout h: i32[5] seq t<4: h[t+1] = h[t] * 2 + x[t]",
        "in x: i32[4] inout h: i32[5] seq a<2, b<2: h[2*a+b+1] = h[2*a+b] * 2 + x[2*a+b]",
    ),
    "one step": (
        "in x: i32[4] out y: i32[4] seq t<1: for i<4: y[i] = x[i+t]",
        "in x: i32[4] out y: i32[4] for i<4: y[i] = x[i]",
    ),
    "an indirect index respelled": (
        "in x: i32[8] in k: i32[4] out y: i32[4] for i<4: y[i] = x[2*k[i] - k[i]]",
        "in x: i32[8] in k: i32[4] out y: i32[4] for a<2, b<2: y[2*a+b] = x[k[b+2*a]]",
    ),
    "symmetric loops": (
        "in a: i32[4,4] out y: i32[] for i<4, j<4: y[] += a[i,j] * a[j,i]",
        "in a: i32[4,4] out y: i32[] for p<4, q<4: y[] += a[q,p] * a[p,q]",
    ),
    "loops apart only by pairs": (
        "in a: i32[4,4] out y: i32[] for i<4, j<4, k<4, m<4: y[] += a[i,j] * a[j,k] * (a[k,m] * a[m,i])",
        "in a: i32[4,4] out y: i32[] for m<4, i<4, k<4, j<4: y[] += (a[m,i] * a[i,j]) * (a[k,m] * a[j,k])",
    ),
}

DIFFERENT = {
    "one operand twice": (V + "for i<8: y[i] = x[i] * z[i]", V + "for i<8: y[i] = x[i] * x[i]"),
    "subtraction the other way": (V + "for i<8: y[i] = x[i] - z[i]", V + "for i<8: y[i] = z[i] - x[i]"),
    "max for min": (V + "for i<8: y[i] = max(x[i], z[i])", V + "for i<8: y[i] = min(x[i], z[i])"),
    "branches of a select": (
        V + "for i<8: y[i] = select(x[i] < z[i], x[i], z[i])",
        V + "for i<8: y[i] = select(x[i] < z[i], z[i], x[i])",
    ),
    "less for less or equal": (
        V + "for i<8: y[i] = select(x[i] < z[i], 1, 0)",
        V + "for i<8: y[i] = select(x[i] <= z[i], 1, 0)",
    ),
    "a sum for an assignment of one": (V + "for i<8, j<2: y[i] += x[i]", V + "for i<8: y[i] = x[i]"),
    "a product for a sum": (V + "for i<8: y[0] += x[i]", V + "for i<8: y[0] *= x[i]"),
    "a maximum for a minimum": (V + "for i<8: y[0] max= x[i]", V + "for i<8: y[0] min= x[i]"),
    "a shorter loop": (V + "for i<8: y[i] = x[i]", V + "for i<7: y[i] = x[i]"),
    "a shift": (V + "for i<7: y[i] = x[i]", V + "for i<7: y[i] = x[i+1]"),
    "a stride": (V + "for i<4: y[i] = x[i]", V + "for i<4: y[i] = x[2*i]"),
    "a reversal": (V + "for i<8: y[i] = x[i]", V + "for i<8: y[i] = x[7-i]"),
    "a transposed operand": (
        "in a: i32[4,4] in b: i32[4,4] out c: i32[4,4] for i<4, j<4, k<4: c[i,j] += a[i,k] * b[k,j]",
        "in a: i32[4,4] in b: i32[4,4] out c: i32[4,4] for i<4, j<4, k<4: c[i,j] += a[i,k] * b[j,k]",
    ),
    "a transposed result": (
        "in a: i32[4,4] in b: i32[4,4] out c: i32[4,4] for i<4, j<4, k<4: c[i,j] += a[i,k] * b[k,j]",
        "in a: i32[4,4] in b: i32[4,4] out c: i32[4,4] for i<4, j<4, k<4: c[j,i] += a[i,k] * b[k,j]",
    ),
    "a trace of the square and of the Gram matrix": (
        "in a: i32[4,4] out y: i32[] for i<4, j<4: y[] += a[i,j] * a[j,i]",
        "in a: i32[4,4] out y: i32[] for i<4, j<4: y[] += a[i,j] * a[i,j]",
    ),
    "four-cycles and two two-cycles": (
        "in a: i32[4,4] out y: i32[] for i<4, j<4, k<4, m<4: y[] += a[i,j] * a[j,k] * (a[k,m] * a[m,i])",
        "in a: i32[4,4] out y: i32[] for i<4, j<4, k<4, m<4: y[] += a[i,j] * a[j,i] * (a[k,m] * a[m,k])",
    ),
    "convolution and correlation": (
        C + CONV + CONV_BODY,
        C + (CONV + CONV_BODY).replace("p+r-1", "p-r+1").replace("q+s-1", "q-s+1"),
    ),
    "padding of one and none on the right": (
        C + CONV + CONV_BODY,
        C + CONV.replace("q+s-1 < 6", "q+s-1 < 5") + CONV_BODY,
    ),
    "taps swapped": (C + CONV + CONV_BODY, C + CONV + CONV_BODY.replace("r,s]", "s,r]")),
    "a condition that matters": (V + "for i<8 where i < 7: y[i] = x[i]", V + "for i<8: y[i] = x[i]"),
    "a condition one further": (V + "for i<8 where i < 6: y[i] = x[i]", V + "for i<8 where i < 7: y[i] = x[i]"),
    "equal for at least": (V + "for i<8 where i == 2: y[i] = x[i]", V + "for i<8 where i >= 2: y[i] = x[i]"),
    "a remainder for a quotient": (V + "for i<8: y[i] = x[i%3]", V + "for i<8: y[i] = x[i//3]"),
    "another divisor": (V + "for i<8: y[i] = x[i//3]", V + "for i<8: y[i] = x[i//5]"),
    "a reshape of the other order": (R + "for i<24: y[i//6, i%6] = x[i]", R + "for i<24: y[i%4, i//4] = x[i]"),
    "axes that only seem split": (
        "in x: i32[16] out y: i32[16] for a<2, b<4: y[4*a+b] += x[4*a+b]",
        "in x: i32[16] out y: i32[16] for a<2, b<5: y[4*a+b] += x[4*a+b]",
    ),
    "axes joined in one place only": (
        "in x: i32[16] out y: i32[16] for a<2, b<4: y[4*a+b] += x[4*a+b]",
        "in x: i32[16] out y: i32[16] for a<2, b<4: y[4*a+b] += x[2*b+a]",
    ),
    "a sum repeated once more": (V + "for i<8, r<12: y[i] += x[i]", V + "for i<8, r<13: y[i] += x[i]"),
    "a loop's value shifted": (V + "for i<8: y[i] = i32(i)", V + "for i<8: y[i] = i32(i+1)"),
    "temporaries exchanged": (
        T + "for i<8: s[i] = x[i] * x[i]; for i<8: t[i] = z[i] - x[i]; for i<8: y[i] = s[i] - t[i]",
        T + "for i<8: s[i] = x[i] * x[i]; for i<8: t[i] = z[i] - x[i]; for i<8: y[i] = t[i] - s[i]",
    ),
    "a sum before or after squaring": (
        T + "for i<8: s[0] += x[i]; for i<8: y[i] = s[0] * s[0]",
        T + "for i<8: s[0] += x[i] * x[i]; for i<8: y[i] = s[0]",
    ),
    "a read before and after a contribution": (
        "in x: i32[4] inout h: i32[4] out y: i32[4] for i<4: y[i] = h[i]; for i<4: h[i] += x[i]",
        "in x: i32[4] inout h: i32[4] out y: i32[4] for i<4: h[i] += x[i]; for i<4: y[i] = h[i]",
    ),
    "a step forward and a step in place": (
        H + "seq t<5: for i<4: h[t+1,i] = h[t,i] + x[t,i]",
        H + "seq t<5: for i<4: h[t+1,i] = h[0,i] + x[t,i]",
    ),
    "one recurrence or two in turn": (
        "inout g: i32[5] inout h: i32[5] seq t<4: g[t+1] = h[t] + 1 seq t<4: h[t+1] = g[t] * 2",
        "inout g: i32[5] inout h: i32[5] seq t<4: g[t+1] = h[t] + 1 seq u<4: h[u+1] = g[u] * 2",
    ),
    "steps in the other order": (
        "inout g: i32[5] inout h: i32[5] seq t<4: g[t+1] = h[t] + 1 seq t<4: h[t+1] = g[t+1] * 2",
        "inout g: i32[5] inout h: i32[5] seq t<4: h[t+1] = g[t+1] * 2 seq t<4: g[t+1] = h[t] + 1",
    ),
    "order of two steps": (
        "inout h: i32[9] seq a<2, b<4: h[4*a+b+1] = 2 * h[4*a+b] + 1",
        "inout h: i32[9] seq b<4, a<2: h[4*a+b+1] = 2 * h[4*a+b] + 1",
    ),
    "an index read elsewhere": (
        "in x: i32[8] in k: i32[8] out y: i32[4] for i<4: y[i] = x[k[i]]",
        "in x: i32[8] in k: i32[8] out y: i32[4] for i<4: y[i] = x[k[i+1]]",
    ),
    "a gather and a scatter": (
        "in x: i32[8] in k: i32[8] out y: i32[8] for i<8: y[i] += x[k[i]]",
        "in x: i32[8] in k: i32[8] out y: i32[8] for i<8: y[k[i]] += x[i]",
    ),
    "a wider product": (
        "in x: i8[8] out y: i32[8] for i<8: y[i] = x[i] * 100",
        "in x: i8[8] out y: i32[8] for i<8: y[i] = i8(x[i] * 100)",
    ),
}

GRU_HEADER = """in x: f32[4]  in h: f32[4]  const W: f32[4,4]  const R: f32[4,4]  const b: f32[4]  const r: f32[4]
out y: f32[4]  temp wx: f32[4]  temp rh: f32[4]
for i<4, j<4: wx[i] += W[i,j] * x[j]
"""
GRU_RESET_AFTER = GRU_HEADER + "for i<4, j<4: rh[i] += R[i,j] * h[j]; for i<4: y[i] = tanh(wx[i] + r[i] * rh[i] + b[i])"
GRU_RESET_BEFORE = (
    GRU_HEADER + "for i<4, j<4: rh[i] += R[i,j] * (r[j] * h[j]); for i<4: y[i] = tanh(wx[i] + rh[i] + b[i])"
)


@pytest.mark.parametrize("name", EQUAL)
def test_two_spellings_of_one_computation_have_one_text(name: str) -> None:
    first, second = map(parse, EQUAL[name])
    assert str(canonicalise(first)) == str(canonicalise(second))
    assert digest(first) == digest(second)


@pytest.mark.parametrize("name", EQUAL)
def test_the_canonical_program_computes_the_same(name: str) -> None:
    for program in map(parse, EQUAL[name]):
        expected = run(program)
        found = run(canonicalise(program))
        for tensor in expected:
            np.testing.assert_array_equal(found[tensor], expected[tensor])


@pytest.mark.parametrize("name", EQUAL)
def test_the_canonical_text_is_its_own_canonical_form_and_reads_back(name: str) -> None:
    canonical = canonicalise(parse(EQUAL[name][0]))
    assert canonicalise(canonical) == canonical
    assert parse(str(canonical)) == canonical


@pytest.mark.parametrize("name", DIFFERENT)
def test_look_alikes_keep_different_texts(name: str) -> None:
    first, second = map(parse, DIFFERENT[name])
    assert str(canonicalise(first)) != str(canonicalise(second))
    assert digest(first) != digest(second)


@pytest.mark.parametrize("name", DIFFERENT)
def test_look_alikes_really_compute_something_else(name: str) -> None:
    first, second = (run(parse(text)) for text in DIFFERENT[name])
    assert any(not np.array_equal(first[tensor], second[tensor]) for tensor in first)


def test_the_two_forms_of_a_gru_stay_apart() -> None:
    """Reset after the matrix product (cuDNN, PyTorch) is not reset before it (TensorFlow, ONNX default)."""
    assert digest(parse(GRU_RESET_AFTER)) != digest(parse(GRU_RESET_BEFORE))
    renamed = GRU_RESET_AFTER.replace("rh", "product").replace("wx", "rh").replace("product", "wx")
    assert digest(parse(renamed)) == digest(parse(GRU_RESET_AFTER))


def test_association_is_left_to_rewriting() -> None:
    left = parse(V.replace("i32", "f32") + "for i<8: y[i] = x[i] * (z[i] * 3.0)")
    right = parse(V.replace("i32", "f32") + "for i<8: y[i] = (x[i] * z[i]) * 3.0")
    assert str(canonicalise(left)) != str(canonicalise(right))


def test_names_and_order_of_the_interface_are_part_of_the_text() -> None:
    texts = (
        "in x: i32[4] in z: i32[4] out y: i32[4] for i<4: y[i] = x[i]",
        "in z: i32[4] in x: i32[4] out y: i32[4] for i<4: y[i] = x[i]",
        "in x: i32[4] out y: i32[4] for i<4: y[i] = x[i]",
        "const x: i32[4] out y: i32[4] for i<4: y[i] = x[i]",
        "size n in 1..4 in x: i32[4] out y: i32[4] for i<4: y[i] = x[i]",
        "size n in 1..5 in x: i32[4] out y: i32[4] for i<4: y[i] = x[i]",
    )
    assert len({digest(parse(text)) for text in texts}) == len(texts)


def test_canonical_names_avoid_those_of_the_interface() -> None:
    program = parse(
        "in d0: i32[4] in v0: i32[4] out t0: i32[4] temp s: i32[4] for i<4: s[i] = d0[i]; for i<4: t0[i] = s[i]"
    )
    canonical = canonicalise(program)
    assert parse(str(canonical)) == canonical
    assert [t.name for t in canonical.tensors] == ["d0", "v0", "t0", "v_0"]


def test_neighbouring_recurrences_stay_two() -> None:
    """The second starts when the first has ended, although their loops are alike."""
    text = """inout g: i32[5]  inout h: i32[5]
    seq t<4: g[t+1] = g[t] + h[4]
    seq u<4: h[u+1] = h[u] * 2"""
    canonical = canonicalise(parse(text))
    assert len(canonical.groups()) == 2
    assert len(canonicalise(canonical).groups()) == 2
    np.testing.assert_array_equal(run(canonical)["g"], run(parse(text))["g"])


def test_recurrences_stay_two_when_the_dead_statement_between_them_goes() -> None:
    text = """inout g: i32[5]  inout h: i32[5]  temp dead: i32[5]
    seq t<4: g[t+1] = g[t] + h[t]
    for i<5: dead[i] = g[i]
    seq t<4: h[t+1] = h[t] * 2 + g[4]"""
    assert len(canonicalise(parse(text)).groups()) == 2


def test_a_recurrence_of_one_step_keeps_its_step_when_it_reads_itself() -> None:
    canonical = canonicalise(parse("inout h: i32[2] seq t<1: h[t+1] = h[t] + 1"))
    assert len(canonical.statements[0].seq) == 1


def test_statements_of_one_recurrence_stay_together_and_in_order() -> None:
    text = """in x: i32[4]  inout h: i32[5]  temp a: i32[4]  temp b: i32[4]
    seq t<4: a[t] = h[t] + x[t]
    seq t<4: b[t] = a[t] * 2
    seq t<4: h[t+1] = b[t] - a[t]"""
    other = text.replace("a[", "c[").replace("b[", "a[").replace("c[", "b[")
    canonical = canonicalise(parse(text))
    assert canonical.groups() == ((0, 1, 2),)
    assert str(canonicalise(parse(other))) == str(canonical)
    np.testing.assert_array_equal(run(canonical)["h"], run(parse(text))["h"])


def test_many_symmetric_loops_are_ordered_at_once() -> None:
    names = "abcdefgh"
    loops = ", ".join(f"{n}<2" for n in names)
    text = f"in x: i32[9] out y: i32[] for {loops}: y[] += x[{'+'.join(names)}]"
    start = time.perf_counter()
    canonicalise(parse(text))
    assert time.perf_counter() - start < 0.5


def test_a_convolution_takes_milliseconds() -> None:
    program = parse(C + CONV + CONV_BODY)
    assert min(_seconds(program) for _ in range(20)) < 0.01


def _seconds(program: Program) -> float:
    start = time.perf_counter()
    canonicalise(program)
    return time.perf_counter() - start


def run(program: Program) -> dict[str, Array]:
    """Outputs for integer-filled inputs; small and not negative, so that they also serve as indices. Sizes are 3."""
    generator = np.random.default_rng(7)
    sizes = {size.name: 3 for size in program.sizes}
    arrays: dict[str, Array] = {}
    for tensor in program.inputs:
        shape = [extent.evaluate(sizes) for extent in tensor.shape]
        arrays[tensor.name] = generator.integers(0, 7, shape).astype(tensor.dtype.numpy)
    return evaluate(program, arrays, sizes)
