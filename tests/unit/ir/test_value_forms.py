"""Casts that a statement implies are left out of its canonical form; casts that change a value stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dovetail.base.dtypes import DTYPES
from dovetail.ir.canonical import canonicalise
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.value_forms import exact, fits
from tests.property.programs import Case, programs
from tests.property.wide_programs import wide_programs

HEAD = (
    "in b: bool[4]  in s: i8[4]  in u: u8[4]  in i: i32[4]  in l: i64[4]  in h: f16[4]  in f: f32[4]  in d: f64[4]  "
    "out y: {}[4]  for k<4: y[k] {} {}"
)
SAME = (
    ("i32", "+=", "i32(s[k]) * i32(u[k])", "s[k] * u[k]"),
    ("i32", "+=", "i32(s[k]) * u[k]", "s[k] * u[k]"),
    ("i8", "=", "i8(s[k] + 1)", "s[k] + 1"),
    ("i8", "=", "s[k] + i8(1)", "s[k] + 1"),
    ("f16", "=", "f16(h[k] * h[k])", "h[k] * h[k]"),
    ("f16", "=", "f16(f[k] * h[k])", "f[k] * h[k]"),
    ("f32", "=", "f32(i[k])", "i[k]"),
    ("f32", "=", "f32(h[k]) * f[k]", "h[k] * f[k]"),
    ("f64", "=", "f64(f[k]) + f64(s[k])", "f[k] + s[k]"),
    ("i64", "=", "i64(s[k]) + i64(u[k])", "s[k] + u[k]"),
    ("f32", "=", "f32(0.5)", "0.5"),
    ("f32", "=", "f32(3)", "3"),
    ("i8", "=", "select(i32(s[k]) < i32(u[k]), s[k], 1)", "select(s[k] < i32(u[k]), s[k], i8(1))"),
    ("bool", "=", "i32(s[k]) < i32(s[k])", "s[k] < i32(s[k])"),
    ("i8", "=", "i8(bitcast_i32(f32(f[k])))", "bitcast_i32(f[k])"),
    ("i32", "=", "select(bool(i[k]), i[k], 1)", "select(i[k], i[k], 1)"),
    ("i32", "=", "i32(b[k]) + i[k]", "b[k] + i[k]"),
)
OTHER = (
    ("i32", "+=", "i32(s[k] * s[k])", "s[k] * s[k]"),
    ("i8", "=", "s[k] // i8(i[k])", "s[k] // i[k]"),
    ("f32", "=", "f32(f[k] * f[k]) * f[k]", "f[k] * f[k] * f[k]"),
    ("f32", "=", "f32(i[k]) * f[k]", "i[k] * f[k]"),
    ("f16", "+=", "f16(h[k] * h[k])", "h[k] * h[k]"),
    ("f32", "=", "f16(0.1) * f[k]", "0.1 * f[k]"),
    ("f32", "=", "f32(d[k] * d[k])", "f32(d[k]) * f32(d[k])"),
    ("i32", "=", "i32(f[k]) + 1", "f32(i32(f[k])) + 1"),
    ("bool", "=", "i32(s[k]) + i32(s[k]) < i[k]", "i8(s[k] + s[k]) < i[k]"),
    ("u8", "=", "u8(i[k]) // 2", "i[k] // 2"),
)
CHECKS = settings(
    deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=(Phase.generate,)
)


@pytest.mark.parametrize("out, op, one, other", SAME)
def test_implied_casts_do_not_matter(out: str, op: str, one: str, other: str) -> None:
    assert _text(out, op, one) == _text(out, op, other)


@pytest.mark.parametrize("out, op, one, other", OTHER)
def test_casts_that_change_values_do(out: str, op: str, one: str, other: str) -> None:
    assert _text(out, op, one) != _text(out, op, other)


def _text(out: str, op: str, value: str) -> str:
    found = canonicalise(parse(HEAD.format(out, op, value)))
    assert canonicalise(found) == found
    return str(found)


WIDER = (
    "bool i8",
    "u8 i16",
    "i8 f16",
    "i16 f32",
    "u16 f32",
    "i32 f64",
    "f16 f32",
    "bf16 f32",
    "f32 f64",
    "f8e4m3fn f16",
)
NARROWER = ("i8 u8", "i8 bool", "u8 i8", "i32 f32", "i64 f64", "i16 bf16", "f16 bf16", "bf16 f16", "f32 f16", "f32 i64")


@pytest.mark.parametrize("pair", (*WIDER, *NARROWER))
def test_a_type_holds_the_values_of_another_or_not(pair: str) -> None:
    source, target = (DTYPES[name] for name in pair.split())
    assert exact(source, target) is (pair in WIDER)


def test_a_number_fits_a_type_that_holds_it() -> None:
    assert fits(0.5, DTYPES["f16"]) and fits(200, DTYPES["u8"]) and fits(2**24, DTYPES["f32"])
    assert not fits(0.1, DTYPES["f16"]) and not fits(200, DTYPES["i8"]) and not fits(1.0, DTYPES["i8"])


@settings(CHECKS, max_examples=60)
@given(programs())
def test_canonical_programs_compute_the_same(case: Case) -> None:
    _computes_the_same(case)


@settings(CHECKS, max_examples=120)
@given(wide_programs())
def test_canonical_programs_of_many_types_compute_the_same(case: Case) -> None:
    _computes_the_same(case)


def _computes_the_same(case: Case) -> None:
    arrays = fill(case.program, 3, case.sizes)
    canonical = canonicalise(case.program)
    assert canonicalise(canonical) == canonical
    wanted, found = evaluate(case.program, arrays, case.sizes), evaluate(canonical, arrays, case.sizes)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=f"{case}\n{canonical}")
