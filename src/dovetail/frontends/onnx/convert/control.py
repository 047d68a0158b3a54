"""Control flow while the graph is made: the branch that is taken, and the steps of loops that are few.

y = If(c) {then: a = Relu(x); else: ...}           with c known to be true            ->      y = Relu(x)
h, all = Scan(h0, xs) {body}                       xs of a few steps                  ->      the steps in turn
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dovetail.frontends.onnx.convert.attributes import body, integer, integers, malformed, tensor
from dovetail.frontends.onnx.convert.structure import (
    INTERNAL,
    Entries,
    Expansion,
    NotResolved,
    Scope,
    Structure,
    decision,
    operand,
    sequence,
)
from dovetail.frontends.onnx.elements import ELEMENTS
from dovetail.frontends.onnx.entries import Entry, Held, Tensor
from dovetail.frontends.onnx.inline import Work, identity, inline_graph
from dovetail.frontends.onnx.model import OnnxGraph, OnnxNode, OnnxTensor

MOST_NODES = 2000
"""How many nodes a loop may become."""


def if_(scope: Scope, work: Work, operands: Entries) -> Expansion:
    """The nodes of the branch that is taken."""
    node = work.node
    branch = body(node, "then_branch" if decision(scope, node, operands, 0) else "else_branch")
    if len(branch.outputs) < len(node.outputs):
        raise malformed(node, "a branch has fewer outputs than it")
    return Expansion(inline_graph(branch, (), node.outputs, work.opsets, scope.names))


def loop(scope: Scope, work: Work, operands: Entries) -> Expansion:
    """The body as often as the trip count says, where its condition cannot change."""
    node, inner = work.node, body(work.node, "body")
    if len(inner.inputs) != len(node.inputs) or len(inner.outputs) + 1 < len(node.inputs):
        raise malformed(node, "its body does not take what is carried")
    steps = _trip_count(scope, node, operands, inner)
    if steps * (len(inner.nodes) + len(node.inputs)) > MOST_NODES:
        raise NotResolved(f"{steps} steps of {len(inner.nodes)} nodes each")
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
    return Expansion([*made, *_ends(work, inner, state, stacks, 1 + carried)])


def scan(scope: Scope, work: Work, operands: Entries) -> Expansion:
    """The body for each slice of what is scanned."""
    node, inner = work.node, body(work.node, "body")
    if scope.context.opset < 9:
        return _batched_scan(scope, work, operands)
    count = integer(node, "num_scan_inputs", 0)
    carried = len(node.inputs) - count
    if count < 1 or carried < 0 or len(inner.inputs) != len(node.inputs) or len(inner.outputs) < carried:
        raise malformed(node, "its body does not take what is carried and scanned")
    return _unrolled(scope, work, node.inputs[:carried], node.inputs[carried:], operands[carried:], node.outputs)


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


def pick(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    """One slice of an axis."""
    node, context = work.node, scope.context
    entry = operand(node, operands, 0)
    if not isinstance(entry, Tensor):
        raise NotResolved("slices of strings or of types that graphs do not have")
    axis, at = integer(node, "axis", 0), integer(node, "at", 0)
    cut = context.node("slice", entry.name, starts=(at,), ends=(at + 1,), axes=(axis,))
    return (Tensor(context.node("squeeze", cut, axes=(axis,))),)


def stack(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    """Tensors of one type along a new axis."""
    node, context = work.node, scope.context
    axis = integer(node, "axis", 0)
    names = []
    for at in range(len(operands)):
        entry = operand(node, operands, at)
        if not isinstance(entry, Tensor):
            raise NotResolved("strings, or types that graphs do not have, one for each step")
        names.append(context.node("unsqueeze", entry.name, axes=(axis,)))
    return (Tensor(context.node("concat", *names, axis=axis)),)


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


def _unrolled(
    scope: Scope,
    work: Work,
    state: Sequence[str],
    scanned: Sequence[str],
    entries: Entries,
    results: Sequence[str],
) -> Expansion:
    node, inner, context = work.node, body(work.node, "body"), scope.context
    axes = integers(node, "scan_input_axes", (0,) * len(scanned))
    back = integers(node, "scan_input_directions", integers(node, "directions", (0,) * len(scanned)))
    steps = set()
    for at, axis in enumerate(axes):
        entry = operand(node, entries, at)
        if not isinstance(entry, Tensor) or not -context.rank(entry.name) <= axis < context.rank(entry.name):
            raise malformed(node, "what is scanned has no such axis")
        steps.add(context.shape(entry.name)[axis])
    if len(steps) != 1 or len(axes) != len(scanned) != len(back):
        raise malformed(node, "what is scanned has different lengths")
    count = steps.pop()
    if count * (len(inner.nodes) + len(node.inputs)) > MOST_NODES:
        raise NotResolved(f"{count} steps of {len(inner.nodes)} nodes each")
    carried = len(state)
    stacks: list[list[str]] = [[] for _ in inner.outputs[carried:]]
    made: list[Work] = []
    for step in range(count):
        slices = [scope.names.fresh(name) for name in scanned]
        for name, piece, axis, reverse in zip(scanned, slices, axes, back, strict=True):
            where = {"axis": axis, "at": count - 1 - step if reverse else step}
            made.append(Work(OnnxNode("Pick", INTERNAL, (name,), (piece,), where), work.opsets))
        outputs = [scope.names.fresh(value.name) for value in inner.outputs]
        made += inline_graph(inner, (*state, *slices), outputs, work.opsets, scope.names)
        state = outputs[:carried]
        for column, name in zip(stacks, outputs[carried:], strict=True):
            column.append(name)
    return Expansion([*made, *_ends(work, inner, state, stacks, carried, results)])


def _batched_scan(scope: Scope, work: Work, operands: Entries) -> Expansion:
    """Version 8: every operand has a batch in front, each element of which is scanned by itself."""
    node = work.node
    count = integer(node, "num_scan_inputs", 0)
    carried = len(node.inputs) - 1 - count
    first = operand(node, operands, 1)
    if count < 1 or carried < 0 or not isinstance(first, Tensor) or not scope.context.rank(first.name):
        raise malformed(node, "its body does not take what is carried and scanned")
    if node.inputs[0]:
        raise NotResolved("sequences of different lengths in one batch")
    columns: list[list[str]] = [[] for _ in node.outputs]
    made: list[Work] = []
    for batch in range(scope.context.shape(first.name)[0]):
        names = [scope.names.fresh(name) for name in node.inputs[1:]]
        for name, piece in zip(node.inputs[1:], names, strict=True):
            entry = scope.context.node(
                "slice", _name(node, operands, name), starts=(batch,), ends=(batch + 1,), axes=(0,)
            )
            scope.bind(piece, Tensor(scope.context.node("squeeze", entry, axes=(0,))))
        entries = tuple(scope.entry(name) for name in names[carried:])
        results = [scope.names.fresh(name) for name in node.outputs]
        made += _unrolled(scope, work, names[:carried], names[carried:], entries, results).work
        for column, name in zip(columns, results, strict=True):
            column.append(name)
    return Expansion(
        [*made, *(_stacked(work, column, name) for column, name in zip(columns, node.outputs, strict=True) if name)]
    )


def _name(node: OnnxNode, operands: Entries, name: str) -> str:
    entry = operand(node, operands, node.inputs.index(name))
    if not isinstance(entry, Tensor):
        raise malformed(node, "what is scanned is not a tensor")
    return entry.name


def _ends(
    work: Work,
    inner: OnnxGraph,
    state: Sequence[str],
    stacks: Sequence[Sequence[str]],
    first: int,
    results: Sequence[str] | None = None,
) -> list[Work]:
    """The results of a loop: what is carried at the end, and what each step left."""
    node = work.node
    results = node.outputs if results is None else results
    axes = integers(node, "scan_output_axes", (0,) * len(stacks))
    back = integers(node, "scan_output_directions", (0,) * len(stacks))
    ends = [identity(name, result, work.opsets) for name, result in zip(state, results, strict=False) if result]
    rest = results[len(state) :]
    for at, (result, column) in enumerate(zip(rest, stacks, strict=False)):
        if not result:
            continue
        if not column:
            ends.append(_no_steps(work, inner, first + at, result))
        else:
            ends.append(_stacked(work, column[::-1] if back[at] else column, result, axes[at]))
    return ends


def _stacked(work: Work, column: Sequence[str], result: str, axis: int = 0) -> Work:
    return Work(OnnxNode("Stack", INTERNAL, tuple(column), (result,), {"axis": axis}), work.opsets)


def _no_steps(work: Work, inner: OnnxGraph, at: int, result: str) -> Work:
    """An empty tensor, of what the body says of its output."""
    said = inner.outputs[at]
    if said.shape is None or said.elem_type not in ELEMENTS:
        raise NotResolved("it repeats never, and nothing says the type of what it would make")
    shape = (0, *(extent if isinstance(extent, int) else 0 for extent in said.shape))
    empty = np.zeros(shape, ELEMENTS[said.elem_type].array)
    return Work(OnnxNode("Constant", "", (), (result,), {"value": OnnxTensor("", said.elem_type, empty)}), work.opsets)


STRUCTURES: Mapping[tuple[str, str], Structure] = {
    ("", "If"): if_,
    ("", "Loop"): loop,
    ("", "Scan"): scan,
    ("", "SequenceMap"): sequence_map,
    (INTERNAL, "Pick"): pick,
    (INTERNAL, "Stack"): stack,
}
