"""Programs that mapping is tested on, one text each; ``T`` stands for the inputs' dtype and ``A`` for the output's."""

from __future__ import annotations

from dovetail.ir.parse import parse
from dovetail.ir.program import Program

MATMUL = "in x: T[64,48] in w: T[48,80] out y: A[64,80] for m<64, n<80, c<48: y[m,n] += x[m,c] * w[c,n]"
BATCHED = (
    "in x: T[4,32,48] in w: T[4,48,64] out y: A[4,32,64] for b<4, m<32, n<64, c<48: y[b,m,n] += x[b,m,c] * w[b,c,n]"
)
CONV1D = (
    "in x: T[2,32,66] const w: T[48,32,3] out y: A[2,48,64] "
    "for n<2, k<48, p<64, c<32, r<3: y[n,k,p] += x[n,c,p+r] * w[k,c,r]"
)
CONV2D = (
    "in x: T[1,64,58,58] const w: T[64,64,3,3] out y: A[1,64,56,56] "
    "for n<1, k<64, p<56, q<56, c<64, r<3, s<3: y[n,k,p,q] += x[n,c,p+r,q+s] * w[k,c,r,s]"
)
CONV3D = (
    "in x: T[1,16,10,18,18] const w: T[32,16,3,3,3] out y: A[1,32,8,16,16] "
    "for n<1, k<32, o<8, p<16, q<16, c<16, t<3, r<3, s<3: "
    "y[n,k,o,p,q] += x[n,c,o+t,p+r,q+s] * w[k,c,t,r,s]"
)
STRIDED = (
    "in x: T[1,64,57,57] const w: T[64,64,3,3] out y: A[1,64,28,28] "
    "for n<1, k<64, p<28, q<28, c<64, r<3, s<3: y[n,k,p,q] += x[n,c,2*p+r,2*q+s] * w[k,c,r,s]"
)
DILATED = (
    "in x: T[1,64,60,60] const w: T[64,64,3,3] out y: A[1,64,56,56] "
    "for n<1, k<64, p<56, q<56, c<64, r<3, s<3: y[n,k,p,q] += x[n,c,p+2*r,q+2*s] * w[k,c,r,s]"
)
PADDED = (
    "in x: T[1,64,56,56] const w: T[64,64,3,3] out y: A[1,64,56,56] "
    "for n<1, k<64, p<56, q<56, c<64, r<3, s<3 where 0 <= p+r-1 < 56, 0 <= q+s-1 < 56: "
    "y[n,k,p,q] += x[n,c,p+r-1,q+s-1] * w[k,c,r,s]"
)
GROUPED = (
    "in x: T[1,4,16,30,30] const w: T[4,16,16,3,3] out y: A[1,4,16,28,28] "
    "for n<1, g<4, k<16, p<28, q<28, c<16, r<3, s<3: y[n,g,k,p,q] += x[n,g,c,p+r,q+s] * w[g,k,c,r,s]"
)
DEPTHWISE = (
    "in x: T[1,32,58,58] const w: T[32,3,3] out y: A[1,32,56,56] "
    "for n<1, c<32, p<56, q<56, r<3, s<3: y[n,c,p,q] += x[n,c,p+r,q+s] * w[c,r,s]"
)
BACKWARD_DATA = (
    "in g: T[2,64,28,28] const w: T[64,32,3,3] out d: A[2,32,30,30] "
    "for n<2, k<64, c<32, p<28, q<28, r<3, s<3: d[n,c,p+r,q+s] += g[n,k,p,q] * w[k,c,r,s]"
)
BACKWARD_WEIGHTS = (
    "in g: T[2,64,28,28] in x: T[2,32,30,30] out d: A[64,32,3,3] "
    "for n<2, k<64, c<32, p<28, q<28, r<3, s<3: d[k,c,r,s] += g[n,k,p,q] * x[n,c,p+r,q+s]"
)
MAX_POOL = (
    "in x: T[1,64,57,57] out y: T[1,64,28,28] for n<1, c<64, p<28, q<28, r<3, s<3: y[n,c,p,q] max= x[n,c,2*p+r,2*q+s]"
)
SUM = "in x: T[1000] out y: A[] for i<1000: y[] += x[i]"
ROW_SUM = "in x: T[64,100] out y: A[64] for i<64, j<100: y[i] += x[i,j]"
SOFTMAX = """
in x: f32[64,128]
temp m: f32[64]
temp e: f32[64,128]
temp s: f32[64]
out y: f32[64,128]
for i<64, j<128: m[i] max= x[i,j]
for i<64, j<128: e[i,j] = exp(x[i,j] - m[i])
for i<64, j<128: s[i] += e[i,j]
for i<64, j<128: y[i,j] = e[i,j] / s[i]
"""
LAYER_NORM = """
in x: f32[64,128]
const g: f32[128]
const b: f32[128]
temp s: f32[64]
temp v: f32[64]
out y: f32[64,128]
for i<64, j<128: s[i] += x[i,j]
for i<64, j<128: v[i] += (x[i,j] - s[i] * 0.0078125) * (x[i,j] - s[i] * 0.0078125)
for i<64, j<128: y[i,j] = (x[i,j] - s[i] * 0.0078125) * rsqrt(v[i] * 0.0078125 + 1e-05) * g[j] + b[j]
"""
POINTWISE = (
    "in x: T[64,100] in z: T[64,100] const b: T[100] out y: T[64,100] "
    "for i<64, j<100: y[i,j] = max(x[i,j] * z[i,j] + b[j], 0)"
)
GATHER = "in x: T[1000,64] in t: i64[32] out y: T[32,64] for i<32, j<64: y[i,j] = x[t[i],j]"
SCATTER = "in x: T[32,64] in t: i64[32] out y: T[1000,64] for i<32, j<64: y[t[i],j] += x[i,j]"
SEPARABLE = """
in x: T[58,58,32]
const d: T[3,3,32]
const w: T[32,64]
temp z: T[56,56,32]
out y: A[56,56,64]
for p<56, q<56, c<32, r<3, s<3: z[p,q,c] += x[p+r,q+s,c] * d[r,s,c]
for p<56, q<56, k<64, c<32: y[p,q,k] += z[p,q,c] * w[c,k]
"""


def program(text: str, inputs: str = "f32", out: str = "f32") -> Program:
    """``text`` with its dtypes put in."""
    return parse(text.replace(": T[", f": {inputs}[").replace(": A[", f": {out}["))
