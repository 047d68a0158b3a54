"""What two nodes compute alike is computed once, and equal constants are one.

a = exp(x)                    a = exp(x)
b = exp(x)           ->       y = add(a, a)
y = add(a, b)
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Node
from dovetail.ir.graph.verify import Operators

_LARGEST_CONSTANT_BYTES = 4096
"""Larger constants are not compared: two that are equal are rare, and cost their memory alone."""
_NEVER_ALIKE = "random"
"""Operators whose name starts like this make something else each time."""


@dataclass(frozen=True, slots=True)
class CommonSubexpressions:
    """Nodes with equal operators, attributes and operands; operands of a commutative one in any order."""

    name: str = "common-subexpressions"

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        sheet = Sheet(bound, operators)
        constants = _join_constants(sheet)
        nodes = 0
        seen: dict[object, Node] = {}
        for key in tuple(sheet.nodes):
            node = sheet.nodes[key]
            if node.op.startswith(_NEVER_ALIKE):
                continue
            first = seen.setdefault(_form(node, operators), node)
            if first is node:
                continue
            nodes += 1
            for old, new in zip(node.results, first.results, strict=True):
                sheet.replace(old, new)
        if not nodes and not constants:
            return bound, ()
        what = f"{counted(nodes, 'node')} and {counted(constants, 'constant')} joined with others"
        return sheet.finish(), (Record(self.name, what, "they are computed alike"),)


def _form(node: Node, operators: Operators) -> object:
    """Equal where two nodes compute the same; ``repr`` tells 0.0 from -0.0, and 1 from 1.0."""
    known = operators.get(node.op)
    operands = node.operands
    if known is not None and known.commutative and len(operands) > 1:
        operands = (*sorted(operands[:2]), *operands[2:])
    return node.op, operands, len(node.results), repr(node.attributes), tuple(map(str, node.bodies))


def _join_constants(sheet: Sheet) -> int:
    """Small constants with equal bytes."""
    seen: dict[object, str] = {}
    joined = 0
    for value in sheet.graph.constants:
        array = sheet.data[value.name]
        if array.nbytes > _LARGEST_CONSTANT_BYTES or array.dtype.hasobject:
            continue
        first = seen.setdefault((value.type, array.tobytes()), value.name)
        if first != value.name:
            sheet.replace(value.name, first)
            joined += 1
    return joined
