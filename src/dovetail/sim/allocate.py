"""Addresses for buffers: each memory hands out what lies above its live buffers, so no two of them overlap.

Scopes of ``alloc`` are nested, so storage is returned in the reverse of the order in which it was taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from dovetail.base.errors import SimulationError
from dovetail.ir.nest import Buffer
from dovetail.targets.model import Memory, MemoryKind, Target


@dataclass(frozen=True, slots=True)
class Block:
    """Where a buffer lies: ``bytes`` at ``address``, and as much again for each further unit that shares the memory."""

    name: str
    memory: str
    address: int
    bytes: int
    sharers: int

    @property
    def end(self) -> int:
        return self.address + self.bytes * self.sharers


class Allocator:
    """Live blocks of every memory, and the most that each has held."""

    def __init__(self, target: Target) -> None:
        self.memories: Mapping[str, Memory] = {m.name: m for m in target.memories}
        self.live: dict[str, list[Block]] = {m.name: [] for m in target.memories}
        self.peak_bytes: dict[str, int] = dict.fromkeys(self.live, 0)
        self.counts_registers = target.llvm is None
        """Where LLVM assigns registers, a nest may name more than there are."""

    def take(self, buffer: Buffer, elements: int, sharers: int = 1) -> Block:
        """A block of ``elements`` for each of ``sharers`` units, aligned; an error when the memory is too small."""
        memory, live = self.memories[buffer.memory], self.live[buffer.memory]
        align = max(memory.align, buffer.dtype.bytes)
        bytes_ = _up(elements * buffer.dtype.bytes, align)
        block = Block(buffer.name, memory.name, _up(live[-1].end, align) if live else 0, bytes_, sharers)
        counted = memory.kind is not MemoryKind.REGISTERS or self.counts_registers
        if counted and block.end > memory.bytes:
            raise self._too_much(block, buffer, memory)
        live.append(block)
        self.peak_bytes[memory.name] = max(self.peak_bytes[memory.name], block.end)
        return block

    @property
    def levels(self) -> tuple[int, ...]:
        """How far each memory is taken."""
        return tuple([blocks[-1].end if blocks else 0 for blocks in self.live.values()])

    def release(self, block: Block) -> None:
        """The block that was taken last in its memory is free again."""
        last = self.live[block.memory].pop()
        assert last is block

    def _too_much(self, block: Block, buffer: Buffer, memory: Memory) -> SimulationError:
        each = f"{block.sharers} times {block.bytes}" if block.sharers > 1 else str(block.bytes)
        held = ", ".join(f"{b.name} {b.bytes * b.sharers}" for b in self.live[memory.name]) or "nothing"
        return SimulationError(
            f"memory '{memory.name}' is full: {buffer} needs {each} bytes at address {block.address}",
            where=f"alloc {buffer}",
            why=f"the memory has {memory.bytes} bytes and holds {held}",
            hint="smaller tiles, or buffers with shorter lives",
        )


def elements_of(shape: tuple[int, ...], strides: tuple[int, ...], lanes: int) -> int:
    """Elements a buffer spans."""
    if any(extent <= 0 for extent in shape):
        return 0
    if not strides:
        return prod(shape) * lanes
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


def _up(number: int, align: int) -> int:
    return -(-number // align) * align
