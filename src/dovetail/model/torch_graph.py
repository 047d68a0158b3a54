"""A graph run by PyTorch's own operators, one after the other: what PyTorch would take for a model that is a file.

Used to compare with, never to compute a result: ``dovetail bench model.onnx --against torch``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add, eq, ge, gt, le, lt, mul, ne, sub

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as nn

from dovetail.base.errors import UnsupportedError
from dovetail.frontends.torch.elements import torch_dtype
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Node
from dovetail.ir.graph.operator import find
from dovetail.ir.graph.verify import infer
from dovetail.ops.table import OPERATORS

Array = npt.NDArray[np.generic]
Settings = Mapping[str, object]
Run = Callable[..., object]


def as_torch(bound: BoundGraph) -> Callable[..., Sequence[Array]]:
    """A function over arrays that runs ``bound``; an UnsupportedError names what PyTorch is not told to do."""
    graph = bound.graph
    types = infer(graph, OPERATORS)
    kept = {name: torch.from_numpy(np.array(array)) for name, array in bound.data.items()}
    steps = [(node, _step(node, torch_dtype(types[node.results[0]].dtype))) for node in graph.nodes]
    names = [value.name for value in graph.inputs]

    def call(*arrays: Array) -> list[Array]:
        with torch.inference_mode():
            values = {
                **kept,
                **{n: torch.from_numpy(np.ascontiguousarray(a)) for n, a in zip(names, arrays, strict=True)},
            }
            for node, run in steps:
                made = run(*(values[name] for name in node.operands))
                several = made if isinstance(made, tuple | list) else (made,)
                values.update(zip(node.results, several, strict=True))
            return [values[name].contiguous().numpy() for name in graph.outputs]

    return call


def _step(node: Node, dtype: torch.dtype) -> Run:
    if node.op in PLAIN:
        return PLAIN[node.op]
    if node.op not in SET:
        raise UnsupportedError(node.op, "it is not among the operators that PyTorch is compared on")
    return SET[node.op]({**find(node, OPERATORS).settings(node), "result": dtype})


def _ints(settings: Settings, name: str) -> tuple[int, ...]:
    found = settings[name]
    return tuple(int(n) for n in found) if isinstance(found, tuple) else ()


def _int(settings: Settings, name: str) -> int:
    found = settings[name]
    assert isinstance(found, int)
    return found


def _padded(x: torch.Tensor, pads: tuple[int, ...], value: float = 0.0) -> torch.Tensor:
    """``pads`` are those before each axis, then those behind."""
    half = len(pads) // 2
    pairs = [n for axis in reversed(range(half)) for n in (pads[axis], pads[axis + half])]
    return nn.pad(x, pairs, value=value) if any(pads) else x


def _conv(s: Settings) -> Run:
    layers = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
    strides, dilations, pads = _ints(s, "strides"), _ints(s, "dilations"), _ints(s, "pads")

    def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
        half = len(pads) // 2
        even = pads[:half] == pads[half:]
        x = x if even else _padded(x, pads)
        return layers[x.ndim - 2](
            x, w, b, strides or 1, pads[:half] if even and pads else 0, dilations or 1, _int(s, "groups")
        )

    return run


def _pool(s: Settings, largest: bool) -> Run:
    kernel, strides, pads = _ints(s, "kernel"), _ints(s, "strides"), _ints(s, "pads")
    if largest:
        return lambda x: nn.max_pool2d(_padded(x, pads, float("-inf")), kernel, strides or 1)
    if any(pads) and not s["count_include_pad"]:
        raise UnsupportedError("average_pool", "PyTorch counts its border otherwise")
    return lambda x: nn.avg_pool2d(_padded(x, pads), kernel, strides or 1)


def _reduced(function: Callable[..., torch.Tensor]) -> Callable[[Settings], Run]:
    def of(s: Settings) -> Run:
        axes, keep = s["axes"], bool(s["keepdims"])
        return lambda x: function(x, tuple(range(x.ndim)) if axes is None else axes, keepdim=keep)

    return of


def _slice(s: Settings) -> Run:
    starts, ends, steps = _ints(s, "starts"), _ints(s, "ends"), _ints(s, "steps")

    def run(x: torch.Tensor) -> torch.Tensor:
        axes = _ints(s, "axes") or tuple(range(len(starts)))
        places = [slice(None)] * x.ndim
        for axis, start, end, step in zip(axes, starts, ends, steps or (1,) * len(starts), strict=True):
            places[axis] = slice(start, end, step)
        return x[tuple(places)]

    return run


def _gather(s: Settings) -> Run:
    def run(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        axis = _int(s, "axis") % x.ndim
        found = torch.index_select(x, axis, places.reshape(-1).long())
        return found.reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])

    return run


def _gemm(s: Settings) -> Run:
    def run(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
        a, b = a.T if s["transpose_a"] else a, b.T if s["transpose_b"] else b
        if c is None:
            return (a @ b) * float(str(s["alpha"]))
        return torch.addmm(c, a, b, beta=float(str(s["beta"])), alpha=float(str(s["alpha"])))

    return run


def _matmul(s: Settings) -> Run:
    return lambda a, b: (a.mT if s["transpose_a"] else a) @ (b.mT if s["transpose_b"] else b)


def _layer_norm(s: Settings) -> Run:
    return lambda x, w=None, b=None: nn.layer_norm(
        x, x.shape[_int(s, "axis") % x.ndim :], w, b, float(str(s["epsilon"]))
    )


def _number(s: Settings, name: str) -> float | None:
    return None if s[name] is None else float(str(s[name]))


PLAIN: Mapping[str, Run] = {
    **{op: getattr(torch, op) for op in ("abs", "neg", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sin", "cos")},
    **{op: getattr(torch, op) for op in ("tanh", "sigmoid", "erf", "relu", "floor", "ceil", "round", "pow")},
    "add": add,
    "sub": sub,
    "mul": mul,
    "equal": eq,
    "not_equal": ne,
    "less": lt,
    "less_equal": le,
    "greater": gt,
    "greater_equal": ge,
    "max": torch.maximum,
    "min": torch.minimum,
    "identity": lambda x: x,
    "silu": nn.silu,
    "not": torch.logical_not,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "div": lambda a, b: torch.div(a, b, rounding_mode=None if a.is_floating_point() else "trunc"),
    "power": torch.pow,
    "select": torch.where,
    "global_average_pool": lambda x: x.mean(tuple(range(2, x.ndim)), keepdim=True),
    "dense": nn.linear,
    "embedding": lambda table, rows: nn.embedding(rows.long(), table),
}
"""Operators without settings."""
SET: Mapping[str, Callable[[Settings], Run]] = {
    "conv": _conv,
    "max_pool": lambda s: _pool(s, True),
    "average_pool": lambda s: _pool(s, False),
    "gemm": _gemm,
    "matmul": _matmul,
    "layer_norm": _layer_norm,
    "softmax": lambda s: lambda x: torch.softmax(x, _int(s, "axis")),
    "batch_norm": lambda s: lambda x, w, b, m, v: nn.batch_norm(x, m, v, w, b, eps=float(str(s["epsilon"]))),
    "reduce_mean": _reduced(torch.mean),
    "reduce_sum": _reduced(torch.sum),
    "reduce_max": _reduced(torch.amax),
    "reduce_min": _reduced(torch.amin),
    "clip": lambda s: lambda x: torch.clamp(x, _number(s, "low"), _number(s, "high")),
    "gelu": lambda s: lambda x: nn.gelu(x, approximate=str(s["approximate"])),
    "cast": lambda s: lambda x: x.to(s["result"]),
    "transpose": lambda s: lambda x: x.permute(_ints(s, "perm") or tuple(reversed(range(x.ndim)))),
    "reshape": lambda s: lambda x: x.reshape(_ints(s, "shape")),
    "flatten": lambda s: lambda x: x.reshape(int(np.prod(x.shape[: _int(s, "axis")])), -1),
    "squeeze": lambda s: lambda x: x.squeeze(s["axes"]) if s["axes"] is not None else x.squeeze(),
    "unsqueeze": lambda s: lambda x: x[_places(x, _ints(s, "axes"))],
    "expand": lambda s: lambda x: torch.broadcast_to(x, _wide(x, _ints(s, "shape"))),
    "concat": lambda s: lambda *x: torch.cat(x, _int(s, "axis")),
    "split": lambda s: lambda x: torch.split(x, list(_ints(s, "sizes")), _int(s, "axis")),
    "slice": _slice,
    "gather": _gather,
    "pad": lambda s: lambda x: _padded(x, _ints(s, "pads"), float(str(s["value"]))),
}
"""Operators with settings: what these make of it."""


def _places(x: torch.Tensor, axes: tuple[int, ...]) -> tuple[slice | None, ...]:
    """New axes of one element."""
    rank = x.ndim + len(axes)
    wanted = {axis % rank for axis in axes}
    return tuple(None if axis in wanted else slice(None) for axis in range(rank))


def _wide(x: torch.Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(tuple(x.shape), shape))
