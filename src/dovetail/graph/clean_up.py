"""Nodes that do nothing, or that fewer do: rules about one node and what makes its operands, until none applies.

    y = transpose(transpose(x))           ->    y = x
    y = add(x, zero)                      ->    y = x
    y = conv(pad(x) {pads = ...}, w)      ->    y = conv(x, w) {pads = ...}
    y = split(x)                          ->    one slice for each part, which who reads it takes over

A rule is a function of a node: what takes its place, and why; None where it does not apply.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.graph.clean_arithmetic import ARITHMETIC
from dovetail.graph.clean_layers import LAYERS
from dovetail.graph.clean_moves import MOVES
from dovetail.graph.clean_rule import CleanRule
from dovetail.graph.clean_windows import WINDOWS
from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.verify import Operators

_MOST_STEPS = 16
"""For each node of the graph: rules that never end would be a mistake in one of them."""


def _by_operator(*tables: tuple[CleanRule, ...]) -> Mapping[str, tuple[CleanRule, ...]]:
    found: dict[str, tuple[CleanRule, ...]] = {}
    for rule in (rule for table in tables for rule in table):
        for op in rule.operators:
            found[op] = (*found.get(op, ()), rule)
    return found


RULES = _by_operator(MOVES, ARITHMETIC, WINDOWS, LAYERS)


@dataclass(frozen=True, slots=True)
class CleanUp:
    """With ``exact``, rules that may change how a result is rounded are left out."""

    name: str = "clean-up"
    exact: bool = False

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        sheet = Sheet(bound, operators)
        waiting = deque(sheet.nodes)
        queued = set(waiting)
        done: Counter[CleanRule] = Counter()
        for _ in range(_MOST_STEPS * len(waiting)):
            if not waiting:
                break
            key = waiting.popleft()
            queued.discard(key)
            for near in self._step(sheet, key, done):
                if near not in queued:
                    queued.add(near)
                    waiting.append(near)
        if not done:
            return bound, ()
        records = tuple(
            Record(self.name, f"{rule.name}, {counted(count, 'time')}", rule.why) for rule, count in done.items()
        )
        return sheet.finish(), records

    def _step(self, sheet: Sheet, key: str, done: Counter[CleanRule]) -> list[str]:
        """One rule at one node; the nodes around it, at which others may apply now."""
        node = sheet.nodes.get(key)
        if node is None:
            return []
        for rule in RULES.get(node.op, ()):
            if self.exact and not rule.exact:
                continue
            values = rule.apply(sheet, node)
            if values is None:
                continue
            done[rule] += 1
            readers = [reader.results[0] for v in node.results for reader in sheet.readers(v)]
            for old, new in zip(node.results, values, strict=True):
                assert sheet.types[old] == sheet.types[new], f"{rule.name} changes the type of {old}"
                sheet.replace(old, new)
            makers = [made.results[0] for v in (*values, *node.operands) if (made := sheet.maker(v)) is not None]
            return [*makers, *readers]
        return []
