"""When two nodes do the same, and two constants are the same numbers."""

from __future__ import annotations

import numpy as np

from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import Array
from dovetail.ir.graph.graph import SCAN, Node
from dovetail.ir.graph.operator import find, meaning

_SAMPLES = 64
"""Elements of a constant that are looked at before two are compared as a whole."""


class Same:
    """Forms of nodes, and what may be said of all nodes of a form, worked out once each."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._forms: dict[str, int] = {}
        self._numbers: dict[object, int] = {}
        self._repeats: dict[int, bool] = {}
        self._places = {key: place for place, key in enumerate(sheet.nodes)}
        self.looked = 0
        """How many operands have been looked at."""

    def place(self, key: str) -> int:
        """Where a node stood in the graph; what has been made since then stands behind it all."""
        return self._places.get(key, len(self._places))

    def form(self, node: Node) -> int:
        """Equal where nodes compute the same from the same operands; the operands' types are part of it."""
        key = node.results[0]
        found = self._forms.get(key)
        if found is None:
            types = tuple(self._sheet.types[name] for name in (*node.operands, *node.results))
            form = (node.op, repr(node.attributes), types, len(node.results))
            found = self._forms[key] = self._numbers.setdefault(form, len(self._numbers))
        return found

    def repeats(self, node: Node) -> bool:
        """Whether a body can have this node: one with a program that repeats nothing itself."""
        form = self.form(node)
        if form not in self._repeats:
            self._repeats[form] = self._may_repeat(node)
        return self._repeats[form]

    def _may_repeat(self, node: Node) -> bool:
        if node.op == SCAN or node.bodies or node.op.startswith("random"):
            return False
        known = find(node, self._sheet.operators)
        if known.run is not None:
            return False
        program = meaning(known, node, tuple(self._sheet.types[name] for name in node.operands), {}).program
        return not any(statement.seq for statement in program.statements)


def join_constants(sheet: Sheet) -> None:
    """Constants with equal bytes become one: an exporter may have made a copy of its weights for each step."""
    groups: dict[object, list[str]] = {}
    for value in sheet.graph.constants:
        array = sheet.data[value.name]
        if not array.dtype.hasobject:
            step = max(array.size // _SAMPLES, 1)
            groups.setdefault((value.type, array.reshape(-1)[::step].tobytes()), []).append(value.name)
    for group in groups.values():
        firsts: list[str] = []
        for name in group:
            first = next((f for f in firsts if _same_bytes(sheet.data[f], sheet.data[name])), None)
            if first is None:
                firsts.append(name)
            else:
                sheet.replace(name, first)


def _same_bytes(a: Array, b: Array) -> bool:
    if a.__array_interface__ == b.__array_interface__:
        return True
    one, other = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return np.array_equal(one, other)
