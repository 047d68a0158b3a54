"""Small models for tests of the reader, and what they are made of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

F32 = TensorProto.FLOAT


def value(name: str, *shape: int | str, dtype: int = F32) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: list[NodeProto],
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    weights: list[TensorProto] | None = None,
    opset: int = 21,
) -> ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def identity(opset: int = 21) -> ModelProto:
    """The smallest model that says something."""
    return model([helper.make_node("Identity", ["x"], ["y"])], [value("x", 2)], [value("y", 2)], opset=opset)


def with_tensor(tensor: TensorProto) -> ModelProto:
    """A model that adds one tensor to its input."""
    return model([helper.make_node("Identity", [tensor.name], ["y"])], [], [value("y")], [tensor])


def branch(*nodes: NodeProto, output: str) -> GraphProto:
    return helper.make_graph(list(nodes), "branch", [], [value(output, 2)])


def conditional(then: GraphProto, other: GraphProto) -> NodeProto:
    return helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)


def array(*numbers: float, name: str = "w") -> TensorProto:
    data: npt.NDArray[np.float32] = np.array(numbers, np.float32)
    return numpy_helper.from_array(data, name)
