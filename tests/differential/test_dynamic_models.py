"""Models over many shapes: code with run-time sizes computes what the reference evaluator says, to the last bit.

Data are whole numbers, so that no sum rounds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import CallError
from dovetail.model.artefact import load
from dovetail.model.opened import open_model

onnx = pytest.importorskip("onnx")

from dovetail.frontends.onnx.file import from_proto  # noqa: E402
from dovetail.model.onnx_session import Session, reference  # noqa: E402

Array = npt.NDArray[np.float32]
ATTENTION = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[b, s, 8] x) => (float[b, s, 8] y)
<float[8, 8] w = {W8}>
{
  h = MatMul(x, w)
  r = Relu(h)
  t = Transpose<perm = [0, 2, 1]>(r)
  p = MatMul(r, t)
  m = ReduceMax<axes = [-1], keepdims = 1>(p)
  q = Sub(p, m)
  z = MatMul(q, r)
  y = Add(z, x)
}
"""
IMAGES = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[b, 3, 8, 8] x) => (float[b, 6] y)
<float[4, 3, 3, 3] w = {W108}, float[16, 6] v = {W96}>
{
  c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)
  r = Relu(c)
  p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
  f = Flatten(p)
  y = MatMul(f, v)
}
"""
RECURRENT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[t, b, 4] x) => (float[t, 1, b, 4] y)
<float[1, 4, 4] w = {W16}, float[1, 4, 4] r = {Z16}>
{
  y, h = RNN<hidden_size = 4, activations = ["Relu"]>(x, w, r)
}
"""
CASES: dict[str, tuple[str, list[tuple[int, ...]]]] = {
    "attention": (ATTENTION, [(1, 6, 8), (1, 9, 8), (2, 5, 8), (3, 4, 8), (2, 11, 8), (4, 1, 8), (1, 1, 8)]),
    "images": (IMAGES, [(1, 3, 8, 8), (2, 3, 8, 8), (3, 3, 8, 8), (5, 3, 8, 8)]),
    "recurrent": (RECURRENT, [(5, 1, 4), (8, 1, 4), (3, 1, 4), (1, 1, 4), (6, 2, 4), (4, 3, 4)]),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(cache))


def proto(text: str) -> object:
    rng = np.random.default_rng(3)
    for count in (8, 96, 108, 16):
        size = count if count != 8 else 64
        numbers = ", ".join(str(int(n)) for n in rng.integers(-1, 2, size))
        text = text.replace(f"{{W{count}}}", "{" + numbers + "}")
    text = text.replace("{Z16}", "{" + ", ".join("1" if n % 5 == 0 else "0" for n in range(16)) + "}")
    return onnx.parser.parse_model(text)


def data(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(np.float32)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", CASES)
def test_every_shape_gives_what_the_model_means(name: str, dynamic: bool | None, tmp_path: Path) -> None:
    text, shapes = CASES[name]
    model = proto(text)
    onnx.save(model, tmp_path / "m.onnx")
    function, meaning = (
        open_model(tmp_path / "m.onnx", threads=2, dynamic=dynamic),
        Session(from_proto(model), reference),
    )
    general = 0
    for shape in [*shapes, *shapes[:2]]:
        x = data(shape)
        found, want = function.run({"x": x})["y"], meaning.run({"x": x})["y"]
        np.testing.assert_array_equal(found, want, err_msg=f"{shape}")
        general += any(row.sizes for row in function.compiled({"x": x}).report.rows)
    assert general > 1, "no code was shared"


def test_a_model_with_run_time_sizes_is_saved_for_its_shape(tmp_path: Path) -> None:
    onnx.save(proto(ATTENTION), tmp_path / "m.onnx")
    x = data((2, 7, 8))
    compiled = open_model(tmp_path / "m.onnx", threads=1, dynamic=True).compiled({"x": x})
    assert any(row.sizes for row in compiled.report.rows)
    compiled.save(tmp_path / "m.dovetail")
    again = load(tmp_path / "m.dovetail")
    np.testing.assert_array_equal(again(x)[0], compiled(x)[0])
    assert again.report == compiled.report
    for wrong in (data((2, 8, 8)), data((7, 2, 8)), data((2, 7, 7))):
        with pytest.raises(CallError):
            again(wrong)


def test_extents_that_the_file_states_are_still_asked_for(tmp_path: Path) -> None:
    onnx.save(proto(ATTENTION), tmp_path / "m.onnx")
    function = open_model(tmp_path / "m.onnx", dynamic=True)
    function.run({"x": data((1, 4, 8))})
    with pytest.raises(CallError, match="the model takes"):
        function.run({"x": data((1, 4, 9))})


def test_another_process_finds_general_code_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(proto(ATTENTION), tmp_path / "m.onnx")
    open_model(tmp_path / "m.onnx", threads=1, dynamic=True).run({"x": data((2, 7, 8))})
    monkeypatch.setattr("dovetail.model.workers.part_of", lambda *_: pytest.fail("something was compiled"))
    again = open_model(tmp_path / "m.onnx", threads=1, dynamic=True)
    x = data((3, 6, 8))
    assert again.compiled({"x": x})(x)[0].shape == x.shape
