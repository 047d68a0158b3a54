"""ResNet-50 as an ONNX file, with random weights: convolutions, batch norms and all, as an exporter writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

STAGES = ((64, 256, 3, 1), (128, 512, 4, 2), (256, 1024, 6, 2), (512, 2048, 3, 2))
"""Channels inside a block, channels out of it, blocks, stride of the first."""
OPSET = 17
CLASSES = 1000


def write_resnet50(file: Path, seed: int = 0) -> None:
    """The model for one image of 224 x 224 in ``file``."""
    net = _Net(np.random.default_rng(seed))
    x = net.convolution("image", 3, 64, 7, 2)
    x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for inside, outside, blocks, stride in STAGES:
        for block in range(blocks):
            x = net.block(x, channels, inside, outside, stride if block == 0 else 1)
            channels = outside
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x])])
    weights = net.constant(net.normal((CLASSES, channels), channels))
    net.node("Gemm", [x, weights, net.constant(np.zeros(CLASSES, np.float32))], "scores", transB=1)
    onnx.save(net.model(), file)


class _Net:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def block(self, x: str, channels: int, inside: int, outside: int, stride: int) -> str:
        """Three convolutions beside a way around them."""
        y = self.convolution(x, channels, inside, 1)
        y = self.convolution(y, inside, inside, 3, stride)
        y = self.convolution(y, inside, outside, 1, relu=False)
        around = x if channels == outside else self.convolution(x, channels, outside, 1, stride, relu=False)
        return self.node("Relu", [self.node("Add", [y, around])])

    def convolution(self, x: str, channels: int, out: int, taps: int, stride: int = 1, relu: bool = True) -> str:
        """Convolution, batch norm, and ReLU if wanted."""
        weights = self.constant(self.normal((out, channels, taps, taps), channels * taps * taps))
        pads, shape, strides = [taps // 2] * 4, [taps, taps], [stride, stride]
        y = self.node("Conv", [x, weights], kernel_shape=shape, pads=pads, strides=strides)
        statistics = [
            self.rng.uniform(low, high, out) for low, high in ((0.3, 0.6), (-0.1, 0.1), (-0.1, 0.1), (0.5, 2))
        ]
        norms = [self.constant(array.astype(np.float32)) for array in statistics]
        y = self.node("BatchNormalization", [y, *norms])
        return self.node("Relu", [y]) if relu else y

    def normal(self, shape: tuple[int, ...], inputs: int) -> npt.NDArray[np.float32]:
        """Weights that keep the size of what passes through them."""
        weights: npt.NDArray[np.float32] = (self.rng.standard_normal(shape) * np.sqrt(2 / inputs)).astype(np.float32)
        return weights

    def constant(self, array: npt.NDArray[np.float32]) -> str:
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, inputs: list[str], output: str = "", **attributes: int | list[int]) -> str:
        output = output or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def model(self) -> onnx.ModelProto:
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])
        scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, CLASSES])
        graph = helper.make_graph(self.nodes, "resnet50", [image], [scores], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
