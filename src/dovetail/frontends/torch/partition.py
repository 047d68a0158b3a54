"""A traced graph cut into parts: ours, each one graph to compile, and PyTorch's, run operator by operator.

    ours -> topk (PyTorch) -> ours          three parts; what does not need topk's result is in the first

A node belongs to the first part of its kind behind everything it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from dovetail.frontends.torch.calls import Names, bring_in, convert, is_item, refusal
from dovetail.frontends.torch.context import Context
from dovetail.frontends.torch.known import known_values
from dovetail.ir.graph.bound import BoundGraph


@dataclass(frozen=True, slots=True)
class Fallback:
    """An operator that PyTorch runs, and why."""

    operator: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class OwnPart:
    """One graph of ours: the values it is given, and where each of the values it makes comes from."""

    bound: BoundGraph
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    sources: tuple[int, ...]
    """For each output, which of the graph's outputs it is; two may be the same."""


@dataclass(frozen=True, slots=True, eq=False)
class TorchPart:
    """Nodes that PyTorch runs, in order."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """``known`` are values that no part makes."""

    inputs: tuple[Node, ...]
    parts: tuple[OwnPart | TorchPart, ...]
    outputs: tuple[object, ...]
    known: Mapping[Node, object]
    fallbacks: tuple[Fallback, ...]


def partition(graph: torch.fx.Graph, given: Mapping[Node, torch.Tensor]) -> Partition:
    """The parts of ``graph``, whose operators are functions; ``given`` are values that stay the same."""
    known = known_values(graph, given)
    (result,) = (node for node in graph.nodes if node.op == "output")
    outputs = tuple(result.args[0]) if isinstance(result.args[0], list | tuple) else (result.args[0],)
    fallbacks: list[Fallback] = []
    levels = _levels(graph, known, fallbacks)
    needed = _needed_outside(graph, levels, outputs)
    parts: list[OwnPart | TorchPart] = []
    for level in sorted(set(levels.values())):
        nodes = tuple(node for node, found in levels.items() if found == level)
        parts.append(TorchPart(nodes) if level % 2 else _own_part(nodes, known, needed))
    inputs = tuple(node for node in graph.nodes if node.op == "placeholder")
    return Partition(inputs, tuple(parts), outputs, known, tuple(dict.fromkeys(fallbacks)))


def _levels(graph: torch.fx.Graph, known: Mapping[Node, object], fallbacks: list[Fallback]) -> dict[Node, int]:
    """A number for each node that runs: even ones are ours, odd ones PyTorch's, later ones need earlier ones."""
    levels: dict[Node, int] = {}
    for node in graph.nodes:
        if node.op != "call_function" or node in known or not (node.users or node.is_impure()):
            continue
        before = max((levels.get(operand, 0) for operand in node.all_input_nodes), default=0)
        if is_item(node):
            levels[node] = before
            continue
        reason = refusal(node, known)
        if reason is not None:
            fallbacks.append(Fallback(str(node.target), reason))
        levels[node] = before + ((before % 2) != (reason is not None))
    return levels


def _needed_outside(graph: torch.fx.Graph, levels: Mapping[Node, int], outputs: Sequence[object]) -> set[Node]:
    """Nodes that another part or the caller reads."""
    found = {leaf for leaf in tree_leaves(list(outputs)) if isinstance(leaf, Node)}
    for node, level in levels.items():
        found.update(operand for operand in node.all_input_nodes if levels.get(operand) != level)
    return found


def _own_part(nodes: tuple[Node, ...], known: Mapping[Node, object], needed: set[Node]) -> OwnPart:
    context = Context()
    names: Names = {}
    inputs: list[Node] = []
    for node in nodes:
        for operand in node.all_input_nodes:
            if operand not in names:
                names[operand] = (bring_in(context, operand, known),)
                inputs += [] if isinstance(known.get(operand), torch.Tensor) else [operand]
        convert(context, node, names)
    made = tuple(node for node in nodes if node in needed and len(names[node]) == 1)
    distinct = tuple(dict.fromkeys(name for node in made for name in names[node] if name is not None))
    sources = tuple(distinct.index(name) for node in made for name in names[node] if name is not None)
    return OwnPart(context.bound(distinct), tuple(inputs), made, sources)
