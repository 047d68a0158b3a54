"""Layers of networks, each in a few lines: examples of the language, and shapes that the rewrite rules know.

Images have the axes channel, row, column; weights of a convolution out-channel, in-channel, row, column.
"""

from __future__ import annotations

import builtins

from dovetail.frontends.functional.patterns import join, map, pad, reduce, slice, slide, transpose, tuple, zip
from dovetail.frontends.functional.value import NONE, Operand, Value, add, exp, let, max, mul, sigmoid, tanh

Pair = builtins.tuple[int, int]


def dot(x: Value, y: Value) -> Value:
    """The sum of the products of two vectors."""
    return reduce(add, 0, map(mul, zip(x, y)))


def matvec(w: Value, x: Value) -> Value:
    """A matrix times a vector."""
    return map(lambda row: dot(row, x), w)


def matmul(a: Value, b: Value) -> Value:
    """A matrix times a matrix."""
    return map(lambda row: map(lambda column: dot(row, column), transpose(b)), a)


def relu(x: Operand) -> Value:
    return max(x, 0)


def sum_of(x: Value) -> Value:
    """All elements added."""
    return reduce(add, 0, x)


def row(number: int, x: Value) -> Value:
    """Row ``number`` of a matrix."""
    return join(slice(number, 1, 1, x))


def softmax(x: Value) -> Value:
    """Exponentials that add up to one."""
    top = let("top", reduce(max, -float("inf"), x))
    e = let("e", map(lambda v: exp(v - top), x))
    total = let("total", sum_of(e))
    return map(lambda v: v / total, e)


def pad2d(x: Value, rows: Pair, columns: Pair, fill: Operand = NONE) -> Value:
    """An image with the axes row, column, ... and ``fill`` around it, before and after."""
    return pad(*rows, fill, map(lambda line: pad(*columns, fill, line), x))


def windows(x: Value, shape: Pair, step: Pair = (1, 1)) -> Value:
    """Windows of an image: the axes row, column, ... become row, column, row in window, column in window, ..."""
    lines = slide(shape[0], step[0], x)
    return map(lambda part: transpose(map(lambda line: slide(shape[1], step[1], line), part)), lines)


def conv2d(x: Value, w: Value, shape: Pair, step: Pair = (1, 1), padding: Pair = (0, 0)) -> Value:
    """A convolution of one image; ``shape`` is the kernel's, ``padding`` is before and after the rows and columns."""
    image = _channels_last(x)
    if any(padding):
        image = pad2d(image, (padding[0], padding[0]), (padding[1], padding[1]))
    kernels = map(_channels_last, w)
    return map(
        lambda kernel: map(
            lambda line: map(lambda window: _product(window, kernel), line),
            windows(image, shape, step),
        ),
        kernels,
    )


def lstm_cell(x: Value, h: Value, c: Value, w: Value, u: Value, b: Value) -> Value:
    """The next ``h`` and ``c``; ``w``, ``u`` and ``b`` hold the gates input, forget, cell, output."""
    gates = let("gates", map(lambda wg, ug, bg: _gate(wg, x, ug, h, bg), zip(w, u, b)))
    i, f, g, o = (row(k, gates) for k in range(4))
    cell = let("cell", map(lambda i, f, g, c: sigmoid(f) * c + sigmoid(i) * tanh(g), zip(i, f, g, c)))
    return tuple(map(lambda o, c: sigmoid(o) * tanh(c), zip(o, cell)), cell)


def gru_cell(x: Value, h: Value, w: Value, u: Value, b: Value) -> Value:
    """The next ``h``, reset before the product; ``w``, ``u`` and ``b`` hold the gates update, reset, new."""
    update, reset = (let(n, map(sigmoid, _part(k, w, x, u, h, b))) for k, n in enumerate(("update", "reset")))
    rest = let("rest", map(mul, zip(reset, h)))
    new = let("new", map(tanh, _part(2, w, x, u, rest, b)))
    return map(lambda z, n, h: (1 - z) * n + z * h, zip(update, new, h))


def _channels_last(x: Value) -> Value:
    """Axes c, i, j as i, j, c."""
    return map(transpose, transpose(x))


def _product(window: Value, kernel: Value) -> Value:
    """The sum over rows, columns and channels of products."""

    def over_row(xr: Value, wr: Value) -> Value:
        return sum_of(map(dot, zip(xr, wr)))

    return sum_of(map(over_row, zip(window, kernel)))


def _gate(w: Value, x: Value, u: Value, h: Value, b: Value) -> Value:
    return map(lambda wr, ur, bias: dot(wr, x) + dot(ur, h) + bias, zip(w, u, b))


def _part(k: int, w: Value, x: Value, u: Value, h: Value, b: Value) -> Value:
    """Gate ``k`` of several."""
    wk, uk = (join(slice(k, 1, 1, matrices)) for matrices in (w, u))
    return _gate(wk, x, uk, h, row(k, b))
