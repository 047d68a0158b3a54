"""Steps on the host: a node of a graph as text, and the NumPy function that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dovetail.base.errors import GraphError
from dovetail.ir.graph.graph import Graph, Node, Type, Value
from dovetail.ir.graph.operator import find
from dovetail.ir.graph.parse import parse
from dovetail.ops.table import OPERATORS
from dovetail.runtime.model_frame import HostFunction


def node_text(node: Node, types: Mapping[str, Type]) -> str:
    """A graph of ``node`` alone."""
    inputs = tuple(Value(name, types[name]) for name in dict.fromkeys(node.operands))
    return str(Graph("host", inputs, node.results, (node,)))


def host_function(text: str) -> HostFunction:
    """From arrays, one for each operand, to arrays, one for each result."""
    (node,) = parse(text).nodes
    known = find(node, OPERATORS)
    if known.run is None:
        raise GraphError(f"{node.op} has no function on the host", where=node.place)
    return partial(known.run, **known.settings(node))
