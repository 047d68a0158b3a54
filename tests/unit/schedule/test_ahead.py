"""What depends on constants alone is computed once."""

import numpy as np
import pytest

import dovetail
from dovetail.artefacts import artefacts, planned
from dovetail.base.errors import CallError
from dovetail.ir.parse import parse
from dovetail.ir.program import Role
from dovetail.runtime.kernel import Kernel
from dovetail.schedule.ahead import planned_part, split_ahead
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.targets.load import load_target

SQUARES = """
in x: f32[4, 32]
const w: f32[16, 32]
const b: f32[16]
out y: f32[4, 16]
temp u: f32[32, 16]
temp s: f32[4, 16]
for k<16, c<32: u[c, k] = w[k, c] * w[k, c] + 1
for i<4, k<16, c<32: s[i, k] += x[i, c] * u[c, k]
for i<4, k<16: y[i, k] = s[i, k] + b[k]
"""


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, w, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((4, 32), (16, 32), (16,)))
    return x, w, b, x @ (w * w + 1).T + b


def compiled(**options: object) -> Kernel:
    kernel = dovetail.compile(dovetail.program(SQUARES), threads=2, cache=False, **options)  # type: ignore[call-overload]
    assert isinstance(kernel, Kernel)
    return kernel


def test_statements_on_constants_leave_the_main_program() -> None:
    split = split_ahead(parse(SQUARES))
    assert split.ahead is not None
    assert [str(t) for t in split.ahead.tensors] == ["in w: f32[16, 32]", "out u: f32[32, 16]"]
    assert len(split.ahead.statements) == 1
    assert [t.name for t in split.main.tensors] == ["x", "b", "y", "s", "u"]
    assert split.main.tensor("u").role is Role.CONST
    assert len(split.main.statements) == 2


@pytest.mark.parametrize(
    "text",
    [
        "in x: f32[8]  const w: f32[8]  out y: f32[8]\nfor i<8: y[i] = x[i] * w[i]",
        "in x: f32[8]  in w: f32[8]  out y: f32[8]  temp u: f32[8]\n"
        "for i<8: u[i] = w[i] + 1\nfor i<8: y[i] = x[i] * u[i]",
        "in x: f32[8]  const w: f32[8]  out y: f32[8]  temp u: f32[8]\n"
        "for i<4: u[i] = w[i]\nfor i<4: u[i+4] = x[i]\nfor i<8: y[i] = u[i]",
        "in x: f32[8,64]  const w: f32[8]  out y: f32[8,64]  temp u: f32[8,64]\n"
        "for i<8, j<64: u[i,j] = w[i]\nfor i<8, j<64: y[i,j] = u[i,j] + x[i,j]",
        "const w: f32[8]  out y: f32[8]  temp u: f32[8]\nfor i<8: u[i] = w[i] + 1\nfor i<8: y[i] = u[i] * u[i]",
    ],
    ids=["no temporary", "no constant", "partly from an input", "merely spread out", "nothing but constants"],
)
def test_other_programs_stay_whole_or_keep_a_main_part(text: str) -> None:
    program = parse(text)
    split = split_ahead(program)
    if split.ahead is None:
        assert split.main is program
    else:
        assert split.main.statements and split.main.tensor("u").role is Role.CONST


def test_a_temporary_that_an_input_writes_too_is_not_computed_ahead() -> None:
    text = (
        "in x: f32[8]  const w: f32[8]  out y: f32[8]  temp u: f32[8]\n"
        "for i<4: u[i] = w[i]\nfor i<4: u[i+4] = x[i]\nfor i<8: y[i] = u[i]"
    )
    assert split_ahead(parse(text)).ahead is None


def test_the_result_is_the_same_with_constants_bound_at_once_one_by_one_or_not_at_all() -> None:
    x, w, b, wanted = arrays()
    kernel = compiled()
    np.testing.assert_array_equal(kernel(x, w, b), wanted)
    kernel.bind({"b": b})
    np.testing.assert_array_equal(kernel(x, w), wanted)
    kernel.bind({"w": w})
    np.testing.assert_array_equal(kernel(x), wanted)
    out = np.empty((4, 16), np.float32)
    assert kernel(x, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(compiled(constants={"w": w, "b": b})(x), wanted)


def test_binding_a_constant_again_computes_again() -> None:
    x, w, b, wanted = arrays()
    kernel = compiled(constants={"w": np.zeros_like(w), "b": b})
    kernel.bind({"w": w})
    np.testing.assert_array_equal(kernel(x), wanted)


def test_a_constant_that_both_parts_read_reaches_both() -> None:
    text = (
        "in x: f32[8]  const w: f32[8]  out y: f32[8]  temp u: f32[8]\n"
        "for i<8: u[i] = w[i] * w[i]\nfor i<8: y[i] = x[i] * u[i] + w[i]"
    )
    x, w = np.arange(8, dtype=np.float32), np.arange(8, dtype=np.float32) - 4
    kernel = dovetail.compile(dovetail.program(text), threads=1, cache=False)
    np.testing.assert_array_equal(kernel(x, w), x * w * w + w)
    kernel.bind({"w": w})
    np.testing.assert_array_equal(kernel(x), x * w * w + w)


def test_what_is_computed_ahead_is_not_a_constant_that_can_be_bound() -> None:
    with pytest.raises(CallError, match="'u' is not a constant of the program"):
        compiled().bind({"u": np.zeros((32, 16), np.float32)})


def test_the_certificate_and_the_words_cover_both_parts() -> None:
    kernel = compiled()
    claims = [check.claim for check in kernel.certificate.checks]
    assert "emitted code and program agree" in claims
    assert "emitted code and program agree, ahead of all calls" in claims
    assert "once, when the constants are known:" in kernel.explain()


def test_a_plan_for_the_whole_program_is_taken_as_it_is() -> None:
    program = dovetail.program(SQUARES)
    flat = collapse(program)
    plan = default_plan(flat, load_target("host"), 2)
    assert planned_part(program, plan) is program
    x, w, b, wanted = arrays()
    kernel = dovetail.compile(program, threads=2, plan=plan, cache=False)
    np.testing.assert_array_equal(kernel(x, w, b), wanted)


def test_both_parts_are_emitted() -> None:
    program, target = parse(SQUARES), load_target("x86-64-v3")
    files = artefacts(program, planned(program, target, 1), target, ("h", "o"))
    assert set(files) == {"h", "o", "ahead.h", "ahead.o"}
    assert b"address of u" in files["h"] and b"address of u" in files["ahead.h"]


def test_it_is_verified_as_one_program() -> None:
    assert dovetail.pipeline.verify(dovetail.program(SQUARES), threads=2).agrees
