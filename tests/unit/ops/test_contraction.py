"""Products of matrices and convolutions against NumPy, on whole numbers with tolerance zero."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import Array, apply, apply_sized, whole

Ints = tuple[int, ...]
Floats = npt.NDArray[np.float64]
SHAPES = [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (4,)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul_is_that_of_numpy(a: Ints, b: Ints) -> None:
    x, y = whole(*a), whole(*b, low=-3)
    np.testing.assert_array_equal(apply("matmul", x, y), np.matmul(x, y))


def test_matmul_takes_either_side_transposed() -> None:
    a, b = whole(2, 3, 4), whole(2, 4, 5)
    at, bt = np.swapaxes(a, 1, 2), np.swapaxes(b, 1, 2)
    np.testing.assert_array_equal(apply("matmul", at, b, transpose_a=1), a @ b)
    np.testing.assert_array_equal(apply("matmul", a, bt, transpose_b=1), a @ b)
    np.testing.assert_array_equal(apply("matmul", at, bt, transpose_a=1, transpose_b=1), a @ b)


def test_bytes_can_be_summed_in_wider_integers() -> None:
    a, b = whole(3, 40, dtype="int8", low=-100, high=100), whole(40, 5, dtype="int8", low=-100, high=100)
    np.testing.assert_array_equal(apply("matmul", a, b, dtype="i32"), a.astype(np.int32) @ b.astype(np.int32))


def test_the_number_of_rows_may_be_known_at_run_time_only() -> None:
    a, b = whole(7, 4), whole(4, 5)
    np.testing.assert_array_equal(apply_sized("matmul", 7, a, b), a @ b)


def test_dense_is_a_product_and_a_bias() -> None:
    x, w, b = whole(2, 3, 4), whole(5, 4), whole(5)
    np.testing.assert_array_equal(apply("dense", x, w, b), x @ w.T + b)
    np.testing.assert_array_equal(apply("dense", x[0, 0], w), x[0, 0] @ w.T)


def test_halves_are_summed_in_floats() -> None:
    x, w, b = np.ones((1, 2049), np.float16), np.ones((1, 2049), np.float16), np.ones(1, np.float16)
    assert apply("dense", x, w, b) == 2050, "2049 is no float16, 2050 is"


@pytest.mark.parametrize("c", [(), (1,), (5,), (3, 1), (3, 5)])
def test_gemm_scales_and_adds(c: Ints) -> None:
    a, b, added = whole(3, 4), whole(4, 5), whole(*c)
    np.testing.assert_array_equal(apply("gemm", a, b, added, alpha=2.0, beta=3.0), 2 * (a @ b) + 3 * added)
    np.testing.assert_array_equal(apply("gemm", a.T.copy(), b.T.copy(), transpose_a=1, transpose_b=1), a @ b)


CONVS = [
    {"x": (2, 3, 9), "w": (4, 3, 3)},
    {"x": (1, 3, 7, 8), "w": (4, 3, 3, 3), "pads": (1, 1, 1, 1)},
    {"x": (1, 3, 7, 8), "w": (4, 3, 3, 2), "strides": (2, 3), "pads": (1, 0, 2, 1)},
    {"x": (1, 4, 9, 8), "w": (6, 2, 3, 3), "groups": 2, "dilations": (2, 1), "pads": (2, 1, 2, 1)},
    {"x": (2, 4, 6, 6), "w": (4, 1, 3, 3), "groups": 4, "pads": (1, 1, 1, 1)},
    {"x": (1, 4, 6, 6), "w": (8, 1, 3, 3), "groups": 4, "strides": (2, 2)},
    {"x": (1, 3, 5, 5), "w": (2, 3, 1, 1), "strides": (2, 2)},
    {"x": (1, 2, 4, 5, 6), "w": (3, 2, 2, 3, 3), "strides": (1, 2, 1), "pads": (0, 1, 1, 1, 1, 0)},
]


@pytest.mark.parametrize("case", CONVS)
@pytest.mark.parametrize("biased", [False, True])
def test_a_convolution_is_the_sum_over_its_windows(case: dict[str, Ints | int], biased: bool) -> None:
    x, w, settings = drawn(case)
    rank = x.ndim - 2
    strides = settings.get("strides", (1,) * rank)
    dilations = settings.get("dilations", (1,) * rank)
    groups = settings.get("groups", 1)
    assert isinstance(strides, tuple) and isinstance(dilations, tuple) and isinstance(groups, int)
    padded = np.pad(x, [(0, 0), (0, 0), *around(settings.get("pads"), rank)])
    expected = windows_summed(padded, w, strides, dilations, groups)
    if biased:
        b = whole(w.shape[0], low=-9)
        found = apply("conv", x, w, b, **settings)
        np.testing.assert_array_equal(found, expected + b.reshape(-1, *[1] * rank))
    else:
        np.testing.assert_array_equal(apply("conv", x, w, **settings), expected)


def test_a_convolution_of_any_batch_and_height() -> None:
    x, w = whole(7, 2, 7, 5), whole(3, 2, 3, 3)
    expected = windows_summed(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), w, (2, 1), (1, 1), 1)
    found = apply_sized("conv", 7, x, w, pads=(1, 1, 1, 1), strides=(2, 1))
    np.testing.assert_array_equal(found, expected)


TRANSPOSED = [
    {"x": (1, 3, 5), "w": (3, 2, 3), "strides": (2,)},
    {"x": (2, 3, 4, 5), "w": (3, 2, 3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "output_padding": (1, 0)},
    {"x": (1, 4, 4, 4), "w": (4, 3, 2, 3), "groups": 2, "dilations": (2, 1), "strides": (1, 3)},
    {"x": (1, 4, 4, 4), "w": (4, 1, 3, 3), "groups": 4, "pads": (0, 1, 2, 1)},
]


@pytest.mark.parametrize("case", TRANSPOSED)
def test_a_transposed_convolution_scatters_each_input(case: dict[str, Ints | int]) -> None:
    x, w, settings = drawn(case)
    np.testing.assert_array_equal(apply("conv_transpose", x, w, **settings), scattered(x, w, settings))


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OperatorError, match="a window of 5 does not fit an axis of 3"):
        apply("conv", whole(1, 1, 3), whole(1, 1, 5))


def drawn(case: dict[str, Ints | int]) -> tuple[Array, Array, dict[str, Ints | int]]:
    settings = {name: value for name, value in case.items() if name not in "xw"}
    x, w = case["x"], case["w"]
    assert isinstance(x, tuple) and isinstance(w, tuple)
    return whole(*x), whole(*w, low=-2), settings


def around(pads: Ints | int | None, rank: int) -> list[tuple[int, int]]:
    assert not isinstance(pads, int)
    values = pads or (0,) * (2 * rank)
    return list(zip(values[:rank], values[rank:], strict=True))


def windows_summed(x: Array, w: Array, strides: Ints, dilations: Ints, groups: int) -> Floats:
    """One tap at a time, all windows at once."""
    rank = x.ndim - 2
    kernel = w.shape[2:]
    out = [(x.shape[2 + d] - dilations[d] * (kernel[d] - 1) - 1) // strides[d] + 1 for d in range(rank)]
    total = np.zeros((x.shape[0], w.shape[0], *out))
    inner, outer = x.shape[1] // groups, w.shape[0] // groups
    for tap in product(*map(range, kernel)):
        cut = tuple(
            slice(tap[d] * dilations[d], tap[d] * dilations[d] + (out[d] - 1) * strides[d] + 1, strides[d])
            for d in range(rank)
        )
        for g in range(groups):
            part = x[(slice(None), slice(g * inner, (g + 1) * inner), *cut)]
            weights = np.moveaxis(w, (0, 1), (-2, -1))[tap][g * outer : (g + 1) * outer]
            total[:, g * outer : (g + 1) * outer] += np.moveaxis(np.tensordot(weights, part, (1, 1)), 1, 0)
    return total


def scattered(x: Array, w: Array, settings: dict[str, Ints | int]) -> Array:
    """One tap at a time, every input added to the place it reaches; then the padding cut off."""
    rank, groups = x.ndim - 2, int(settings.get("groups", 1))  # type: ignore[arg-type]
    ones, zeros = (1,) * rank, (0,) * rank
    strides, dilations, more = (
        settings.get(n, d) for n, d in (("strides", ones), ("dilations", ones), ("output_padding", zeros))
    )
    assert isinstance(strides, tuple) and isinstance(dilations, tuple) and isinstance(more, tuple)
    full = [(x.shape[2 + d] - 1) * strides[d] + (w.shape[2 + d] - 1) * dilations[d] + 1 + more[d] for d in range(rank)]
    total = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    inner, outer = x.shape[1] // groups, w.shape[1]
    for tap in product(*map(range, w.shape[2:])):
        cut = tuple(
            slice(tap[d] * dilations[d], tap[d] * dilations[d] + (x.shape[2 + d] - 1) * strides[d] + 1, strides[d])
            for d in range(rank)
        )
        for g in range(groups):
            weights = np.moveaxis(w, (0, 1), (-2, -1))[tap][g * inner : (g + 1) * inner]
            part = np.moveaxis(np.tensordot(weights, x[:, g * inner : (g + 1) * inner], (0, 1)), 1, 0)
            total[(slice(None), slice(g * outer, (g + 1) * outer), *cut)] += part
    kept = [slice(a, n - b) for n, (a, b) in zip(full, around(settings.get("pads"), rank), strict=True)]
    return total[(slice(None), slice(None), *kept)]
