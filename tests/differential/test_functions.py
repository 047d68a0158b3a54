"""Elementary functions are as accurate as their target file states, over all sizes of operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.pipeline import compile, program
from dovetail.runtime.kernel import Kernel
from dovetail.targets.load import load_target

Array = npt.NDArray[np.float32]
COUNT = 1 << 20
FUNCTIONS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "tanh": (math.tanh, 1e-6, 12.0),
    "erf": (math.erf, 1e-6, 12.0),
    "exp": (math.exp, 1e-6, 88.0),
    "sigmoid": (lambda x: 1.0 / (1.0 + math.exp(-x)), 1e-6, 110.0),
    "log": (math.log, 1e-6, 1e6),
    "sin": (math.sin, 1e-6, 100.0),
    "cos": (math.cos, 1e-6, 1.5),
}
"""Reference, and between which operands."""
FULL = {"tanh": 24.0, "erf": 24.0, "exp": 110.0, "sigmoid": 110.0}
"""Functions that are defined below zero, and down to where."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_as_accurate_as_stated(name: str) -> None:
    reference, low, high = FUNCTIONS[name]
    _check(name, reference, _between(low, high))


@pytest.mark.parametrize("target", ["host", "generic"])
@pytest.mark.parametrize("name", FULL)
def test_a_function_is_as_accurate_below_zero_where_results_are_subnormal_and_without_fused_multiply_adds(
    name: str, target: str
) -> None:
    _check(name, FUNCTIONS[name][0], -_between(1e-6, FULL[name]), target)


@pytest.mark.parametrize(
    ("name", "wanted"),
    {
        "tanh": [0.0, -0.0, 1.0, -1.0, math.nan],
        "erf": [0.0, -0.0, 1.0, -1.0, math.nan],
        "exp": [1.0, 1.0, math.inf, 0.0, math.nan],
        "sigmoid": [0.5, 0.5, 1.0, 0.0, math.nan],
    }.items(),
)
def test_a_function_of_zeros_infinities_and_no_number(name: str, wanted: list[float]) -> None:
    x = np.array([0.0, -0.0, math.inf, -math.inf, math.nan] * 3, np.float32)
    found = np.asarray(_kernel(name, x.size)(x))
    np.testing.assert_array_equal(found, np.array(wanted * 3, np.float32))
    numbers = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(np.array(wanted * 3))[numbers])


def _check(name: str, reference: Callable[[float], float], x: Array, target: str = "host") -> None:
    stated = max(i.ulps for i in load_target(target).instructions if i.name.startswith(f"{name}.f32"))
    wanted = np.array([reference(float(value)) for value in x])
    ulps = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
    error = np.abs(np.asarray(_kernel(name, x.size, target)(x), np.float64) - wanted) / ulps
    assert error.max() <= stated, f"{error.max():.2f} ulps at {x[error.argmax()]}"


def _kernel(name: str, count: int, target: str = "host") -> Kernel:
    text = f"in x: f32[{count}] out y: f32[{count}]\nfor i<{count}: y[i] = {name}(x[i])"
    kernel = compile(program(text), target, threads=1)
    assert isinstance(kernel, Kernel)
    return kernel


def _between(low: float, high: float) -> Array:
    """Operands of all sizes, and as many where functions bend."""
    ends = np.array([low, high], np.float32).view(np.int32)
    rng = np.random.default_rng(0)
    x = rng.integers(ends[0], ends[1], COUNT, dtype=np.int32).view(np.float32)
    x[::2] = rng.uniform(low, min(high, 8.0), COUNT // 2).astype(np.float32)
    return x


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_no_number_on_either_side_stays(name: str, dtype: str) -> None:
    values = [0.0, -2.5, math.inf, -math.inf, math.nan]
    a, b = (
        np.array(x, np.float32 if dtype == "f32" else np.float64) for x in zip(*product(values, values), strict=True)
    )
    kernel = compile(program(_BOTH.format(name=name, dtype=dtype)), threads=1)
    assert isinstance(kernel, Kernel)
    whole = {"max": np.maximum, "min": np.minimum}[name]
    y, t = kernel(a, b)
    np.testing.assert_array_equal(y, whole(a, b))
    np.testing.assert_array_equal(t, whole.reduce(a.reshape(5, 5), 0))


_BOTH = """in a: {dtype}[25] in b: {dtype}[25] out y: {dtype}[25] out t: {dtype}[5]
for i<25: y[i] = {name}(a[i], b[i])
for j<5, k<5: t[j] {name}= a[j + 5 * k]"""
