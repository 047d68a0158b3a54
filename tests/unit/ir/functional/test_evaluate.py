"""What terms mean, against NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import CallError
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.text import parse_definition

Array = npt.NDArray[np.generic]


def run(text: str, **arrays: Array) -> Array:
    return evaluate(parse_definition(text), arrays)["y"]


def whole(*shape: int, dtype: type = np.float32) -> Array:
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def test_a_product_of_matrices() -> None:
    a, b = whole(5, 7), whole(7, 6)
    dots = "map(\\row -> map(\\column -> reduce(add, 0, map(mul, zip(row, column))), transpose(b)), a)"
    np.testing.assert_array_equal(run(f"def f(a: f32[5, 7], b: f32[7, 6]) -> y = {dots}", a=a, b=b), np.matmul(a, b))


def test_a_sum_of_products_of_integers_wraps_where_programs_do() -> None:
    a = np.full(4, 100, np.int8)
    dot = "reduce(add, {}, map(mul, zip(a, a)))"
    assert run(f"def f(a: i8[4]) -> y = {dot.format('0')}", a=a) == np.int8(np.int64(40000).astype(np.int8))
    assert run(f"def f(a: i8[4]) -> y = {dot.format('i32(0)')}", a=a) == 4 * int(np.int64(10000).astype(np.int8))


def test_softmax_with_a_run_time_size() -> None:
    x = whole(3, 5)
    text = """size n in 1..9 def f(x: f32[3, n]) -> y = map(\\row ->
      let top = reduce(max, -inf, row) in let e = map(\\v -> exp(v - top), row) in
      map(\\v -> v / reduce(add, 0, e), e), x)"""
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(run(text, x=x).astype(np.float64), e / e.sum(axis=1, keepdims=True), rtol=1e-6)


def test_a_scan_goes_in_order() -> None:
    found = run("def f(x: i32[4]) -> y = scan(\\s e -> 2 * s + e, 1, x)", x=np.arange(4, dtype=np.int32))
    assert found.tolist() == [2, 5, 12, 27]


def test_windows_over_a_border_skip_what_is_not_there() -> None:
    text = "def f(x: f32[6]) -> y = map(reduce({}, {}), slide(3, 2, pad(1, 1, none, x)))"
    x = np.asarray([-1, -2, -3, -4, -5, -6], np.float32)
    assert run(text.format("add", "0"), x=x).tolist() == [-3, -9, -15]
    assert run(text.format("max", "-inf"), x=x).tolist() == [-1, -2, -4]


def test_a_function_of_the_fold_passes_over_none() -> None:
    text = "def f(x: f32[3]) -> y = reduce(\\s e -> s * 2 + e, 1, pad(1, 0, none, x))"
    assert run(text, x=np.asarray([1, 2, 3], np.float32)) == ((1 * 2 + 1) * 2 + 2) * 2 + 3


def test_none_takes_the_other_value() -> None:
    text = "def f(x: i32[3]) -> y = map(\\e -> orelse(e + 1, -7), pad(1, 1, none, x))"
    assert run(text, x=np.asarray([1, 2, 3], np.int32)).tolist() == [-7, 2, 3, 4, -7]


def test_contributions_at_places_are_combined() -> None:
    x = whole(4, 3, 2)
    found = run("def f(x: f32[4, 3, 2]) -> y = scatter(+=, 6, [i<4, j<3: i + j], x)", x=x)
    expected = np.zeros((6, 2), np.float32)
    for i in range(4):
        for j in range(3):
            expected[i + j] += x[i, j]
    np.testing.assert_array_equal(found, expected)
    reversed_ = run("def f(x: f32[4, 3, 2]) -> y = scatter(=, 4, [i<4: 3 - i], x)", x=x)
    np.testing.assert_array_equal(reversed_, x[::-1])


def test_a_scatter_under_a_map_is_one_for_each_element() -> None:
    x = whole(3, 4)
    found = run("def f(x: f32[3, 4]) -> y = map(scatter(max=, 2, [i<4: i // 2]), x)", x=x)
    np.testing.assert_array_equal(found, x.reshape(3, 2, 2).max(axis=2))


def test_a_view_reads_any_place() -> None:
    x = whole(4, 5)
    found = run("def f(x: f32[4, 5]) -> y = view([i<3, j<2: i + j, 4 - 2 * j], x)", x=x)
    np.testing.assert_array_equal(found, [[x[i + j, 4 - 2 * j] for j in range(2)] for i in range(3)])


def test_only_a_cast_rounds() -> None:
    x = np.asarray([2048, 1], np.float16)
    assert run("def f(x: f16[2]) -> y = reduce(add, 0, x) - 1", x=x) == 2048
    assert run("def f(x: f16[2]) -> y = f16(reduce(add, 0, x)) - 1", x=x) == 2047
    assert run("def f(x: f16[2]) -> y = map(bitcast_u16, x)", x=x).tolist() == x.view(np.uint16).tolist()


def test_several_results_and_an_array_that_is_written() -> None:
    definition = parse_definition(
        "def f(inout s: i32[3], x: i32[3]) -> s, d = tuple(map(add, zip(s, x)), map(sub, zip(s, x)))"
    )
    s, x = np.asarray([1, 2, 3], np.int32), np.asarray([5, 5, 5], np.int32)
    found = evaluate(definition, {"s": s, "x": x})
    assert found["s"].tolist() == [6, 7, 8] and found["d"].tolist() == [-4, -3, -2]
    assert s.tolist() == [1, 2, 3]


def test_an_ordered_sum_rounds_from_the_left() -> None:
    x = np.asarray([1e16, 1.0, -1e16, 1.0], np.float64)
    definition = parse_definition("def f(x: f64[4]) -> y = reduce(add, 0, x)")
    assert evaluate(definition, {"x": x}, ordered=True)["y"] == ((1e16 + 1.0) - 1e16) + 1.0


def test_wrong_arrays_are_refused() -> None:
    definition = parse_definition("def f(x: f32[3]) -> y = x")
    with pytest.raises(CallError):
        evaluate(definition, {"x": np.zeros(4, np.float32)})
    with pytest.raises(CallError):
        evaluate(definition, {})
