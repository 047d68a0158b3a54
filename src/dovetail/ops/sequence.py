"""Recurrent layers over whole sequences, one direction each; the products of the inputs are one contraction ahead.

x[t, b, i]  w[gates*j, i]  r[gates*j, j]  bias[2*gates*j], that of w and then that of r  h0[b, j]  lengths[b]

Results are y[t, b, j] and the last state; steps beyond a sequence's length leave its state alone and give 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Floats, operators
from dovetail.ir.index import Index, constant, variable
from dovetail.ops.text import accumulator, need_rank, need_shape, same_dtype, text


def rnn(
    x: Type,
    w: Type,
    r: Type,
    bias: Type,
    h0: Type,
    lengths: Type | None = None,
    *,
    reverse: int = 0,
    activations: str = "Tanh",
    alpha: Floats = (),
    beta: Floats = (),
    clip: float = 0.0,
) -> str:
    """``h' = f(x @ w + h @ r + bias)``."""
    layer = _layer(x, w, r, bias, h0, lengths, 1, reverse, clip)
    (f,) = _activations(activations, 1, alpha, beta)
    return text(layer.begin(), layer.next("h", f(layer.gate(0))), layer.end("h"))


def lstm(
    x: Type,
    w: Type,
    r: Type,
    bias: Type,
    h0: Type,
    c0: Type,
    peepholes: Type | None = None,
    lengths: Type | None = None,
    *,
    reverse: int = 0,
    activations: str = "Sigmoid,Tanh,Tanh",
    alpha: Floats = (),
    beta: Floats = (),
    clip: float = 0.0,
    input_forget: int = 0,
) -> str:
    """``c' = f*c + i*g``, ``h' = o*act(c')``, gates in the order i, o, f, g; ``peepholes`` let i, o and f see c."""
    layer = _layer(x, w, r, bias, h0, lengths, 4, reverse, clip)
    need_shape("c0", c0, h0.shape)
    f, g, h = _activations(activations, 3, alpha, beta)
    seen = ["", "", ""]
    if peepholes is not None:
        need_shape("peepholes", peepholes, (layer.hidden * 3,))
        states = ("c[t, b, j]", "fresh[t, b, j]", "c[t, b, j]")
        seen = [f" + peepholes[{_row(layer.hidden, k)}] * {state}" for k, state in enumerate(states)]
    i = f(layer.gate(0, seen[0]))
    forget = f"(1.0 - {i})" if input_forget else f(layer.gate(2, seen[2]))
    return text(
        layer.begin("c"),
        f"temp fresh: {layer.wide}[{layer.steps}, {layer.batch}, {layer.hidden}]",
        f"{layer.each}fresh[t, b, j] = {forget} * c[t, b, j] + {i} * {g(layer.gate(3))}",
        layer.next("c", "fresh[t, b, j]"),
        layer.next("h", f"{f(layer.gate(1, seen[1]))} * {h('fresh[t, b, j]')}"),
        layer.end("h", "c"),
    )


def projected_lstm(
    x: Type, w: Type, r: Type, bias: Type, h0: Type, c0: Type, projection: Type, *, reverse: int = 0
) -> str:
    """``lstm`` whose state is narrower than its cells: ``h' = (o*tanh(c')) @ projection``, projection[n, j]."""
    layer = _layer(x, w, r, bias, h0, None, 4, reverse, 0.0, cells=c0.shape[-1])
    hidden, wide = layer.hidden, layer.wide
    need_shape("c0", c0, (layer.batch, hidden))
    need_shape("projection", projection, (layer.state, hidden))
    shape = f"{wide}[{layer.steps}, {layer.batch}, {hidden}]"
    i, o, f, g = (layer.gate(number) for number in range(4))
    narrow = f"seq t<{layer.steps}: for b<{layer.batch}, n<{layer.state}"
    return text(
        layer.begin("c"),
        f"temp fresh: {shape}  temp full: {shape}",
        f"temp less: {wide}[{layer.steps}, {layer.batch}, {layer.state}]",
        f"{layer.each}fresh[t, b, j] = sigmoid({f}) * c[t, b, j] + sigmoid({i}) * tanh({g})",
        layer.next("c", "fresh[t, b, j]"),
        f"{layer.each}full[t, b, j] = sigmoid({o}) * tanh(fresh[t, b, j])",
        f"{narrow}, j<{hidden}: less[t, b, n] += full[t, b, j] * projection[n, j]",
        f"{narrow}: h[t + 1, b, n] = less[t, b, n]",
        layer.end("h", "c"),
    )


def gru(
    x: Type,
    w: Type,
    r: Type,
    bias: Type,
    h0: Type,
    lengths: Type | None = None,
    *,
    reverse: int = 0,
    activations: str = "Sigmoid,Tanh",
    alpha: Floats = (),
    beta: Floats = (),
    clip: float = 0.0,
    linear_before_reset: int = 0,
) -> str:
    """``h' = (1 - z)*n + z*h``, gates in the order z, r, n; the reset r meets h before its weights, or after them."""
    layer = _layer(x, w, r, bias, h0, lengths, 3, reverse, clip)
    f, g = _activations(activations, 2, alpha, beta)
    hidden, row = layer.hidden, _row(layer.hidden, 2)
    shape = f"{layer.wide}[{layer.steps}, {layer.batch}, {hidden}]"
    recurrent = f"bias[{_row(hidden, 5)}]"
    own = f"a[{layer.element}, b, {row}] + bias[{row}]"
    new = layer.clipped(f"{own} + reset[t, b, j] * (u[t, b, {row}] + {recurrent})")
    before = ""
    if not linear_before_reset:
        before = text(
            f"temp kept: {shape}  temp v: {shape}",
            f"{layer.each}kept[t, b, j] = reset[t, b, j] * h[t, b, j]",
            f"{layer.each.removesuffix(': ')}, k<{hidden}: v[t, b, j] += kept[t, b, k] * r[{row}, k]",
        )
        new = layer.clipped(f"{own} + v[t, b, j] + {recurrent}")
    return text(
        layer.begin(),
        f"temp reset: {shape}  temp new: {shape}  temp update: {shape}",
        f"{layer.each}update[t, b, j] = {f(layer.gate(0))}",
        f"{layer.each}reset[t, b, j] = {f(layer.gate(1))}",
        before,
        f"{layer.each}new[t, b, j] = {g(new)}",
        layer.next("h", "new[t, b, j] + update[t, b, j] * (h[t, b, j] - new[t, b, j])"),
        layer.end("h"),
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """What the three have in common: states over steps, products of inputs and states, gates."""

    x: Type
    steps: Index
    batch: Index
    hidden: Index
    """Units of a gate."""
    state: Index
    """Units of h: as many, unless it is projected."""
    rows: Index
    """Of the weights: all gates."""
    gates: int
    element: Index
    """Which input a step takes."""
    lengths: bool
    bound: float

    @property
    def wide(self) -> str:
        return accumulator(self.x.dtype).name

    @property
    def each(self) -> str:
        return f"seq t<{self.steps}: for b<{self.batch}, j<{self.hidden}: "

    def width(self, state: str) -> Index:
        return self.state if state == "h" else self.hidden

    def begin(self, *others: str) -> str:
        """Declarations, the products of all inputs, the first states, and at each step the products of the state."""
        wide, rows = self.wide, f"b<{self.batch}, m<{self.rows}"
        states = ("h", *others)
        shape = f"{self.steps}, {self.batch}, {self.rows}"
        return text(
            f"temp a: {wide}[{shape}]  temp u: {wide}[{shape}]",
            *(f"temp {s}: {self.x.dtype}[{self.steps + 1}, {self.batch}, {self.width(s)}]" for s in states),
            f"for t<{self.steps}, {rows}, i<{self.x.shape[2]}: a[t, b, m] += x[t, b, i] * w[m, i]",
            *(f"for b<{self.batch}, j<{self.width(s)}: {s}[0, b, j] = {s}0[b, j]" for s in states),
            f"seq t<{self.steps}: for {rows}, k<{self.state}: u[t, b, m] += h[t, b, k] * r[m, k]",
        )

    def gate(self, number: int, more: str = "") -> str:
        """What a gate's activation sees."""
        row, other = _row(self.hidden, number), _row(self.hidden, self.gates + number)
        return self.clipped(f"a[{self.element}, b, {row}] + u[t, b, {row}] + bias[{row}] + bias[{other}]{more}")

    def clipped(self, value: str) -> str:
        return f"min(max({value}, {-self.bound!r}), {self.bound!r})" if self.bound else f"({value})"

    def next(self, state: str, value: str) -> str:
        """The state after a step; beyond its length a sequence keeps it."""
        kept = f"select(t < lengths[b], {value}, {state}[t, b, j])" if self.lengths else value
        return f"{self.each}{state}[t + 1, b, j] = {kept}"

    def end(self, *states: str) -> str:
        """The state after each step, and the last states."""
        dtype, each = self.x.dtype, {s: f"b<{self.batch}, j<{self.width(s)}" for s in states}
        value = "select(t < lengths[b], h[t + 1, b, j], 0.0)" if self.lengths else "h[t + 1, b, j]"
        last = (f"for {each[s]}: {s}_last[b, j] = {s}[{self.steps}, b, j]" for s in states)
        return text(
            f"out y: {dtype}[{self.steps}, {self.batch}, {self.state}]",
            *(f"out {s}_last: {dtype}[{self.batch}, {self.width(s)}]" for s in states),
            f"for t<{self.steps}, {each['h']}: y[{self.element}, b, j] = {value}",
            *last,
        )


def _layer(
    x: Type,
    w: Type,
    r: Type,
    bias: Type,
    h0: Type,
    lengths: Type | None,
    gates: int,
    reverse: int,
    clip: float,
    cells: Index | None = None,
) -> _Layer:
    """``cells`` where a gate has other units than h."""
    need_rank("x", x, 3, 3)
    need_rank("h0", h0, 2, 2)
    steps, batch, inputs = x.shape
    state = h0.shape[1]
    hidden = state if cells is None else cells
    rows = hidden * gates
    need_shape("h0", h0, (batch, state))
    need_shape("w", w, (rows, inputs))
    need_shape("r", r, (rows, state))
    need_shape("bias", bias, (rows * 2,))
    same_dtype(x, w, r, bias, h0)
    if lengths is not None:
        need_shape("lengths", lengths, (batch,))
    if lengths is not None and reverse:
        raise OperatorError("sequences of several lengths backwards", hint="reverse_sequence")
    t = variable("t")
    element = steps - 1 - t if reverse else t
    return _Layer(x, steps, batch, hidden, state, rows, gates, element, lengths is not None, clip)


def _row(hidden: Index, number: int) -> Index:
    return variable("j") + hidden * number if number else variable("j") + constant(0)


_FUNCTIONS: dict[str, Callable[[str, float, float], str]] = {
    "relu": lambda v, a, b: f"max({v}, 0.0)",
    "tanh": lambda v, a, b: f"tanh({v})",
    "sigmoid": lambda v, a, b: f"sigmoid({v})",
    "affine": lambda v, a, b: f"({a!r} * {v} + {b!r})",
    "leakyrelu": lambda v, a, b: f"select({v} < 0, {a!r} * {v}, {v})",
    "thresholdedrelu": lambda v, a, b: f"select({v} > {a!r}, {v}, 0.0)",
    "scaledtanh": lambda v, a, b: f"({a!r} * tanh({b!r} * {v}))",
    "hardsigmoid": lambda v, a, b: f"max(min({a!r} * {v} + {b!r}, 1.0), 0.0)",
    "elu": lambda v, a, b: f"select({v} > 0, {v}, {a!r} * (exp({v}) - 1.0))",
    "softsign": lambda v, a, b: f"({v} / (1.0 + abs({v})))",
    "softplus": lambda v, a, b: f"(max({v}, 0.0) + log(1.0 + exp(-abs({v}))))",
}
_DEFAULTS = {"affine": (1.0, 0.0), "leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0), "scaledtanh": (1.0, 1.0)}
_DEFAULTS |= {"hardsigmoid": (0.2, 0.5), "elu": (1.0, 0.0)}


def _activations(names: str, wanted: int, alpha: Floats, beta: Floats) -> list[Callable[[str], str]]:
    """One function for each name; numbers for those that take some are given in their order."""
    found: list[Callable[[str], str]] = []
    alphas, betas = iter(alpha), iter(beta)
    for name in names.lower().split(","):
        if name not in _FUNCTIONS:
            raise OperatorError(f"there is no activation '{name}'", hint=f"one of {', '.join(_FUNCTIONS)}")
        a, b = _DEFAULTS.get(name, (0.0, 0.0))
        if name in _DEFAULTS:
            a = next(alphas, a)
        if name in ("affine", "scaledtanh", "hardsigmoid"):
            b = next(betas, b)
        found.append(_bound(_FUNCTIONS[name], a, b))
    if len(found) != wanted:
        raise OperatorError(f"{len(found)} activations, not {wanted}")
    return found


def _bound(function: Callable[[str, float, float], str], a: float, b: float) -> Callable[[str], str]:
    return lambda value: function(value, a, b)


OPERATORS = operators(rnn, lstm, projected_lstm, gru)
