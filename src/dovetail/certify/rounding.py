"""How far results may be off where programs form sums with numbers that are not exact.

The reference rounds at every store, as the program says; code may round elsewhere and sum in another order. Where large
parts cancel in the result, both are far larger than the result's own precision. How much is measured: the reference
is run once more with every float wider, and what that changes is what one rounding after the other amounts to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES, DType, Kind
from dovetail.ir.evaluate import evaluate
from dovetail.ir.expr import Apply, Cast, Literal, Read, walk
from dovetail.ir.program import Combine, Program

Array = npt.NDArray[np.generic]
ORDERS = 16.0
"""How much more than the reference's own roundings another order of them may change."""
_LINEAR = frozenset({"add", "sub", "mul", "neg"})


def rounding_spread(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], wanted: Mapping[str, Array]
) -> float:
    """What may be allowed, in parts of an output's largest value, because of roundings in another order.

    0 for programs with anything but sums and products: nothing is known about how that passes errors on.
    """
    return widened_spread(program, arrays, sizes, wanted) if is_linear(program) else 0.0


def widened_spread(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], wanted: Mapping[str, Array]
) -> float:
    """The same for any program: what its roundings change where it stores floats."""
    wide = widened(program)
    given = {t.name: arrays[t.name].astype(t.dtype.numpy) for t in wide.inputs}
    exact = evaluate(wide, given, sizes)
    floats = [t.name for t in program.outputs if t.dtype.is_float]
    return max((spread_of(wanted[name], exact[name]) for name in floats), default=0.0)


def spread_of(rounded: npt.ArrayLike, exact: npt.ArrayLike) -> float:
    """The same for results as the reference rounds them and as they would be without."""
    mine, reference = np.asarray(rounded, np.float64), np.asarray(exact, np.float64)
    scale = float(np.abs(reference).max(initial=0.0))
    return ORDERS * float(np.abs(mine - reference).max(initial=0.0)) / scale if scale else 0.0


def is_linear(program: Program) -> bool:
    """Only sums and products of elements and numbers, all of them floats."""
    if any(t.dtype.kind is not Kind.FLOAT for t in program.tensors):
        return False
    for statement in program.statements:
        if statement.combine not in (Combine.SET, Combine.ADD) or statement.seq:
            return False
        for node in walk(statement.value):
            if isinstance(node, Apply) and node.function not in _LINEAR:
                return False
            if not isinstance(node, Apply | Literal | Read | Cast):
                return False
    return True


def widened(program: Program) -> Program:
    """``program`` with floats that round much later."""
    return replace(program, tensors=tuple(replace(t, dtype=_wide(t.dtype)) for t in program.tensors))


def _wide(dtype: DType) -> DType:
    return DTYPES["f64"] if dtype.is_float else dtype
