"""Models of opsets before 7 are said in opset 7, or refused."""

from __future__ import annotations

import pytest
from onnx import NodeProto, helper

from dovetail.base.errors import UnsupportedError
from dovetail.frontends.onnx.file import from_proto
from dovetail.frontends.onnx.model import OnnxNode
from tests.unit.frontends.onnx.models import model, value


def upgraded(node: NodeProto, second: tuple[int, ...] = (3,)) -> list[OnnxNode]:
    inputs = [value("x", 2, 3, 4), value("w", *second)]
    found = from_proto(model([node], inputs, [value("y", 2, 3, 4)], opset=6))
    assert found.opset == 7
    return list(found.graph.nodes)


def said(nodes: list[OnnxNode]) -> list[tuple[str, tuple[str, ...], dict[str, object]]]:
    return [(node.op, node.inputs, dict(node.attributes)) for node in nodes]


def test_broadcasting_from_a_dimension_becomes_an_operand_with_more_dimensions() -> None:
    found = said(upgraded(helper.make_node("Add", ["x", "w"], ["y"], broadcast=1, axis=1)))
    assert found == [("Unsqueeze", ("w",), {"axes": (1,)}), ("Add", ("x", "y/spread"), {})]


def test_broadcasting_along_the_last_dimensions_needs_nothing() -> None:
    assert said(upgraded(helper.make_node("Mul", ["x", "w"], ["y"], broadcast=1), (4,))) == [("Mul", ("x", "w"), {})]
    last = helper.make_node("Mul", ["x", "w"], ["y"], broadcast=1, axis=2)
    assert said(upgraded(last, (4,))) == [("Mul", ("x", "w"), {})]


def test_slopes_lie_along_the_second_dimension() -> None:
    found = said(upgraded(helper.make_node("PRelu", ["x", "w"], ["y"])))
    assert found == [("Unsqueeze", ("w",), {"axes": (1,)}), ("PRelu", ("x", "y/spread"), {})]


def test_a_dimension_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="dimension 7"):
        upgraded(helper.make_node("Add", ["x", "w"], ["y"], broadcast=1, axis=7))


def test_dropout_for_training_is_refused() -> None:
    inputs, outputs = [value("x", 2)], [value("y", 2)]
    test = helper.make_node("Dropout", ["x"], ["y"], is_test=1)
    assert not from_proto(model([test], inputs, outputs, opset=6)).graph.nodes[0].attributes
    with pytest.raises(UnsupportedError, match="training"):
        from_proto(model([helper.make_node("Dropout", ["x"], ["y"])], inputs, outputs, opset=6))


def test_an_operator_that_meant_something_else_is_refused() -> None:
    old = helper.make_node("Reshape", ["x"], ["y"], shape=[2])
    with pytest.raises(UnsupportedError, match="another meaning"):
        from_proto(model([old], [value("x", 2)], [value("y", 2)], opset=1))
