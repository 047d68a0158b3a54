"""Data beside a model file: every attack at every place where a tensor can sit is refused; honest data is mapped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from dovetail.base.errors import LimitError, ModelError
from dovetail.base.limits import ModelLimits
from dovetail.frontends.onnx.external import MAPPED_BYTES
from dovetail.frontends.onnx.file import from_proto, read
from dovetail.frontends.onnx.model import OnnxTensor
from tests.unit.frontends.onnx.models import model, value

Entries = dict[str, str]
GOOD: Entries = {"location": "data.bin", "offset": "8", "length": "16"}
NUMBERS = np.arange(2, 4, dtype=np.int64)
"""What the sixteen bytes are."""


def beside(entries: Entries, name: str = "t") -> TensorProto:
    tensor = TensorProto(name=name, dims=[2], data_type=TensorProto.INT64, data_location=TensorProto.EXTERNAL)
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=text)
    return tensor


# Where a tensor can sit.


def _base(*nodes: NodeProto) -> ModelProto:
    proto = model([helper.make_node("Identity", ["x"], ["y"]), *nodes], [value("x", 2)], [value("y", 2)])
    proto.opset_import.add(domain="own", version=1)
    return proto


def _holder(*attributes: AttributeProto) -> NodeProto:
    node = NodeProto(op_type="Any", domain="own", output=["held"])
    node.attribute.extend(attributes)
    return node


def _attribute(**value: object) -> AttributeProto:
    kinds = {"t": "TENSOR", "tensors": "TENSORS", "sparse_tensor": "SPARSE_TENSOR", "sparse_tensors": "SPARSE_TENSORS"}
    kinds |= {"g": "GRAPH", "graphs": "GRAPHS"}
    (field,) = value
    return AttributeProto(name="a", type=getattr(AttributeProto, kinds[field]), **value)


def _sparse_values(tensor: TensorProto) -> SparseTensorProto:
    return SparseTensorProto(values=tensor, indices=numpy_helper.from_array(np.array([0, 1]), "i"), dims=[4])


def _sparse_indices(tensor: TensorProto) -> SparseTensorProto:
    return SparseTensorProto(values=numpy_helper.from_array(np.ones(2, np.float32), "v"), indices=tensor, dims=[4])


def _initializer(tensor: TensorProto) -> ModelProto:
    proto = _base()
    proto.graph.initializer.append(tensor)
    return proto


def _sparse_initializer(make: Callable[[TensorProto], SparseTensorProto]) -> Callable[[TensorProto], ModelProto]:
    def place(tensor: TensorProto) -> ModelProto:
        proto = _base()
        proto.graph.sparse_initializer.append(make(tensor))
        return proto

    return place


def _body(tensor: TensorProto) -> GraphProto:
    return GraphProto(name="body", initializer=[tensor])


def _deep_body(tensor: TensorProto) -> GraphProto:
    return GraphProto(name="outer", node=[_holder(_attribute(g=_body(tensor)))])


def _function(*attributes: AttributeProto) -> ModelProto:
    proto = _base()
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    proto.functions.append(helper.make_function("own", "F", [], ["held"], [_holder(*attributes)], imports))
    return proto


def _default(tensor: TensorProto) -> ModelProto:
    proto = _function()
    proto.functions[0].attribute_proto.append(_attribute(t=tensor))
    return proto


PLACES: dict[str, Callable[[TensorProto], ModelProto]] = {
    "initializer": _initializer,
    "constant": lambda t: _base(helper.make_node("Constant", [], ["k"], value=t)),
    "attribute": lambda t: _base(_holder(_attribute(t=t))),
    "second-of-a-list": lambda t: _base(_holder(_attribute(tensors=[numpy_helper.from_array(NUMBERS), t]))),
    "sparse-values": _sparse_initializer(_sparse_values),
    "sparse-indices": _sparse_initializer(_sparse_indices),
    "sparse-attribute": lambda t: _base(_holder(_attribute(sparse_tensor=_sparse_values(t)))),
    "sparse-attribute-indices": lambda t: _base(_holder(_attribute(sparse_tensor=_sparse_indices(t)))),
    "sparse-list": lambda t: _base(_holder(_attribute(sparse_tensors=[_sparse_indices(t)]))),
    "body": lambda t: _base(_holder(_attribute(g=_body(t)))),
    "bodies": lambda t: _base(_holder(_attribute(graphs=[GraphProto(), _body(t)]))),
    "deep-body": lambda t: _base(_holder(_attribute(g=_deep_body(t)))),
    "constant-in-a-body": lambda t: _base(_holder(_attribute(g=GraphProto(node=[_holder(_attribute(t=t))])))),
    "function": lambda t: _function(_attribute(t=t)),
    "body-in-a-function": lambda t: _function(_attribute(g=_deep_body(t))),
    "default-of-a-function": _default,
}


# What is tried.


def _symlink(folder: Path) -> Entries:
    (folder / "data.bin").rename(folder / "real.bin")
    (folder / "data.bin").symlink_to("real.bin")
    return GOOD


def _symlinked_folder(folder: Path) -> Entries:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "data.bin").write_bytes(bytes(64))
    (folder / "sub").symlink_to(outside)
    return {**GOOD, "location": "sub/data.bin"}


def _hard_link(folder: Path) -> Entries:
    (folder.parent / "secret").hardlink_to(folder / "data.bin")
    return GOOD


def _pipe(folder: Path) -> Entries:
    os.mkfifo(folder / "pipe")
    return {**GOOD, "location": "pipe"}


def _directory(folder: Path) -> Entries:
    (folder / "sub").mkdir()
    return {**GOOD, "location": "sub"}


def _short(folder: Path) -> Entries:
    (folder / "data.bin").write_bytes(bytes(23))
    return GOOD


def _outside(folder: Path) -> Entries:
    (folder.parent / "data.bin").write_bytes(bytes(64))
    return {**GOOD, "location": "../data.bin"}


def _given(**changes: str) -> Callable[[Path], Entries]:
    return lambda folder: {**GOOD, **changes}


ATTACKS: dict[str, Callable[[Path], Entries]] = {
    "absolute": lambda folder: {**GOOD, "location": str(folder / "data.bin")},
    "upwards": _outside,
    "upwards-and-back": lambda folder: {**GOOD, "location": f"../{folder.name}/data.bin"},
    "upwards-inside": _given(location="sub/../data.bin"),
    "symlink": _symlink,
    "symlinked-folder": _symlinked_folder,
    "hard-link": _hard_link,
    "nul": _given(location="data.bin\0.txt"),
    "newline": _given(location="data.bin\n"),
    "backslash": _given(location="sub\\data.bin"),
    "no-location": _given(location=""),
    "only-a-dot": _given(location="."),
    "trailing-slash": _given(location="data.bin/"),
    "double-slash": _given(location="sub//data.bin"),
    "negative-offset": _given(offset="-8"),
    "negative-length": _given(length="-16"),
    "offset-overflow": _given(offset=str(2**63)),
    "offset-wraps": _given(offset=str(2**64 + 8)),
    "offset-beyond-the-end": _given(offset="64"),
    "length-overflow": _given(length=str(2**64 + 16)),
    "length-too-large": _given(length="24"),
    "length-too-small": _given(length="15"),
    "offset-with-a-space": _given(offset=" 8"),
    "offset-with-an-underscore": _given(offset="1_0"),
    "offset-in-other-digits": _given(offset="\u0668"),
    "offset-of-many-digits": _given(offset="0" * 5000),
    "short-file": _short,
    "pipe": _pipe,
    "directory": _directory,
    "missing": _given(location="missing.bin"),
    "missing-folder": _given(location="none/data.bin"),
    "through-a-file": _given(location="data.bin/data.bin"),
    "name-too-long": _given(location="n" * 300),
    "path-too-long": _given(location="a/" * 40 + "data.bin"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "model"
    inside.mkdir()
    (inside / "data.bin").write_bytes(np.arange(1, 5, dtype=np.int64).tobytes())
    return inside


def write(folder: Path, proto: ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attack_is_refused_wherever_the_tensor_sits(attack: str, place: str, folder: Path) -> None:
    entries = ATTACKS[attack](folder)
    path = write(folder, PLACES[place](beside(entries)))
    with pytest.raises((ModelError, LimitError)):
        read(path)


@pytest.mark.parametrize("place", PLACES)
def test_honest_data_is_read_wherever_the_tensor_sits(place: str, folder: Path) -> None:
    read(write(folder, PLACES[place](beside(GOOD))))


@pytest.mark.parametrize("place", PLACES)
def test_a_device_is_refused_wherever_the_tensor_sits(place: str) -> None:
    entries = {**GOOD, "location": "null"}
    with pytest.raises(ModelError, match="not a regular file"):
        from_proto(PLACES[place](beside(entries)), directory=Path("/dev"))


@pytest.mark.parametrize("place", PLACES)
def test_a_model_that_is_no_file_has_no_data_beside_it(place: str) -> None:
    with pytest.raises(ModelError, match="not a file"):
        read(PLACES[place](beside(GOOD)).SerializeToString())


def tensor_of(path: Path) -> OnnxTensor:
    tensor = read(path).graph.initializers["t"]
    assert isinstance(tensor, OnnxTensor)
    return tensor


@pytest.mark.parametrize("location", ["data.bin", "./data.bin", "sub/data.bin"])
def test_values_are_those_at_the_offset(location: str, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/data.bin").write_bytes((folder / "data.bin").read_bytes())
    found = tensor_of(write(folder, _initializer(beside({**GOOD, "location": location}))))
    assert found.array().tolist() == NUMBERS.tolist()
    assert not found.array().flags.writeable


def test_without_a_length_the_tensor_says_how_much_is_read(folder: Path) -> None:
    found = tensor_of(write(folder, _initializer(beside({"location": "data.bin", "offset": "16"}))))
    assert found.array().tolist() == [3, 4]


def test_data_that_is_not_aligned_is_copied(folder: Path) -> None:
    (folder / "data.bin").write_bytes(b"\7" + NUMBERS.tobytes())
    found = tensor_of(write(folder, _initializer(beside({**GOOD, "offset": "1"}))))
    assert found.array().flags.aligned
    assert found.array().tolist() == NUMBERS.tolist()


def test_a_large_file_is_mapped_not_copied(folder: Path) -> None:
    count = MAPPED_BYTES // 4 * 2
    (folder / "data.bin").write_bytes(np.arange(count, dtype=np.int32).tobytes())
    tensor = TensorProto(name="t", dims=[count], data_type=TensorProto.INT32, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="data.bin")
    path = write(folder, _initializer(tensor))
    found = tensor_of(path).array()
    mapped = Path("/proc/self/maps").read_text()
    assert str(folder / "data.bin") in mapped
    assert found[-1] == count - 1


def test_data_of_all_tensors_together_has_a_limit(folder: Path) -> None:
    proto = _initializer(beside(GOOD))
    proto.graph.initializer.append(beside(GOOD, "u"))
    path = write(folder, proto)
    read(path, ModelLimits(external_bytes=32))
    with pytest.raises(LimitError, match="external_bytes"):
        read(path, ModelLimits(external_bytes=31))


def test_an_entry_cannot_be_given_twice(folder: Path) -> None:
    tensor = beside(GOOD)
    tensor.external_data.add(key="location", value="other.bin")
    with pytest.raises(ModelError, match="twice"):
        read(write(folder, _initializer(tensor)))


def test_strings_do_not_lie_beside_the_file(folder: Path) -> None:
    tensor = beside(GOOD)
    tensor.data_type = TensorProto.STRING
    with pytest.raises(ModelError, match="strings"):
        read(write(folder, _initializer(tensor)))
