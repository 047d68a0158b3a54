"""Other algorithms for a convolution: what rules make of it, and the choice among them."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.parse import parse
from dovetail.ir.program import Program, Role
from dovetail.rewrite.forms import DIRECT, choose, forms
from dovetail.rewrite.rule import Rule

PADDED = """
in x: f32[2, 8, 9, 7]
const w: f32[16, 8, 3, 3]
out y: f32[2, 16, 9, 7]
for n<2, k<16, p<9, q<7, c<8, r<3, s<3 where 0 <= p+r-1 < 9, 0 <= q+s-1 < 7:
  y[n, k, p, q] += x[n, c, p+r-1, q+s-1] * w[k, c, r, s]
"""
FOLLOWED = """
in x: f32[1, 8, 10, 10]
const w: f32[16, 8, 3, 3]
const b: f32[16]
temp t: f32[1, 16, 8, 8]
out y: f32[1, 16, 8, 8]
for n<1, k<16, p<8, q<8, c<8, r<3, s<3: t[n, k, p, q] += x[n, c, p+r, q+s] * w[k, c, r, s]
for n<1, k<16, p<8, q<8: y[n, k, p, q] = max(t[n, k, p, q] + b[k], 0)
"""
STRIDED = """
in x: f32[1, 8, 9, 9]
const w: f32[16, 8, 3, 3]
out y: f32[1, 16, 4, 4]
for n<1, k<16, p<4, q<4, c<8, r<3, s<3: y[n, k, p, q] += x[n, c, 2*p+r, 2*q+s] * w[k, c, r, s]
"""
CHANNELS_LAST = """
in x: f32[10, 10, 8, 4]
const w: f32[3, 3, 16, 8]
out y: f32[8, 8, 16, 4]
for p<8, q<8, k<16, n<4, c<8, r<3, s<3: y[p, q, k, n] += x[p+r, q+s, c, n] * w[r, s, k, c]
"""
GATHERED = """
in x: f32[8]
in i: i64[6]
const w: f32[3]
out y: f32[4]
for p<4, r<3: y[p] += x[i[p+r]] * w[r]
"""
MATMUL = "in a: f32[8, 16]\nin b: f32[16, 4]\nout y: f32[8, 4]\nfor i<8, j<4, k<16: y[i, j] += a[i, k] * b[k, j]"
WINOGRAD = ("winograd-2x2", "winograd-4x4")


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    tensors = [t for t in program.tensors if t.role in (Role.IN, Role.CONST)]
    return {t.name: rng.integers(-4, 5, [e.const for e in t.shape]).astype(np.float32) for t in tensors}


@pytest.mark.parametrize("text", [PADDED, FOLLOWED, CHANNELS_LAST], ids=["padded", "followed", "channels last"])
def test_a_convolution_of_3_by_3_has_three_other_forms_that_compute_the_same(text: str) -> None:
    program = parse(text)
    arrays = inputs(program)
    wanted = np.asarray(evaluate(program, arrays)["y"], np.float64)
    found = {form.name: form for form in forms(program, relaxed=True)}
    assert set(found) == {"im2col", *WINOGRAD}
    for name, form in found.items():
        got = np.asarray(evaluate(form.program, arrays)["y"], np.float64)
        largest = evaluate(program, {name: np.abs(array) for name, array in arrays.items()})["y"].max()
        allowed = 0.0 if name in ("im2col", "winograd-2x2") else 2e-6 * largest
        assert np.abs(got - wanted).max() <= allowed, name
        interface = [t for t in form.program.tensors if t.role is not Role.TEMP]
        assert interface == [t for t in program.tensors if t.role is not Role.TEMP]


def test_relaxed_forms_are_given_only_to_those_who_allow_them() -> None:
    assert [form.name for form in forms(parse(FOLLOWED))] == ["im2col"]


def test_zeros_stand_where_there_is_no_point_only_for_finite_data_and_integers() -> None:
    assert [form.name for form in forms(parse(PADDED))] == []
    assert [form.name for form in forms(parse(PADDED), finite=True)] == ["im2col"]
    assert [form.name for form in forms(parse(PADDED.replace("f32", "i32")))] == ["im2col"]


def test_an_infinite_weight_meets_no_zero_that_was_put_there() -> None:
    program = parse(FOLLOWED)
    arrays = inputs(program)
    arrays["w"][3, 2, 0, 0] = np.inf
    wanted = np.asarray(evaluate(program, arrays)["y"], np.float64)
    (form,) = forms(program)
    assert np.array_equal(evaluate(form.program, arrays)["y"], wanted, equal_nan=True)


def test_windows_in_steps_have_no_winograd_form() -> None:
    assert [form.name for form in forms(parse(STRIDED), relaxed=True)] == ["im2col"]


@pytest.mark.parametrize("text", [GATHERED, MATMUL], ids=["gathered", "matmul"])
def test_programs_without_windows_or_with_indirect_reads_have_one_form(text: str) -> None:
    assert not list(forms(parse(text), relaxed=True))


def test_the_cheapest_form_is_chosen_and_the_direct_one_where_the_gain_is_small() -> None:
    program = parse(PADDED)
    statements = {form.name: len(form.program.statements) for form in forms(program, relaxed=True)}

    def prefer(name: str, gain: float) -> str:
        costs = {1: 100.0, **{count: 100.0 / gain if form == name else 200.0 for form, count in statements.items()}}
        return choose(program, lambda p: costs[len(p.statements)], relaxed=True).form.name

    assert prefer("winograd-4x4", 2.0) == "winograd-4x4"
    assert prefer("im2col", 1.5) == "im2col"
    assert prefer("winograd-2x2", 1.02) == DIRECT


def test_a_rule_of_the_user_gives_a_form_too() -> None:
    rule = Rule("swap", "zip(?x, ?y)", r"map(\b a -> tuple(a, b), zip(?y, ?x))")
    found = {form.name for form in forms(parse(MATMUL), rules=(rule,))}
    assert found == {"swap"}


def test_forms_that_do_the_same_work_are_not_made_where_the_direct_one_is_close_to_its_arithmetic() -> None:
    program = parse(FOLLOWED)
    assert [name for name, _ in choose(program, lambda p: 100.0, least=lambda p: 80.0).costs] == [DIRECT]
    assert [name for name, _ in choose(program, lambda p: 100.0, least=lambda p: 20.0).costs] == [DIRECT, "im2col"]
    everything = [DIRECT, "im2col", *WINOGRAD]
    assert [name for name, _ in choose(program, lambda p: 100.0, True, least=lambda p: 80.0).costs] == everything
