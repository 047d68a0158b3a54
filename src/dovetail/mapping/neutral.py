"""What to fill operands with so that a point that is not there contributes nothing, whatever the others hold.

``acc += a * b``: with a = b = 0 the product is 0. With only a = 0 it is 0 for integers, but NaN for floats where b is
infinite. The answer is found by evaluating the instruction, not by knowing its operators.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice, product

import numpy as np

from dovetail.base.dtypes import DType, compute_type
from dovetail.ir.expr import Literal, Read
from dovetail.ir.primitives import PRIMITIVES, Array
from dovetail.ir.program import Combine
from dovetail.mapping.typed import Typed

Fill = tuple[tuple[str, int | float | bool], ...]
"""Operand and value, sorted by operand."""
MOST_TRIALS = 1024


@lru_cache(maxsize=4096)
def neutral_fill(
    value: Typed,
    dtypes: tuple[tuple[str, DType], ...],
    combine: Combine,
    out: DType,
    fillable: frozenset[str],
    keeps: str = "",
    finite: bool = False,
) -> Fill | None:
    """Values for the operands in ``fillable`` that make ``value`` neutral for ``combine``; None when there are none.

    The other operands may hold anything (anything finite with ``finite``). With ``keeps`` the result must be what
    operand ``keeps`` holds, instead of the neutral element.
    """
    if any(node.root.startswith("bitcast") for node in value.walk()):
        return None
    kinds = dict(dtypes)
    names = sorted(kinds)
    chosen = [name for name in names if name in fillable and name != keeps]
    others = [name for name in names if name not in chosen]
    trials = list(islice(product(*(_samples(kinds[name], finite) for name in others)), MOST_TRIALS))
    for fill in product(*(_candidates(kinds[name], combine) for name in chosen)):
        if all(
            _is_neutral(
                value,
                {**dict(zip(others, t, strict=True)), **dict(zip(chosen, fill, strict=True))},
                combine,
                out,
                keeps,
            )
            for t in trials
        ):
            return tuple(zip(chosen, fill, strict=True))
    return None


def _is_neutral(
    value: Typed, operands: dict[str, int | float | bool], combine: Combine, out: DType, keeps: str
) -> bool:
    with np.errstate(all="ignore"):
        got = _evaluate(value, operands)
    want = np.asarray(operands[keeps] if keeps else combine.neutral(out), _exact(value.dtype))
    return bool(np.array_equal(got, want, equal_nan=bool(keeps) and out.is_float))


def _evaluate(value: Typed, operands: dict[str, int | float | bool]) -> Array:
    if isinstance(value.expr, Read):
        return np.asarray(operands[value.expr.access.tensor], _exact(value.dtype))
    if isinstance(value.expr, Literal):
        return np.asarray(value.expr.value, _exact(value.dtype))
    args = [_evaluate(arg, operands) for arg in value.args]
    if value.root in PRIMITIVES:
        return np.asarray(PRIMITIVES[value.root].meaning(*args))
    return np.asarray(args[0].astype(_exact(value.dtype)))


def _exact(dtype: DType) -> np.dtype[np.generic]:
    return np.dtype(np.float64) if dtype.is_float else dtype.numpy


def _candidates(dtype: DType, combine: Combine) -> list[int | float | bool]:
    """Fills worth trying: zero and the neutral element first."""
    neutral = [] if combine is Combine.SET else [combine.neutral(dtype)]
    zero: list[int | float | bool] = [0.0, 1.0] if dtype.is_float else [0, 1] if dtype.is_integer else [False, True]
    ends: list[int | float | bool] = [-np.inf, np.inf] if dtype.is_float else [dtype.low, dtype.high]
    return list(dict.fromkeys([*zero[:1], *neutral, *zero[1:], *ends]))


def _samples(dtype: DType, finite: bool) -> list[int | float | bool]:
    """Values that tell a neutral point from one that only looks so."""
    if not compute_type(dtype).is_float:
        return [0, 1, dtype.low, dtype.high] if dtype.is_integer else [False, True]
    return [0.0, 1.0, -2.5] if finite else [0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
