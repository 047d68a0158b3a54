"""Sequences and optionals: lists of values while the graph is made, of which nothing is left in it."""

from __future__ import annotations

import numpy as np

from dovetail.frontends.onnx.convert.attributes import integer, malformed
from dovetail.frontends.onnx.convert.structure import (
    Entries,
    NotResolved,
    Scope,
    Structure,
    operand,
    scalar,
    sequence,
    value,
)
from dovetail.frontends.onnx.entries import NOTHING, Entry, Listed, Nothing, Tensor
from dovetail.frontends.onnx.inline import Work
from dovetail.frontends.onnx.model import OnnxNode


def construct(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    return (Listed(tuple(operand(work.node, operands, at) for at in range(len(operands)))),)


def empty(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    return (Listed(()),)


def element(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    items = sequence(work.node, operands, 0)
    return (items[_place(work.node, scalar(scope, work.node, operands, 1), len(items))],)


def insert(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    items, new = sequence(work.node, operands, 0), operand(work.node, operands, 1)
    given = len(operands) > 2 and operands[2] is not None
    at = scalar(scope, work.node, operands, 2) if given else len(items)
    if not -len(items) <= at <= len(items):
        raise malformed(work.node, f"place {at} is outside a sequence of {len(items)}")
    at = at + len(items) if at < 0 else at
    return (Listed((*items[:at], new, *items[at:])),)


def erase(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    items = sequence(work.node, operands, 0)
    given = len(operands) > 1 and operands[1] is not None
    at = _place(work.node, scalar(scope, work.node, operands, 1) if given else -1, len(items))
    return (Listed((*items[:at], *items[at + 1 :])),)


def length(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    return (scope.constant(np.array(len(sequence(work.node, operands, 0)), np.int64)),)


def concatenate(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    names = _tensors(sequence(work.node, operands, 0))
    axis = integer(work.node, "axis", None)
    if axis is None or not names:
        raise malformed(work.node, "it needs an axis and a sequence that is not empty")
    if integer(work.node, "new_axis", 0):
        names = tuple(scope.context.node("unsqueeze", name, axes=(axis,)) for name in names)
    return (Tensor(scope.context.node("concat", *names, axis=axis)),)


def split(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    (name,) = _tensors((operand(work.node, operands, 0),))
    context, axis = scope.context, integer(work.node, "axis", 0)
    shape = context.shape(name)
    if not -len(shape) <= axis < len(shape):
        raise malformed(work.node, f"axis {axis} is outside {context.type(name)}")
    sizes, keep = _sizes(scope, work.node, operands, shape[axis])
    made = context.nodes("split", name, results=len(sizes), sizes=sizes, axis=axis)
    if not keep:
        made = tuple(context.node("squeeze", part, axes=(axis,)) for part in made)
    return (Listed(tuple(map(Tensor, made))),)


def optional(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    return (operands[0] if operands and operands[0] is not None else NOTHING,)


def has_element(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    found = bool(operands) and operands[0] is not None and not isinstance(operands[0], Nothing)
    return (scope.constant(np.array(found)),)


def get_element(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    found = operand(work.node, operands, 0)
    if isinstance(found, Nothing):
        raise malformed(work.node, "the optional is empty")
    return (found,)


def _place(node: OnnxNode, at: int, count: int) -> int:
    if not -count <= at < count:
        raise malformed(node, f"place {at} is outside a sequence of {count}")
    return at % count


def _sizes(scope: Scope, node: OnnxNode, operands: Entries, extent: int) -> tuple[tuple[int, ...], bool]:
    """How much each part has, and whether the axis stays."""
    open_ = len(operands) < 2 or operands[1] is None
    wanted = np.array(1) if open_ else value(scope, node, operands, 1)
    if wanted.ndim > 1:
        raise malformed(node, f"its sizes are a tensor of {wanted.ndim} dimensions")
    if wanted.ndim:
        return tuple(map(int, wanted.astype(np.int64))), True
    each = int(wanted.astype(np.int64))
    if each < 1:
        raise malformed(node, f"parts of {each}")
    whole, rest = divmod(extent, each)
    if whole > scope.context.limits.node_values:
        raise NotResolved(f"a sequence of {whole} parts")
    if open_:
        return (1,) * extent, bool(integer(node, "keepdims", 1))
    return (*(each,) * whole, *((rest,) if rest else ())), True


def _tensors(items: tuple[Entry, ...]) -> tuple[str, ...]:
    names = tuple(item.name for item in items if isinstance(item, Tensor))
    if len(names) < len(items):
        raise NotResolved("elements of strings or of types that graphs do not have")
    return names


STRUCTURES: dict[tuple[str, str], Structure] = {
    ("", "SequenceConstruct"): construct,
    ("", "SequenceEmpty"): empty,
    ("", "SequenceAt"): element,
    ("", "SequenceInsert"): insert,
    ("", "SequenceErase"): erase,
    ("", "SequenceLength"): length,
    ("", "ConcatFromSequence"): concatenate,
    ("", "SplitToSequence"): split,
    ("", "Optional"): optional,
    ("", "OptionalHasElement"): has_element,
    ("", "OptionalGetElement"): get_element,
}
