"""Recurrent models of ONNX: single nodes, bodies of Scan and Loop, and what PyTorch's exporter makes of a module."""

from __future__ import annotations

import io
import warnings

import numpy as np
import numpy.typing as npt
import onnx
import onnx.parser
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

Array = npt.NDArray[np.generic]
STEPS, BATCH, INPUTS, HIDDEN = 7, 2, 6, 8
HEAD = '<ir_version: 8, opset_import: ["": 17]>'
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def node(
    op: str,
    direction: str = "forward",
    lengths: bool = False,
    peepholes: bool = False,
    states: bool = False,
    **attributes: int | float | list[str],
) -> onnx.ModelProto:
    """One node, with all of its outputs."""
    ways, gates = 2 if direction == "bidirectional" else 1, GATES[op]
    weights = {
        "w": some(ways, gates * HIDDEN, INPUTS),
        "r": some(ways, gates * HIDDEN, HIDDEN),
        "b": some(ways, 2 * gates * HIDDEN),
    }
    given = ["x", "w", "r", "b", "", "", "", ""]
    if lengths:
        weights["lengths"] = np.array([STEPS, STEPS - 3], np.int32)
        given[4] = "lengths"
    if states:
        weights["h0"] = some(ways, BATCH, HIDDEN)
        given[5] = "h0"
    if peepholes:
        weights["p"] = some(ways, 3 * HIDDEN)
        given[7] = "p"
    names = ["y", "h", "c"] if op == "LSTM" else ["y", "h"]
    while not given[-1]:
        given.pop()
    made = helper.make_node(op, given, names, hidden_size=HIDDEN, direction=direction, **attributes)
    shapes = [[STEPS, ways, BATCH, HIDDEN], *[[ways, BATCH, HIDDEN]] * (len(names) - 1)]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, shapes, strict=True)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, BATCH, INPUTS])
    graph = helper.make_graph([made], "layer", [x], outputs, constants(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SCAN = """layer (float[7, 2, 6] x) => (float[2, 8] last, float[7, 2, 8] y) {
  last, y = Scan <num_scan_inputs: int = 1, body: graph = cell (float[2, 8] h, float[2, 6] xt)
      => (float[2, 8] new, float[2, 8] out) {
    xw = MatMul(xt, w)
    hr = MatMul(h, r)
    both = Add(xw, hr)
    new = Tanh(both)
    out = Identity(new)
  }> (h0, x)
}"""
LOOP = """layer (float[7, 2, 6] x) => (float[2, 8] last, float[7, 2, 8] y) {
  count = Constant <value: tensor = int64 {7}> ()
  go = Constant <value: tensor = bool {1}> ()
  last, y = Loop <body: graph = cell (int64 t, bool on, float[2, 8] h)
      => (bool again, float[2, 8] new, float[2, 8] out) {
    again = Identity(on)
    xt = Gather <axis: int = 0> (x, t)
    xw = MatMul(xt, w)
    hr = MatMul(h, r)
    both = Add(xw, hr)
    new = Tanh(both)
    out = Identity(new)
  }> (count, go, h0)
}"""


def body(text: str) -> onnx.ModelProto:
    """SCAN or LOOP with weights."""
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    weights = {"w": some(INPUTS, HIDDEN), "r": some(HIDDEN, HIDDEN), "h0": some(BATCH, HIDDEN)}
    model.graph.initializer.extend(constants(weights))
    return model


def exported(module: nn.Module, *tensors: torch.Tensor) -> onnx.ModelProto:
    """By tracing: loops are flattened."""
    out = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, tensors, out, opset_version=17, dynamo=False)
    return onnx.load_from_string(out.getvalue())


def constants(arrays: dict[str, Array]) -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def some(*shape: int) -> Array:
    """Numbers with which a state lives; the same for the same shape."""
    return np.random.default_rng(list(shape)).normal(0, 0.4, shape).astype(np.float32)
