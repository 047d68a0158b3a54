"""PyTorch on the CPU: MKL for products, oneDNN for convolutions; constant weights packed ahead where it can."""

from collections.abc import Callable

import torch

from benchmarks.problems import Floats, Operands, Problem, Table
from benchmarks.shapes import Conv, Gemm
from benchmarks.systems import Candidate, Unsupported

VERSION = f"torch {torch.__version__}"
EXACT = False

CONVOLUTIONS = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}
CHANNELS_LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
    """Every layout and packed form PyTorch has for this problem."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    if isinstance(problem.shape, Conv):
        return _convolutions(problem.shape, inputs)
    return _products(problem.shape, problem.table, inputs)


def _products(shape: Gemm, table: Table, inputs: Operands) -> tuple[Candidate, ...]:
    a, b = torch.from_numpy(inputs.first), torch.from_numpy(inputs.second)
    a, b = (a.t() if shape.trans_a else a), (b.t() if shape.trans_b else b)
    c = torch.full((shape.m, shape.n), float("nan"))
    plain = Candidate("mm", lambda: torch.mm(a, b, out=c), lambda: _array(c))
    if table is Table.RUN_TIME:
        return (plain,)
    return (plain, *_packed_products(a.contiguous(), b.t().contiguous()))


def _packed_products(weight: torch.Tensor, x: torch.Tensor) -> list[Candidate]:
    """``C' = B' A'`` as a linear layer with the weight A: plain, packed by MKL, packed by oneDNN."""
    rows = x.shape[0]
    candidates = [_Kept(lambda: torch.nn.functional.linear(x, weight)).transposed("linear")]
    if torch.backends.mkl.is_available():
        by_mkl, linear = torch.ops.mkl._mkl_reorder_linear_weight(weight, rows), torch.ops.mkl._mkl_linear
        candidates.append(_Kept(lambda: linear(x, by_mkl, weight, None, rows)).transposed("linear packed by MKL"))
    if torch.backends.mkldnn.is_available():
        by_onednn = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        pointwise = torch.ops.mkldnn._linear_pointwise
        packed = _Kept(lambda: pointwise(x, by_onednn, None, "none", [], ""))
        candidates.append(packed.transposed("linear packed by oneDNN"))
    return candidates


def _convolutions(shape: Conv, inputs: Operands) -> tuple[Candidate, ...]:
    if not shape.symmetric:
        raise Unsupported("PyTorch pads both sides alike")
    x, w = torch.from_numpy(inputs.first), torch.from_numpy(inputs.second)
    layouts = {"NCHW": torch.contiguous_format}
    if len(shape.spatial) in CHANNELS_LAST:
        layouts["channels last"] = CHANNELS_LAST[len(shape.spatial)]
    candidates = []
    for name, layout in layouts.items():
        x_placed, w_placed = (t.contiguous(memory_format=layout) for t in (x, w))
        candidates.append(_Kept(_convolution(shape, x_placed, w_placed)).plain(name))
        if torch.backends.mkldnn.is_available() and len(shape.spatial) == 2:
            candidates.append(_Kept(_packed_convolution(shape, x_placed, w)).plain(f"{name}, packed by oneDNN"))
    return tuple(candidates)


def _convolution(shape: Conv, x: torch.Tensor, w: torch.Tensor) -> Callable[[], torch.Tensor]:
    call, groups = CONVOLUTIONS[len(shape.spatial)], shape.groups
    stride, pad, dilation = list(shape.stride), list(shape.pad), list(shape.dilation)
    return lambda: call(x, w, None, stride, pad, dilation, groups)


def _packed_convolution(shape: Conv, x: torch.Tensor, w: torch.Tensor) -> Callable[[], torch.Tensor]:
    """The form ``torch.compile`` gives to a convolution with frozen weights."""
    stride, pad, dilation, groups = list(shape.stride), list(shape.pad), list(shape.dilation), shape.groups
    packed = torch._C._nn.mkldnn_reorder_conv2d_weight(w.to_mkldnn(), pad, stride, dilation, groups, list(x.shape))
    call = torch.ops.mkldnn._convolution_pointwise
    return lambda: call(x, packed, None, pad, stride, dilation, groups, "none", [], "")


class _Kept:
    """Runs ``compute`` and keeps its last result, as a caller would."""

    def __init__(self, compute: Callable[[], torch.Tensor]) -> None:
        self._compute = compute
        self._last: torch.Tensor | None = None

    def run(self) -> None:
        self._last = self._compute()

    def result(self) -> Floats:
        assert self._last is not None
        return _array(self._last)

    def plain(self, name: str) -> Candidate:
        return Candidate(name, self.run, self.result)

    def transposed(self, name: str) -> Candidate:
        return Candidate(name, self.run, lambda: self.result().T)


def _array(tensor: torch.Tensor) -> Floats:
    array: Floats = tensor.contiguous().numpy()
    return array
