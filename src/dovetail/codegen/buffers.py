"""Where buffers are: arguments, the arena, registers; and the pointer to an element of one.

Every buffer in memory is a pointer argument of the function that uses it. An element's offset is split by what it
depends on, outermost first: ``base + f(outer loops) + g(inner loops) + constant``, so that each part is computed in
the loop that changes it, and elements that differ by a constant share all but an addressing mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from dovetail.codegen.arithmetic import Arithmetic
from dovetail.ir.index import ZERO, Access, Index
from dovetail.ir.nest import Buffer, Place

ALIGNMENT = 64
"""Bytes between starts of arena buffers: a cache line, and the widest register of any target so far."""


@dataclass(frozen=True, slots=True)
class MemoryBuffer:
    """A buffer in memory; ``number`` stands for it in messages from running code."""

    buffer: Buffer
    number: int
    private: bool | None
    """None: an argument; True: one per unit; False: one for all units."""

    @property
    def pointer(self) -> str:
        return f"%b{self.number}"

    @property
    def argument(self) -> str:
        """The buffer as an argument of a function, by which no other buffer is reached."""
        aligned = "" if self.private is None else f" align {ALIGNMENT}"
        return f"ptr noalias{aligned} {self.pointer}"

    def strides(self) -> tuple[tuple[int, tuple[Index, ...]], ...]:
        """In elements, per dimension: a number, times run-time factors."""
        if self.buffer.strides:
            return tuple((s.const, ()) if s.is_constant else (1, (s,)) for s in self.buffer.strides)
        strides: list[tuple[int, tuple[Index, ...]]] = []
        factor, factors = 1, tuple[Index, ...]()
        for extent in reversed(self.buffer.shape):
            strides.append((factor, factors))
            if extent.is_constant:
                factor *= extent.const
            else:
                factors = (extent, *factors)
        return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Reach:
    """How far beyond a place an instruction goes: ``steps`` (an LLVM value), ``stride`` elements each."""

    steps: str
    stride: int


class Addresses:
    """Pointers to places, computed in one function. ``status`` is where a bad indirect index is reported."""

    def __init__(self, arithmetic: Arithmetic, buffers: Mapping[str, MemoryBuffer], status: str) -> None:
        self.arithmetic = arithmetic
        self.function = arithmetic.function
        self.buffers = buffers
        self.status = status
        self._strides: dict[str, tuple[tuple[int, tuple[Index, ...]], ...]] = {}

    def pointer(self, place: Place, reaches: tuple[Reach, ...] = ()) -> str:
        """The address of ``place``; indices that hold an indirect read are checked against the buffer's shape."""
        memory = self.buffers[place.buffer]
        bytes_each = memory.buffer.dtype.bytes
        strides = self._strides.get(place.buffer)
        if strides is None:
            strides = self._strides[place.buffer] = memory.strides()
        parts: dict[tuple[Index, ...], Index] = {}
        checked: list[str] = []
        outer: set[int] = set()
        for dimension, (index, (factor, factors)) in enumerate(zip(place.indices, strides, strict=True)):
            index = self.arithmetic.index(index)
            if index.is_indirect:
                steps = [r.steps for r in reaches if r.stride == factor and not factors and factor not in outer]
                value = self._checked(memory, dimension, index, steps)
                checked.append(self._scaled(value, factor * bytes_each, factors))
            else:
                parts[factors] = parts.get(factors, ZERO) + index * factor
            if not factors:
                outer.add(factor)  # a dimension with the stride of an outer one has extent 1
        return self._offset(memory.pointer, parts, bytes_each, checked)

    def read(self, access: Access) -> str:
        """The element an indirect index is read from, as i64."""
        memory = self.buffers[access.tensor]
        dtype = memory.buffer.dtype
        pointer = self.pointer(Place(access.tensor, access.indices))
        value = self.function.local(f"load i{dtype.bits}, ptr {pointer}, align {dtype.bytes}")
        if dtype.bits == 64:
            return value
        return self.function.local(f"{'sext' if dtype.low < 0 else 'zext'} i{dtype.bits} {value} to i64")

    def _offset(self, base: str, parts: dict[tuple[Index, ...], Index], bytes_each: int, checked: list[str]) -> str:
        """Variable parts by level, then multiples of run-time strides, then indirect ones, then the constant."""
        by_level: dict[int, list[str]] = {}
        last: list[str] = []
        for factors, index in parts.items():
            for atom, c in index.terms:
                value = self._scaled(self.arithmetic.atom(atom), c * bytes_each, factors)
                by_level.setdefault(self.function.level(value), []).append(value)
            if factors and index.const:
                last.append(self._scaled("1", index.const * bytes_each, factors))
        for _, values in sorted(by_level.items()):
            base = self._moved(base, self.arithmetic.sum([(v, 1) for v in values]))
        for value in (*last, *checked):
            base = self._moved(base, value)
        const = parts.get((), ZERO).const * bytes_each
        return self.function.local(f"getelementptr i8, ptr {base}, i64 {const}") if const else base

    def _moved(self, base: str, offset: str) -> str:
        return self.function.pure(f"getelementptr i8, ptr {base}, i64 {offset}", base, offset)

    def _scaled(self, value: str, factor: int, factors: tuple[Index, ...]) -> str:
        if not factors:
            return self.arithmetic.scaled(value, factor)
        stride = self.arithmetic.scaled(self.arithmetic.product(factors), factor)
        return self.arithmetic.multiply(value, stride)

    def _checked(self, memory: MemoryBuffer, dimension: int, index: Index, steps: list[str]) -> str:
        """``index``, or 0 after a report where it or the last element reached lies outside the buffer."""
        value = self.arithmetic.value(index)
        last = reduce(self.arithmetic.add, steps, value)
        extent = self.arithmetic.value(memory.buffer.shape[dimension])
        inside = self.function.local(f"icmp ult i64 {value}, {extent}")
        if last != value:
            end = self.function.local(f"icmp ult i64 {last}, {extent}")
            inside = self.function.local(f"and i1 {inside}, {end}")
        good, bad, after = (self.function.fresh("l") for _ in range(3))
        self.function.do(f"br i1 {inside}, label {good}, label {bad}")
        self.function.start_block(bad)
        code = 1 + (memory.number << 8 | dimension)
        self.function.do(f"call void @report(ptr {self.status}, i64 {code}, i64 {value})")
        self.function.do(f"br label {after}")
        self.function.start_block(good)
        self.function.do(f"br label {after}")
        self.function.start_block(after)
        return self.function.local(f"phi i64 [ {value}, {good} ], [ 0, {bad} ]")
