"""Norms of inference and factors become part of the weights before them, by the checked rules about operators.

c = conv(x, w)                              w2, b2 computed of w and the norm's constants
y = batch_norm(c, s, b, m, v)       ->      y = conv(x, w2, b2)

A norm that no weights stand before is a factor and a shift of each channel.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from dovetail.base.limits import RewriteLimits
from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Graph, Node
from dovetail.ir.graph.verify import Operators
from dovetail.rewrite.graph_apply import derive_graph
from dovetail.rewrite.graph_rule import compiled_graph_rule
from dovetail.rewrite.graph_text import operations
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.folding import FOLDING

_STEPS_OF_A_NODE = 4
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BatchNormFolding:
    """Rules of the kind ``reassociating``: sums and products are rounded in another order."""

    name: str = "batch-norm-folding"
    rules: tuple[Rule, ...] = FOLDING

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        rules = _possible(self.rules, bound.graph)
        records: list[Record] = []
        if rules:
            count = len(bound.graph.nodes)
            limits = RewriteLimits(steps=_STEPS_OF_A_NODE * count, nodes=64 * count, seconds=_SECONDS)
            derived = derive_graph(bound.graph, rules, limits, operators)
            docs = {rule.name: rule.doc for rule in rules}
            fired = Counter(step.rule for step in derived.steps)
            records += [
                Record(self.name, f"{rule}, {counted(number, 'time')}", docs[rule]) for rule, number in fired.items()
            ]
            if derived.stopped:
                records.append(Record(self.name, "some left as they are", derived.stopped))
            if fired:
                data = {value.name: bound.data[value.name] for value in derived.end.constants}
                return BoundGraph(derived.end, data, bound.names), tuple(records)
        scaled, more = self._scaled(bound, operators)
        return scaled, (*records, *more)

    def _scaled(self, bound: BoundGraph, operators: Operators) -> Passed:
        """Norms that are left, as a factor and a shift."""
        norms = [node.results[0] for node in bound.graph.nodes if node.op == "batch_norm"]
        if not norms:
            return bound, ()
        sheet = Sheet(bound, operators)
        done = sum(_as_scale(sheet, sheet.nodes[key]) for key in norms)
        records = []
        if done:
            what = f"{counted(done, 'norm')} made a factor and a shift"
            records.append(Record(self.name, what, "no weights stand before them"))
        if done < len(norms):
            what = f"{counted(len(norms) - done, 'norm')} left as they are"
            records.append(Record(self.name, what, "their statistics are data"))
        return sheet.finish() if done else bound, tuple(records)


def _possible(rules: tuple[Rule, ...], graph: Graph) -> tuple[Rule, ...]:
    """Rules all of whose operators are there, next to each other where they have two."""
    made = {name: node.op for node in graph.nodes for name in node.results}
    pairs = {(node.op, made[name]) for node in graph.nodes for name in node.operands if name in made}
    there = set(made.values())
    found = []
    for rule in rules:
        ops = [operation.op for operation in operations(compiled_graph_rule(rule).before)]
        if ops[0] in there and (len(ops) < 2 or (ops[0], ops[1]) in pairs):
            found.append(rule)
    return tuple(found)


def _as_scale(sheet: Sheet, node: Node) -> bool:
    arrays = [sheet.array(name) for name in node.operands[1:]]
    known = [array.astype(np.float64) for array in arrays if array is not None]
    if len(known) < len(arrays):
        return False
    scale, shift, mean, variance = known
    epsilon = sheet.operators[node.op].settings(node)["epsilon"]
    assert isinstance(epsilon, float)
    factor = scale / np.sqrt(variance + epsilon)
    t = sheet.types[node.operands[1]]
    operands = (sheet.constant(factor, t), sheet.constant(shift - mean * factor, t))
    sheet.replace(node.results[0], sheet.add("scale", node.operands[0], *operands))
    return True
