from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import ModelError
from dovetail.model import opened, remembered
from dovetail.model.opened import open_model

onnx = pytest.importorskip("onnx")

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("dovetail.model.build.WORTH_SECONDS", 0.0)


def written(path: Path, addend: int = 1, beside: bool = False) -> npt.NDArray[np.float32]:
    """A model of x @ w + addend in a file; what it computes of X."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    w = np.arange(4 * 600, dtype=np.float32).reshape(4, 600) % 7 + addend
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 600])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, path, save_as_external_data=beside, location="data.bin")
    return X @ w


def equal(found: object, expected: npt.NDArray[np.float32]) -> bool:
    return isinstance(found, np.ndarray) and np.array_equal(found, expected)


def unreadable(*_: object) -> None:
    raise AssertionError("the file was read")


def test_a_file_that_was_compiled_before_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    expected = written(path)
    first = open_model(path)
    assert equal(first.compiled({"x": X})(X)[0], expected)
    monkeypatch.setattr(opened, "_read", unreadable)
    again = open_model(path)
    assert again.inputs == first.inputs
    assert again.outputs == first.outputs
    assert equal(again(X)[0], expected)
    assert equal(again.run({"x": X})["y"], expected)
    assert again.compiled({"x": X}) is again.compiled({"x": X + 1})
    assert "compiled" in again.report
    with pytest.raises(AssertionError, match="was read"):
        again(X[:2])


def test_a_file_that_was_run_before_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    expected = written(path)
    assert equal(open_model(path)(X)[0], expected)
    monkeypatch.setattr(opened, "_read", unreadable)
    assert equal(open_model(path)(X)[0], expected)


def test_other_types_names_and_threads_are_other_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    written(path)
    open_model(path, threads=1).compiled({"x": X})
    monkeypatch.setattr(opened, "_read", unreadable)
    known = open_model(path, threads=1)
    for feeds in ({"x": X.astype(np.float64)}, {"z": X}, {"x": X, "z": X}, {}):
        with pytest.raises(AssertionError, match="was read"):
            known.run(feeds)
    with pytest.raises(AssertionError, match="was read"):
        open_model(path, threads=2)


@pytest.mark.parametrize("settled", [True, False])
def test_a_file_with_other_bytes_is_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    monkeypatch.setattr(remembered, "_SETTLED_NS", 0 if settled else 10**18)
    path = tmp_path / "m.onnx"
    written(path)
    open_model(path).compiled({"x": X})
    before = path.stat()
    expected = written(path, addend=2)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert equal(open_model(path)(X)[0], expected)


def test_a_model_with_data_beside_its_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    written(path, beside=True)
    assert (tmp_path / "data.bin").exists()
    open_model(path).compiled({"x": X})
    (tmp_path / "data.bin").unlink()
    expected = written(path, addend=3, beside=True)
    assert equal(open_model(path)(X)[0], expected)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_pipes_and_folders_are_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "m.onnx")
    with pytest.raises(ModelError):
        open_model(tmp_path / "m.onnx")


def test_a_damaged_memory_is_none(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    expected = written(path)
    open_model(path).compiled({"x": X})
    for entry in (tmp_path / "cache" / "model").glob("*.entry"):
        entry.write_bytes(entry.read_bytes()[:100])
    assert equal(open_model(path)(X)[0], expected)
