"""What a graph computes from constants alone, computed once.

const w: f32[8, 4]                    const t: f32[4, 8]
t = transpose(w)              ->      y = matmul(x, t)
y = matmul(x, t)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from dovetail.ir.graph.edit import without_dead
from dovetail.ir.graph.evaluate import Array, run_node
from dovetail.ir.graph.graph import Graph, Type, Value
from dovetail.ir.graph.verify import Operators, infer

LARGEST_BYTES = 1 << 28
"""Results beyond this stay nodes: a constant of a few numbers may be expanded to anything."""


def fold_constants(
    graph: Graph, operators: Operators, data: Mapping[str, Array], largest_bytes: int = LARGEST_BYTES
) -> tuple[Graph, dict[str, Array]]:
    """The graph in which nodes that read only constants are constants, and the data of all its constants.

    A constant keeps the name of the value it was.
    """
    types = infer(graph, operators)
    known: dict[str, Array] = {value.name: data[value.name] for value in graph.constants}
    left = []
    for node in graph.nodes:
        results = [types[name] for name in node.results]
        fixed = all(extent.is_constant for t in results for extent in t.shape)
        if not fixed or not all(name in known for name in node.operands) or _bytes(results) > largest_bytes:
            left.append(node)
            continue
        known.update(zip(node.results, run_node(node, types, operators, known, {}, {}), strict=True))
    made = {name for node in graph.nodes for name in node.results}
    new = tuple(Value(name, types[name]) for name in known if name in made)
    changed = without_dead(replace(graph, nodes=tuple(left), constants=(*graph.constants, *new)))
    return changed, {value.name: known[value.name] for value in changed.constants}


def _bytes(types: list[Type]) -> int:
    return sum(prod(extent.const for extent in t.shape) * t.dtype.bytes for t in types)
