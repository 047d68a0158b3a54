"""A constant in the layout its kernel wants, made once: ``w`` as d0/16, d1, d0%16."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import PlanError
from dovetail.ir.plan import Digit
from dovetail.runtime.arrays import empty_aligned

Array = npt.NDArray[np.generic]


def laid_out(array: Array, digits: tuple[Digit, ...], dtype: str) -> Array:
    """``array`` with the dimensions of ``digits``; what a panel has beyond the array's end is zero.

    [5, 3] as d0/4, d1, d0%4  ->  [2, 3, 4]
    """
    shape: list[int] = []
    position: dict[tuple[int, int], int] = {}
    padded: list[int] = []
    for dimension, extent in enumerate(array.shape):
        own = sorted((d for d in digits if d.dimension == dimension), key=lambda d: -d.divisor)
        parts = _parts(own, extent)
        padded.append(int(np.prod(parts)))
        for digit, part in zip(own, parts, strict=True):
            position[dimension, digit.divisor] = len(shape)
            shape.append(part)
    whole = array
    if padded != list(array.shape):
        whole = np.zeros(padded, array.dtype)
        whole[tuple(slice(0, n) for n in array.shape)] = array
    order = [position[d.dimension, d.divisor] for d in digits]
    moved = whole.reshape(shape).transpose(order)
    out = empty_aligned(moved.shape, dtype)
    np.copyto(out, moved)
    return out


def _parts(digits: list[Digit], extent: int) -> list[int]:
    """Extents of a dimension's digits, most significant first."""
    if not digits or digits[-1].divisor != 1:
        raise PlanError("a layout loses elements", why=f"digits {', '.join(map(str, digits))}")
    parts = []
    for number, digit in enumerate(digits):
        if number == 0:
            parts.append(-(-extent // digit.divisor))
            continue
        if digit.modulus * digit.divisor != digits[number - 1].divisor:
            raise PlanError("a layout loses elements", why=f"digits {', '.join(map(str, digits))}")
        parts.append(digit.modulus)
    return parts
