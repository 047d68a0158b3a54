"""Where operands may start: in a scratchpad with an alignment, at some of its elements only."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from dovetail.base.dtypes import DType
from dovetail.ir.nest import Buffer
from dovetail.targets.model import MemoryKind, Target


def start_unit(target: Target, memory: str, dtype: DType) -> int:
    """An operand in ``memory`` starts at multiples of so many elements; 1 where data is not placed."""
    found = target.memory(memory)
    return max(1, found.align // dtype.bytes) if found.kind is MemoryKind.SCRATCHPAD else 1


@lru_cache(maxsize=256)
def takes_rows_only(target: Target, memory: str) -> bool:
    """Whether every copy from and to a memory has one loop, so that each row is a call of its own."""
    copies = [i for i in target.instructions if i.is_copy and any(o.memory == memory for o in i.operands)]
    return all(len(i.program.statements[0].loops) < 2 for i in copies)


def up(number: int, unit: int) -> int:
    """The next multiple of ``unit``."""
    return -(-number // unit) * unit


def bytes_of(buffer: Buffer, target: Target, grid: int = 0) -> int:
    """What a buffer (of constant extents) takes of its memory; of a unit's, where its first ``grid`` dimensions are
    units."""
    shape = [e.const for e in buffer.shape[grid:]]
    elements = prod(shape)
    if buffer.strides:
        elements = 1 + sum((e - 1) * s.const for e, s in zip(shape, buffer.strides[grid:], strict=True))
    return up(elements * buffer.dtype.bytes, max(target.memory(buffer.memory).align, buffer.dtype.bytes))
