"""OpenVINO on the CPU: float32, latency, inputs and outputs shared without a copy."""

from collections.abc import Callable

import numpy as np
import openvino as ov
import openvino.opset13 as ops

from benchmarks.problems import Floats, Operands, Problem, Table, output_shape
from benchmarks.shapes import Conv, Gemm
from benchmarks.systems import Candidate

VERSION = f"openvino {ov.__version__.split('-')[0]}"
EXACT = False


def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
    """MatMul with its transposes; with a constant A also ``C' = B' A'``; Convolution and GroupConvolution."""
    shape = problem.shape
    if isinstance(shape, Conv):
        x = _parameter(inputs.first)
        return _candidates("Convolution", _convolution(shape, x, inputs.second), {x: inputs.first}, shape, threads)
    b = _parameter(inputs.second)
    if problem.table is Table.RUN_TIME:
        a = _parameter(inputs.first)
        product = ops.matmul(a, b, shape.trans_a, shape.trans_b)
        return _candidates("A B", product, {a: inputs.first, b: inputs.second}, shape, threads)
    constant = ops.constant(inputs.first, shared_memory=False)
    product = ops.matmul(constant, b, shape.trans_a, shape.trans_b)
    plain = _candidates("A B", product, {b: inputs.second}, shape, threads)
    return (*plain, *_swapped(shape, inputs, threads))


def _swapped(shape: Gemm, inputs: Operands, threads: int) -> list[Candidate]:
    """``C' = B' A'``: the constant on the right, where a fully connected layer has it."""
    rows = np.ascontiguousarray(inputs.second if shape.trans_b else inputs.second.T)
    b, weight = _parameter(rows), ops.constant(inputs.first, shared_memory=False)
    product = ops.matmul(b, weight, False, not shape.trans_a)
    out = Gemm(shape.n, shape.m, shape.k)
    candidates = _candidates("B' A'", product, {b: rows}, out, threads)
    return [Candidate(c.name, c.run, _transposed(c)) for c in candidates]


def _transposed(candidate: Candidate) -> Callable[[], Floats]:
    return lambda: candidate.result().T


def _convolution(shape: Conv, x: ov.Node, weights: Floats) -> ov.Node:
    begin = list(shape.pad)
    end = begin if shape.symmetric else [max(0, extent) for extent in shape.pad_end]
    stride, dilation = list(shape.stride), list(shape.dilation)
    if shape.groups == 1:
        return ops.convolution(x, ops.constant(weights), stride, begin, end, dilation)
    grouped = weights.reshape(shape.groups, shape.k // shape.groups, *shape.w_shape[1:])
    return ops.group_convolution(x, ops.constant(grouped), stride, begin, end, dilation)


def _candidates(
    name: str, node: ov.Node, feeds: dict[ov.Node, Floats], shape: Gemm | Conv, threads: int
) -> tuple[Candidate, ...]:
    """The compiled model run by ``infer`` and by ``start_async`` + ``wait``, whose overheads differ."""
    compiled = ov.Core().compile_model(ov.Model([node], list(feeds)), "CPU", hints(threads))
    request = compiled.create_infer_request()
    y = np.full(output_shape(shape), np.nan, np.float32)
    for position, array in enumerate(feeds.values()):
        request.set_input_tensor(position, ov.Tensor(array, shared_memory=True))
    request.set_output_tensor(0, ov.Tensor(y, shared_memory=True))
    held = compiled, feeds, y  # shared with the request: they live as long as ``run``

    def start_and_wait() -> None:
        request.start_async()
        request.wait()

    return (
        Candidate(name, lambda: request.infer(share_inputs=True, share_outputs=True), lambda: held[2]),
        Candidate(f"{name}, asynchronous", start_and_wait, lambda: held[2]),
    )


def hints(threads: int) -> dict[str, str | int]:
    """What every model is compiled with."""
    return {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}


def _parameter(array: Floats) -> ov.Node:
    return ops.parameter(list(array.shape), np.float32)
