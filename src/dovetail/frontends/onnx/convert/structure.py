"""Nodes that are resolved while the graph is made: what they need of the place they stand in.

    def at(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...] | Expansion

A structure gives entries, or other nodes to take instead of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dovetail.frontends.onnx.convert.attributes import malformed
from dovetail.frontends.onnx.convert.context import Array, Context
from dovetail.frontends.onnx.entries import Entry, Listed, Tensor
from dovetail.frontends.onnx.inline import Names, Work
from dovetail.frontends.onnx.model import OnnxGraph, OnnxNode

INTERNAL = "dovetail"
"""Domain of nodes that only an expansion makes."""
Entries = tuple[Entry | None, ...]


class NotResolved(Exception):
    """This node cannot be resolved while the graph is made: it runs on the host, for this reason."""


class Scope(Protocol):
    """What is being made."""

    context: Context
    names: Names

    def constant(self, array: Array) -> Entry: ...

    def entry(self, name: str) -> Entry | None: ...

    def bind(self, name: str, entry: Entry) -> None: ...

    def repeat(self, steps: Steps) -> tuple[Entry, ...]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A body to be repeated: values of the graph for its inputs, and which of its outputs are wanted.

    The first outputs are what is carried on, as many as there are; each step leaves a slice of the others.
    """

    work: Work
    inner: OnnxGraph
    carried: Mapping[str, str]
    scanned: Mapping[str, str]
    """Cut along their first axis."""
    same: Mapping[str, Entry]
    outputs: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """Nodes that stand for another."""

    work: Sequence[Work]


Structure = Callable[[Scope, Work, Entries], tuple[Entry, ...] | Expansion]


def operand(node: OnnxNode, operands: Entries, at: int) -> Entry:
    """Operand ``at``, which must be there."""
    found = operands[at] if at < len(operands) else None
    if found is None:
        raise malformed(node, f"input {at} is missing")
    return found


def sequence(node: OnnxNode, operands: Entries, at: int) -> tuple[Entry, ...]:
    """The elements of a sequence."""
    found = operand(node, operands, at)
    if not isinstance(found, Listed):
        raise malformed(node, f"input {at} is not a sequence")
    return found.items


def value(scope: Scope, node: OnnxNode, operands: Entries, at: int) -> Array:
    """The value of a small tensor; asks for it later where it is not known."""
    found = operand(node, operands, at)
    if not isinstance(found, Tensor):
        raise malformed(node, f"input {at} is not a tensor of numbers")
    return scope.context.known(found.name)


def decision(scope: Scope, node: OnnxNode, operands: Entries, at: int) -> int:
    """A condition or a count: where it is computed, the next stage is handed it, and guards nothing else."""
    found = operand(node, operands, at)
    if not isinstance(found, Tensor):
        raise malformed(node, f"input {at} is not a tensor of numbers")
    return _whole(node, scope.context.direct(found.name), at)


def scalar(scope: Scope, node: OnnxNode, operands: Entries, at: int) -> int:
    """The value of a tensor of one whole number."""
    return _whole(node, value(scope, node, operands, at), at)


def _whole(node: OnnxNode, found: Array, at: int) -> int:
    if found.size != 1:
        raise malformed(node, f"input {at} is not one number")
    return int(found.reshape(-1).astype(np.int64)[0])
