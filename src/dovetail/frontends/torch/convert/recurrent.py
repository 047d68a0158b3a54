"""LSTM, GRU and RNN over whole sequences: one operator for each layer and direction, side by side.

PyTorch stacks gates as i, f, g, o and r, z, n; ours as i, o, f, g and z, r, n. The rows of weights change places, which
costs nothing at run time where they are constants.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.context import Context, Conversion, Results


@dataclass(frozen=True, slots=True)
class _Kind:
    """An operator of ours: where each of its gates lies among PyTorch's, and its settings."""

    op: str
    order: tuple[int, ...]
    settings: tuple[tuple[str, str | int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Weights:
    """Of one direction of one layer."""

    w: str
    r: str
    biases: tuple[str, ...]
    projection: str | None


def _layers(kind: _Kind) -> Conversion:
    """``aten.lstm.input`` and the like: the outputs of the last layer, and the last states of all."""

    def convert(context: Context, call: Call) -> Results:
        if call.flag("train") and call.real("dropout") > 0:
            raise call.unsupported("dropout between its layers, which draws random numbers")
        x = call.tensor("input")
        states = call.tensors("hx") if kind.op == "lstm" else (call.tensor("hx"),)
        if call.flag("batch_first"):
            x = context.node("transpose", x, perm=(1, 0, 2))
        ways = 2 if call.flag("bidirectional") else 1
        weights = _weights(call, kind, call.flag("has_biases"), len({context.shape(s)[2] for s in states}) > 1)
        last: list[tuple[str, ...]] = []
        for layer in range(call.whole("num_layers")):
            made = [
                _direction(context, kind, x, states, weights[layer * ways + way], layer * ways + way, way)
                for way in range(ways)
            ]
            x = made[0][0] if ways == 1 else context.node("concat", *(y for y, *_ in made), axis=2)
            last += [tuple(found) for _, *found in made]
        if call.flag("batch_first"):
            x = context.node("transpose", x, perm=(1, 0, 2))
        return (x, *(_stacked(context, column) for column in zip(*last, strict=True)))

    return convert


def _weights(call: Call, kind: _Kind, biased: bool, projected: bool) -> list[_Weights]:
    """``params`` holds w, r, two biases and a projection for each direction, those that there are."""
    names = call.tensors("params")
    each = 2 + 2 * biased + projected
    if len(names) % each:
        raise call.unsupported(f"{len(names)} weights are not {each} for each layer")
    found = []
    for start in range(0, len(names), each):
        w, r, *rest = names[start : start + each]
        biases = tuple(rest[:2]) if biased else ()
        found.append(_Weights(w, r, biases, rest[-1] if projected else None))
    return found


def _direction(
    context: Context, kind: _Kind, x: str, states: tuple[str, ...], weights: _Weights, at: int, way: int
) -> tuple[str, ...]:
    """y[t, b, j], and the last states [b, j]; the first states are row ``at`` of ``states``."""
    rows = context.shape(weights.w)[0]
    if weights.biases:
        bias = context.node("concat", *(_reordered(context, b, kind.order) for b in weights.biases), axis=0)
    else:
        bias = context.constant(np.zeros(2 * rows, context.dtype(x).numpy))
    matrices = (_reordered(context, name, kind.order) for name in (weights.w, weights.r))
    given = [x, *matrices, bias, *(_row(context, state, at) for state in states)]
    settings = dict(kind.settings)
    if weights.projection is None:
        return context.nodes(kind.op, *given, results=1 + len(states), reverse=way, **settings)
    return context.nodes("projected_lstm", *given, weights.projection, results=3, reverse=way)


def _reordered(context: Context, name: str, order: tuple[int, ...]) -> str:
    """The rows of ``name``, gate by gate, in another order."""
    if order == tuple(range(len(order))):
        return name
    sizes = (context.shape(name)[0] // len(order),) * len(order)
    parts = context.nodes("split", name, results=len(order), axis=0, sizes=sizes)
    return context.node("concat", *(parts[k] for k in order), axis=0)


def _row(context: Context, name: str, at: int) -> str:
    """``name[at]``."""
    if context.shape(name)[0] > 1:
        name = context.node("slice", name, starts=(at,), ends=(at + 1,), axes=(0,))
    return context.reshape(name, context.shape(name)[1:])


def _stacked(context: Context, parts: tuple[str, ...]) -> str:
    rows = [context.reshape(part, (1, *context.shape(part))) for part in parts]
    return rows[0] if len(rows) == 1 else context.node("concat", *rows, axis=0)


_KINDS = {
    "lstm": _Kind("lstm", (0, 3, 1, 2)),
    "gru": _Kind("gru", (1, 0, 2), (("linear_before_reset", 1),)),
    "rnn_tanh": _Kind("rnn", (0,), (("activations", "Tanh"),)),
    "rnn_relu": _Kind("rnn", (0,), (("activations", "Relu"),)),
}
CONVERSIONS: dict[str, Conversion] = {
    **{f"aten.{name}.input": _layers(kind) for name, kind in _KINDS.items()},
    **{f"dovetail.{name}.default": _layers(kind) for name, kind in _KINDS.items()},
}
"""As an export has them, and as ``keep_layers`` leaves them."""
