"""Every message that a wrong model file can give, word for word.

``model/<case>.txt`` is the message of the case of that name. Run with ``--update-golden`` to rewrite them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from dovetail.base.errors import DovetailError
from dovetail.base.limits import ModelLimits
from dovetail.frontends.onnx.file import from_proto, read

FOLDER = Path(__file__).parent / "model"
Make = Callable[[], ModelProto]


def value(name: str, *shape: int | str) -> TensorProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def of(*nodes: NodeProto, opset: int = 21, weights: tuple[TensorProto, ...] = ()) -> ModelProto:
    """A model of x to y."""
    graph = helper.make_graph(list(nodes), "g", [value("x", 2, 3)], [value("y", 2, 3)], list(weights))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def node(op: str, inputs: str = "x", outputs: str = "y", **attributes: object) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def adding(**fields: object) -> ModelProto:
    return of(node("Add", "x w"), weights=(TensorProto(name="w", **fields),))


def beside(**entries: str) -> ModelProto:
    proto = adding(data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, text in {"location": "w.bin", **entries}.items():
        proto.graph.initializer[0].external_data.add(key=key, value=text)
    return proto


def attribute(**fields: object) -> ModelProto:
    holder = node("Any", domain="own")
    holder.attribute.add(name="a", **fields)
    return of(holder)


def calling(*functions: tuple[str, list[NodeProto]], attributes: tuple[str, ...] = ()) -> ModelProto:
    proto = of(node("F", domain="own"))
    for name, nodes in functions:
        made = helper.make_function("own", name, ["x"], ["y"], nodes, proto.opset_import, attributes)
        proto.functions.append(made)
    return proto


def changed(**fields: object) -> ModelProto:
    proto = of(node("Neg"))
    for name, content in fields.items():
        setattr(proto, name, content)
    return proto


def twice_imported() -> ModelProto:
    proto = of(node("Neg"))
    proto.opset_import.add(domain="ai.onnx", version=20)
    return proto


def without(field: str) -> ModelProto:
    proto = of(node("Neg"))
    proto.ClearField(field)
    return proto


def sparse(indices: list[int], dims: list[int]) -> ModelProto:
    proto = of(node("Add", "x s"))
    values = numpy_helper.from_array(np.ones(2, np.float32), "s")
    at = numpy_helper.from_array(np.array(indices, np.int64), "i")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, at, dims))
    return proto


def branching(then: GraphProto) -> ModelProto:
    other = helper.make_graph([node("Neg", "x", "o")], "other", [], [value("o")])
    return of(node("If", "x", "y", then_branch=then, else_branch=other))


def doubled() -> ModelProto:
    twice = node("Concat", "x x", axis=0)
    twice.attribute.add(name="axis", type=AttributeProto.INT, i=1)
    return of(twice)


CASES: dict[str, Make] = {
    "attribute-given-twice": doubled,
    "attribute-missing": lambda: of(node("Concat", "x x")),
    "attribute-of-another-kind": lambda: of(node("Concat", "x x", axis=0.5)),
    "attribute-that-is-not-there": lambda: of(node("Concat", "x x", axi=0)),
    "attribute-that-stands-for-none": lambda: attribute(type=AttributeProto.INT, ref_attr_name="b"),
    "attribute-with-a-value-of-another-type": lambda: attribute(type=AttributeProto.INT, f=0.5),
    "attribute-without-a-type": lambda: attribute(i=1),
    "attribute-without-a-value": lambda: attribute(type=AttributeProto.TENSOR),
    "body-that-does-not-fit": lambda: branching(helper.make_graph([], "then", [value("i")], [value("i")])),
    "call-without-an-attribute": lambda: calling(("F", [node("Neg")]), attributes=("k",)),
    "cycle": lambda: of(node("Add", "x b", "a"), node("Neg", "a", "b"), node("Neg", "b", "y")),
    "domain-not-imported": lambda: of(node("Any", domain="other")),
    "element-type-unknown": lambda: adding(data_type=99, dims=[3]),
    "external-absolute": lambda: beside(location="/etc/passwd"),
    "external-device": lambda: beside(location="null", length="12"),
    "external-missing": lambda: beside(location="no such file"),
    "external-negative-offset": lambda: beside(offset="-4"),
    "external-upwards": lambda: beside(location="../w.bin"),
    "external-wrong-length": lambda: beside(length="8"),
    "format-too-new": lambda: changed(ir_version=99),
    "function-calls-itself": lambda: calling(("F", [node("G", domain="own")]), ("G", [node("F", domain="own")])),
    "function-twice": lambda: calling(("F", [node("Neg")]), ("F", [node("Abs")])),
    "graph-missing": lambda: without("graph"),
    "initializer-twice": lambda: of(node("Neg"), weights=(TensorProto(name="w", data_type=1, dims=[0]),) * 2),
    "input-left-out": lambda: of(helper.make_node("Add", ["x", ""], ["y"])),
    "name-made-twice": lambda: of(node("Neg"), node("Abs")),
    "name-with-control-characters": lambda: of(helper.make_node("Neg", ["a\nb\x1b[2J"], ["y"])),
    "opset-missing": lambda: without("opset_import"),
    "opset-too-new": lambda: of(node("Neg"), opset=27),
    "operator-of-an-old-opset": lambda: of(node("Dropout"), opset=6),
    "operator-removed": lambda: of(node("Upsample", "x x"), opset=11),
    "operator-unknown": lambda: of(node("Convolve")),
    "output-made-by-nothing": lambda: of(node("Neg", "x", "z")),
    "sparse-index-outside": lambda: sparse([1, 6], [2, 3]),
    "sparse-indices-descend": lambda: sparse([4, 1], [2, 3]),
    "tensor-dimension-negative": lambda: adding(data_type=1, dims=[-3]),
    "tensor-entry-out-of-range": lambda: adding(data_type=TensorProto.UINT8, dims=[1], int32_data=[256]),
    "tensor-entries-too-few": lambda: adding(data_type=1, dims=[3], float_data=[1, 2]),
    "tensor-raw-too-short": lambda: adding(data_type=1, dims=[3], raw_data=bytes(11)),
    "tensor-too-large": lambda: adding(data_type=1, dims=[2**31 - 1, 8]),
    "too-few-inputs": lambda: of(node("Add", "x")),
    "too-many-outputs": lambda: of(node("Neg", "x", "y z")),
    "two-versions-of-a-domain": twice_imported,
    "value-made-by-nothing": lambda: of(node("Neg", "z")),
}

LIMITS = {
    "limit-of-nodes": ModelLimits(nodes=0),
    "limit-of-the-file": ModelLimits(file_bytes=10),
    "limit-of-parts": ModelLimits(messages=4),
    "limit-of-names": ModelLimits(name_bytes=2),
}

BYTES = {"not-a-model": b"hello", "cut-off": of(node("Neg")).SerializeToString()[:-3]}


def same(case: str, error: DovetailError, update: bool) -> None:
    path = FOLDER / f"{case}.txt"
    found = f"{type(error).__name__}: {error}\n"
    if update:
        path.write_text(found)
    assert found == path.read_text()


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_model_is_refused_with_this_message(case: str, update_golden: bool) -> None:
    with pytest.raises(DovetailError) as caught:
        from_proto(CASES[case](), directory=Path("/dev"))
    same(case, caught.value, update_golden)


@pytest.mark.parametrize("case", LIMITS)
def test_a_model_beyond_a_limit_is_refused_with_this_message(case: str, update_golden: bool) -> None:
    with pytest.raises(DovetailError) as caught:
        read(of(node("Neg")).SerializeToString(), LIMITS[case])
    same(case, caught.value, update_golden)


@pytest.mark.parametrize("case", BYTES)
def test_a_damaged_file_is_refused_with_this_message(case: str, update_golden: bool) -> None:
    with pytest.raises(DovetailError) as caught:
        read(BYTES[case])
    same(case, caught.value, update_golden)


def test_every_golden_message_has_its_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {*CASES, *LIMITS, *BYTES}
