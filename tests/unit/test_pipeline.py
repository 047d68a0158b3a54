"""From text to kernels: certified, kept, refused."""

import gc
import json
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dovetail
from dovetail import compilation, pipeline
from dovetail.base.errors import CallError, CertificateError, PlanError, TargetError
from dovetail.certify import certificate
from dovetail.codegen.compile import emit_object
from dovetail.codegen.lower import LlvmModule, lower
from dovetail.ir.index import constant
from dovetail.ir.nest import Alloc, Call, Loop, Nest, Node, Parallel, Place, When
from dovetail.ir.plan import Leaf, Plan, Tile
from dovetail.ir.program import Program
from dovetail.runtime.kernel import Kernel
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

GEMM = "in a: f32[13,9] in b: f32[9,21] out c: f32[13,21]\nfor i<13, j<21, k<9: c[i,j] += a[i,k] * b[k,j]"
LARGE = "in a: f32[300,200] in b: f32[200,333] out c: f32[300,333]\nfor i<300, j<333, k<200: c[i,j] += a[i,k] * b[k,j]"
HUGE = "in a: f32[9000,4000] in b: f32[4000,9000] out c: f32[9000,9000]\n"
HUGE += "for i<9000, j<9000, k<4000: c[i,j] += a[i,k] * b[k,j]"
SIZED = "size m in 0..50\nin a: f32[m,9] in b: f32[9,21] out c: f32[m,21]\n"
SIZED += "for i<m, j<21, k<9: c[i,j] += a[i,k] * b[k,j]"
SOFTMAX = (
    "in x: f32[6,30] temp m: f32[6] temp e: f32[6,30] temp s: f32[6] out y: f32[6,30]\n"
    "for i<6, j<30: m[i] max= x[i,j]\nfor i<6, j<30: e[i,j] = exp(x[i,j] - m[i])\n"
    "for i<6, j<30: s[i] += e[i,j]\nfor i<6, j<30: y[i,j] = e[i,j] / s[i]"
)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compiled(text: str, threads: int = 1) -> Kernel:
    kernel = dovetail.compile(dovetail.program(text), threads=threads)
    assert isinstance(kernel, Kernel)
    return kernel


# -- certificates


def test_a_kernel_has_proofs_an_exact_evaluation_and_a_run_of_its_code() -> None:
    certificate = compiled(GEMM).certificate
    assert certificate.holds
    assert not certificate.kept
    assert [c.method for c in certificate.checks][-2:] == ["exact evaluation", "emitted code"]
    assert "isl" in [c.method for c in certificate.checks]
    assert certificate.checks[-1].detail == "all 273 elements of the whole program"
    assert all(c.seconds >= 0 for c in certificate.checks)


def test_a_larger_kernel_is_evaluated_small_and_run_whole_in_every_kind_of_tile() -> None:
    *_, exact, emitted = compiled(LARGE, threads=2).certificate.checks
    assert "a small instance (i<" in exact.detail
    assert emitted.detail.endswith("elements of the whole program, some of every kind of tile")


def test_a_huge_kernel_is_checked_by_the_code_of_a_small_instance() -> None:
    *_, exact, emitted = compiled(HUGE, threads=2).certificate.checks
    assert "of a small instance (i<" in exact.detail
    assert "of a small instance (i<" in emitted.detail


def test_run_time_sizes_are_checked_at_tiles_with_a_rest_at_none_and_in_every_case_of_the_plan() -> None:
    kernel = compiled(SIZED)
    emitted = kernel.certificate.checks[-1]
    sizes = re.findall(r" at m = (\d+)", emitted.detail)
    assert "0" in sizes and len(sizes) == len(set(sizes))
    assert {str(case.most) for case in kernel.plan.cases} <= set(sizes)
    assert any(int(m) > max((case.most for case in kernel.plan.cases), default=0) for m in sizes)


def test_functions_that_round_state_what_was_allowed() -> None:
    assert "because of exp" in compiled(SOFTMAX).certificate.checks[-1].detail


def test_the_certificate_is_part_of_the_explanation() -> None:
    assert "certificate\n  ok     tiles reach every point" in compiled(GEMM).explain()


def test_a_nest_with_a_wrong_instruction_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, lambda call: replace(call, instruction=call.instruction.replace("fma", "max")))
    with pytest.raises(CertificateError, match="every operation is done by an instruction that fits it was not"):
        compiled(GEMM)


def test_a_nest_that_reads_the_wrong_element_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, wrong_row)
    with pytest.raises(CertificateError, match="program and nest agree was not confirmed") as caught:
        compiled(GEMM)
    assert "exact evaluation: c[" in str(caught.value)


def test_wrong_code_of_a_right_nest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = lower

    def wrong(nest: Nest, target: Target) -> LlvmModule:
        module = right(nest, target)
        assert "@llvm.fma.v8f32(<8 x float> %a, <8 x float> %b, <8 x float> %acc)" in module.text
        return replace(
            module, text=module.text.replace("<8 x float> %a, <8 x float> %b, <", "<8 x float> %a, <8 x float> %a, <")
        )

    monkeypatch.setattr(compilation, "lower", wrong)
    with pytest.raises(CertificateError, match="emitted code and program agree was not confirmed"):
        dovetail.compile(dovetail.program(GEMM), "x86-64-v3", threads=1)


def test_wrong_code_of_a_large_program_is_found_by_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Kernel.__call__

    def wrong(self: Kernel, *arrays: object, **options: object) -> object:
        result = right(self, *arrays, **options)  # type: ignore[arg-type]
        assert isinstance(result, np.ndarray)
        result[-1, -1] += 1
        return result

    monkeypatch.setattr(Kernel, "__call__", wrong)
    with pytest.raises(CertificateError, match=r"c\[299, 332\] is "):
        compiled(LARGE)


def test_a_plan_for_another_program_is_refused() -> None:
    plan = Plan((Tile("t", ((0, "z"),), 4, (Leaf(0),)),))
    with pytest.raises(PlanError):
        dovetail.compile(dovetail.program(GEMM), threads=1, plan=plan)


def test_a_tile_of_several_vectors_whose_edge_is_known_at_run_time_stays_inside_its_rows() -> None:
    text = "size n in 2..15\nin x: f64[9,n+2] in w: f64[9] out y: f64[n+2,9]\n"
    text += "for i<9, j<n+2: y[j,i] += x[i,j] * w[i]"
    program = dovetail.program(text)
    plan = Plan((Tile("j", ((0, "j"),), 12, (Tile("i", ((0, "i"),), 1, (Leaf(0, "j", 4),)),)),))
    kernel = dovetail.compile(program, "x86-64-v3", threads=1, plan=plan)
    for n in range(2, 16):
        x, w = np.arange(9.0 * (n + 2)).reshape(9, n + 2), np.arange(9.0)
        np.testing.assert_array_equal(kernel(x, w), (x * w[:, None]).T)


def spoil(monkeypatch: pytest.MonkeyPatch, change: Callable[[Call], Call]) -> None:
    """Every nest that is built has its calls changed."""
    right = build_nest

    def wrong(program: Program, plan: Plan, target: Target) -> Nest:
        nest = right(program, plan, target)
        return replace(nest, body=tuple(changed(node, change) for node in nest.body))

    monkeypatch.setattr(compilation, "build_nest", wrong)
    monkeypatch.setattr(certificate, "build_nest", wrong)


def changed(node: Node, change: Callable[[Call], Call]) -> Node:
    if isinstance(node, Call):
        return change(node)
    if isinstance(node, When):
        other = tuple(changed(n, change) for n in node.otherwise)
        return replace(node, body=tuple(changed(n, change) for n in node.body), otherwise=other)
    if isinstance(node, Loop | Parallel | Alloc):
        return replace(node, body=tuple(changed(n, change) for n in node.body))
    return node


def wrong_row(call: Call) -> Call:
    """Reads of b come from its first row."""
    operands = tuple(
        replace(o, indices=(constant(0), *o.indices[1:])) if isinstance(o, Place) and o.buffer == "b" else o
        for o in call.operands
    )
    return replace(call, operands=operands)


# -- the cache


def test_a_warm_compilation_makes_no_code_and_keeps_the_certificate(kept: Path) -> None:
    cold, warm = compiled(GEMM), compiled(GEMM)
    assert "llvm" in cold.seconds
    assert not {"nest", "lower", "llvm", "certificate"} & warm.seconds.keys()
    assert warm.certificate.kept
    assert warm.certificate.checks == cold.certificate.checks
    assert warm.plan == cold.plan
    assert warm.plan.note == cold.plan.note
    a, b = np.ones((13, 9), np.float32), np.ones((9, 21), np.float32)
    np.testing.assert_array_equal(warm(a, b), cold(a, b))
    assert "from the cache: checked when this code was compiled" in warm.explain()


def test_run_time_sizes_and_scratch_memory_survive_the_cache(kept: Path) -> None:
    for text in (SIZED, SOFTMAX):
        compiled(text, threads=2)
        kernel = compiled(text, threads=2)
        assert kernel.certificate.kept
        assert dovetail.verify(dovetail.program(text), threads=2, sizes={"m": 17} if text is SIZED else None).agrees


def test_a_corrupt_entry_is_a_miss(kept: Path) -> None:
    compiled(GEMM)
    entries = sorted(kept.glob("*/*.entry"))
    assert {path.parent.name for path in entries} == {"plan", "object"}
    for path in entries:
        data = bytearray(path.read_bytes())
        data[-5] ^= 1
        path.write_bytes(data)
    again = compiled(GEMM)
    assert not again.certificate.kept
    assert compiled(GEMM).certificate.kept


def test_another_target_number_of_threads_or_program_is_a_miss(kept: Path) -> None:
    compiled(GEMM)
    program = dovetail.program(GEMM)
    assert not dovetail.compile(program, "generic", threads=1).certificate.kept
    assert not compiled(GEMM.replace("13", "14")).certificate.kept


def test_without_the_cache_nothing_is_kept(kept: Path) -> None:
    dovetail.compile(dovetail.program(GEMM), threads=1, cache=False)
    assert not list(kept.glob("*/*.entry"))
    compiled(GEMM)
    assert not dovetail.compile(dovetail.program(GEMM), threads=1, cache=False).certificate.kept


def test_what_fails_its_certificate_is_not_kept(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        spoil(broken, wrong_row)
        with pytest.raises(CertificateError):
            compiled(GEMM)
    assert not list(kept.glob("object/*.entry"))
    assert not compiled(GEMM).certificate.kept


def test_another_process_takes_what_this_one_kept(kept: Path) -> None:
    compiled(GEMM)
    source = (
        "import dovetail, json\n"
        f"kernel = dovetail.compile(dovetail.program({GEMM!r}), threads=1)\n"
        "print(json.dumps([kernel.certificate.kept, kernel.code.entry]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert json.loads(done.stdout) == [True, compiled(GEMM).code.entry]


# -- refusals


def test_a_target_whose_features_are_missing_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "missing_features", lambda target: ("amx-tile", "avx512f"))
    monkeypatch.setattr(compilation, "default_plan", lambda *given: pytest.fail("it was planned"))
    with pytest.raises(TargetError) as caught:
        dovetail.compile(dovetail.program(GEMM), load_target("generic"))
    assert str(caught.value) == (
        "this machine cannot run code for 'generic'\n  it lacks amx-tile, avx512f\n"
        "  try: target 'host', or dovetail compile --emit to make code for another machine"
    )


@pytest.mark.parametrize("threads", [0, -1, 513, True, 2.0, "2"])
def test_a_strange_number_of_threads_is_refused(threads: int) -> None:
    with pytest.raises(CallError, match="is no number of threads"):
        dovetail.compile(dovetail.program(GEMM), threads=threads)


def test_a_strange_number_of_threads_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_THREADS", "many")
    with pytest.raises(CallError, match="DOVETAIL_THREADS=many is no number of threads"):
        dovetail.compile(dovetail.program(GEMM))


def test_a_constant_that_the_program_does_not_have_is_refused() -> None:
    with pytest.raises(CallError, match="'z' is not a constant of the program"):
        dovetail.compile(dovetail.program(GEMM), threads=1, constants={"z": np.ones(3)})


# -- verify


def test_verify_compares_every_element() -> None:
    found = dovetail.verify(dovetail.program(LARGE), threads=2)
    assert found.is_exact
    assert sum(c.elements for c in found.classes) == 300 * 333


def test_compilations_side_by_side_leave_the_interpreter_as_it_was() -> None:
    usual = sys.getswitchinterval()
    texts = [f"in x: f32[{n}]  out y: f32[{n}]\nfor i<{n}: y[i] = x[i] + 1.0" for n in range(20, 28)]
    with ThreadPoolExecutor(4) as workers:
        list(workers.map(lambda text: pipeline.compile(pipeline.program(text), threads=1, cache=False), texts))
    assert sys.getswitchinterval() == usual
    assert gc.isenabled()


def test_garbage_is_not_looked_for_while_compiling_and_is_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    def stopped(program: Program, *rest: object) -> Nest:
        seen.append(gc.isenabled())
        raise PlanError("no nest today")

    monkeypatch.setattr(compilation, "build_nest", stopped)
    with pytest.raises(PlanError):
        pipeline.compile(pipeline.program(GEMM), threads=1, cache=False)
    assert seen == [False]
    assert gc.isenabled()


def test_who_collects_garbage_by_himself_still_does_after_compiling() -> None:
    gc.disable()
    try:
        pipeline.compile(pipeline.program(GEMM), threads=1, cache=False)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_code_goes_with_the_last_name_of_its_kernel() -> None:
    gc.disable()
    try:
        kernel = pipeline.compile(pipeline.program(GEMM), threads=1, cache=False)
        code = weakref.ref(kernel)
        assert "certificate" in kernel.explain()
        del kernel
        assert code() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("text", "brief"), [(GEMM, True), (LARGE, False)])
def test_the_code_generator_is_brief_with_small_programs_alone(
    monkeypatch: pytest.MonkeyPatch, text: str, brief: bool
) -> None:
    asked: list[bool] = []

    def emit(module: LlvmModule, target: Target, brief: bool) -> bytes:
        asked.append(brief)
        return emit_object(module, target, brief)

    monkeypatch.setattr(compilation, "emit_object", emit)
    pipeline.compile(pipeline.program(text), threads=1, cache=False)
    assert set(asked) == {brief}
