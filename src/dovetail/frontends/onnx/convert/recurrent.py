"""RNN, LSTM and GRU of ONNX: one operator for each direction, put side by side."""

from __future__ import annotations

import numpy as np

from dovetail.base.dtypes import DTYPES
from dovetail.frontends.onnx.convert.attributes import (
    integer,
    malformed,
    number,
    numbers,
    optional,
    required,
    text,
    texts,
)
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import cast, full, need_rank, reshape, transpose, trimmed
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ir.graph.graph import Attribute

_GATES = {"rnn": 1, "gru": 3, "lstm": 4}
_ACTIVATIONS = {"rnn": ("Tanh",), "gru": ("Sigmoid", "Tanh"), "lstm": ("Sigmoid", "Tanh", "Tanh")}
_DIRECTIONS = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}


def layer(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, w, r = required(node, operands, 3)
    for name in (x, w, r):
        need_rank(node, context, name, 3, 3)
    op = node.op.lower()
    ways = _DIRECTIONS.get(text(node, "direction", "forward"))
    if ways is None or context.shape(w)[0] != len(ways):
        raise malformed(node, "its direction and its operands do not belong together")
    batch_first = bool(integer(node, "layout", 0))
    if batch_first:
        x = transpose(context, x, (1, 0, 2))
    parts = [_direction(context, node, operands, op, x, at, bool(way), batch_first) for at, way in enumerate(ways)]
    axis = 2 if batch_first else 1
    results = []
    for place, made in enumerate(zip(*parts, strict=True)):
        whole = place == 0
        found = [_placed(context, value, whole, batch_first) for value in made]
        at = axis if whole else axis - 1
        results.append(found[0] if len(found) == 1 else context.node("concat", *found, axis=at))
    return trimmed(node, tuple(results))


def _direction(
    context: Context, node: OnnxNode, operands: Operands, op: str, x: str, at: int, back: bool, batch_first: bool
) -> tuple[str, ...]:
    """y[t, b, j], and the last states [b, j]."""
    _, w, r = required(node, operands, 3)
    weights = tuple(_part(context, name, at) for name in (w, r))
    batch, hidden, dtype = context.shape(x)[1], context.shape(r)[2], context.dtype(x)
    bias = optional(operands, 3)
    gates = _GATES[op]
    given = [x, *weights]
    given.append(full(context, (2 * gates * hidden,), 0, dtype) if bias is None else _part(context, bias, at))
    states = 2 if op == "lstm" else 1
    for k in range(states):
        first = optional(operands, 5 + k)
        if first is not None:
            need_rank(node, context, first, 3, 3)
        if first is not None and batch_first:
            first = transpose(context, first, (1, 0, 2))
        given.append(full(context, (batch, hidden), 0, dtype) if first is None else _part(context, first, at))
    lengths = _lengths(context, node, optional(operands, 4), context.shape(x)[0])
    peepholes = optional(operands, 7) if op == "lstm" else None
    if op == "lstm" and (peepholes is not None or lengths is not None):
        given.append(full(context, (3 * hidden,), 0, dtype) if peepholes is None else _part(context, peepholes, at))
    turned = back and lengths is not None
    if lengths is not None:
        given.append(lengths)
        given[0] = context.node("reverse_sequence", x, lengths) if turned else x
    settings = _settings(node, op, at, back and not turned)
    y, *last = context.nodes(op, *given, results=1 + states, **settings)
    if turned and lengths is not None:
        y = context.node("reverse_sequence", y, lengths)
    return (y, *last)


def _settings(node: OnnxNode, op: str, at: int, reverse: bool) -> dict[str, Attribute]:
    count = len(_ACTIVATIONS[op])
    names = texts(node, "activations", ())[at * count : (at + 1) * count] or _ACTIVATIONS[op]
    found: dict[str, Attribute] = {"activations": ",".join(names), "reverse": int(reverse)}
    for name, ours in (("activation_alpha", "alpha"), ("activation_beta", "beta")):
        values = numbers(node, name, ())
        if values:
            each = len(values) // 2 if text(node, "direction", "") == "bidirectional" else len(values)
            found[ours] = values[at * each : (at + 1) * each]
    found["clip"] = number(node, "clip", 0.0)
    if op == "lstm":
        found["input_forget"] = integer(node, "input_forget", 0)
    if op == "gru":
        found["linear_before_reset"] = integer(node, "linear_before_reset", 0)
    return found


def _lengths(context: Context, node: OnnxNode, name: str | None, steps: int) -> str | None:
    """Lengths of sequences, unless it is known that all have every step; one that is longer ends with the last step."""
    if name is None:
        return None
    known = context.fixed(name)
    listed = [] if known is None else [int(n) for n in known.reshape(-1).tolist()]
    if any(not 0 <= n <= steps for n in listed):
        raise malformed(node, f"sequence_lens is {listed}, and there are {steps} steps")
    if known is not None and np.all(known == steps):
        return None
    whole = cast(context, name, DTYPES["i64"])
    return whole if known is not None else context.node("min", whole, full(context, (), steps, DTYPES["i64"]))


def _part(context: Context, x: str, at: int) -> str:
    """``x[at]``."""
    directions, *rest = context.shape(x) or (1,)
    if directions > 1:
        x = context.node("slice", x, starts=(at,), ends=(at + 1,), axes=(0,))
    return reshape(context, x, tuple(rest))


def _placed(context: Context, x: str, whole: bool, batch_first: bool) -> str:
    """With an axis for directions; batches first where the node wants it."""
    if not whole:
        return context.node("unsqueeze", x, axes=(1 if batch_first else 0,))
    if batch_first:
        return context.node("unsqueeze", transpose(context, x, (1, 0, 2)), axes=(2,))
    return context.node("unsqueeze", x, axes=(1,))


CONVERSIONS: dict[tuple[str, str], Conversion] = {("", op): layer for op in ("GRU", "LSTM", "RNN")}
