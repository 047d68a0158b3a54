"""Whether both sides of a match compute the same: they are evaluated on the same data and compared.

Three fills: small whole numbers, on which sums are exact; floats around zero; positive floats, where functions that
know no others have values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType, Kind
from dovetail.base.errors import IndexRangeError, PatternError
from dovetail.ir.graph.bound import Array
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.graph import Graph, Type
from dovetail.ir.graph.verify import Operators
from dovetail.rewrite.patterns.make import Made
from dovetail.rewrite.patterns.subject import Subject

_WIDEST = 2.0**10
"""Values inside may be so much larger than what comes out before their roundings no longer count."""
_LEAST = -3
"""Whole numbers are between this and its opposite."""
_SMALL_SIZE = 3
"""What run-time sizes are in a check, where their ranges allow it."""
_ORDINARY = {2: 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}
"""One rounding, by the bytes of a float."""


def check(subject: Subject, made: Made, operators: Operators) -> None:
    """Raise a PatternError with the first element that differs, unless the replacement computes the same."""
    after, data = subject.after(made)
    sizes = {size.name: min(max(size.low, _SMALL_SIZE), size.high) for size in after.sizes}
    for number in range(len(_FILLS)):
        with np.errstate(all="ignore"):
            try:
                inputs = _inputs(subject, sizes, number, _LEAST)
                first = _values(subject.before, operators, inputs, data, sizes)
            except IndexRangeError:  # whole numbers are places in a tensor: 0 and 1 are in most of them
                inputs = _inputs(subject, sizes, number, 0)
                first = _values(subject.before, operators, inputs, data, sizes)
            second = evaluate(after, operators, inputs, data, sizes)
        for old, new in zip(subject.before.outputs, after.outputs, strict=True):
            _compare(subject, first, old, second[new], number)


def _inputs(subject: Subject, sizes: Mapping[str, int], fill: int, least: int) -> dict[str, Array]:
    """Data for all holes; whole numbers from ``least`` on."""
    random = np.random.default_rng(fill)
    return {value.name: _filled(value.type, sizes, _FILLS[fill], random, least) for value in subject.before.inputs}


def _values(
    graph: Graph,
    operators: Operators,
    inputs: Mapping[str, Array],
    data: Mapping[str, Array],
    sizes: Mapping[str, int],
) -> dict[str, Array]:
    """All that the left side computes."""
    every = tuple(name for node in graph.nodes for name in node.results)
    return {**inputs, **evaluate(replace(graph, outputs=every), operators, inputs, data, sizes)}


def _compare(subject: Subject, values: Mapping[str, Array], name: str, found: Array, fill: int) -> None:
    wanted = values[name]
    same = _same(values, wanted, found, subject.match.read.roundings)
    if same.all():
        return
    place = tuple(int(k) for k in np.argwhere(~same)[0])
    old = subject.shown[subject.before.outputs.index(name)]
    nodes = "\n".join(f"  {node}" for node in subject.before.nodes)
    raise PatternError(
        f"pattern '{subject.match.pattern.name}' maps to another computation; the mapping is refused",
        where=f"element {list(place)} of '{old}', with {_FILLS[fill].__doc__}",
        why=f"it is {wanted[place]!s} before and {found[place]!s} after\n{nodes}",
        hint='"when" for where it is right; or error = "1024 * eps", if roundings are all that differs',
    )


def _same(values: Mapping[str, Array], wanted: Array, found: Array, roundings: float) -> npt.NDArray[np.bool_]:
    """Element by element: equal, or no number on both sides, or within so many roundings."""
    if wanted.dtype.kind != "f" and not _is_short_float(wanted):
        return np.asarray(wanted == found)
    first, second = wanted.astype(np.float64), found.astype(np.float64)
    finite = first[np.isfinite(first)]
    largest = float(np.abs(finite).max(initial=0.0))
    inner = (float(np.abs(v).max(initial=0.0, where=np.isfinite(v))) for v in map(_wide, values.values()))
    scale = min(max(largest, *inner), _WIDEST * max(largest, 1.0))
    near = np.abs(first - second) <= roundings * _ORDINARY[max(2, wanted.dtype.itemsize)] * scale
    return np.asarray(near | (first == second) | (np.isnan(first) & np.isnan(second)))


def _wide(values: Array) -> npt.NDArray[np.float64]:
    return values.astype(np.float64)


def _is_short_float(values: Array) -> bool:
    """bfloat16 and its like, which NumPy does not know as floats."""
    return values.dtype.kind == "V" or "float" in values.dtype.name


def _filled(kind: Type, sizes: Mapping[str, int], fill: Fill, random: np.random.Generator, least: int) -> Array:
    shape = tuple(extent.evaluate(sizes) for extent in kind.shape)
    if not kind.dtype.is_float and least == 0:
        return random.integers(0, 2, shape).astype(kind.dtype.numpy)
    return np.asarray(fill(kind.dtype, shape, random)).astype(kind.dtype.numpy)


def _whole(dtype: DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """small whole numbers"""
    return random.integers(0, 2, shape) if _is_unsigned(dtype) else random.integers(_LEAST, -_LEAST + 1, shape)


def _around_zero(dtype: DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """numbers around zero"""
    return random.uniform(-2, 2, shape) if dtype.is_float else _whole(dtype, shape, random)


def _positive(dtype: DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """positive numbers"""
    return random.uniform(0.1, 2, shape) if dtype.is_float else random.integers(0, 2, shape)


def _is_unsigned(dtype: DType) -> bool:
    return dtype.kind is Kind.BOOL or (not dtype.is_float and dtype.low >= 0)


Fill = Callable[[DType, tuple[int, ...], np.random.Generator], Array]
_FILLS: tuple[Fill, ...] = (_whole, _around_zero, _positive)
