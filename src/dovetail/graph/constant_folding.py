"""What is computed from constants alone is computed once, by the reference evaluator.

const w: f32[8, 4]                    const t: f32[4, 8]
t = transpose(w)              ->      y = matmul(x, t)
y = matmul(x, t)

A result may be little larger than what it is made of: a number that is expanded to a large tensor stays a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.evaluate import run_node
from dovetail.ir.graph.graph import Node
from dovetail.ir.graph.verify import Operators

_NEVER_FIXED = "random"
"""Operators whose name starts like this make something else each time."""
_GROWTH_BYTES = 1 << 16
"""A result of up to this many bytes is always kept; a larger one may be twice what it is made of."""
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class ConstantFolding:
    """Nodes whose operands are constants become constants of the same name."""

    name: str = "constant-folding"
    growth_bytes: int = _GROWTH_BYTES
    most_bytes: int = _MOST_BYTES

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        sheet = Sheet(bound, operators)
        folded = 0
        records: list[Record] = []
        for key in tuple(sheet.nodes):
            node = sheet.nodes.get(key)
            if node is None or not all(sheet.array(name) is not None for name in node.operands):
                continue
            if why := self._why_not(sheet, node):
                records.append(Record(self.name, f"{node.op} of {sheet.shown(node.results[0])} left to run", why))
                continue
            arrays = {name: sheet.data[name] for name in node.operands}
            sheet.freeze(key, run_node(node, sheet.types, operators, arrays, {}, {}))
            folded += 1
        if not folded:
            return bound, tuple(records)
        what = f"{counted(folded, 'node')} computed ahead of time"
        return sheet.finish(), (Record(self.name, what, "their operands are constants"), *records)

    def _why_not(self, sheet: Sheet, node: Node) -> str:
        if node.op.startswith(_NEVER_FIXED):
            return "it makes something else each time"
        sizes = [_bytes(sheet, name) for name in node.results]
        if None in sizes:
            return "its extents are known at run time"
        total, given = sum(size or 0 for size in sizes), sum(_bytes(sheet, name) or 0 for name in node.operands)
        if total > max(self.growth_bytes, 2 * given) or total > self.most_bytes:
            return f"{total} bytes made of {given}"
        return ""


def _bytes(sheet: Sheet, value: str) -> int | None:
    shape = sheet.shape(value)
    return None if shape is None else prod(shape) * sheet.types[value].dtype.bytes
