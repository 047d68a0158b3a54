"""Where values lie in one arena: what is alive at the same time lies apart, what is not may share bytes.

a lives at steps 0..1, b at 1..2, c at 2..3    ->    a at 0, b behind it, c where a was
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """So many bytes, from the step ``first`` to the step ``last``, both included."""

    bytes: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both are alive at some step."""
        return self.first <= other.last and other.first <= self.last


def lay_out(buffers: Sequence[Lifetime]) -> tuple[tuple[int, ...], int]:
    """The offset of each buffer, a multiple of 64, and the bytes of the whole arena.

    The largest come first; each goes into the smallest gap that holds it, between those it meets. The same buffers
    always lie in the same way.
    """
    offsets = [0] * len(buffers)
    order = sorted(range(len(buffers)), key=lambda n: (-buffers[n].bytes, buffers[n].first, n))
    living: dict[int, list[int]] = {}
    """What has been placed, by the steps at which it is alive."""
    total = 0
    for number in order:
        mine = buffers[number]
        if not mine.bytes:
            continue
        steps = range(mine.first, mine.last + 1)
        met = {n for step in steps for n in living.get(step, ())}
        taken = sorted((offsets[n], _padded(buffers[n].bytes)) for n in met)
        offsets[number] = _smallest_gap(taken, _padded(mine.bytes))
        for step in steps:
            living.setdefault(step, []).append(number)
        total = max(total, offsets[number] + _padded(mine.bytes))
    return tuple(offsets), total


def _smallest_gap(taken: Sequence[tuple[int, int]], wanted: int) -> int:
    """Where ``wanted`` bytes fit best between stretches (offset, bytes) in order of offset; else behind them all."""
    best, best_bytes, end = -1, 0, 0
    for offset, length in taken:
        gap = offset - end
        if gap >= wanted and (best < 0 or gap < best_bytes):
            best, best_bytes = end, gap
        end = max(end, offset + length)
    return end if best < 0 else best


def _padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT
