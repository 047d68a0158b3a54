"""Programs of several statements: epilogues, pointwise chains, rows, gathers, windows, recurrences, split sums."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.nest import Alloc, walk
from dovetail.ir.plan import Hold, Leaf, Plan, PlanNode, Tile
from dovetail.pipeline import compile, program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target
from tests.differential.kernels import assert_exact, uncertified

TARGETS = ("x86-64-v3", "generic")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")

BIAS_RELU = """
in a: f32[19,33]  const b: f32[33,21]  in bias: f32[21]  out y: f32[19,21]  temp c: f32[19,21]
for i<19, j<21, k<33: c[i,j] += a[i,k] * b[k,j]
for i<19, j<21: y[i,j] = max(c[i,j] + bias[j], 0.0)
"""
RESIDUAL_CHAIN = """
in a: f32[18,7]  in b: f32[7,20]  in r: f32[18,20]  out y: f32[18,20]  temp c: f32[18,20]  temp d: f32[18,20]
for i<18, j<20, k<7: c[i,j] += a[i,k] * b[k,j]
for i<18, j<20: d[i,j] = c[i,j] + r[i,j]
for i<18, j<20: y[i,j] = max(d[i,j], 0.0) * 2.0 - d[i,j]
"""
CONV_BIAS_RELU = """
in x: f32[3,13,14]  const w: f32[20,3,3,3]  in bias: f32[20]  in before: f32[20,13,14]  out y: f32[20,13,14]
temp sum: f32[20,13,14]
for k<20, p<13, q<14, c<3, r<3, s<3 where 0 <= p+r-1 < 13, 0 <= q+s-1 < 14:
  sum[k,p,q] += x[c,p+r-1,q+s-1] * w[k,c,r,s]
for k<20, p<13, q<14: y[k,p,q] = max(sum[k,p,q] + bias[k] + before[k,p,q], 0.0)
"""
TRANSPOSED_STORE = """
in a: f32[17,9]  in b: f32[9,12]  out y: f32[12,17]  temp c: f32[17,12]
for i<17, j<12, k<9: c[i,j] += a[i,k] * b[k,j]
for i<17, j<12: y[j,i] = c[i,j] + 1.0
"""
TWO_OUTPUTS = """
in a: f32[11,13]  in b: f32[13,9]  out c: f32[11,9]  out y: f32[11,9]  out total: f32[11]
for i<11, j<9, k<13: c[i,j] += a[i,k] * b[k,j]
for i<11, j<9: y[i,j] = max(c[i,j], 0.0)
for i<11, j<9: total[i] += c[i,j]
"""
INOUT = """
in a: f32[10,6]  in b: f32[6,17]  inout c: f32[10,17]
for i<10, j<17, k<6: c[i,j] += a[i,k] * b[k,j]
"""
POINTWISE = """
in x: f32[7,5,19]  in y: f32[7,5,19]  out z: f32[7,5,19]  temp s: f32[7,5,19]  temp t: f32[7,5,19]
for a<7, b<5, c<19: s[a,b,c] = x[a,b,c] * y[a,b,c]
for a<7, b<5, c<19: t[a,b,c] = max(s[a,b,c], x[a,b,c])
for a<7, b<5, c<19: z[a,b,c] = select(t[a,b,c] > 2.0, t[a,b,c] - 2.0, s[a,b,c])
"""
GATHER = """
in x: f32[30,18]  in i: i64[12]  out y: f32[12,18]  temp g: f32[12,18]
for n<12, c<18: g[n,c] = x[i[n],c]
for n<12, c<18: y[n,c] = g[n,c] * 2.0
"""
SCATTER = """
in x: f32[40]  in i: i32[40]  inout y: f32[7]  out n: i32[7]
for p<40: y[i[p]] += x[p]
for p<40: n[i[p]] += 1
"""
SEPARABLE = """
in x: f32[10,11,16]  const w1: f32[3,3,16]  const w2: f32[16,24]  out y: f32[8,9,24]  temp d: f32[8,9,16]
for p<8, q<9, c<16, r<3, s<3: d[p,q,c] += x[p+r,q+s,c] * w1[r,s,c]
for p<8, q<9, k<24, c<16: y[p,q,k] += d[p,q,c] * w2[c,k]
"""
POOLING = """
in x: f32[5,15,16]  out m: f32[5,7,8]  out a: f32[5,8,8]
for c<5, p<7, q<8, r<3, s<2: m[c,p,q] max= x[c,2*p+r,2*q+s]
for c<5, p<8, q<8, r<3, s<3 where 0 <= 2*p+r-1 < 15, 0 <= 2*q+s-1 < 16: a[c,p,q] += x[c,2*p+r-1,2*q+s-1]
"""
ARGMAX = """
in x: f32[9,23]  out i: i64[9]  temp m: f32[9]
for n<9, k<23: m[n] max= x[n,k]
for n<9, k<23: i[n] min= select(x[n,k] == m[n], k, 23)
"""
RECURRENCE = """
size T in 0..40
in x: i32[T,17]  const w: i32[17,17]  in h0: i32[17]  out h: i32[T+1,17]  temp s: i32[T,17]
for i<17: h[0,i] = h0[i]
seq t<T: for i<17, j<17: s[t,i] += w[i,j] * h[t,j]
seq t<T: for i<17: h[t+1,i] = max(s[t,i] + x[t,i], 0)
"""
CUMULATIVE = """
size n in 1..50
in x: f32[n,6]  out y: f32[n+1,6]
for i<6: y[0,i] = 0.0
seq t<n: for i<6: y[t+1,i] = y[t,i] + x[t,i]
"""
ACCUMULATED_STEPS = """
in x: f32[12,9]  out y: f32[9]
seq t<12: for i<9: y[i] += x[t,i] * x[t,i]
"""
EMPTY_SUM = """
size n in 0..8
in x: f32[5,n]  out y: f32[5]  out z: f32[5]
for i<5, k<n: y[i] max= x[i,k]
for i<5, k<0: z[i] *= x[i,0]
"""
PARTLY_WRITTEN = """
in x: f32[6]  out y: f32[13]  out z: f32[8,3]
for i<6: y[2*i] += x[i]
for i<6, k<3 where i >= 2: z[i,k] min= x[i]
"""

EXACT = {
    "bias and ReLU": (BIAS_RELU, ({},)),
    "residual chain": (RESIDUAL_CHAIN, ({},)),
    "convolution, bias, residual, ReLU": (CONV_BIAS_RELU, ({},)),
    "transposed store": (TRANSPOSED_STORE, ({},)),
    "two outputs": (TWO_OUTPUTS, ({},)),
    "inout": (INOUT, ({},)),
    "pointwise": (POINTWISE, ({},)),
    "gather": (GATHER, ({},)),
    "scatter": (SCATTER, ({},)),
    "separable": (SEPARABLE, ({},)),
    "pooling": (POOLING, ({},)),
    "argmax": (ARGMAX, ({},)),
    "recurrence": (RECURRENCE, ({"T": 0}, {"T": 1}, {"T": 5}, {"T": 40})),
    "cumulative": (CUMULATIVE, ({"n": 1}, {"n": 50})),
    "accumulated steps": (ACCUMULATED_STEPS, ({},)),
    "empty sum": (EMPTY_SUM, ({"n": 0}, {"n": 8})),
    "partly written": (PARTLY_WRITTEN, ({},)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("name", EXACT)
def test_programs_of_several_statements_are_exact(name: str, threads: int, target: str) -> None:
    text, all_sizes = EXACT[name]
    kernel = compile(program(text), target, threads, cache=False)
    for sizes in all_sizes:
        assert_exact(kernel, sizes or None)


@pytest.mark.parametrize("dtype", ("f16", "bf16", "f32", "f64", *INTEGERS))
@pytest.mark.parametrize("combine", ("+=", "max=", "min="))
def test_sums_and_extremes_of_every_dtype_are_exact(dtype: str, combine: str) -> None:
    text = f"""
    in a: {dtype}[13,35]  in b: {dtype}[35,18]  in d: {dtype}[18]  out y: {dtype}[13,18]  inout z: {dtype}[13]
    temp c: {dtype}[13,18]
    for i<13, j<18, k<35: c[i,j] {combine} a[i,k] * b[k,j]
    for i<13, j<18: y[i,j] = max(c[i,j], d[j])
    for i<13, k<35: z[i] {combine} a[i,k]
    """
    assert_exact(compile(program(text), "x86-64-v3", 2, cache=False))


@pytest.mark.parametrize("dtype", ("f16", "bf16"))
def test_a_sum_of_small_floats_is_rounded_once(dtype: str) -> None:
    """Partial sums of small floats would lose bits if they were stored in between."""
    text = f"in a: {dtype}[4,300]  in b: {dtype}[300,9]  out c: {dtype}[4,9]\n"
    text += "for i<4, j<9, k<300: c[i,j] += a[i,k] * b[k,j]"
    assert_exact(compile(program(text), "x86-64-v3", 2, cache=False))


@pytest.mark.parametrize("step", (1, 5, 8, 40))
@pytest.mark.parametrize("threads", (1, 2))
def test_a_sum_split_around_its_tile_keeps_its_epilogue(step: int, threads: int) -> None:
    target = load_target("x86-64-v3")
    registers, unit = target.registers, target.units[0].name
    assert registers is not None
    inner: tuple[PlanNode, ...] = (Tile("kk", ((0, "k"),), 1, (Leaf(0, "j", 8),)), Leaf(1, "j", 8))
    tile = Tile("jt", ((0, "j"), (1, "j")), 16, inner, holds=(Hold("c", registers.name),))
    rows = Tile("it", ((0, "i"), (1, "i")), 4, (tile,), unit)
    plan = Plan((Tile("kt", ((0, "k"),), step, (rows,)),))
    kernel = uncertified(program(BIAS_RELU), plan, "x86-64-v3", threads)
    assert_exact(kernel)


@pytest.mark.parametrize("text", (BIAS_RELU, RESIDUAL_CHAIN, CONV_BIAS_RELU))
def test_an_epilogue_runs_on_the_register_tile(text: str) -> None:
    target, flat = load_target("x86-64-v3"), collapse(program(text))
    plan = default_plan(flat, target, 2)
    assert len(plan.body) == 1
    nest = build_nest(flat, plan, target)
    temps = {t.name for t in flat.temps}
    assert not temps & {n.buffer.name for n in walk(nest.body) if isinstance(n, Alloc)}


SOFTMAX = """
in x: f32[9,37]  out y: f32[9,37]  temp m: f32[9]  temp e: f32[9,37]  temp s: f32[9]
for i<9, j<37: m[i] max= x[i,j]
for i<9, j<37: e[i,j] = exp(x[i,j] - m[i])
for i<9, j<37: s[i] += e[i,j]
for i<9, j<37: y[i,j] = e[i,j] / s[i]
"""
LAYER_NORM = """
in x: f32[7,40]  in g: f32[40]  in b: f32[40]  out y: f32[7,40]  temp m: f32[7]  temp v: f32[7]
for i<7, j<40: m[i] += x[i,j] * 0.025
for i<7, j<40: v[i] += (x[i,j] - m[i]) * (x[i,j] - m[i]) * 0.025
for i<7, j<40: y[i,j] = (x[i,j] - m[i]) * rsqrt(v[i] + 0.00001) * g[j] + b[j]
"""
RELATIVE = 2e-6
"""About 16 roundings of f32: sums of 40 terms, one elementary function of at most 4 ulp, a product or quotient."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", (SOFTMAX, LAYER_NORM))
def test_rows_that_are_normalised_are_right_to_rounding(text: str, target: str) -> None:
    rows = program(text)
    arrays = fill(rows, 3)
    found = compile(rows, target, 2, cache=False)(*(arrays[t.name] for t in rows.inputs))
    assert isinstance(found, np.ndarray)
    expected = evaluate(rows, arrays)["y"].astype(np.float64)
    assert np.max(np.abs(found.astype(np.float64) - expected)) <= RELATIVE * max(1.0, float(np.max(np.abs(expected))))


def test_tensors_may_have_the_names_that_registers_get() -> None:
    text = "in a: f32[9]  out t1: f32[9]  temp t2: f32[9]  temp t3: f32[9]  temp r1: f32[9]\n"
    text += "for i<9: t2[i] = a[i] + 1\nfor i<9: t3[i] = t2[i] * a[i]\nfor i<9: r1[i] = t3[i] - t2[i]\n"
    text += "for i<9: t1[i] = r1[i] + t2[8 - i]"
    for target in TARGETS:
        assert_exact(compile(program(text), target, 2, cache=False))


def test_a_constant_that_is_read_twice_is_laid_out_for_both() -> None:
    text = "in w: f32[18,6]  const c: f32[3,6]  out y: f32[3,6]  temp t: f32[3,18]\n"
    text += "for b<3, m<18, k<6: t[b,m] += c[b,k] * w[m,k]\nfor b<3, j<6: y[b,j] = t[b,j + 6] * c[b,j] + t[b,j]"
    for target in TARGETS:
        assert_exact(compile(program(text), target, 2, cache=False))
