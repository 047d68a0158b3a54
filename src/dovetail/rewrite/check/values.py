"""Both sides of a fired rule, run on the same data and compared as strictly as the rule's kind promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.infer import infer
from dovetail.ir.functional.term import Definition, Lambda, Literal, Pattern, Scalar, Term, Var
from dovetail.ir.functional.types import Array as ArrayType
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.functional.types import Tuple, Type
from dovetail.ir.index import constant
from dovetail.rewrite.check.inputs import Array, any_numbers, many, plain_numbers, whole_numbers

Fill = Callable[[Definition, np.random.Generator], dict[str, Array]]
Compare = Callable[[Array, Array, float], npt.NDArray[np.bool_]]
NOT_THERE = 77
"""What stands for none in results that are compared; data is small or far from it."""
EPS = 2.0**-53
"""Floats are evaluated as float64."""
EXACT = 2.0**24
"""Whole numbers below this are exact in all floats that are compared."""
REORDERED = 2.0**8
"""How far sums in another order may be apart, in roundings of the largest: there are at most some hundred terms."""


def difference(before: Definition, after: Term, kind: str, error: float, seed: int, runs: int) -> str | None:
    """Words for the first result that differs; None when ``after`` is as good as the kind of the rule says.

    ``error`` is the stated one of a relaxed rule, in units of rounding relative to the sum of magnitudes.
    """
    for fill, same, _ in comparisons(kind):
        for one, other in zip(observed(before), observed(replace(before, body=after)), strict=True):
            found = _first(many(one, runs), many(other, runs), fill, same, error, seed)
            if found is not None:
                return found
    return None


def observed(definition: Definition) -> Iterator[Definition]:
    """One definition for each array of numbers in the result, with what is not there as a number, and not rounded."""
    kind = infer(definition.body, {param.name: param.type for param in definition.params}, definition.sizes)
    for body in numbers_in(definition.body, kind, _seen):
        yield replace(definition, body=body)


def numbers_in(value: Term, kind: Type, seen: Callable[[Term, DType], Term], depth: int = 0) -> Iterator[Term]:
    """``value`` taken apart into arrays of numbers, each changed by ``seen``."""
    match kind:
        case Tuple(members):
            for number, member in enumerate(members):
                yield from numbers_in(Pattern("get", (constant(number),), (value,)), member, seen, depth)
        case ArrayType(_, element):
            name = f"o{depth}"
            for inner in numbers_in(Var(name), element, seen, depth + 1):
                yield Pattern("map", (), (Lambda((name,), inner), value))
        case Number(dtype):
            yield seen(value, dtype)


def _seen(value: Term, dtype: DType) -> Term:
    """A number for what is not there, and nothing rounded."""
    there = Scalar("orelse", (value, Literal(NOT_THERE)))
    return Scalar("f64", (there,)) if dtype.is_float else there


def comparisons(kind: str) -> tuple[tuple[Fill, Compare, bool], ...]:
    """Data that a rule of this kind is tried on, how results are compared, and whether they must be equal."""
    if kind == "bit-exact":
        return ((any_numbers, same_bits, True),)
    if kind == "reassociating":
        return ((whole_numbers, _same_numbers, True), (plain_numbers, _close, False))
    return ((plain_numbers, _within, False),)


def _first(one: Definition, other: Definition, fill: Fill, same: Compare, error: float, seed: int) -> str | None:
    data = fill(one, np.random.default_rng(seed))
    ordered = same is same_bits
    (first,), (second,) = (evaluate(side, data, ordered=ordered).values() for side in (one, other))
    scale = error
    if same is _within:
        (sums,) = evaluate(one, {name: np.abs(values) for name, values in data.items()}).values()
        scale = error * EPS * float(np.max(np.abs(sums), initial=0.0))
    equal = same(first, second, scale)
    if equal.all():
        return None
    place = tuple(int(k) for k in np.argwhere(~equal)[0])
    return f"element {list(place)}: {first[place]!r} before, {second[place]!r} after"


def same_bits(first: Array, second: Array, scale: float = 0.0) -> npt.NDArray[np.bool_]:
    """Where two arrays hold the same number; all NaN are one, the zeros are two."""
    if not np.issubdtype(first.dtype, np.floating):
        return np.asarray(first == second)
    both_nan = np.isnan(first) & np.isnan(second)
    return np.asarray(both_nan | ((first == second) & (np.signbit(first) == np.signbit(second))))


def _same_numbers(first: Array, second: Array, scale: float) -> npt.NDArray[np.bool_]:
    """Exactly, but for the sign of zero, which the order of a sum decides, and where numbers are too large."""
    large = np.abs(first) >= EXACT if np.issubdtype(first.dtype, np.floating) else False
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    return np.asarray(same | (large & _close(first, second, scale)))


def _close(first: Array, second: Array, scale: float) -> npt.NDArray[np.bool_]:
    if not np.issubdtype(first.dtype, np.floating):
        return np.asarray(first == second)
    largest = max(1.0, float(np.max(np.abs(first), initial=0.0, where=np.isfinite(first))))
    bound = REORDERED * 2.0 ** (-52 if first.dtype == np.float64 else -23) * largest
    with np.errstate(invalid="ignore"):
        apart = np.abs(first.astype(np.float64) - second.astype(np.float64))
    return np.asarray(same_bits(first, second) | (apart <= bound))


def _within(first: Array, second: Array, scale: float) -> npt.NDArray[np.bool_]:
    """By at most ``scale``; where infinities are involved, relaxed rules promise nothing."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(first.astype(np.float64) - second.astype(np.float64))
    return np.asarray((apart <= scale) | ~np.isfinite(first))
