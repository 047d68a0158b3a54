"""Twenty small programs for machines: T is what a contraction takes, S what it sums in."""

from __future__ import annotations

from collections.abc import Mapping

PROGRAMS: Mapping[str, str] = {
    "product": "in a: T[7,9] in b: T[9,6] out c: S[7,6] for i<7, j<6, k<9: c[i,j] += a[i,k] * b[k,j]",
    "product, b transposed": "in a: T[5,8] in b: T[6,8] out c: S[5,6] for i<5, j<6, k<8: c[i,j] += a[i,k] * b[j,k]",
    "product, a transposed": "in a: T[8,5] in b: T[8,6] out c: S[5,6] for i<5, j<6, k<8: c[i,j] += a[k,i] * b[k,j]",
    "product, both transposed": "in a: T[8,5] in b: T[6,8] out c: S[5,6] for i<5, j<6, k<8: c[i,j] += a[k,i] * b[j,k]",
    "product, c transposed": "in a: T[5,4] in b: T[4,6] out c: S[6,5] for i<5, j<6, k<4: c[j,i] += a[i,k] * b[k,j]",
    "product of many": (
        "in a: T[3,4,5] in b: T[3,5,4] out c: S[3,4,4] for n<3, i<4, j<4, k<5: c[n,i,j] += a[n,i,k] * b[n,k,j]"
    ),
    "product added": "in a: T[4,4] in b: T[4,9] inout c: S[4,9] for i<4, j<9, k<4: c[i,j] += a[i,k] * b[k,j]",
    "matrix and vector": "in a: T[11,13] in x: T[13] out y: S[11] for i<11, k<13: y[i] += a[i,k] * x[k]",
    "inner product": "in a: T[37] in b: T[37] out y: S[1] for o<1, k<37: y[o] += a[k] * b[k]",
    "convolution": (
        "in x: T[3,7,7] in w: T[4,3,3,3] out y: S[4,5,5] "
        "for k<4, p<5, q<5, c<3, r<3, s<3: y[k,p,q] += x[c,p+r,q+s] * w[k,c,r,s]"
    ),
    "convolution with a stride": (
        "in x: T[2,9,9] in w: T[3,2,3,3] out y: S[3,4,4] "
        "for k<3, p<4, q<4, c<2, r<3, s<3: y[k,p,q] += x[c,2*p+r,2*q+s] * w[k,c,r,s]"
    ),
    "padded convolution": (
        "in x: T[2,5,5] in w: T[3,2,3,3] out y: S[3,5,5] "
        "for k<3, p<5, q<5, c<2, r<3, s<3 where p+r>=1, p+r<=5, q+s>=1, q+s<=5: "
        "y[k,p,q] += x[c,p+r-1,q+s-1] * w[k,c,r,s]"
    ),
    "channels last": (
        "in x: T[5,5,4] in w: T[3,3,4,3] out y: S[3,3,3] "
        "for p<3, q<3, k<3, c<4, r<3, s<3: y[p,q,k] += x[p+r,q+s,c] * w[r,s,c,k]"
    ),
    "depthwise convolution": ("in x: T[4,7] in w: T[4,3] out y: S[4,5] for c<4, p<5, r<3: y[c,p] += x[c,p+r] * w[c,r]"),
    "sum of two": "in a: S[5,9] in b: S[5,9] out y: S[5,9] for i<5, j<9: y[i,j] = a[i,j] + b[i,j]",
    "bias and rectifier": (
        "in x: S[5,9] in b: S[9] temp t: S[5,9] out y: S[5,9] "
        "for i<5, j<9: t[i,j] = x[i,j] + b[j]  for i<5, j<9: y[i,j] = max(t[i,j], 0)"
    ),
    "sum of rows": "in x: S[6,11] out y: S[6] for i<6, j<11: y[i] += x[i,j]",
    "less the largest": (
        "in x: S[4,7] temp m: S[4] temp d: S[4,7] out y: S[4] "
        "for i<4, j<7: m[i] max= x[i,j]  for i<4, j<7: d[i,j] = x[i,j] - m[i]  for i<4, j<7: y[i] += d[i,j]"
    ),
    "layer": (
        "in x: T[5,6] in w: T[6,7] temp c: S[5,7] out y: S[5,7] "
        "for i<5, j<7, k<6: c[i,j] += x[i,k] * w[k,j]  for i<5, j<7: y[i,j] = max(c[i,j], 0)"
    ),
    "recurrence": (
        "in x: T[3,5] in w: T[5,5] temp h: T[4,5] temp g: S[3,5] out y: S[3,5] "
        "for i<5: h[0,i] = T(0) "
        "seq t<3: for i<5, j<5: g[t,i] += w[i,j] * h[t,j] "
        "seq t<3: for i<5: h[t+1,i] = T(max(min(g[t,i] + x[t,i], 2), 0)) "
        "for t<3, i<5: y[t,i] = g[t,i]"
    ),
}


def text_for(name: str, operand: str, total: str) -> str:
    """A program on these dtypes."""
    text = PROGRAMS[name]
    for short, dtype in (("T", operand), ("S", total)):
        text = text.replace(f": {short}[", f": {dtype}[").replace(f"= {short}(", f"= {dtype}(")
    return text
