"""Functions of tensors traced, converted and evaluated by the reference evaluator of graphs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from dovetail.frontends.torch.decompose import decompositions
from dovetail.frontends.torch.elements import array_of, tensor_of
from dovetail.frontends.torch.partition import OwnPart, Partition, partition
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ops.table import OPERATORS


def traced(function: Callable[..., object], *tensors: Tensor) -> GraphModule:
    """The ATen graph of ``function``, taken apart as for a compilation."""
    whole = torch.func.functionalize(function)
    return make_fx(whole, decomposition_table=decompositions(), tracing_mode="fake")(*tensors)


def parts_of(function: Callable[..., object], *tensors: Tensor) -> Partition:
    return partition(traced(function, *tensors).graph, {})


def evaluated(function: Callable[..., object], *tensors: Tensor) -> tuple[Tensor, ...]:
    """What the graph of ours computes; everything must be in one part."""
    found = parts_of(function, *tensors)
    assert not found.fallbacks, found.fallbacks
    (part,) = found.parts
    assert isinstance(part, OwnPart)
    given = dict(zip(found.inputs, tensors, strict=True))
    inputs = [array_of(given[node]) for node in part.inputs]
    names = [value.name for value in part.bound.graph.inputs]
    made = evaluate(part.bound.graph, OPERATORS, dict(zip(names, inputs, strict=True)), part.bound.data)
    values = dict(zip(part.outputs, (part.bound.graph.outputs[n] for n in part.sources), strict=True))
    return tuple(tensor_of(made[values[node]]) for node in found.outputs)


def whole_numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Small whole numbers, so that sums and products are exact."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=generator).to(dtype)


def check(function: Callable[..., object], *tensors: Tensor, exact: bool = True) -> None:
    """Ours against PyTorch's."""
    wanted = function(*tensors)
    listed = tuple(wanted) if isinstance(wanted, list | tuple) else (wanted,)
    tolerance = {"rtol": 0, "atol": 0} if exact else {}
    torch.testing.assert_close(evaluated(function, *tensors), listed, equal_nan=True, **tolerance)
