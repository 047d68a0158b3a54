"""Files become plain data; what is no model, or one beyond the limits, is refused by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from dovetail.base.errors import DovetailError, LimitError, ModelError, UnsupportedError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.frontends.onnx.file import from_proto, read
from dovetail.frontends.onnx.model import (
    AttributeReference,
    MapType,
    OnnxGraph,
    OnnxTensor,
    OptionalType,
    SequenceType,
    TensorType,
)
from dovetail.frontends.onnx.wire import check_parts
from tests.unit.frontends.onnx.models import array, branch, conditional, identity, model, value

CASES = sorted((Path(onnx.__file__).parent / "backend/test/data").glob("*/*/model.onnx"))


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def part(field: int, content: bytes) -> bytes:
    """A field of protobuf that has a length."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def test_every_model_that_the_onnx_package_brings_can_be_read() -> None:
    assert len(CASES) > 1700
    for path in CASES:
        read(path)


def test_a_model_is_plain_data(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gemm", ["x", "w", ""], ["y"], name="first", alpha=0.5, transB=1)]
    proto = model(nodes, [value("x", "n", 1)], [value("y", "n", 3)], [helper.make_tensor("w", 1, [3, 1], [1, 2, 3])])
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    for found in (read(path), read(str(path)), read(path.read_bytes()), from_proto(proto)):
        (node,) = found.graph.nodes
        assert (node.op, node.domain, node.name) == ("Gemm", "", "first")
        assert (node.inputs, node.outputs) == (("x", "w", ""), ("y",))
        assert node.attributes == {"alpha": 0.5, "transB": 1}
        assert found.graph.inputs[0].type == TensorType(1, ("n", 1))
        assert found.opset == 21
        assert found.graph.initializers["w"].array().tolist() == [[1], [2], [3]]


def attribute(**fields: object) -> object:
    """What becomes of an attribute of an operator that nobody knows."""
    node = NodeProto(op_type="Any", domain="own", output=["k"])
    node.attribute.add(name="a", **fields)
    proto = identity()
    proto.opset_import.add(domain="own", version=1)
    proto.graph.node.append(node)
    return from_proto(proto).graph.nodes[1].attributes["a"]


def test_attributes_are_plain_values() -> None:
    kinds = AttributeProto
    assert attribute(type=kinds.INT, i=-3) == -3
    assert attribute(type=kinds.INT) == 0
    assert attribute(type=kinds.FLOAT, f=0.5) == 0.5
    assert attribute(type=kinds.STRING, s=b"text") == "text"
    assert attribute(type=kinds.STRING, s=b"\xff\0") == b"\xff\0"
    assert attribute(type=kinds.INTS, ints=[1, 2]) == (1, 2)
    assert attribute(type=kinds.FLOATS, floats=[0.5]) == (0.5,)
    assert attribute(type=kinds.STRINGS, strings=[b"a", b"b"]) == ("a", "b")
    assert attribute(type=kinds.TYPE_PROTO, tp=helper.make_tensor_type_proto(1, [2, None])) == TensorType(1, (2, None))
    assert isinstance(attribute(type=kinds.TENSOR, t=array(1)), OnnxTensor)
    assert isinstance(attribute(type=kinds.GRAPH, g=GraphProto(name="g")), OnnxGraph)
    tensors = attribute(type=kinds.TENSORS, tensors=[array(1), array(2)])
    assert isinstance(tensors, tuple) and len(tensors) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"i": 3},
        {"type": AttributeProto.INT, "f": 0.5},
        {"type": AttributeProto.INTS, "ints": [1], "i": 2},
        {"type": AttributeProto.TENSOR},
        {"type": AttributeProto.GRAPH},
        {"type": AttributeProto.TYPE_PROTO, "tp": {}},
        {"type": AttributeProto.INT, "ref_attr_name": "b"},
        {"type": AttributeProto.INT, "ref_attr_name": "b", "i": 1},
    ],
)
def test_an_attribute_whose_type_and_value_disagree_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ModelError):
        attribute(**fields)


def test_an_attribute_of_a_function_may_stand_for_that_of_its_caller() -> None:
    node = NodeProto(op_type="LeakyRelu", input=["a"], output=["b"])
    node.attribute.add(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    proto = identity()
    proto.opset_import.add(domain="own", version=1)
    proto.functions.append(
        helper.make_function("own", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 21)], ["slope"])
    )
    function = from_proto(proto).functions["own", "F", ""]
    assert function.nodes[0].attributes["alpha"] == AttributeReference("slope", "float")
    assert function.attributes == ("slope",)


def test_types_lie_within_types() -> None:
    inner = helper.make_tensor_type_proto(1, [3])
    listed = helper.make_sequence_type_proto(helper.make_optional_type_proto(inner))
    proto = identity()
    proto.graph.value_info.add(name="s", type=listed)
    proto.graph.value_info.add(name="m", type=helper.make_map_type_proto(7, inner))
    values = from_proto(proto).graph.values
    assert values["s"].type == SequenceType(OptionalType(TensorType(1, (3,))))
    assert values["m"].type == MapType(7, TensorType(1, (3,)))


def test_types_that_lie_too_deep_are_refused() -> None:
    type_ = helper.make_tensor_type_proto(1, [3])
    for _ in range(DEFAULT_MODEL_LIMITS.depth + 1):
        type_ = helper.make_sequence_type_proto(type_)
    proto = identity()
    proto.graph.value_info.add(name="s", type=type_)
    with pytest.raises(LimitError, match="depth"):
        from_proto(proto)


def nested(depth: int) -> ModelProto:
    graph = branch(helper.make_node("Neg", ["x"], ["b"]), output="b")
    for at in range(depth):
        node = helper.make_node("If", ["c"], [f"b{at}"], then_branch=graph, else_branch=graph)
        graph = branch(node, output=f"b{at}")
    node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
    return model([node], [value("c", dtype=TensorProto.BOOL), value("x", 2)], [value("y", 2)])


def test_graphs_may_lie_some_deep() -> None:
    from_proto(nested(8))


def test_graphs_that_lie_too_deep_are_refused() -> None:
    graph = GraphProto(name="innermost")
    for _ in range(DEFAULT_MODEL_LIMITS.depth + 1):
        node = NodeProto(op_type="If", input=["c"], output=["d"])
        node.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g.CopyFrom(graph)
        graph = GraphProto(name="outer", node=[node])
    with pytest.raises(LimitError, match="depth"):
        from_proto(ModelProto(ir_version=8, graph=graph, opset_import=[helper.make_opsetid("", 17)]))


@pytest.mark.parametrize("depth", [30, 40, 5000])
def test_a_file_that_nests_without_end_is_refused(depth: int) -> None:
    content = b""
    for _ in range(depth):
        content = part(1, part(5, part(6, content)))
    with pytest.raises((ModelError, LimitError)):
        read(part(7, content))


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 20, b"not a model", b"\x3a\x05\x00", b"\x3b\x3c", part(7, b"")[:1], part(3, b"name")]
)
def test_what_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(ModelError):
        read(content)


@pytest.mark.parametrize("cut", range(0, 100, 7))
def test_a_cut_file_is_refused(cut: int) -> None:
    whole = nested(2).SerializeToString()
    with pytest.raises(DovetailError):
        read(whole[: len(whole) * cut // 100])


def test_a_small_file_cannot_ask_for_many_objects() -> None:
    content = part(7, part(1, b"") * 3000)
    check_parts(content, 3001, "it")
    with pytest.raises(LimitError, match="messages"):
        read(content, ModelLimits(messages=3000))


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: None, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_refused_without_waiting(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    make(path)
    with pytest.raises(ModelError):
        read(path)


@pytest.mark.parametrize("name", ["a\0b", "n" * 5000, "x\n\x1b[31m"])
def test_names_of_files_that_cannot_be_are_refused(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(name)
    assert str(caught.value).replace("\n", "").isprintable()


LIMITED: dict[str, tuple[int, Callable[[], ModelProto]]] = {
    "file_bytes": (10, identity),
    "messages": (5, identity),
    "nodes": (3, lambda: nested(2)),
    "node_values": (
        1,
        lambda: model([helper.make_node("Add", ["x", "x"], ["y"])], [value("x", 2)], [value("y", 2)]),
    ),
    "attributes": (1, lambda: nested(0)),
    "depth": (1, lambda: nested(2)),
    "rank": (1, lambda: model([helper.make_node("Neg", ["x"], ["y"])], [value("x", 2, 2)], [value("y", 2, 2)])),
    "extent": (1, identity),
    "name_bytes": (3, identity),
    "list_length": (
        1,
        lambda: model(
            [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])], [value("x", 2, 2)], [value("y", 2, 2)]
        ),
    ),
    "text_bytes": (
        2,
        lambda: model([helper.make_node("Constant", [], ["y"], value_string=b"abc")], [], [value("y", dtype=8)]),
    ),
}


@pytest.mark.parametrize("limit", LIMITED)
def test_each_limit_is_kept(limit: str) -> None:
    amount, make = LIMITED[limit]
    content = make().SerializeToString()
    read(content)
    with pytest.raises(LimitError):
        read(content, ModelLimits(**{limit: amount}))


def test_names_are_never_shown_raw() -> None:
    proto = model([helper.make_node("Neg", ["a\nb\x1b[2J\u202e"], ["y"])], [], [value("y", 2)])
    with pytest.raises(ModelError) as caught:
        from_proto(proto)
    assert "a\\nb\\x1b[2J\\u202e" in str(caught.value)
    assert all(line.isprintable() for line in str(caught.value).splitlines())


def test_names_that_are_no_text_are_refused() -> None:
    content = identity().SerializeToString().replace(b"Identity", b"Ident\xff\xfey")
    with pytest.raises(ModelError, match="UTF-8"):
        read(content)


def test_the_newer_format_than_is_known_is_refused() -> None:
    proto = identity()
    proto.ir_version = 99
    with pytest.raises(UnsupportedError, match="99"):
        from_proto(proto)


def test_a_conditional_is_read_with_its_branches() -> None:
    then, other = (branch(helper.make_node(op, ["x"], ["b"]), output="b") for op in ("Neg", "Abs"))
    inputs = [value("c", dtype=TensorProto.BOOL), value("x", 2)]
    (node,) = from_proto(model([conditional(then, other)], inputs, [value("y", 2)])).graph.nodes
    graph = node.attributes["then_branch"]
    assert isinstance(graph, OnnxGraph) and graph.nodes[0].op == "Neg"
