"""What memories hold in a functional run: elements, which of them were ever written, and which are being copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import SimulationError
from dovetail.ir.instruction_function import Touched
from dovetail.ir.nest import Buffer, Call
from dovetail.sim.allocate import Block

Array = npt.NDArray[np.generic]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Span:
    """Distinct elements of a segment: a range where ``places`` is None."""

    low: int
    high: int
    places: IntArray | None = None

    @property
    def selection(self) -> slice | IntArray:
        return slice(self.low, self.high + 1) if self.places is None else self.places

    def moved(self, distance: int) -> Span:
        places = None if self.places is None else self.places + distance
        return Span(self.low + distance, self.high + distance, places)

    def meets(self, other: Span) -> bool:
        if self.low > other.high or other.low > self.high:
            return False
        if self.places is None and other.places is None:
            return True
        return bool(np.isin(self._all(), other._all()).any())

    def _all(self) -> IntArray:
        return np.arange(self.low, self.high + 1) if self.places is None else self.places


def span_of(touched: Touched) -> Span:
    """The distinct elements that an instruction touches, relative to its operand's first."""
    if touched.places is None:
        return Span(touched.low, touched.high)
    return span_over(distinct(touched.places))


def span_over(places: IntArray) -> Span:
    """Of elements in increasing order, at least one."""
    low, high = int(places[0]), int(places[-1])
    return Span(low, high, None if places.size == high - low + 1 else places)


def distinct(numbers: IntArray) -> IntArray:
    """In increasing order, each once."""
    flat = numbers.ravel()
    if not bool((np.diff(flat) > 0).all()):
        flat = np.sort(flat)
        flat = flat[np.concatenate(([True], flat[1:] != flat[:-1]))]
    return flat


@dataclass(frozen=True, slots=True)
class Lock:
    """Elements that an unfinished asynchronous call reads or writes."""

    token: str
    call: Call
    span: Span
    writes: bool


@dataclass(slots=True)
class Segment:
    """A buffer's elements in one memory, at an address."""

    flat: Array
    written: npt.NDArray[np.bool_]
    address: int
    locks: list[Lock] = field(default_factory=list)

    def copy(self) -> Segment:
        return Segment(self.flat.copy(), self.written.copy(), self.address, list(self.locks))


class Held:
    """A live buffer: one segment, or one for each unit that has changed its own."""

    __slots__ = ("block", "buffer", "common", "is_private", "own", "part", "shape", "strides")

    def __init__(
        self, buffer: Buffer, block: Block, shape: tuple[int, ...], strides: tuple[int, ...], elements: int, slot: int
    ) -> None:
        self.buffer, self.block, self.shape, self.strides = buffer, block, shape, strides
        self.is_private = False
        """Whether units see segments of their own: of a private memory, and allocated before they part."""
        self.own: dict[int, Segment] = {}
        self.part = 0
        """Elements on each unit, of a buffer that is spread over units."""
        try:
            flat: Array = np.zeros(elements, buffer.dtype.numpy)
            written = np.zeros(elements, np.bool_)
        except (MemoryError, ValueError):
            raise SimulationError(f"{buffer} is too large to simulate with data: {elements} elements") from None
        self.common = Segment(flat, written, block.address + slot * block.bytes)

    def segment(self, instance: int, writes: bool) -> Segment:
        """What the unit of that number sees; it gets its own segment when it first writes."""
        if not self.is_private:
            return self.common
        own = self.own.get(instance)
        if own is None:
            if not writes:
                return self.common
            own = self.own[instance] = self.common.copy()
        return own

    def segments(self) -> Iterator[Segment]:
        yield self.common
        yield from self.own.values()

    def view(self) -> Array:
        """The common elements in the buffer's shape."""
        return self.shaped(self.common.flat)

    def shaped(self, flat: Array) -> Array:
        steps = tuple(stride * flat.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps)
