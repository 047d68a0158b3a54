"""What nodes cost where no better model is handed in: arithmetic, and bytes from and to memory for each node.

What is made of constants alone is made ahead of time and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod

from dovetail.ir.graph.graph import Graph, Node, Type
from dovetail.ir.graph.verify import Operators, infer
from dovetail.ir.index import Index
from dovetail.ir.program import Program, Size
from dovetail.ops.region import node_program

Cost = Callable[[Graph, Operators, Collection[str]], float]
"""(nodes on their inputs, operators, inputs that are constants) -> cost, in any unit."""
_START = 2000.0
"""Of one node: as much as so many points of a loop."""
_POINTS_PER_BYTE = 0.5
_USUAL = 64
"""An extent that is known at run time alone."""


def usual_cost(graph: Graph, operators: Operators, constants: Collection[str]) -> float:
    """Points of all loops, and bytes, of the nodes that are not computed ahead of time."""
    types = infer(graph, operators)
    sizes = {size.name: size for size in graph.sizes}
    fixed = {*constants, *(value.name for value in graph.constants)}
    total = 0.0
    for node in graph.nodes:
        if fixed.issuperset(node.operands):
            fixed.update(node.results)
            continue
        total += _START + _work(node, types, operators, sizes)
        total += _POINTS_PER_BYTE * sum(_bytes(types[name]) for name in (*dict.fromkeys(node.operands), *node.results))
    return total


def _work(node: Node, types: Mapping[str, Type], operators: Operators, sizes: Mapping[str, Size]) -> float:
    if operators[node.op].run is not None:
        return float(sum(_bytes(types[name]) for name in node.operands))
    program: Program = node_program(node, types, operators, sizes)
    return float(sum(_points([loop.extent for loop in s.all_loops]) for s in program.statements))


def _bytes(t: Type) -> int:
    return _points(t.shape) * t.dtype.bytes


def _points(extents: Sequence[Index]) -> int:
    return prod(extent.const if extent.is_constant else _USUAL for extent in extents)
