"""Layers of networks as definitions, for machines of different dtypes: the terms are the same but for these."""

from dataclasses import dataclass

import dovetail.frontends.functional as fn
from dovetail.frontends.functional import Element, Value, f16, f32, f64, i8, i32
from dovetail.ir.functional.term import Definition


@dataclass(frozen=True)
class Kinds:
    """What is stored, what sums are, and whether products must be widened to sums by a cast."""

    stored: Element
    sums: Element
    widen: bool = False

    def dot(self, x: Value, y: Value) -> Value:
        if not self.widen:
            return fn.dot(x, y)
        return fn.reduce(fn.add, 0, fn.map(lambda a, b: self.sums(a) * self.sums(b), fn.zip(x, y)))

    def real(self, x: Value) -> Value:
        """What functions of real numbers are given."""
        return f32(x) if self.widen else x

    def nearest(self, x: Value) -> Value:
        """A real number as what is stored."""
        return self.stored(fn.scalar("round", x) if self.widen else x)


HALVES, DOUBLES, BYTES = Kinds(f16, f32), Kinds(f64, f64), Kinds(i8, i32, widen=True)
SINGLES = Kinds(f32, f32)


def fully_connected(kinds: Kinds, outputs: int = 256, inputs: int = 128) -> Definition:
    """``relu(w x + b)``."""

    @fn.function(w=kinds.stored[outputs, inputs], x=kinds.stored[inputs], b=kinds.sums[outputs])
    def fully_connected(w: Value, x: Value, b: Value) -> Value:
        product = fn.map(lambda row: kinds.dot(row, x), w)
        return fn.map(fn.relu, fn.map(fn.add, fn.zip(product, b)))

    return fully_connected


def mlp(kinds: Kinds, batch: int = 32, inputs: int = 128, hidden: int = 256, outputs: int = 64) -> Definition:
    """Two layers on a batch, written in one expression for each row."""

    def layer(w: Value, x: Value, b: Value) -> Value:
        return fn.map(lambda row, bias: kinds.dot(row, x) + bias, fn.zip(w, b))

    @fn.function(
        w=kinds.stored[hidden, inputs],
        b=kinds.sums[hidden],
        v=kinds.stored[outputs, hidden],
        c=kinds.sums[outputs],
        x=kinds.stored[batch, inputs],
    )
    def mlp(w: Value, b: Value, v: Value, c: Value, x: Value) -> Value:
        def row(one: Value) -> Value:
            return layer(v, fn.map(lambda s: kinds.stored(fn.relu(s)), layer(w, one, b)), c)

        return fn.map(row, x)

    return mlp


def convolution(kinds: Kinds, channels: int = 32, filters: int = 128, image: int = 10, taps: int = 3) -> Definition:
    """A convolution via ``slide``, a bias for each filter, and ``relu``. Images are rows, columns, channels."""

    @fn.function(
        x=kinds.stored[image, image, channels], w=kinds.stored[filters, taps, taps, channels], b=kinds.sums[filters]
    )
    def convolution(x: Value, w: Value, b: Value) -> Value:
        def products(window: Value, kernel: Value) -> Value:
            def over_row(xr: Value, wr: Value) -> Value:
                return fn.sum_of(fn.map(kinds.dot, fn.zip(xr, wr)))

            return fn.sum_of(fn.map(over_row, fn.zip(window, kernel)))

        def plane(kernel: Value, bias: Value) -> Value:
            def place(window: Value) -> Value:
                return fn.relu(products(window, kernel) + bias)

            return fn.map(lambda line: fn.map(place, line), fn.windows(x, (taps, taps)))

        return fn.map(plane, fn.zip(w, b))

    return convolution


def gru(kinds: Kinds, inputs: int = 64, units: int = 128) -> Definition:
    """One step; ``w``, ``u`` and ``b`` hold the gates update, reset, new."""

    def gate(k: int, w: Value, x: Value, u: Value, h: Value, b: Value) -> Value:
        wk, uk = (fn.join(fn.slice(k, 1, 1, m)) for m in (w, u))
        products = (fn.map(lambda row, v=v: kinds.dot(row, v), m) for m, v in ((wk, x), (uk, h)))
        return fn.map(fn.add, fn.zip(fn.map(fn.add, fn.zip(*products)), fn.row(k, b)))

    def sigmoid(v: Value) -> Value:
        return fn.sigmoid(kinds.real(v))

    @fn.function(
        x=kinds.stored[inputs],
        h=kinds.stored[units],
        w=kinds.stored[3, units, inputs],
        u=kinds.stored[3, units, units],
        b=kinds.sums[3, units],
    )
    def gru(x: Value, h: Value, w: Value, u: Value, b: Value) -> Value:
        update = fn.let("update", fn.map(sigmoid, gate(0, w, x, u, h, b)))
        reset = fn.let("reset", fn.map(sigmoid, gate(1, w, x, u, h, b)))
        rest = fn.let("rest", fn.map(lambda r, s: kinds.nearest(r * kinds.real(s)), fn.zip(reset, h)))
        new = fn.let("new", fn.map(lambda v: fn.tanh(kinds.real(v)), gate(2, w, x, u, rest, b)))
        return fn.map(lambda z, n, s: (1 - z) * n + z * kinds.real(s), fn.zip(update, new, h))

    return gru
