"""Points of an iteration domain, and what loops and tensors are there.

A box keeps each loop on an axis of its own, so that an array that a loop does not index stays small and NumPy's
broadcasting does the rest; affine reads of a box are strided views. A list of points is what is left of a box after
conditions that only data decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from dovetail.base.errors import IndexRangeError
from dovetail.ir.index import Access, Atom, Condition, Index, Quotient, Remainder

Array = npt.NDArray[np.generic]
IntArray = npt.NDArray[np.int64]
Memory = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Points:
    """``values`` gives every loop and size; ``box`` the range of each axis (None: a list of points).

    When ``lenient``, some points are not there and a read at them gives anything; otherwise every read is checked.
    """

    memory: Memory
    values: Mapping[str, IntArray]
    shape: tuple[int, ...]
    box: Mapping[str, range] | None
    lenient: bool = False

    def index(self, index: Index) -> IntArray:
        """The value of ``index`` at every point."""
        total = np.asarray(index.const, np.int64)
        for atom, factor in index.terms:
            value = self._atom(atom)
            total = np.asarray(total + (value if factor == 1 else value * factor))
        return total

    def _atom(self, atom: Atom) -> IntArray:
        if isinstance(atom, str):
            return self.values[atom]
        if isinstance(atom, Quotient):
            return np.asarray(self.index(atom.index) // atom.divisor)
        if isinstance(atom, Remainder):
            return np.asarray(self.index(atom.index) % atom.divisor)
        return self.read(atom).astype(np.int64)

    def holds(self, condition: Condition) -> npt.NDArray[np.bool_]:
        value = self.index(condition.index)
        return np.asarray(value == 0 if condition.equal else value >= 0)

    def read(self, access: Access) -> Array:
        """The elements of ``access``, broadcastable to ``shape``."""
        array = self.memory[access.tensor]
        if self.box is not None and all(i.is_affine for i in access.indices):
            view = self._view(access, array, self.box)
            if view is not None:
                return view
        places = tuple(map(self.index, access.indices))
        if self.lenient and array.size == 0:
            return np.zeros((1,) * len(self.shape), array.dtype)
        if self.lenient:
            places = tuple(np.clip(p, 0, n - 1) for p, n in zip(places, array.shape, strict=True))
        else:
            check_range(access, places, array.shape)
        return np.asarray(array[places])

    def select(self, mask: npt.NDArray[np.bool_]) -> Points:
        """The points where ``mask`` is true, as a list. A loop that is one number stays one number."""
        if not self.shape:
            return Points(self.memory, self.values, (int(mask),), None)
        chosen = np.nonzero(np.broadcast_to(mask, self.shape))
        values = {
            name: value if value.ndim == 0 else np.broadcast_to(value, self.shape)[chosen]
            for name, value in self.values.items()
        }
        return Points(self.memory, values, chosen[0].shape, None)

    def _view(self, access: Access, array: Array, box: Mapping[str, range]) -> Array | None:
        """A strided view; None when the points that are not there lie too far outside."""
        spans = [span(index, box, self.values) for index in access.indices]
        outside = any(low < 0 or high >= n for (low, high), n in zip(spans, array.shape, strict=True))
        if outside and not self.lenient:
            check_range(access, tuple(map(self.index, access.indices)), array.shape)
        if outside and (array.size == 0 or prod(high - low + 1 for low, high in spans) > 4 * array.size + (1 << 20)):
            return None
        region = _region(array, spans) if outside else array
        origin = [low for low, _ in spans] if outside else [0] * len(spans)
        return strided(region, access, box, self.values, origin)


def box_points(memory: Memory, fixed: Mapping[str, int], box: Mapping[str, range], lenient: bool) -> Points:
    """All points of ``box``, one axis for each loop, in the order of ``box``."""
    values = {name: np.asarray(value, np.int64) for name, value in fixed.items()}
    for axis, (name, r) in enumerate(box.items()):
        shape = [-1 if a == axis else 1 for a in range(len(box))]
        values[name] = np.arange(r.start, r.stop, dtype=np.int64).reshape(shape)
    return Points(memory, values, tuple(map(len, box.values())), box, lenient)


def span(index: Index, box: Mapping[str, range], values: Mapping[str, IntArray]) -> tuple[int, int]:
    """Smallest and largest value of an affine index over a box without empty ranges."""
    low = high = index.const
    for atom, factor in index.terms:
        assert isinstance(atom, str)
        ends = (box[atom][0], box[atom][-1]) if atom in box else (int(values[atom]),) * 2
        low += min(factor * ends[0], factor * ends[1])
        high += max(factor * ends[0], factor * ends[1])
    return low, high


def strided(
    array: Array, access: Access, box: Mapping[str, range], values: Mapping[str, IntArray], origin: list[int]
) -> Array:
    """The elements of an affine access, one axis for each loop of ``box``, without a copy.

    Element 0 of ``array`` is element ``origin`` of the tensor; every point must lie inside.
    """
    steps = dict.fromkeys(box, 0)
    start: list[int] = []
    for index, first, stride in zip(access.indices, origin, array.strides, strict=True):
        place = index.const - first
        for atom, factor in index.terms:
            assert isinstance(atom, str)
            if atom in box:
                steps[atom] += factor * stride
            place += factor * (box[atom].start if atom in box else int(values[atom]))
        start.append(place)
    used = access.names()
    shape = [len(r) if name in used else 1 for name, r in box.items()]
    first_element = array[...]
    for axis, place in enumerate(start):
        first_element = first_element[(slice(None),) * axis + (slice(place, None),)]
    return as_strided(first_element, shape, list(steps.values()))


def check_range(access: Access, places: tuple[IntArray, ...], shape: tuple[int, ...]) -> None:
    """Raise an IndexRangeError naming the first index that is outside its dimension."""
    for dim, (place, extent) in enumerate(zip(places, shape, strict=True)):
        wrong = (place < 0) | (place >= extent)
        if wrong.any():
            value = int(np.asarray(place)[wrong][0])
            raise IndexRangeError(
                f"index {value} is outside dimension {dim} of '{access.tensor}' (extent {extent})", where=str(access)
            )


def _region(array: Array, spans: list[tuple[int, int]]) -> Array:
    """The part of ``array`` that ``spans`` describe, zeros where there is none."""
    region = np.zeros([high - low + 1 for low, high in spans], array.dtype)
    inner, outer = overlap(spans, array.shape)
    region[inner] = array[outer]
    return region


def overlap(spans: list[tuple[int, int]], shape: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Where a region over ``spans`` and a tensor of ``shape`` coincide, seen from either."""
    inner, outer = [], []
    for (low, high), extent in zip(spans, shape, strict=True):
        first, last = max(low, 0), max(max(low, 0), min(high + 1, extent))
        inner.append(slice(first - low, last - low))
        outer.append(slice(first, last))
    return tuple(inner), tuple(outer)
