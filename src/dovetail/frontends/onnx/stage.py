"""What an ONNX graph is run as: a graph of ours, nodes on the host, and what is left for later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.frontends.onnx.entries import Array, HostValue, Path, Recipe
from dovetail.frontends.onnx.inline import Work
from dovetail.ir.graph.bound import BoundGraph


@dataclass(frozen=True, slots=True, eq=False)
class Hosted:
    """A node that runs on the host, and why."""

    work: Work
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What is run at once. ``inputs`` and ``guards`` are parts of what is handed in."""

    bound: BoundGraph
    inputs: tuple[Path, ...]
    guards: tuple[tuple[Path, Array], ...]
    recipes: Mapping[str, Recipe]
    """How to make what the host, the rest and the model's outputs need."""
    hosted: tuple[Hosted, ...]
    rest: tuple[Work, ...]
    fixed: Mapping[str, HostValue]
    """What the rest knows without being handed it."""
    compiled: tuple[str, ...]
    """Titles of the nodes that are in the graph."""
    resolved: tuple[str, ...]
    """Titles of the nodes of which nothing is left."""


def opset(item: Work) -> int:
    """The version of the operators of the node's domain."""
    return item.opsets.get(item.node.domain, 1)
