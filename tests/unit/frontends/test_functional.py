"""The functional language in Python: layers, names, sizes, and what is refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import dovetail.frontends.functional as fn
from dovetail.base.errors import TermError
from dovetail.frontends.functional import Value, const, f16, f32, i32
from dovetail.ir.canonical import canonicalise
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.infer import check
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.raise_program import raise_program
from dovetail.ir.functional.simplify import same, simplify
from dovetail.ir.functional.text import parse_definition, parse_term
from dovetail.ir.parse import parse

Floats = npt.NDArray[np.float32]


def whole(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def test_a_fully_connected_layer_is_three_lines() -> None:
    @fn.function(w=const(f32[6, 8]), x=f32[8], b=const(f32[6]))
    def fully_connected(w: Value, x: Value, b: Value) -> Value:
        return fn.map(lambda row, bias: fn.relu(fn.dot(row, x) + bias), fn.zip(w, b))

    assert fully_connected == parse_definition(
        """def fully_connected(const w: f32[6, 8], x: f32[8], const b: f32[6]) -> y =
          map(\\row bias -> max(reduce(add, 0, map(mul, zip(row, x))) + bias, 0), zip(w, b))"""
    )
    w, x, b = whole(0, 6, 8), whole(1, 8), whole(2, 6)
    found = evaluate(fully_connected, {"w": w, "x": x, "b": b})["y"]
    np.testing.assert_array_equal(found, np.maximum(w @ x + b, 0))


def test_matrix_products() -> None:
    @fn.function("p, q", a=f32[3, 4], b=f32[4, 5], x=f32[4])
    def products(a: Value, b: Value, x: Value) -> Value:
        return fn.tuple(fn.matmul(a, b), fn.matvec(a, x))

    a, b, x = whole(0, 3, 4), whole(1, 4, 5), whole(2, 4)
    found = evaluate(products, {"a": a, "b": b, "x": x})
    np.testing.assert_array_equal(found["p"], a @ b)
    np.testing.assert_array_equal(found["q"], a @ x)


@pytest.mark.parametrize(("step", "padding"), [((1, 1), (0, 0)), ((2, 1), (1, 1)), ((2, 2), (0, 1))])
def test_a_convolution(step: tuple[int, int], padding: tuple[int, int]) -> None:
    @fn.function(x=f32[2, 3, 8, 9], w=const(f32[4, 3, 3, 2]))
    def conv(x: Value, w: Value) -> Value:
        return fn.map(lambda image: fn.conv2d(image, w, (3, 2), step, padding), x)

    x, w = whole(0, 2, 3, 8, 9), whole(1, 4, 3, 3, 2)
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, :: step[0], :: step[1]]
    expected = np.einsum("ncpqrs,kcrs->nkpq", windows, w)
    np.testing.assert_array_equal(evaluate(conv, {"x": x, "w": w})["y"], expected)


def test_the_windows_of_an_image_have_one_spelling() -> None:
    @fn.function(x=f32[8, 9, 3])
    def windows(x: Value) -> Value:
        return fn.windows(x, (3, 2), (2, 1))

    assert same(windows.body, parse_term("map(\\r -> transpose(map(slide(2, 1), r)), slide(3, 2, x))"))
    assert [str(kind) for kind in check(windows)] == ["f32[3, 8, 3, 2, 3]"]


def test_softmax_of_rows_of_a_run_time_size() -> None:
    n = fn.size("n", 1, 16)

    @fn.function(x=f32[4, n])
    def softmax(x: Value) -> Value:
        return fn.map(fn.softmax, x)

    assert str(softmax).startswith("size n in 1..16\n")
    x = whole(0, 4, 7)
    e = np.exp(x.astype(np.float64))
    found = evaluate(softmax, {"x": x})["y"].astype(np.float64)
    np.testing.assert_allclose(found, e / e.sum(axis=1, keepdims=True), rtol=1e-6)


def test_cells_of_recurrent_networks() -> None:
    @fn.function("hidden, cell", x=f32[5], h=f32[4], c=f32[4], w=f32[4, 4, 5], u=f32[4, 4, 4], b=f32[4, 4])
    def lstm(x: Value, h: Value, c: Value, w: Value, u: Value, b: Value) -> Value:
        return fn.lstm_cell(x, h, c, w, u, b)

    @fn.function(x=f32[5], h=f32[4], w=f32[3, 4, 5], u=f32[3, 4, 4], b=f32[3, 4])
    def gru(x: Value, h: Value, w: Value, u: Value, b: Value) -> Value:
        return fn.gru_cell(x, h, w, u, b)

    def sigmoid(v: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return 1 / (1 + np.exp(-v))

    x, h, c = (whole(k, n).astype(np.float64) / 4 for k, n in ((0, 5), (1, 4), (2, 4)))
    w, u, b = (whole(k, 4, 4, *n).astype(np.float64) / 4 for k, n in ((3, (5,)), (4, (4,)), (5, ())))
    arrays = {name: a.astype(np.float32) for name, a in {"x": x, "h": h, "c": c, "w": w, "u": u, "b": b}.items()}
    i, f, g, o = w @ x + u @ h + b
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    found = evaluate(lstm, arrays)
    np.testing.assert_allclose(found["cell"].astype(np.float64), cell, rtol=1e-5)
    np.testing.assert_allclose(found["hidden"].astype(np.float64), sigmoid(o) * np.tanh(cell), rtol=1e-5)

    z, r = (sigmoid(w[k] @ x + u[k] @ h + b[k]) for k in (0, 1))
    new = np.tanh(w[2] @ x + u[2] @ (r * h) + b[2])
    del arrays["c"]
    arrays |= {name: arrays[name][:3] for name in "wub"}
    found = evaluate(gru, arrays)
    np.testing.assert_allclose(found["y"].astype(np.float64), (1 - z) * new + z * h, rtol=1e-5)


def test_a_helper_does_not_catch_the_names_around_it() -> None:
    def times(x: Value, factor: Value) -> Value:
        return fn.map(lambda v: v * factor, x)

    @fn.function(x=f32[3], y=f32[2])
    def outer(x: Value, y: Value) -> Value:
        return fn.map(lambda v: times(y, v), x)

    x, y = whole(0, 3), whole(1, 2)
    np.testing.assert_array_equal(evaluate(outer, {"x": x, "y": y})["y"], np.outer(x, y))


def test_every_pattern_can_be_written() -> None:
    n = fn.size("n", 4, 8)

    @fn.function("a, b, c, d", x=i32[n], h=f16[4])
    def patterns(x: Value, h: Value) -> Value:
        parts = fn.let("parts", fn.split(2, fn.to("", fn.repeat(4, fn.reduce(fn.add, 0, x)))))
        states = fn.scan(lambda s, e: 2 * s - e, 1, fn.pad(1, 0, 3, x))
        tail = fn.slice(1, n - 2, 1, fn.map(lambda e: fn.i32(e) + n, fn.iota(n)))
        shown = fn.map(lambda v: fn.orelse(v, -1), fn.view("[i<6 where i < 4: i]", h))
        spread = fn.scatter("+=", [4], "[i<6: i // 2]", fn.map(lambda e: fn.select(e >= 0, e, 0), shown))
        return fn.tuple(fn.join(fn.transpose(parts)), states, tail, fn.map(lambda p: fn.f16(p), spread))

    assert parse_definition(str(patterns)) == patterns
    found = evaluate(patterns, {"x": np.asarray([1, 2, 3, 4], np.int32), "h": np.asarray([1, 2, 3, 4], np.float16)})
    assert found["a"].tolist() == [10, 10, 10, 10]
    assert found["b"].tolist() == [-1, -3, -8, -19, -42]
    assert found["c"].tolist() == [5, 6]
    assert found["d"].tolist() == [3, 7, 0, 0]


def test_what_it_builds_is_simple() -> None:
    @fn.function(x=f32[4, 3])
    def rows(x: Value) -> Value:
        return fn.map(lambda row: fn.map(lambda e: fn.exp(e), row), x)

    assert rows.body == simplify(rows.body) == parse_term("map(map(exp), x)")


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(TermError, match="has no value while a term is built"):

        @fn.function(x=f32[4])
        def branch(x: Value) -> Value:
            return fn.map(lambda v: v if v > 0 else -v, x)

    with pytest.raises(TermError, match="there are types for x, y"):

        @fn.function(x=f32[4], y=f32[4])
        def other(x: Value) -> Value:
            return x

    with pytest.raises(TermError, match="named outside of a function"):
        fn.let("a", fn.iota(3))
    with pytest.raises(TermError, match="9 is not a multiple of 2"):

        @fn.function(x=f32[9])
        def halves(x: Value) -> Value:
            return fn.split(2, x)


def test_a_convolution_is_the_term_that_its_program_raises_to() -> None:
    @fn.function(x=f32[2, 8, 12, 12], w=const(f32[16, 8, 3, 3]))
    def conv(x: Value, w: Value) -> Value:
        return fn.map(lambda image: fn.conv2d(image, w, (3, 3), padding=(1, 1)), x)

    program = parse(
        """in x: f32[2, 8, 12, 12]  const w: f32[16, 8, 3, 3]  out y: f32[2, 16, 12, 12]
        for n<2, k<16, p<12, q<12, c<8, r<3, s<3 where 1 <= p + r < 13, 1 <= q + s < 13:
          y[n, k, p, q] += x[n, c, p + r - 1, q + s - 1] * w[k, c, r, s]"""
    )
    assert same(simplify(raise_program(program, "conv").body), conv.body)
    assert normalise(conv) == canonicalise(program)
