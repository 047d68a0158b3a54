"""Memory a kernel needs besides its arguments: one shared arena, and one per unit.

Buffers lie one after the other, each from a multiple of 64 bytes on; none shares memory with another one, so code
may be told that they never overlap. Their sizes may depend on run-time sizes; never on loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from dovetail.codegen.arithmetic import Arithmetic
from dovetail.codegen.buffers import ALIGNMENT
from dovetail.ir.index import ONE, Index
from dovetail.ir.nest import Buffer


@dataclass(frozen=True, slots=True)
class Arena:
    """Buffers in the order in which they lie in memory."""

    buffers: tuple[Buffer, ...]

    def bytes(self, sizes: Mapping[str, int]) -> int:
        """How much a call with these sizes needs."""
        return sum(_round_up(_elements(b, sizes) * b.dtype.bytes) for b in self.buffers)

    def pointers(self, base: str, arithmetic: Arithmetic) -> dict[str, str]:
        """LLVM pointers to the buffers of an arena that starts at ``base``."""
        found: dict[str, str] = {}
        function = arithmetic.function
        for buffer in self.buffers:
            found[buffer.name] = base
            elements = arithmetic.sum([(arithmetic.product(p), 1) for p in span(buffer)])
            size = arithmetic.scaled(arithmetic.extreme("smax", [elements, "0"]), buffer.dtype.bytes)
            padded = arithmetic.add(size, str(ALIGNMENT - 1))
            rounded = function.pure(f"and i64 {padded}, {-ALIGNMENT}", padded)
            base = function.pure(f"getelementptr i8, ptr {base}, i64 {rounded}", base, rounded)
        return found


def span(buffer: Buffer) -> tuple[tuple[Index, ...], ...]:
    """Elements from a buffer's first to its last, as a sum of products."""
    if not buffer.strides:
        return (buffer.shape,)
    steps = tuple((extent - 1, stride) for extent, stride in zip(buffer.shape, buffer.strides, strict=True))
    return (*steps, (ONE,))


def _elements(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    return max(0, sum(prod(factor.evaluate(sizes) for factor in product) for product in span(buffer)))


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
