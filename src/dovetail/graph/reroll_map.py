"""What is computed of each step of a loop by itself, and put together again, is computed for all steps at once.

h = scan(...)                                               y = matmul(h, w)
y0 = matmul(h[0], w)  y1 = matmul(h[1], w)  ...      ->
y = concat(y0, y1, ...)
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.graph.reroll_build import in_order, outer_values, part_of, scanned_value
from dovetail.graph.reroll_cut import CutRow, Cuts, joined
from dovetail.graph.reroll_rows import Growth, Kind, Parted, Rows, verified
from dovetail.graph.reroll_same import Same
from dovetail.graph.roles import VIEWS
from dovetail.graph.scan_lift import Outer, lifted
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import SCAN, Node

_MOVES = VIEWS | {"transpose", "slice"}


def roll_map(sheet: Sheet, same: Same, key: str, least: int) -> Rows | None:
    """The rows that the ``concat`` called ``key`` was made of, where they are computed at once now."""
    node = sheet.nodes.get(key)
    makers = [] if node is None else [_maker(sheet, value) for value in node.operands]
    anchors = [maker for maker in makers if maker is not None]
    if node is None or len(anchors) < max(least, len(makers)) or len({m.results[0] for m in anchors}) < len(anchors):
        return None
    if (
        len({same.form(anchor) for anchor in anchors}) > 1
        or not same.repeats(anchors[0])
        or len(anchors[0].results) > 1
    ):
        return None
    cuts = Cuts(sheet)
    growth = Growth(sheet, cuts, same, anchors)
    rows = growth.grow()
    if isinstance(rows, Parted) or rows.carried or not _is_of_steps(sheet, rows) or verified(growth, rows) is not None:
        return None
    value = _lifted(sheet, cuts, rows)
    if value is None:
        return None
    _lead_out(sheet, node, anchors, value)
    return rows


def _maker(sheet: Sheet, value: str) -> Node | None:
    """The node that makes a value, whatever its shape."""
    node = sheet.maker(value)
    while node is not None and node.op in VIEWS:
        node = sheet.maker(node.operands[0])
    return node


def _is_of_steps(sheet: Sheet, rows: Rows) -> bool:
    """Whether all that differs from row to row are parts of tensors, one of which a loop has made."""
    if not rows.scanned or not all(isinstance(scanned, CutRow) for scanned in rows.scanned):
        return False
    if any(None in nodes for nodes in rows.rows) or any(_needs(sheet, value, rows) for value in outer_values(rows)):
        return False
    return any(_is_looped(sheet, scanned.source) for scanned in rows.scanned if isinstance(scanned, CutRow))


def _is_looped(sheet: Sheet, value: str) -> bool:
    node = sheet.maker(value)
    while node is not None and node.op in _MOVES:
        node = sheet.maker(node.operands[0])
    if node is not None and node.op == "concat":
        return any(_is_looped(sheet, name) for name in node.operands)
    return node is not None and node.op == SCAN


def _needs(sheet: Sheet, value: str, rows: Rows) -> bool:
    node = sheet.maker(value)
    return node is not None and node.results[0] in rows.home


def _lifted(sheet: Sheet, cuts: Cuts, rows: Rows) -> str | None:
    """What the first row makes, at all steps; None where a node of the rows has no such form."""
    scanned = [Outer(scanned_value(sheet, cuts, rows, k, False), True) for k in range(len(rows.scanned))]
    made: dict[int, tuple[Outer, ...]] = {}
    for number in in_order(rows):
        node = sheet.nodes[rows.rows[number][0] or ""]
        operands = [
            scanned[source.number]
            if source.kind is Kind.SCANNED
            else made[source.number][source.result]
            if source.kind is Kind.INSIDE
            else Outer(rows.shared[source.number], False)
            for source in rows.operands[number]
        ]
        if not any(operand.stepped for operand in operands):
            return None
        values = lifted(sheet, node, operands, sheet.types, rows.steps)
        if values is None:
            return None
        made[number] = tuple(Outer(value, True) for value in values)
    return made[0][0].name


def _lead_out(sheet: Sheet, node: Node, anchors: Sequence[Node], value: str) -> None:
    for place, anchor in enumerate(anchors):
        old = anchor.results[0]
        sheet.replace(old, part_of(sheet, value, place, sheet.types[old]))
    node = sheet.nodes[node.results[0]]
    whole = joined(sheet, Cuts(sheet), node)
    if whole is not None:
        sheet.replace(node.results[0], whole)
