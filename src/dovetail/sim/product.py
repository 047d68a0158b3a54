"""Sums of products of whole operands as one matrix product, prepared once: what matrix units spend their calls on.

    y[i, j] += a[i, k] * b[k, j]      every index a loop, every loop in two of the three, or in all

In float64: floats as everywhere, and integers whose sums are exact there. The reference evaluator does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType, Kind
from dovetail.ir.expr import Apply, Read, statement_type
from dovetail.ir.index import Access, variable
from dovetail.ir.program import Combine, Statement

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float64]
EXACT = 1 << 53
"""Whole numbers up to here are float64."""


@dataclass(frozen=True, slots=True)
class _Factor:
    """An operand as matrices: its axes in the order (batch, rows, columns), and their shape."""

    name: str
    axes: tuple[int, ...]
    shape: tuple[int, int, int]

    def of(self, memory: Mapping[str, Array]) -> Floats:
        return memory[self.name].astype(np.float64).transpose(self.axes).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction of two operands, ready to run."""

    left: _Factor
    right: _Factor
    out: str
    own: DType
    shape: tuple[int, ...]
    """Of the product, its loops in the order batch, rows, columns."""
    axes: tuple[int, ...]
    """Where in it each dimension of the result is."""

    def run(self, memory: Mapping[str, Array]) -> None:
        """Add the product to ``memory[out]``."""
        total: Floats = np.matmul(self.left.of(memory), self.right.of(memory)).reshape(self.shape).transpose(self.axes)
        result = memory[self.out]
        if self.own.is_float:
            result[...] = result.astype(np.float64) + total
        else:
            result[...] = result.astype(self.own.numpy) + total.astype(np.int64).astype(self.own.numpy)


def product_of(
    statement: Statement, dtypes: Mapping[str, DType], extents: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> Product | None:
    """The statement as a matrix product; None for one of another form. ``extents`` are those of its loops."""
    value, out = statement.value, statement.out
    if (
        statement.combine is not Combine.ADD
        or statement.where
        or not isinstance(value, Apply)
        or value.function != "mul"
    ):
        return None
    factors = [a.access for a in value.args if isinstance(a, Read)]
    own = statement_type(value, dtypes, dtypes[out.tensor])
    accesses = (*factors, out)
    walked = [_loops(access, extents, shapes[access.tensor]) for access in accesses]
    if len(factors) != 2 or len({a.tensor for a in accesses}) != 3 or None in walked:
        return None
    left, right, kept = ([x for x in found or () if extents[x] > 1] for found in walked)
    summed = [x for x in left if x in right and x not in kept]
    several = [x for x, extent in extents.items() if extent > 1]
    is_plain = all((x in left) + (x in right) + (x in kept) >= 2 for x in several)
    if (
        not is_plain
        or own.kind is Kind.BOOL
        or not _is_exact([dtypes[a.tensor] for a in factors], own, summed, extents)
    ):
        return None
    batch = [x for x in kept if x in left and x in right]
    rows, columns = ([x for x in kept if x in side and x not in batch] for side in (left, right))
    order = [*batch, *rows, *columns]
    first, second = (walked[n] or () for n in (0, 1))
    return Product(
        _factor(factors[0], first, (batch, rows, summed), extents),
        _factor(factors[1], second, (batch, summed, columns), extents),
        out.tensor,
        own,
        *_result(walked[2] or (), order, extents),
    )


def _loops(access: Access, extents: Mapping[str, int], shape: tuple[int, ...]) -> tuple[str, ...] | None:
    """The loop that walks each dimension; None when one does not walk all of it alone."""
    found = []
    for index, extent in zip(access.indices, shape, strict=True):
        name = next(iter(index.names()), "")
        if index != variable(name) or extents.get(name) != extent or name in found:
            return None
        found.append(name)
    return tuple(found)


def _is_exact(kinds: Sequence[DType], own: DType, summed: Sequence[str], extents: Mapping[str, int]) -> bool:
    if own.is_float or any(kind.is_float for kind in kinds):
        return own.is_float
    largest = prod(max(abs(kind.low), kind.high) for kind in kinds)
    return largest * prod(extents[x] for x in summed) < EXACT


def _factor(
    access: Access, walked: Sequence[str], parts: tuple[list[str], list[str], list[str]], extents: Mapping[str, int]
) -> _Factor:
    order = [x for part in parts for x in part]
    axes = [walked.index(x) for x in order]
    ones = [n for n, x in enumerate(walked) if x not in order]
    batch, rows, columns = (prod(extents[x] for x in part) for part in parts)
    return _Factor(access.tensor, (*axes, *ones), (batch, rows, columns))


def _result(
    walked: Sequence[str], order: Sequence[str], extents: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The product's shape, loops of one iteration last, and the axes of the result in it."""
    full = [*order, *(x for x in walked if x not in order)]
    return tuple(extents[x] for x in full), tuple(full.index(x) for x in walked)
