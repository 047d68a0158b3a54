"""What roundings in another order may change: measured by the reference, and nothing where they change nothing."""

import numpy as np
import pytest

from dovetail.certify.rounding import is_linear, rounding_spread, widened
from dovetail.certify.stepped import allowed_spread, stepped, stepped_spread
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.pipeline import compile

CANCELS = """in x: f32[64] in w: f32[64] out y: f32[64] temp t: f32[64] temp s: f32[64]
for i<64: t[i] = 1000.1 * x[i] + 0.3 * w[i]
for i<64: s[i] = 1000.1 * x[i]
for i<64: y[i] = t[i] - s[i]"""


def spread(text: str) -> float:
    program = parse(text)
    arrays = fill(program, 1)
    return rounding_spread(program, arrays, {}, evaluate(program, arrays))


def test_parts_that_cancel_allow_more() -> None:
    plain = "in x: f32[64] in w: f32[64] out y: f32[64]\nfor i<64: y[i] = 1000.1 * x[i] + 0.3 * w[i]"
    assert 0 < spread(plain) < 1e-5 < spread(CANCELS) < 1e-2


def test_whole_numbers_allow_nothing() -> None:
    assert spread("in x: f32[64] in w: f32[64] out y: f32[64]\nfor i<64: y[i] = 3 * x[i] - w[i] * x[i]") == 0


@pytest.mark.parametrize(
    "text",
    [
        "in x: f32[8] out y: f32[8]\nfor i<8: y[i] = exp(x[i]) * 0.1",
        "in x: f32[8] out y: f32[8]\nfor i<8: y[i] = 0.1 / x[i]",
        "in x: i32[8] out y: i32[8]\nfor i<8: y[i] = 3 * x[i]",
        "in x: f32[8] out y: f32[8]\nfor i<8: y[i] max= 0.1 * x[i]",
        "in x: f32[8,4] out h: f32[9,4]\nfor i<4: h[0,i] = 0\nseq t<8: for i<4: h[t+1,i] = 0.5*h[t,i] + x[t,i]",
    ],
    ids=["function", "quotient", "integers", "largest", "steps"],
)
def test_nothing_is_said_about_programs_with_anything_but_sums_and_products(text: str) -> None:
    program = parse(text)
    assert not is_linear(program)
    assert spread(text) == 0


def test_wide_floats_are_as_wide_as_they_get() -> None:
    assert {t.dtype.name for t in widened(parse(CANCELS)).tensors} == {"f64"}


def test_a_program_whose_parts_cancel_is_certified_within_what_is_stated() -> None:
    program = parse(CANCELS)
    checks = compile(program, "host", 1, cache=False).certificate.checks
    assert "because of 1000.1" in checks[-1].detail
    arrays = fill(program, 7)
    found = compile(program, "host", 1, cache=False)(arrays["x"], arrays["w"])
    error = np.asarray(found, np.float64) - 0.3 * np.asarray(arrays["w"], np.float64)
    assert np.abs(error).max() < 2e-3


GELU = "in x: f32[1] out y: f32[1]\nfor i<1: y[i] = 0.5 * x[i] * (1.0 + erf(x[i] * 0.7071067811865476))"


def test_every_operation_of_a_value_becomes_a_statement() -> None:
    lines = str(stepped(parse(GELU))).splitlines()
    assert [line for line in lines if line.startswith("for")] == [
        "for i<1: s0[i] = 0.5 * x[i]",
        "for i<1: s1[i] = x[i] * 0.7071067811865476",
        "for i<1: s2[i] = erf(s1[i])",
        "for i<1: s3[i] = 1.0 + s2[i]",
        "for i<1: y[i] = s0[i] * s3[i]",
    ]


def test_parts_that_cancel_inside_a_value_leave_nothing_of_it() -> None:
    program = parse(GELU)
    arrays = {"x": np.array([-8.0], np.float32)}
    wanted = evaluate(program, arrays)
    assert wanted["y"][0] != 0 and evaluate(stepped(program), arrays)["y"][0] == 0
    assert stepped_spread(program, arrays, {}, wanted) >= 1


def test_a_function_may_be_one_unit_off_and_what_is_left_of_it_with_it() -> None:
    program = parse(GELU)
    arrays = {"x": np.array([-8.0], np.float32)}
    wanted = evaluate(program, arrays)
    off = abs(evaluate(stepped(program, 2.0**-23), arrays)["y"][0])
    assert off > 1e-7
    assert stepped_spread(program, arrays, {}, wanted) * abs(wanted["y"][0]) >= off


def test_a_function_without_parts_that_cancel_is_allowed_little_more() -> None:
    program = parse("in x: f32[64] out y: f32[64]\nfor i<64: y[i] = 2.0 * tanh(0.1 * x[i])")
    arrays = fill(program, 1)
    assert stepped_spread(program, arrays, {}, evaluate(program, arrays)) < 2e-5  # 16 times 8 ulps


def test_a_recurrence_that_enlarges_roundings_allows_them_and_one_that_forgets_them_does_not() -> None:
    text = """in x: f32[40,16] in w: f32[16,16] temp u: f32[40,16] out h: f32[41,16]
    for i<16: h[0,i] = 0
    seq t<40: for i<16, j<16: u[t,i] += w[i,j] * h[t,j]
    seq t<40: for i<16: h[t+1,i] = tanh({factor} * u[t,i] + x[t,i])"""
    found = []
    for factor in ("1.0", "0.001"):
        program = parse(text.replace("{factor}", factor))
        arrays = fill(program, 1)
        found.append(allowed_spread(program, arrays, {}, evaluate(program, arrays)))
    assert found[1] < 1e-4 < found[0]
