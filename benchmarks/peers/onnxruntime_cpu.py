"""ONNX Runtime on the CPU: one-node models, inputs and outputs bound without a copy."""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from benchmarks.problems import Floats, Operands, Problem, Table, output_shape
from benchmarks.shapes import Conv, Gemm
from benchmarks.systems import Candidate

VERSION = f"onnxruntime {ort.__version__}"
EXACT = False
OPSET, IR_VERSION = 20, 10
ERRORS_ONLY = 3


def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
    """MatMul, or Gemm where an operand is transposed; with a constant A also ``C' = B' A'``; Conv."""
    shape = problem.shape
    if isinstance(shape, Conv):
        feeds, constants = {"x": inputs.first}, {"w": inputs.second}
        return (_candidate("Conv", _conv_node(shape), feeds, constants, output_shape(shape), threads),)
    if problem.table is Table.RUN_TIME:
        feeds = {"a": inputs.first, "b": inputs.second}
        return (_candidate("A B", _gemm_node(shape), feeds, {}, output_shape(shape), threads),)
    return _products_with_constant(shape, inputs, threads)


def _products_with_constant(shape: Gemm, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
    a = inputs.first.T if shape.trans_a else inputs.first
    b = inputs.second.T if shape.trans_b else inputs.second
    feeds, constants = {"b": inputs.second}, {"a": inputs.first}
    plain = _candidate("A B", _gemm_node(shape), feeds, constants, (shape.m, shape.n), threads)
    # The right operand is the one ONNX Runtime packs.
    node = helper.make_node("MatMul", ["b", "a"], ["y"])
    feeds, constants = {"b": np.ascontiguousarray(b.T)}, {"a": np.ascontiguousarray(a.T)}
    swapped = _candidate("B' A'", node, feeds, constants, (shape.n, shape.m), threads)
    return plain, Candidate(swapped.name, swapped.run, lambda: swapped.result().T)


def _gemm_node(shape: Gemm) -> onnx.NodeProto:
    if not shape.trans_a and not shape.trans_b:
        return helper.make_node("MatMul", ["a", "b"], ["y"])
    return helper.make_node("Gemm", ["a", "b"], ["y"], transA=int(shape.trans_a), transB=int(shape.trans_b))


def _conv_node(shape: Conv) -> onnx.NodeProto:
    pads = list(shape.pad) * 2 if shape.symmetric else [*shape.pad, *(max(0, end) for end in shape.pad_end)]
    return helper.make_node(
        "Conv", ["x", "w"], ["y"], strides=shape.stride, pads=pads, dilations=shape.dilation, group=shape.groups
    )


def _candidate(
    name: str,
    node: onnx.NodeProto,
    feeds: dict[str, Floats],
    constants: dict[str, Floats],
    out: tuple[int, ...],
    threads: int,
) -> Candidate:
    session = ort.InferenceSession(_model(node, feeds, constants, out), options(threads), ["CPUExecutionProvider"])
    y = np.full(out, np.nan, np.float32)
    binding = session.io_binding()
    for key, array in feeds.items():
        binding.bind_input(key, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, out, y.ctypes.data)
    held = feeds, y  # bound by address: they live as long as ``run``
    return Candidate(name, lambda: session.run_with_iobinding(binding), lambda: held[1])


def options(threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    return options


def _model(node: onnx.NodeProto, feeds: dict[str, Floats], constants: dict[str, Floats], out: tuple[int, ...]) -> bytes:
    inputs = [helper.make_tensor_value_info(key, TensorProto.FLOAT, array.shape) for key, array in feeds.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    initializers = [numpy_helper.from_array(array, key) for key, array in constants.items()]
    graph = helper.make_graph([node], "problem", inputs, [output], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    data: bytes = model.SerializeToString()
    return data
