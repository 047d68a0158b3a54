"""One step of a recurrent layer. Weights hold the gates one behind the other, in the order that ``gates`` names.

x[b, i]  h[b, j]  c[b, j]  w[gates*j, i]  r[gates*j, j]  bias[gates*j]
"""

from __future__ import annotations

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ops.text import accumulator, need_rank, need_shape, same_dtype, text


def lstm_cell(x: Type, h: Type, c: Type, w: Type, r: Type, bias: Type | None = None, *, gates: str = "ifgo") -> str:
    """The next h and c: ``c' = f*c + i*g`` and ``h' = o*tanh(c')``; i, f, o are sigmoids and g a tanh."""
    _check(x, h, w, r, gates, "ifgo", {"bias": bias})
    need_shape("c", c, h.shape)
    i, f, g, o = (_gate("a", gates, gate, h, bias, "bias") for gate in "ifgo")
    wide = accumulator(x.dtype)
    return text(
        f"temp a: {wide}[{h.shape[0]}, {w.shape[0]}]",
        f"temp next: {wide}[{h.shape[0]}, {h.shape[1]}]",
        f"out h_next: {h.dtype}[{h.shape[0]}, {h.shape[1]}]  out c_next: {c.dtype}[{h.shape[0]}, {h.shape[1]}]",
        _products(x, h, w, "a", "a"),
        f"for b<{h.shape[0]}, j<{h.shape[1]}: next[b, j] = sigmoid({f}) * c[b, j] + sigmoid({i}) * tanh({g})",
        f"for b<{h.shape[0]}, j<{h.shape[1]}: c_next[b, j] = next[b, j]",
        f"for b<{h.shape[0]}, j<{h.shape[1]}: h_next[b, j] = sigmoid({o}) * tanh(next[b, j])",
    )


def gru_cell(
    x: Type,
    h: Type,
    w: Type,
    r: Type,
    bias: Type | None = None,
    recurrent_bias: Type | None = None,
    *,
    gates: str = "rzn",
    linear_before_reset: int = 0,
) -> str:
    """The next h: ``(1 - z)*n + z*h``, where the reset r meets h before the product with its weights, or after it."""
    _check(x, h, w, r, gates, "rzn", {"bias": bias, "recurrent_bias": recurrent_bias})
    batch, hidden = h.shape
    reset, z, n = (_gate("a", gates, gate, h, bias, "bias") for gate in "rzn")
    reset_h, z_h, n_h = (_gate("u", gates, gate, h, recurrent_bias, "recurrent_bias") for gate in "rzn")
    wide, row = accumulator(x.dtype), f"for b<{batch}, j<{hidden}: "
    third = _row(gates, "n", h)
    late = f"{row}new[b, j] = tanh({n} + reset[b, j] * ({n_h}))"
    early = text(
        f"temp kept: {wide}[{batch}, {hidden}]  temp v: {wide}[{batch}, {hidden}]",
        f"{row}kept[b, j] = reset[b, j] * h[b, j]",
        f"for b<{batch}, j<{hidden}, k<{hidden}: v[b, j] += kept[b, k] * r[{third}, k]",
        f"{row}new[b, j] = tanh({n} + ({n_h.replace('u[b, ' + third + ']', 'v[b, j]')}))",
    )
    return text(
        f"temp a: {wide}[{batch}, {w.shape[0]}]  temp u: {wide}[{batch}, {w.shape[0]}]",
        f"temp reset: {wide}[{batch}, {hidden}]  temp new: {wide}[{batch}, {hidden}]",
        f"out y: {h.dtype}[{batch}, {hidden}]",
        _products(x, h, w, "a", "u"),
        f"{row}reset[b, j] = sigmoid({reset} + {reset_h})",
        late if linear_before_reset else early,
        f"{row}y[b, j] = new[b, j] + sigmoid({z} + {z_h}) * (h[b, j] - new[b, j])",
    )


def _check(x: Type, h: Type, w: Type, r: Type, gates: str, known: str, biases: dict[str, Type | None]) -> None:
    need_rank("x", x, 2, 2)
    need_rank("h", h, 2, 2)
    if sorted(gates) != sorted(known):
        raise OperatorError(f"gates '{gates}' are not an order of '{known}'")
    need_shape("h", h, (x.shape[0], h.shape[1]))
    rows = h.shape[1] * len(known)
    need_shape("w", w, (rows, x.shape[1]))
    need_shape("r", r, (rows, h.shape[1]))
    present = {name: t for name, t in biases.items() if t is not None}
    for name, t in present.items():
        need_shape(name, t, (rows,))
    same_dtype(x, h, w, r, *present.values())


def _products(x: Type, h: Type, w: Type, inputs: str, states: str) -> str:
    """What the input and the state give to each gate."""
    over = f"for b<{x.shape[0]}, m<{w.shape[0]}"
    return text(
        f"{over}, i<{x.shape[1]}: {inputs}[b, m] += x[b, i] * w[m, i]",
        f"{over}, k<{h.shape[1]}: {states}[b, m] += h[b, k] * r[m, k]",
    )


def _row(gates: str, gate: str, h: Type) -> str:
    """The row of the weights that belongs to unit j of ``gate``."""
    first = h.shape[1] * gates.index(gate)
    return "j" if first.const == 0 and first.is_constant else f"j + {first}"


def _gate(temp: str, gates: str, gate: str, h: Type, bias: Type | None, name: str) -> str:
    row = _row(gates, gate, h)
    return f"{temp}[b, {row}]" + ("" if bias is None else f" + {name}[{row}]")


OPERATORS = operators(lstm_cell, gru_cell)
