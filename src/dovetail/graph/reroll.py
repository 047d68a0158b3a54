"""Loops that an exporter has unrolled become loops again: groups of nodes that repeat, each fed by the one before.

    h1 = tanh(add(matmul(h0, r), x0))                 h, all = scan(h0, x, r) {carried = 1, scanned = 1}
    h2 = tanh(add(matmul(h1, r), x1))         ->        of h' = tanh(add(matmul(h, r), x))
    h3 = tanh(add(matmul(h2, r), x2))
    y = concat(h1, h2, h3)                            y = reshape(all)

Any cell, three steps or more, in any number of layers and directions. Nothing is looked up by name: see
``reroll_rows`` for what makes steps alike. First and last steps that differ stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.reroll_build import outer_values, roll, uses_outside
from dovetail.graph.reroll_chain import LEAST_STEPS, chains
from dovetail.graph.reroll_cut import CutRow, Cuts
from dovetail.graph.reroll_map import roll_map
from dovetail.graph.reroll_rows import Growth, Kind, Parted, Rows, complete, extended, trimmed, verified
from dovetail.graph.reroll_same import Same, join_constants
from dovetail.graph.roles import is_product
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.operator import find, meaning
from dovetail.ir.graph.verify import Operators

_MOST_NODES_LEFT = 32
"""Without a product of a state, a loop of up to this many nodes is one pointwise program already."""
_MOST_EXTENSIONS = 2
_MOST_STRIDE = 3
"""Equal nodes that one step may have."""
_MOST_SPLITS = 8
_EFFORT, _LEAST_EFFORT = 2, 20_000
"""Operands that may be looked at in vain, for each node of the graph and in any case."""


@dataclass(frozen=True, slots=True)
class ReRoll:
    """``least`` steps at least; what parted steps that begin alike is recorded."""

    name: str = "re-roll"
    least: int = LEAST_STEPS

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        if bound.graph.sizes:
            return bound, ()
        sheet = Sheet(bound, operators)
        join_constants(sheet)
        same = Same(sheet)
        records: list[Record] = []
        parted: dict[tuple[str, ...], Record] = {}
        effort = _LEAST_EFFORT + _EFFORT * len(sheet.nodes)
        every = chains(sheet, same)
        for chain, stride in ((chain, stride) for stride in range(1, _MOST_STRIDE + 1) for chain in every):
            if effort > 0:
                before = same.looked
                found = self._found(sheet, same, chain.keys[stride - 1 :: stride])
                effort -= 0 if any(isinstance(one, Record) for one in found) else same.looked - before
                records += [one for one in found if isinstance(one, Record)]
                why = next((one for one in found if isinstance(one, Parted)), None)
                if why is not None and chain.weighted:
                    parted.setdefault(chain.keys, self._left(sheet, chain.keys, why))
        if records:
            records += self._maps(sheet, same)
        left = tuple(record for keys, record in parted.items() if any(key in sheet.nodes for key in keys))
        return (sheet.finish(), (*records, *left)) if records else (bound, left)

    def _found(self, sheet: Sheet, same: Same, chain: Sequence[str]) -> list[Record | Parted]:
        """What became of a chain of nodes, and of its parts where it is more than one loop."""
        waiting = [tuple(chain)]
        done: list[Record | Parted] = []
        tried = 0
        while waiting and tried < _MOST_SPLITS:
            tried += 1
            anchors = tuple(key for key in waiting.pop(0) if key in sheet.nodes)
            if len(anchors) < self.least:
                continue
            rows = _rows(sheet, same, anchors)
            if isinstance(rows, Parted):
                done.append(rows)
                if 0 < rows.step < len(anchors):
                    waiting += [anchors[: rows.step], anchors[rows.step :]]
                continue
            done.append(Record(self.name, _described(sheet, rows), _outside(sheet, rows)))
            roll(sheet, Cuts(sheet), rows)
        return done

    def _maps(self, sheet: Sheet, same: Same) -> list[Record]:
        """What is made of each step by itself."""
        found: list[Record] = []
        for key in [key for key, node in sheet.nodes.items() if node.op == "concat"]:
            rows = roll_map(sheet, same, key, self.least)
            if rows is not None:
                what = f"{counted(len(rows.rows), 'node')} of each of T={rows.steps} steps computed for all at once"
                found.append(Record(self.name, what, "no step needs another"))
        return found

    def _left(self, sheet: Sheet, chain: Sequence[str], parted: Parted) -> Record:
        node = sheet.nodes.get(chain[0])
        what = (
            f"{len(chain)} times {'' if node is None else node.op}, from {sheet.shown(chain[0])} on, left as they are"
        )
        return Record(self.name, what, parted.why)


def _rows(sheet: Sheet, same: Same, anchors: Sequence[str]) -> Rows | Parted:
    growth = Growth(sheet, Cuts(sheet), same, [sheet.nodes[key] for key in anchors])
    rows = growth.grow()
    if isinstance(rows, Parted):
        return rows
    complete(growth, rows)
    for _ in range(_MOST_EXTENSIONS):
        if not extended(growth, rows):
            break
    trimmed(rows, LEAST_STEPS)
    if not rows.carried:
        return Parted("no step needs the one before")
    wrong = verified(growth, rows)
    if wrong is not None:
        return wrong
    inside = frozenset(rows.home)
    for value in dict.fromkeys(outer_values(rows)):
        if (through := _depends(sheet, value, inside)) is not None:
            step = next(step for _, step in rows.home[through])
            what = f"{sheet.shown(value)}, which is made outside the steps, needs {sheet.shown(through)} of step {step}"
            return Parted(what, 1)
    if not _is_worth_it(sheet, rows):
        return Parted("a few steps without a product of their state are one program")
    return rows


def _depends(sheet: Sheet, value: str, inside: frozenset[str]) -> str | None:
    """A node of the steps that ``value`` needs."""
    seen: set[str] = set()
    waiting = [value]
    while waiting:
        node = sheet.maker(waiting.pop())
        if node is None or node.results[0] in seen:
            continue
        if node.results[0] in inside:
            return node.results[0]
        seen.add(node.results[0])
        waiting += node.operands
    return None


def _is_worth_it(sheet: Sheet, rows: Rows) -> bool:
    """A product of something that a step makes, or more nodes than one pointwise program has."""
    moving = _moving(rows)
    for row in moving:
        node = sheet.nodes[rows.rows[row][0] or ""]
        types = tuple(sheet.types[name] for name in node.operands)
        program = meaning(find(node, sheet.operators), node, types, {}).program
        if any(map(is_product, program.statements)):
            return True
    return len(moving) * rows.steps > _MOST_NODES_LEFT


def _moving(rows: Rows) -> set[int]:
    """Rows that need a state."""
    found: set[int] = set()
    while True:
        more = {
            row
            for row, sources in enumerate(rows.operands)
            if any(s.kind is Kind.CARRIED or (s.kind is Kind.INSIDE and s.number in found) for s in sources)
        }
        if more <= found:
            return found
        found |= more


def _described(sheet: Sheet, rows: Rows) -> str:
    carried = ", ".join(str(sheet.types[carry.first]) for carry in rows.carried)
    scanned = ", ".join(
        f"{sheet.shown(s.source)} along axis {s.axis}{' backwards' if s.stride < 0 else ''}"
        if isinstance(s, CutRow)
        else f"{counted(len(s), 'value')} of their own"
        for s in rows.scanned
    )
    what = f"recurrence of T={rows.steps} steps found: body of {counted(len(rows.rows), 'node')}, carried {carried}"
    return what + (f", scanned {scanned}" if scanned else "")


def _outside(sheet: Sheet, rows: Rows) -> str:
    """What others read of the steps."""
    uses = uses_outside(sheet, rows)
    states = {(carry.row, carry.result) for carry in rows.carried}
    last = sum(use.step == rows.steps - 1 and (use.row, use.result) in states for use in uses)
    others = len(
        {(use.row, use.result) for use in uses if use.step < rows.steps - 1 or (use.row, use.result) not in states}
    )
    return f"{counted(last, 'last state')} and {counted(others, 'value')} of all steps are read outside"
