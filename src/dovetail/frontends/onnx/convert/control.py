"""Control flow while the graph is made: the branch that is taken, and the steps of loops that are few.

y = If(c) {then: a = Relu(x); else: ...}           with c known to be true            ->      y = Relu(x)
h, all = Scan(h0, xs) {body}                       xs of a few steps                  ->      the steps in turn
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dovetail.frontends.onnx.convert.attributes import body, malformed, tensor
from dovetail.frontends.onnx.convert.scans import MOST_NODES, ends, repeated_loop
from dovetail.frontends.onnx.convert.structure import (
    Entries,
    Expansion,
    NotResolved,
    Scope,
    Structure,
    decision,
    operand,
    sequence,
)
from dovetail.frontends.onnx.entries import Entry, Held, Tensor
from dovetail.frontends.onnx.inline import Work, inline_graph
from dovetail.frontends.onnx.model import OnnxGraph, OnnxNode


def if_(scope: Scope, work: Work, operands: Entries) -> Expansion:
    """The nodes of the branch that is taken."""
    node = work.node
    branch = body(node, "then_branch" if decision(scope, node, operands, 0) else "else_branch")
    if len(branch.outputs) < len(node.outputs):
        raise malformed(node, "a branch has fewer outputs than it")
    return Expansion(inline_graph(branch, (), node.outputs, work.opsets, scope.names))


def loop(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...] | Expansion:
    """The body as often as the trip count says, where its condition cannot change."""
    node, inner = work.node, body(work.node, "body")
    if len(inner.inputs) != len(node.inputs) or len(inner.outputs) + 1 < len(node.inputs):
        raise malformed(node, "its body does not take what is carried")
    steps = _trip_count(scope, node, operands, inner)
    if steps * (len(inner.nodes) + len(node.inputs)) > MOST_NODES:
        return repeated_loop(scope, work, operands, steps)
    carried = len(node.inputs) - 2
    state = list(node.inputs[2:])
    stacks: list[list[str]] = [[] for _ in inner.outputs[1 + carried :]]
    made: list[Work] = []
    for step in range(steps):
        number, going = scope.names.fresh("step"), scope.names.fresh("going")
        scope.bind(number, scope.constant(np.array(step, np.int64)))
        scope.bind(going, scope.constant(np.array(True)))
        results = [scope.names.fresh(value.name) for value in inner.outputs]
        made += inline_graph(inner, (number, going, *state), results, work.opsets, scope.names)
        state = results[1 : 1 + carried]
        for stack, name in zip(stacks, results[1 + carried :], strict=True):
            stack.append(name)
    return Expansion([*made, *ends(work, inner, state, stacks, 1 + carried)])


def sequence_map(scope: Scope, work: Work, operands: Entries) -> Expansion:
    """The body for each element of the first sequence; a tensor among the inputs is the same for all."""
    node, inner = work.node, body(work.node, "body")
    count = len(sequence(node, operands, 0))
    made: list[Work] = []
    columns: list[list[str]] = [[] for _ in inner.outputs]
    for at in range(count):
        given = []
        for place, name in enumerate(node.inputs):
            entry = operand(node, operands, place)
            if isinstance(entry, Tensor | Held):
                given.append(name)
                continue
            items = sequence(node, operands, place)
            if len(items) != count:
                raise malformed(node, "sequences of different lengths")
            given.append(scope.names.fresh(name))
            scope.bind(given[-1], items[at])
        results = [scope.names.fresh(value.name) for value in inner.outputs]
        made += inline_graph(inner, given, results, work.opsets, scope.names)
        for column, name in zip(columns, results, strict=True):
            column.append(name)
    ends = zip(columns, node.outputs, strict=False)
    listed = (OnnxNode("SequenceConstruct", "", tuple(column), (name,)) for column, name in ends if name)
    return Expansion([*made, *(Work(each, work.opsets) for each in listed)])


def _trip_count(scope: Scope, node: OnnxNode, operands: Entries, inner: OnnxGraph) -> int:
    """How often the body runs; raises where that depends on what it computes."""
    if operands[1:2] and operands[1] is not None and not decision(scope, node, operands, 1):
        return 0
    if not operands or operands[0] is None:
        raise NotResolved("nothing says how often it repeats")
    if not _goes_on(inner):
        raise NotResolved("how often it repeats depends on what it computes")
    return max(0, decision(scope, node, operands, 0))


def _goes_on(inner: OnnxGraph) -> bool:
    """Whether the condition that the body hands on is the one it was given, or true."""
    makers = {name: node for node in inner.nodes for name in node.outputs}
    name = inner.outputs[0].name
    while name in makers and makers[name].op == "Identity" and not makers[name].domain:
        name = makers[name].inputs[0]
    if name == inner.inputs[1].name:
        return True
    if name in inner.initializers:
        return bool(np.all(inner.initializers[name].array()))
    maker = makers.get(name)
    found = tensor(maker, "value") if maker is not None and maker.op == "Constant" else None
    return found is not None and bool(np.all(found.array()))


STRUCTURES: Mapping[tuple[str, str], Structure] = {
    ("", "If"): if_,
    ("", "Loop"): loop,
    ("", "SequenceMap"): sequence_map,
}
