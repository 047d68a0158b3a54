"""Scan, and what loops share with it: steps in turn where they are few, the graph language's ``scan`` otherwise.

h, all = Scan(h0, xs) {body}        xs of 3 steps, or of 1000        ->      three bodies, or one scan
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dovetail.base.errors import LimitError
from dovetail.frontends.onnx.convert.attributes import body, integer, integers, malformed, place
from dovetail.frontends.onnx.convert.structure import (
    INTERNAL,
    Entries,
    Expansion,
    NotResolved,
    Scope,
    Steps,
    Structure,
    operand,
)
from dovetail.frontends.onnx.elements import ELEMENTS
from dovetail.frontends.onnx.entries import Entry, Tensor
from dovetail.frontends.onnx.inline import Work, identity, inline_graph
from dovetail.frontends.onnx.model import OnnxGraph, OnnxNode, OnnxTensor

MOST_NODES = 500
"""How many nodes a loop may become."""
NUMBER_BYTES = 8
"""Of the number of one step."""


def scan(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...] | Expansion:
    """The body for each slice of what is scanned."""
    node, inner = work.node, body(work.node, "body")
    if scope.context.opset < 9:
        return _batched_scan(scope, work, operands)
    count = integer(node, "num_scan_inputs", 0)
    carried = len(node.inputs) - count
    if count < 1 or carried < 0 or len(inner.inputs) != len(node.inputs) or len(inner.outputs) < carried:
        raise malformed(node, "its body does not take what is carried and scanned")
    steps = _steps(scope, node, operands[carried:])
    if steps * (len(inner.nodes) + len(node.inputs)) > MOST_NODES:
        return _repeated_scan(scope, work, operands, carried)
    return _unrolled(scope, work, node.inputs[:carried], node.inputs[carried:], steps, node.outputs)


def repeated_loop(scope: Scope, work: Work, operands: Entries, steps: int) -> tuple[Entry, ...]:
    """A loop of known length as one ``scan``, over the numbers of its steps."""
    node, inner = work.node, body(work.node, "body")
    if steps * 8 > scope.context.limits.folded_bytes:
        raise NotResolved(f"{steps} steps are too many to be numbered")
    number, going, *names = (value.name for value in inner.inputs)
    carried = dict(zip(names, _tensors(node, operands[2:]), strict=True))
    if steps * NUMBER_BYTES > scope.context.limits.folded_bytes:
        raise LimitError(f"a loop of {steps} steps", where=place(node), hint="ModelLimits(folded_bytes=...)")
    numbers = {number: scope.context.constant(np.arange(steps))}
    outputs = [value.name for value in inner.outputs[1:]]
    return scope.repeat(Steps(work, inner, carried, numbers, {going: scope.constant(np.array(True))}, outputs))


def _repeated_scan(scope: Scope, work: Work, operands: Entries, carried: int) -> tuple[Entry, ...]:
    node, inner, context = work.node, body(work.node, "body"), scope.context
    names = [value.name for value in inner.inputs]
    tensors = _tensors(node, operands)
    axes, back = _ways(node, "input", len(tensors) - carried)
    rows = []
    for name, axis, reverse in zip(tensors[carried:], axes, back, strict=True):
        front = context.node("transpose", name, perm=_moved(context.rank(name), axis, 0)) if axis else name
        rows.append(_reversed(scope, front) if reverse else front)
    state, scanned = dict(zip(names, tensors[:carried], strict=False)), dict(zip(names[carried:], rows, strict=True))
    made = scope.repeat(Steps(work, inner, state, scanned, {}, [value.name for value in inner.outputs]))
    axes, back = _ways(node, "output", len(made) - carried)
    turned: list[Entry] = list(made[:carried])
    for name, axis, reverse in zip(_tensors(node, made[carried:]), axes, back, strict=True):
        straight = _reversed(scope, name) if reverse else name
        moved = context.node("transpose", straight, perm=_moved(context.rank(name), 0, axis)) if axis else straight
        turned.append(Tensor(moved))
    return tuple(turned)


def _ways(node: OnnxNode, what: str, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Along which axis, and whether backwards, for each that is scanned or stacked."""
    axes = integers(node, f"scan_{what}_axes", (0,) * count)
    back = integers(node, f"scan_{what}_directions", (0,) * count)
    if len(axes) != count or len(back) != count:
        raise malformed(node, f"axes or directions of {count} are needed")
    return axes, back


def _moved(rank: int, source: int, target: int) -> tuple[int, ...]:
    """An order of axes in which one is at another place."""
    order = list(range(rank))
    order.insert(target % rank, order.pop(source % rank))
    return tuple(order)


def _reversed(scope: Scope, name: str) -> str:
    extent = scope.context.shape(name)[0]
    return scope.context.node("slice", name, starts=(extent - 1,), ends=(-extent - 1,), axes=(0,), steps=(-1,))


def _tensors(node: OnnxNode, entries: Entries) -> list[str]:
    names = [entry.name for entry in entries if isinstance(entry, Tensor)]
    if len(names) < len(entries):
        raise NotResolved("what is carried or scanned is not a tensor of numbers")
    return names


def _steps(scope: Scope, node: OnnxNode, scanned: Entries) -> int:
    """How many slices there are."""
    axes, _ = _ways(node, "input", len(scanned))
    found = set()
    for name, axis in zip(_tensors(node, scanned), axes, strict=True):
        if not -scope.context.rank(name) <= axis < scope.context.rank(name):
            raise malformed(node, "what is scanned has no such axis")
        found.add(scope.context.shape(name)[axis])
    if len(found) != 1:
        raise malformed(node, "what is scanned has different lengths")
    return found.pop()


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


def _unrolled(
    scope: Scope,
    work: Work,
    state: Sequence[str],
    scanned: Sequence[str],
    count: int,
    results: Sequence[str],
) -> Expansion:
    node, inner = work.node, body(work.node, "body")
    axes, back = _ways(node, "input", len(scanned))
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
    return Expansion([*made, *ends(work, inner, state, stacks, carried, results)])


def _batched_scan(scope: Scope, work: Work, operands: Entries) -> Expansion:
    """Version 8: every operand has a batch in front, each element of which is scanned by itself."""
    node = work.node
    count = integer(node, "num_scan_inputs", 0)
    carried = len(node.inputs) - 1 - count
    first = operand(node, operands, 1)
    if count < 1 or carried < 0 or not isinstance(first, Tensor) or not scope.context.rank(first.name):
        raise malformed(node, "its body does not take what is carried and scanned")
    if node.inputs[0] or integers(node, "directions", ()):
        raise NotResolved("version 8 with lengths or directions of its own")
    columns: list[list[str]] = [[] for _ in node.outputs]
    made: list[Work] = []
    for batch in range(scope.context.shape(first.name)[0]):
        names = [scope.names.fresh(name) for name in node.inputs[1:]]
        for name, piece in zip(node.inputs[1:], names, strict=True):
            entry = scope.context.node(
                "slice", _name(node, operands, name), starts=(batch,), ends=(batch + 1,), axes=(0,)
            )
            scope.bind(piece, Tensor(scope.context.node("squeeze", entry, axes=(0,))))
        steps = _steps(scope, node, tuple(scope.entry(name) for name in names[carried:]))
        results = [scope.names.fresh(name) for name in node.outputs]
        made += _unrolled(scope, work, names[:carried], names[carried:], steps, results).work
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


def ends(
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
    axes, back = _ways(node, "output", len(stacks))
    made = [identity(name, result, work.opsets) for name, result in zip(state, results, strict=False) if result]
    rest = results[len(state) :]
    for at, (result, column) in enumerate(zip(rest, stacks, strict=False)):
        if not result:
            continue
        if not column:
            made.append(_no_steps(work, inner, first + at, result))
        else:
            made.append(_stacked(work, column[::-1] if back[at] else column, result, axes[at]))
    return made


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
    ("", "Scan"): scan,
    (INTERNAL, "Pick"): pick,
    (INTERNAL, "Stack"): stack,
}
