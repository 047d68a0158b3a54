"""A traced PyTorch graph as one callable over tensors: our parts compiled, the others run by PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.fx import Node
from torch.utils._pytree import tree_map_only

from dovetail.base.errors import UnsupportedError
from dovetail.frontends.torch.elements import array_of, tensor_of
from dovetail.frontends.torch.partition import Fallback, OwnPart, Partition, TorchPart, partition
from dovetail.model.build import compile_graph, show
from dovetail.model.compiled import CompiledModel
from dovetail.model.general import Shapes
from dovetail.model.report import ModelReport

if TYPE_CHECKING:
    from dovetail.rewrite.patterns.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Settings:
    """How parts are compiled. ``strict`` refuses what PyTorch would have to run."""

    strict: bool = False
    target: str = "host"
    threads: int | None = None
    cache: bool = True
    jobs: int | None = None
    patterns: tuple[Pattern, ...] = ()
    dynamic: bool | None = None
    """Whether graphs in several shapes share code that takes sizes at run time: see ``general.Shapes``."""


@dataclass(frozen=True, slots=True)
class TorchReport:
    """What became of a PyTorch graph: a report of each compiled part, and what PyTorch runs and why."""

    parts: tuple[ModelReport, ...]
    fallbacks: tuple[Fallback, ...] = ()

    def __str__(self) -> str:
        lines = [f"{len(self.parts)} compiled parts, {len(self.fallbacks)} operators run by PyTorch"]
        lines += [f"{fallback.operator}: {fallback.reason}" for fallback in self.fallbacks]
        return "\n".join([*lines, *map(str, self.parts)])


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    """A part of ours without its graph, whose constants the model has packed."""

    model: CompiledModel
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    sources: tuple[int, ...]

    def run(self, values: dict[Node, object]) -> None:
        arrays = [array_of(_tensor(values[node])) for node in self.inputs]
        made = [tensor_of(array) for array in self.model(*arrays)]
        taken: set[int] = set()
        for node, source in zip(self.outputs, self.sources, strict=True):
            tensor = made[source].clone() if source in taken else made[source]
            taken.add(source)
            values[node] = _laid_out(tensor, node.meta["val"])


@dataclass(frozen=True, slots=True, eq=False)
class _Eager:
    part: TorchPart

    def run(self, values: dict[Node, object]) -> None:
        for node in self.part.nodes:
            args, kwargs = tree_map_only(Node, values.__getitem__, (node.args, node.kwargs))
            values[node] = node.target(*args, **kwargs)


class TorchRun:
    """Call it with the tensors of the graph's placeholders; it returns the list of the graph's outputs."""

    def __init__(
        self,
        graph: torch.fx.Graph,
        constants: Mapping[Node, torch.Tensor],
        settings: Settings,
        shapes: Shapes | None = None,
    ) -> None:
        parts = partition(graph, constants)
        fallbacks = parts.fallbacks
        if settings.strict and fallbacks:
            first = fallbacks[0]
            raise UnsupportedError(first.operator, first.reason, hint="strict=False runs it in PyTorch")
        self._inputs, self._outputs = parts.inputs, parts.outputs
        self._known = _needed(parts)
        self._steps = [_step(part, settings, shapes) for part in parts.parts]
        models = tuple(step.model.report for step in self._steps if isinstance(step, _Compiled))
        self.report = TorchReport(models, fallbacks)

    def __call__(self, inputs: Sequence[object]) -> list[object]:
        values = dict(self._known)
        values.update(zip(self._inputs, inputs, strict=True))
        for step in self._steps:
            step.run(values)
        return [self._output(item, values) for item in self._outputs]

    def _output(self, item: object, values: Mapping[Node, object]) -> object:
        if not isinstance(item, Node):
            return item
        found = values[item]
        return found.clone() if item in self._known and isinstance(found, torch.Tensor) else found


def show_parts(
    graph: torch.fx.Graph, constants: Mapping[Node, torch.Tensor], settings: Settings, shapes: Shapes
) -> None:
    """Tells ``shapes`` of a graph in a shape that is not compiled now."""
    for part in partition(graph, constants).parts:
        if isinstance(part, OwnPart):
            show(part.bound, shapes, settings.target, settings.threads, settings.patterns)


def _needed(parts: Partition) -> dict[Node, object]:
    """Known values that PyTorch's parts and the caller need; those of placeholders are handed in."""
    read = {leaf for leaf in parts.outputs if isinstance(leaf, Node)}
    for part in parts.parts:
        if isinstance(part, TorchPart):
            read.update(operand for node in part.nodes for operand in node.all_input_nodes)
    return {node: value for node, value in parts.known.items() if node in read and node.op != "placeholder"}


def _step(part: OwnPart | TorchPart, how: Settings, shapes: Shapes | None) -> _Compiled | _Eager:
    if isinstance(part, TorchPart):
        return _Eager(part)
    model = compile_graph(
        part.bound, how.target, how.threads, cache=how.cache, jobs=how.jobs, shapes=shapes, patterns=how.patterns
    )
    return _Compiled(model, part.inputs, part.outputs, part.sources)


def _tensor(value: object) -> torch.Tensor:
    assert isinstance(value, torch.Tensor)
    return value


def _laid_out(tensor: torch.Tensor, meta: torch.Tensor) -> torch.Tensor:
    """``tensor`` in the order in memory that PyTorch's trace has: who reads it may count on that."""
    if meta.is_contiguous() or 0 in meta.stride():
        return tensor
    return torch.empty_strided(meta.shape, meta.stride(), dtype=meta.dtype).copy_(tensor)
