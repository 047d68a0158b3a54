"""Which algorithm a kernel computes, what it is compared with, and plans that belong to one of its forms."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail
from dovetail.algorithm import DIRECT, Wishes
from dovetail.base.errors import RewriteError
from dovetail.ir.plan import plan_from_json
from dovetail.pipeline import choose, compared, compile_chosen
from dovetail.runtime.kernel import Kernel

CONV = """
in x: f32[1, 8, 10, 10]
const w: f32[16, 8, 3, 3]
out y: f32[1, 16, 8, 8]
for n<1, k<16, p<8, q<8, c<8, r<3, s<3: y[n, k, p, q] += x[n, c, p+r, q+s] * w[k, c, r, s]
"""
LAYER = r"def layer(x: f32[64]) -> y = map(\v -> v * 2, map(\v -> v + 1, x))"
STORED = dovetail.Rule("stored", r"map(?f, ?x)", r"let v = ?x in map(?f, v)")
WINOGRAD = "winograd-4x4"


def kernel_of(text: str, algorithm: str, relaxed: bool = False) -> Kernel:
    kernel = dovetail.compile(dovetail.program(text), threads=1, algorithm=algorithm, relaxed=relaxed)
    assert isinstance(kernel, Kernel)
    return kernel


def test_a_form_that_only_sums_otherwise_is_compared_exactly() -> None:
    found = dovetail.verify(dovetail.program(CONV), threads=1, algorithm="im2col")
    assert found.is_exact
    assert (found.bound, found.stated) == (0, "")


def test_a_relaxed_form_is_compared_with_the_program_within_the_stated_error() -> None:
    found = dovetail.verify(dovetail.program(CONV), threads=1, algorithm=WINOGRAD, relaxed=True)
    assert found.agrees
    assert 0 < found.largest_error <= found.bound < 1e-2
    assert found.inexact == WINOGRAD
    assert "winograd-4x4 is relaxed: error at most " in found.verdict


def test_what_a_relaxed_form_computes_wrong_is_found() -> None:
    program = dovetail.program(CONV)
    kernel, form = compile_chosen(program, "host", 1, Wishes(True, (), WINOGRAD))
    rng = np.random.default_rng(0)
    arrays = {t.name: rng.integers(-4, 5, [e.const for e in t.shape]).astype(np.float32) for t in program.inputs}
    results = kernel(*arrays.values())
    assert isinstance(results, np.ndarray)
    assert compared(program, kernel, form, arrays, {}, {"y": results}).agrees
    results[0, 3, 2, 1] += 1
    wrong = compared(program, kernel, form, arrays, {}, {"y": results})
    assert sum(c.wrong for c in wrong.classes) == 1


def test_a_plan_says_which_form_it_is_of_and_is_used_for_it_again() -> None:
    first = kernel_of(CONV, WINOGRAD, relaxed=True)
    plan = plan_from_json(first.plan.to_json())
    assert plan.form == WINOGRAD
    again = dovetail.compile(dovetail.program(CONV), threads=1, plan=plan, relaxed=True)
    assert isinstance(again, Kernel)
    assert again.algorithm == WINOGRAD
    with pytest.raises(RewriteError, match=r"'winograd-4x4' is relaxed"):
        dovetail.compile(dovetail.program(CONV), threads=1, plan=plan)


def test_a_plan_of_the_program_as_it_is_says_nothing_of_forms() -> None:
    kernel = kernel_of(CONV, DIRECT)
    assert "form" not in kernel.plan.to_json()
    assert kernel.algorithm == DIRECT


def test_a_rule_of_the_user_is_taken_when_it_is_asked_for() -> None:
    layer = dovetail.definition(LAYER)
    form = choose(layer, "host", 1, Wishes(rules=(STORED,), algorithm="stored"))
    assert form.name == "stored"
    assert form.program.temps
    assert dovetail.verify(layer, threads=1, rules=(STORED,), algorithm="stored").is_exact


def test_a_rule_of_the_user_is_left_where_it_is_not_faster() -> None:
    form = choose(dovetail.definition(LAYER), "host", 1, Wishes(rules=(STORED,)))
    assert form.is_direct
    assert [line.split(":")[0] for line in form.costs.splitlines()] == ["direct", "stored"]


def test_a_program_without_windows_has_no_choice() -> None:
    form = choose(dovetail.program("in x: f32[8] out y: f32[8] for i<8: y[i] = x[i]"), "host", 1, Wishes(True))
    assert str(form) == ""
    assert form.is_direct


def test_a_simulated_machine_computes_the_form_that_is_asked_for() -> None:
    program = dovetail.program(CONV.replace("f32", "i32"))
    found = dovetail.verify(program, "systolic16", algorithm="im2col")
    assert found.is_exact
