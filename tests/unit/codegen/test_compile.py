"""What LLVM makes of a nest: registers stay registers, loops stay loops, and the same bytes come out every time."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from dovetail.base.errors import CodegenError
from dovetail.codegen.compile import emit_assembly, emit_ir, emit_object
from dovetail.codegen.header import header_text
from dovetail.codegen.lower import lower
from dovetail.targets.load import load_target
from tests.unit.codegen.nests import avx2, matmul

_DIGEST = """
import hashlib
from dovetail.codegen.compile import emit_object
from dovetail.codegen.lower import lower
from tests.unit.codegen.nests import avx2, matmul
print(hashlib.sha256(emit_object(lower(matmul(24, 32, 17, 6, 2, 8), avx2()), avx2())).hexdigest())
"""


@pytest.mark.parametrize(
    ("target", "rows", "vectors", "lanes"),
    [("x86-64-v3", 6, 2, 8), ("x86-64-v3", 4, 3, 8), ("x86-64-v4", 14, 2, 16), ("znver4", 8, 3, 16)],
)
def test_a_register_tile_stays_in_registers(target: str, rows: int, vectors: int, lanes: int) -> None:
    machine = load_target(target)
    nest = matmul(rows * 4, vectors * lanes * 4, 256, rows, vectors, lanes)
    inner = _innermost(emit_assembly(lower(nest, machine), machine))
    assert len(re.findall(r"\tvfmadd", inner)) == rows * vectors
    assert "rsp" not in inner and "rbp" not in inner


def test_loops_are_neither_unrolled_nor_vectorised() -> None:
    text = emit_assembly(lower(matmul(24, 32, 4, 6, 2, 8), avx2()), avx2())
    assert len(re.findall(r"\tvfmadd", text)) == 12


def test_two_processes_make_the_same_bytes() -> None:
    digests = set()
    for seed in ("1", "2"):
        run = [sys.executable, "-c", _DIGEST]
        paths = ":".join(p for p in sys.path if p)
        done = subprocess.run(
            run, env={"PYTHONHASHSEED": seed, "PYTHONPATH": paths}, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_a_matmul_compiles_in_a_fraction_of_a_second() -> None:
    """20 ms here; the limit leaves room for a busy machine."""
    target = avx2()
    nest = matmul(96, 128, 256, 6, 2, 8)
    emit_object(lower(nest, target), target)
    begun = time.perf_counter()
    emit_object(lower(nest, target), target)
    assert time.perf_counter() - begun < 0.25


def test_optimised_ir_has_no_stack_slots_left() -> None:
    assert "alloca" not in emit_ir(lower(matmul(24, 32, 17, 6, 2, 8), avx2()), avx2())


def test_an_emission_that_llvm_refuses_is_named_as_the_cause() -> None:
    target = avx2()
    broken = replace(target.instruction("fma.f32x8"), emit="ret <8 x float> %nothing")
    target = replace(target, by_name={**{i.name: i for i in target.instructions}, "fma.f32x8": broken})
    with pytest.raises(CodegenError, match="LLVM does not accept"):
        emit_object(lower(matmul(6, 16, 2, 6, 2, 8), target), target)


def test_a_target_for_the_simulator_has_no_object_code() -> None:
    target = avx2()
    module = lower(matmul(6, 16, 2, 6, 2, 8), target)
    with pytest.raises(CodegenError, match=r"no \[llvm\] table"):
        emit_object(module, replace(target, llvm=None))


def test_the_header_declares_the_symbol_and_every_word() -> None:
    nest = matmul(6, 16, 2, 6, 2, 8)
    module = lower(nest, avx2())
    text = header_text(module, nest)
    assert f"void {module.entry}(int32_t unit, int32_t units, const int64_t *words);" in text
    assert "2  address of c: f32[6][16], written" in text
    assert "6  address of two status words" in text


def _innermost(assembly: str) -> str:
    """The block with most multiply-adds, up to its branch back: the loop over k."""
    blocks = re.split(r"\n\.LBB[0-9_]+:", assembly)
    return max(blocks, key=lambda block: block.count("\tvfmadd")).split("\n\tj")[0]
