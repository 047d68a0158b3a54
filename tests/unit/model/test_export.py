from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.base.errors import CodegenError, ModelError
from dovetail.model.build import compile_graph, show
from dovetail.model.compiled import CompiledModel
from dovetail.model.elf import Data, joined
from dovetail.model.export import export
from dovetail.model.general import Shapes
from dovetail.runtime.jit import load_object
from dovetail.runtime.model_image import HostStep
from tests.unit.model.graphs import Array, Floats, mlp, same, wanted, whole_numbers

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

PROGRAM = """
#include <stdio.h>
#include "mlp.h"
static float x[6 * 24], y[6 * 24], z[6 * 24];
int main(void) {
  const void *inputs[] = {x};
  void *outputs[] = {y, z};
  for (int i = 0; i < 6 * 24; ++i) x[i] = (float)(i % 5 - 2);
  if (mlp_threads(2) || mlp_run(inputs, outputs)) return 1;
  for (int i = 0; i < 6 * 24; ++i) printf("%g ", y[i]);
  return 0;
}
"""


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    return compile_graph(mlp(), threads=2, cache=False)


def called(run: Callable[[object, object], int], model: CompiledModel, x: Floats) -> tuple[Array, ...]:
    out = tuple(np.full([n or 0 for n in p.shape], 9, p.numpy) for p in model.outputs)
    inputs = (ctypes.c_void_p * 1)(x.ctypes.data)
    outputs = (ctypes.c_void_p * len(out))(*(array.ctypes.data for array in out))
    assert run(inputs, outputs) == 0
    return out


def test_the_object_file_computes_the_same_with_one_thread_and_two(model: CompiledModel, tmp_path: Path) -> None:
    assert export(model, tmp_path / "mlp.o") == [tmp_path / "mlp.o", tmp_path / "mlp.h"]
    code = load_object((tmp_path / "mlp.o").read_bytes(), {})
    run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(code.address("mlp_run"))
    threads = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.address("mlp_threads"))
    code.keep_for_ever()
    x = whole_numbers(1, 6, 24)
    assert same(called(run, model, x), wanted(mlp(), x))
    assert [threads(count) for count in (0, 3, 2)] == [1, 1, 0]
    assert same(called(run, model, x), wanted(mlp(), x))


def test_an_object_file_of_code_with_run_time_sizes_has_their_values(tmp_path: Path) -> None:
    shapes = Shapes(dynamic=True)
    show(mlp(rows=9), shapes)
    sized = compile_graph(mlp(), threads=2, cache=False, shapes=shapes)
    assert all(step.sizes for step in sized.finished.image.natives())
    export(sized, tmp_path / "mlp.o")
    code = load_object((tmp_path / "mlp.o").read_bytes(), {})
    run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(code.address("mlp_run"))
    code.keep_for_ever()
    x = whole_numbers(1, 6, 24)
    assert same(called(run, sized, x), wanted(mlp(), x))


def test_the_same_model_gives_the_same_object(model: CompiledModel, tmp_path: Path) -> None:
    export(model, tmp_path / "mlp.o")
    first = (tmp_path / "mlp.o").read_bytes()
    export(model, tmp_path / "mlp.o")
    assert (tmp_path / "mlp.o").read_bytes() == first


def test_the_header_says_what_goes_in_and_out_and_no_name_ends_a_comment(model: CompiledModel, tmp_path: Path) -> None:
    _, header = export(model, tmp_path / "4 we*ird.o")
    text = header.read_text()
    assert "int m4_we_ird_run(const void *const *inputs, void *const *outputs);" in text
    assert "inputs[0]   f32[6][24]  pixels?n" in text
    assert text.count("*/") == text.count("/*") == 2


@needs_compiler
def test_a_c_program_runs_the_object_file_and_the_shared_library(model: CompiledModel, tmp_path: Path) -> None:
    export(model, tmp_path / "mlp.o")
    export(model, tmp_path / "mlp.so")
    (tmp_path / "main.c").write_text(PROGRAM)
    x = (np.arange(6 * 24) % 5 - 2).astype(np.float32).reshape(6, 24)
    for part in ("mlp.o", "mlp.so"):
        command = ["cc", "-Wall", "-Werror", "-o", "main", "main.c", f"./{part}", "-lpthread", "-lm"]
        subprocess.run(command, cwd=tmp_path, check=True)
        done = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
        assert np.array_equal(np.array(done.stdout.split(), np.float32), wanted(mlp(), x)[0].reshape(-1))


def test_a_shared_library_takes_a_linker(model: CompiledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CodegenError, match="takes a linker"):
        export(model, tmp_path / "mlp.so")


def test_steps_on_the_host_cannot_be_exported(model: CompiledModel, tmp_path: Path) -> None:
    image = model.finished.image
    step = HostStep("unique", "", (), ())
    broken = object.__new__(CompiledModel)
    broken.finished = replace(model.finished, image=replace(image, steps=(*image.steps, step)))
    with pytest.raises(ModelError, match="on the host: unique"):
        export(broken, tmp_path / "mlp.o")
    with pytest.raises(ModelError, match=r"neither in \.o nor in \.so"):
        export(model, tmp_path / "mlp.a")


def test_what_is_no_elf_file_and_names_that_two_files_define_are_refused(model: CompiledModel) -> None:
    data = Data("data", (memoryview(bytes(64)),))
    with pytest.raises(CodegenError, match="no ELF object file"):
        list(joined([b"MZ" + bytes(100)], data, frozenset()))
    code = model.finished.objects[0]
    with pytest.raises(CodegenError, match="two object files define 'k_"):
        list(joined([code, code], data, frozenset()))
