"""The tensor a statement writes, while it is being written.

Contributions meet in the statement's own type and are rounded to the tensor's dtype once, when the statement ends.
An affine output is a region: the box of elements the statement can reach, which may stick out of the tensor where a
condition keeps the points away. Contributions to a region are added as whole arrays, through a strided view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.ir.compute import convert, literal, representation, store
from dovetail.ir.points import Points, box_points, check_range, overlap, span, strided
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Statement

Array = npt.NDArray[np.generic]
Mask = npt.NDArray[np.bool_]
MAX_SINGLE_STEPS = 4096
"""How often a statement may be cut up so that its pieces write every element at most once."""


@dataclass(frozen=True, slots=True)
class Accumulator:
    """``region`` covers the elements ``spans`` of the tensor; ``singles`` are loops to take one value at a time.

    ``scattered`` outputs (indirect, quasi-affine, or reached by too many loops) are written element by element.
    """

    statement: Statement
    own: DType
    dtype: DType
    stored: Array
    region: Array
    spans: list[tuple[int, int]]
    singles: frozenset[str]
    scattered: bool

    def view(self, points: Points) -> Array:
        """The region's elements at ``points``, one axis for each loop; to be combined into."""
        assert points.box is not None
        return strided(self.region, self.statement.out, points.box, points.values, [low for low, _ in self.spans])

    def put(self, points: Points, values: Array, mask: Mask | None) -> None:
        """Combine ``values`` (of type ``own``) into the region at every point where ``mask`` is true."""
        if self.scattered or points.box is None:
            self._scatter(points, values, mask)
        elif self.statement.combine is Combine.SET:
            np.copyto(self.view(points), store(values, self.own, self.dtype), where=True if mask is None else mask)
        else:
            self._reduce(points, values, mask)

    def close(self) -> None:
        """Round the region and write it back to the tensor."""
        inner, outer = overlap(self.spans, self.stored.shape)
        kind = self.dtype if self.statement.combine is Combine.SET else self.own
        self.stored[outer] = store(self.region[inner], kind, self.dtype)

    def _reduce(self, points: Points, values: Array, mask: Mask | None) -> None:
        function = _ufunc(self.statement.combine)
        if mask is not None:
            values = np.where(mask, values, literal(self.statement.combine.neutral(self.own), self.own))
        view = self.view(points)
        axes = tuple(a for a, n in enumerate(view.shape) if n == 1)
        full = tuple(n if a in axes else values.shape[a] if values.ndim else 1 for a, n in enumerate(points.shape))
        total = function.reduce(np.broadcast_to(values, full), axis=axes, keepdims=True, dtype=view.dtype)
        function(view, total, out=view)

    def _scatter(self, points: Points, values: Array, mask: Mask | None) -> None:
        values = np.broadcast_to(values, points.shape)
        if mask is not None:
            values = values[np.broadcast_to(mask, points.shape)]
            points = points.select(mask)
        if not values.size:
            return
        out = self.statement.out
        places = tuple(np.broadcast_to(points.index(i), points.shape) for i in out.indices)
        check_range(out, places, self.stored.shape)
        places = tuple(p - low for p, (low, _) in zip(places, self.spans, strict=True))
        region = self.region if places else self.region.reshape(1)
        places = places or (np.zeros(points.shape, np.int64),)
        if self.statement.combine is Combine.SET:
            region[places] = store(values, self.own, self.dtype)
        else:
            _ufunc(self.statement.combine).at(region, places, values)


def open_accumulator(
    statement: Statement, own: DType, dtype: DType, stored: Array, fixed: Mapping[str, int], extents: Mapping[str, int]
) -> Accumulator:
    """What ``statement`` writes over the box ``extents``; no extent is zero."""
    out, box = statement.out, {name: range(n) for name, n in extents.items()}
    points = box_points({}, fixed, box, lenient=False)
    spans = [(0, n - 1) for n in stored.shape]
    scattered = not all(i.is_affine for i in out.indices)
    if not scattered:
        reach = [span(i, box, points.values) for i in out.indices]
        outside = any(low < 0 or high >= n for (low, high), n in zip(reach, stored.shape, strict=True))
        if outside and not statement.where:
            check_range(out, tuple(map(points.index, out.indices)), stored.shape)
        if outside and prod(high - low + 1 for low, high in reach) > 4 * stored.size + (1 << 20):
            scattered = True
        else:
            spans = reach
    singles: frozenset[str] | None = frozenset()
    if not scattered:
        singles = _singles(statement, spans, extents)
        scattered = singles is None
    region = _load(stored, spans, own, dtype, statement.combine)
    return Accumulator(statement, own, dtype, stored, region, spans, singles or frozenset(), scattered)


def _load(stored: Array, spans: list[tuple[int, int]], own: DType, dtype: DType, combine: Combine) -> Array:
    kind = dtype.numpy if combine is Combine.SET else representation(own)
    region = np.zeros([high - low + 1 for low, high in spans], kind)
    inner, outer = overlap(spans, stored.shape)
    region[inner] = stored[outer] if combine is Combine.SET else convert(stored[outer], dtype, own)
    return region


def _singles(statement: Statement, spans: list[tuple[int, int]], extents: Mapping[str, int]) -> frozenset[str] | None:
    """Loops to fix, smallest first, so that the others write each element at most once; None when there is no way."""
    used = statement.out.names()
    if statement.combine is Combine.SET and any(n > 1 and name not in used for name, n in extents.items()):
        return None
    strides, stride = [], 1
    for low, high in reversed(spans):
        strides.append(stride)
        stride *= high - low + 1
    strides.reverse()
    steps = {
        name: abs(sum(i.coefficient(name) * s for i, s in zip(statement.out.indices, strides, strict=True)))
        for name in extents
        if name in used and extents[name] > 1
    }
    singles: set[str] = set()
    for name in sorted(steps, key=lambda n: extents[n]):
        if _distinct([(step, extents[n]) for n, step in steps.items() if n not in singles]):
            break
        singles.add(name)
    return frozenset(singles) if prod(extents[n] for n in singles) <= MAX_SINGLE_STEPS else None


def _distinct(steps: list[tuple[int, int]]) -> bool:
    """Whether sums of ``step * (0 .. extent - 1)`` never meet: each step passes all that the smaller ones reach."""
    reach = 0
    for step, extent in sorted(steps):
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True


def _ufunc(combine: Combine) -> np.ufunc:
    function = PRIMITIVES[combine.function or ""].meaning
    assert isinstance(function, np.ufunc)
    return function
