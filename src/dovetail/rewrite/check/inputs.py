"""Random data for many runs of one term at once: each parameter gets one more axis in front, one entry for each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.ir.functional.term import Definition, Lambda, Param, Pattern, Term, Var
from dovetail.ir.functional.types import Array as ArrayType
from dovetail.ir.functional.types import Scalar, Type, shape
from dovetail.ir.index import constant

Array = npt.NDArray[np.generic]
SPECIAL = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-45, 3e38, -3e38, 1.0)
"""What arithmetic treats apart: no number, the infinities, both zeros, the smallest float and large ones, one."""


def many(definition: Definition, runs: int) -> Definition:
    """``definition`` done ``runs`` times, on an array of each parameter."""
    if not definition.params:
        return definition
    names = tuple(param.name for param in definition.params)
    data: Term = Var(names[0]) if len(names) == 1 else Pattern("zip", (), tuple(Var(name) for name in names))
    body = Pattern("map", (), (Lambda(names, definition.body), data))
    params = tuple(Param(p.role, p.name, ArrayType(constant(runs), p.type)) for p in definition.params)
    return replace(definition, params=params, body=body)


def whole_numbers(definition: Definition, random: np.random.Generator) -> dict[str, Array]:
    """Small whole numbers: everything computed from them is exact."""
    return _filled(definition, lambda dtype, sizes: random.integers(-3, 4, sizes))


def any_numbers(definition: Definition, random: np.random.Generator) -> dict[str, Array]:
    """All kinds of numbers: a quarter of the floats are special ones, and integers are anything."""

    def fill(dtype: DType, sizes: tuple[int, ...]) -> Array:
        if not dtype.is_float:
            wide = random.integers(dtype.low, dtype.high, sizes, endpoint=True)
            return np.where(random.random(sizes) < 0.5, wide, random.integers(-5, 6, sizes))
        plain = random.standard_normal(sizes) * 10.0 ** random.integers(-3, 4, sizes)
        return np.where(random.random(sizes) < 0.25, random.choice(SPECIAL, sizes), plain)

    return _filled(definition, fill)


def plain_numbers(definition: Definition, random: np.random.Generator) -> dict[str, Array]:
    """Floats of one order of magnitude, integers that do not wrap."""

    def fill(dtype: DType, sizes: tuple[int, ...]) -> Array:
        return random.uniform(-2, 2, sizes) if dtype.is_float else random.integers(-3, 4, sizes)

    return _filled(definition, fill)


def _filled(definition: Definition, fill: Callable[[DType, tuple[int, ...]], Array]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for param in definition.params:
        dtype, sizes = _flat(param.type)
        with np.errstate(all="ignore"):
            found[param.name] = fill(dtype, sizes).astype(dtype.numpy)
    return found


def _flat(kind: Type) -> tuple[DType, tuple[int, ...]]:
    extents, element = shape(kind)
    assert isinstance(element, Scalar), "data is arrays of numbers"
    return element.dtype, tuple(size.const for size in extents)
