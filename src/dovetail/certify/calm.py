"""Inputs of a recurrence that settles: what one step rounds, the next ones do not enlarge.

A recurrence of many large numbers, through functions that bend, magnifies the last bit of a sum a thousandfold within
twenty steps: code and reference would be compared in nothing but noise. Or its functions saturate, and nothing is
compared at all. Floats are made smaller by powers of two, which is exact, so that every sum stays near one.

    seq t<25: for j<1024, k<1024: u[t, j] += h[t, k] * r[j, k]       r / 2^8, if its largest element is 9
    seq t<25: for j<1024: h[t + 1, j] = tanh(u[t, j] + a[t, j])      a / 2^3, if that is 9
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2

import numpy as np
import numpy.typing as npt

from dovetail.compare import INEXACT
from dovetail.ir.expr import Apply, reads, walk
from dovetail.ir.fill import contributions
from dovetail.ir.program import Combine, Program

Array = npt.NDArray[np.generic]


def calmed(program: Program, arrays: dict[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """``arrays``, inputs of ``program``, with smaller floats where functions of its steps are not exact anyway."""
    steps = [s for s in program.statements if s.seq]
    if not any(isinstance(n, Apply) and n.function in INEXACT for s in steps for n in walk(s.value)):
        return arrays
    return {name: _divided(array, _power(program, name, array, sizes)) for name, array in arrays.items()}


def _power(program: Program, name: str, array: Array, sizes: Mapping[str, int]) -> int:
    """The power of two that keeps every sum ``name`` is a factor in near one.

    In a step the other factor is a state, which is small; before them it is an input like this one.
    """
    if not program.dtypes[name].is_float:
        return 0
    largest, grown = float(np.abs(array.astype(np.float64)).max(initial=1.0)), 1.0
    for s in program.statements:
        if s.combine is Combine.ADD and any(access.tensor == name for access in reads(s.value)):
            grown = max(grown, contributions(s, sizes) ** (0.5 if s.seq else 0.25))
    return max(0, ceil(log2(largest * grown / 2)))


def _divided(array: Array, power: int) -> Array:
    return (array.astype(np.float64) / 2.0**power).astype(array.dtype) if power else array
