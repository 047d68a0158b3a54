"""Pooling against NumPy: every window looked at by itself."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import Array, apply, apply_many, apply_sized, whole

Ints = tuple[int, ...]
CASES: list[tuple[Ints, dict[str, Ints]]] = [
    ((1, 2, 9), {"kernel": (3,)}),
    ((1, 1, 5), {"kernel": (2,), "strides": (3,), "pads": (0, 1)}),
    ((2, 3, 7, 8), {"kernel": (2, 3), "strides": (2, 2)}),
    ((1, 2, 7, 7), {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    ((1, 2, 8, 9), {"kernel": (3, 2), "strides": (3, 2), "pads": (1, 0, 1, 1), "dilations": (2, 1)}),
    ((1, 2, 4, 5, 6), {"kernel": (2, 2, 2), "strides": (2, 1, 2)}),
]


@pytest.mark.parametrize(("shape", "settings"), CASES)
@pytest.mark.parametrize("ceil", [0, 1])
def test_max_pool_takes_the_largest_of_each_window(shape: Ints, settings: dict[str, Ints], ceil: int) -> None:
    x = whole(*shape, low=-50, high=50)
    expected = pooled(x, settings, ceil, lambda window, counted: window.max())
    np.testing.assert_array_equal(apply("max_pool", x, ceil_mode=ceil, **settings), expected)


@pytest.mark.parametrize(("shape", "settings"), CASES)
def test_the_place_of_the_largest_counts_elements_in_either_order(shape: Ints, settings: dict[str, Ints]) -> None:
    x = np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype(np.float32)
    y, indices = apply_many("max_pool_indices", 2, x, **settings)
    np.testing.assert_array_equal(y, apply("max_pool", x, **settings))
    np.testing.assert_array_equal(x.reshape(-1)[indices], y)
    _, turned = apply_many("max_pool_indices", 2, x, column_major=1, **settings)
    backwards = x.transpose(0, 1, *reversed(range(2, x.ndim))).reshape(-1)
    np.testing.assert_array_equal(backwards[turned], y)


def test_of_equal_elements_the_first_is_the_largest() -> None:
    _, indices = apply_many("max_pool_indices", 2, np.ones((1, 1, 4), np.float32), kernel=(2,), strides=(2,))
    assert indices.reshape(-1).tolist() == [0, 2]


@pytest.mark.parametrize(("shape", "settings"), CASES)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_norm_of_each_window_counts_padding_as_nothing(shape: Ints, settings: dict[str, Ints], p: int) -> None:
    x = whole(*shape)
    expected = pooled(x, settings, 0, lambda window, counted: (np.abs(window) ** p).sum() ** (1 / p))
    np.testing.assert_allclose(apply("lp_pool", x, p=p, **settings), expected, rtol=2e-6, atol=1e-6)
    with pytest.raises(OperatorError, match="0-norm"):
        apply("lp_pool", x, p=0, **settings)


@pytest.mark.parametrize(("shape", "settings"), CASES)
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("include", [0, 1])
def test_average_pool_divides_by_what_it_counts(
    shape: Ints, settings: dict[str, Ints], ceil: int, include: int
) -> None:
    x = whole(*shape)
    expected = pooled(x, settings, ceil, lambda window, counted: window.sum() / (counted if include else window.size))
    found = apply("average_pool", x, ceil_mode=ceil, count_include_pad=include, **settings)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_mean_of_everything_keeps_the_axes() -> None:
    x = whole(2, 3, 4, 8)
    np.testing.assert_array_equal(apply("global_average_pool", x), x.mean((2, 3), keepdims=True))
    np.testing.assert_allclose(apply_sized("global_average_pool", 4, x), x.mean((2, 3), keepdims=True), rtol=1e-6)


def test_the_largest_of_windows_over_any_height() -> None:
    x = whole(1, 2, 9, 6)
    settings: dict[str, Ints] = {"kernel": (3, 3), "strides": (2, 1), "pads": (1, 1, 1, 1)}
    expected = pooled(x, settings, 0, lambda window, counted: window.max())
    np.testing.assert_array_equal(apply_sized("max_pool", 9, x, **settings), expected)


def pooled(x: Array, settings: dict[str, Ints], ceil: int, take: object) -> Array:
    """``take`` of the elements of each window, and of how many places of it lie in the padded input."""
    assert callable(take)
    kernel = settings["kernel"]
    rank = len(kernel)
    strides, dilations = (settings.get(name, (1,) * rank) for name in ("strides", "dilations"))
    pads = settings.get("pads", (0,) * (2 * rank))
    out = []
    for d in range(rank):
        room = x.shape[2 + d] + pads[d] + pads[d + rank] - dilations[d] * (kernel[d] - 1) - 1
        count = (-(-room // strides[d]) if ceil else room // strides[d]) + 1
        out.append(count - (ceil and (count - 1) * strides[d] >= x.shape[2 + d] + pads[d]))
    found = np.zeros((*x.shape[:2], *out))
    for n, c, *at in product(*map(range, found.shape)):
        taps = [[at[d] * strides[d] + t * dilations[d] - pads[d] for t in range(kernel[d])] for d in range(rank)]
        inside = [[p for p in taps[d] if 0 <= p < x.shape[2 + d]] for d in range(rank)]
        padded = [sum(p < x.shape[2 + d] + pads[d + rank] for p in taps[d]) for d in range(rank)]
        found[(n, c, *at)] = take(x[n, c][np.ix_(*inside)], np.prod(padded))
    return found
