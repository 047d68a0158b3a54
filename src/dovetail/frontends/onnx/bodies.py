"""Graphs inside nodes that steer: their inputs and outputs are as many as the node hands in and takes.

If        no inputs; as many outputs as the node
Loop      iteration, condition, N carried -> condition, N carried, K collected
Scan      N carried, M elements           -> N carried, K collected
SequenceMap                elements       -> elements
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dovetail.base.errors import ModelError
from dovetail.frontends.onnx.model import OnnxGraph, OnnxNode

Counts = tuple[int, int]
"""How many inputs and outputs a body has."""

_SCAN_WITHOUT_LENGTHS = 9
"""Since this opset, Scan has no input of lengths before the others."""


def check_bodies(node: OnnxNode, opset: int, where: str) -> None:
    """Refuse a node of a steering operator whose graphs do not fit it."""
    expected = _EXPECTED.get(node.op)
    if expected is None or node.domain:
        return
    counts = expected(node, opset)
    for name, graph in node.attributes.items():
        if not isinstance(graph, OnnxGraph):
            continue
        found = len(graph.inputs), len(graph.outputs)
        if counts is None or found != counts:
            raise ModelError(
                f"attribute '{name}' of {node.op} has {found[0]} inputs and {found[1]} outputs",
                where=where,
                why="no graph fits it" if counts is None else f"{counts[0]} and {counts[1]} would fit",
            )


def _if(node: OnnxNode, opset: int) -> Counts:
    return 0, len(node.outputs)


def _loop(node: OnnxNode, opset: int) -> Counts | None:
    carried = max(0, len(node.inputs) - 2)
    return (carried + 2, len(node.outputs) + 1) if len(node.outputs) >= carried else None


def _scan(node: OnnxNode, opset: int) -> Counts | None:
    inputs = len(node.inputs) - (opset < _SCAN_WITHOUT_LENGTHS)
    elements = node.attributes["num_scan_inputs"]
    if not isinstance(elements, int) or not 0 < elements <= inputs or len(node.outputs) < inputs - elements:
        return None
    return inputs, len(node.outputs)


def _map(node: OnnxNode, opset: int) -> Counts:
    return len(node.inputs), len(node.outputs)


_EXPECTED: Mapping[str, Callable[[OnnxNode, int], Counts | None]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _map,
}
