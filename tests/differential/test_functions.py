"""Elementary functions are as accurate as their target file states, over all sizes of operands."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dovetail.pipeline import compile, program
from dovetail.runtime.kernel import Kernel
from dovetail.targets.load import load_target

COUNT = 1 << 21
FUNCTIONS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "tanh": (math.tanh, 1e-6, 12.0),
    "erf": (math.erf, 1e-6, 12.0),
    "exp": (math.exp, 1e-6, 80.0),
    "log": (math.log, 1e-6, 1e6),
    "sin": (math.sin, 1e-6, 100.0),
    "cos": (math.cos, 1e-6, 1.5),
}
"""Reference, and between which operands."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_as_accurate_as_stated(name: str) -> None:
    reference, low, high = FUNCTIONS[name]
    target = load_target("host")
    stated = max(i.ulps for i in target.instructions if i.name.startswith(f"{name}.f32"))
    kernel = compile(program(f"in x: f32[{COUNT}] out y: f32[{COUNT}]\nfor i<{COUNT}: y[i] = {name}(x[i])"), threads=1)
    assert isinstance(kernel, Kernel)
    ends = np.array([low, high], np.float32).view(np.int32)
    rng = np.random.default_rng(0)
    x = rng.integers(ends[0], ends[1], COUNT, dtype=np.int32).view(np.float32)
    x[::2] = rng.uniform(low, min(high, 8.0), COUNT // 2).astype(np.float32)
    wanted = np.array([reference(float(value)) for value in x])
    ulps = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
    error = np.abs(np.asarray(kernel(x), np.float64) - wanted) / ulps
    assert error.max() <= stated, f"{error.max():.2f} ulps at {x[error.argmax()]}"
