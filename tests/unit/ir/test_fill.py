"""Inputs whose sums are exact."""

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill, sums_are_exact
from dovetail.ir.parse import parse

MATMUL = "in a: {0}[4, {1}] in b: {0}[{1}, 4] out y: f32[4, 4] for i<4, j<4, k<{1}: y[i, j] += a[i, k] * b[k, j]"


@pytest.mark.parametrize("length", [25, 1000, 100_000, 2_000_000])
def test_numbers_shrink_as_contractions_grow(length: int) -> None:
    program = parse(MATMUL.format("f32", length))
    arrays = fill(program, 1)
    largest = max(int(abs(a).max()) for a in arrays.values())
    assert length * largest**2 < 2**24
    assert all(np.count_nonzero(a) > 0.8 * a.size for a in arrays.values())
    assert sums_are_exact(program, {}, largest)


def test_a_sum_that_cannot_be_exact_is_known_to_be_so() -> None:
    assert not sums_are_exact(parse(MATMUL.format("f32", 2**24)), {}, 1)


def test_the_same_seed_gives_the_same_numbers() -> None:
    program = parse(MATMUL.format("bf16", 50))
    one, same, other = fill(program, 1), fill(program, 1), fill(program, 2)
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert any(not np.array_equal(one[name], other[name]) for name in one)


def test_a_recurrence_counts_its_steps() -> None:
    text = "in w: f32[4, 4] in x: f32[4] out h: f32[{0} + 1, 4] temp a: f32[{0}, 4] for i<4: h[0, i] = x[i]"
    text += " seq t<{0}: for i<4, j<4: a[t, i] += w[i, j] * h[t, j] seq t<{0}: for i<4: h[t + 1, i] = a[t, i]"
    assert sums_are_exact(parse(text.format(5)), {}, 2)
    assert not sums_are_exact(parse(text.format(12)), {}, 2)


def test_index_tensors_hold_indices_that_are_in_range() -> None:
    program = parse(
        "in x: f32[9] in f: u8[50] in g: i64[50] out y: f32[50] for i<50, k<3: y[i] += x[f[i] + k] * x[8 - g[i] // 2]"
    )
    arrays = fill(program, 4)
    assert arrays["f"].min() >= 0 and arrays["f"].max() <= 6
    assert arrays["g"].min() >= 0 and arrays["g"].max() <= 17
    assert len(np.unique(arrays["f"])) > 3
    evaluate(program, arrays)


def test_roots_and_logarithms_get_positive_numbers() -> None:
    program = parse("in x: f32[99] out y: f32[99] for i<99: y[i] = log(x[i]) + sqrt(x[i])")
    assert np.isfinite(evaluate(program, fill(program, 0))["y"]).all()


def test_what_places_are_computed_from_is_in_range_as_well() -> None:
    found = parse(
        "in x: f32[4,8]  in p: i64[3]  out y: f32[3,8]  temp t: i64[3]\n"
        "for i<3: t[i] = select(p[i] < 0, p[i] + 4, p[i])\nfor i<3, j<8: y[i,j] = x[t[i],j]"
    )
    places = fill(found, 0)["p"]
    assert places.min() >= 0 and places.max() < 4
