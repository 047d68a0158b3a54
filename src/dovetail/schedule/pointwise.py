"""Cycles of statements that have one value for every point: arithmetic and moves of vectors, lines brought in and out.

Statements that run on the same elements, under the same loops, load what they share once. What only passes between
them stays near, and moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, prod

from dovetail.schedule.facts import Facts, Use
from dovetail.schedule.machine import Machine


@dataclass(frozen=True, slots=True)
class Vectors:
    """Statements over the same loops, ``width`` points of the loop ``lanes`` (in each, by its own name) at a time."""

    facts: tuple[Facts, ...]
    lanes: tuple[str, ...]
    width: int


def pointwise_cycles(machine: Machine, parts: Iterable[Vectors], scratch: frozenset[str] = frozenset()) -> float:
    """Cycles of one unit for all of ``parts``, one after the other on the same elements."""
    total = 0.0
    read: dict[str, int] = {}
    written: dict[str, int] = {}
    for part in parts:
        total += _vectors(part.facts[0], part.lanes[0], part.width) * _step(machine, part)
        for facts in part.facts:
            out = facts.out.access.tensor
            written[out] = written.get(out, 0) + _reach(facts, facts.out)
            for use in facts.reads:
                name = use.access.tensor
                read[name] = max(read.get(name, 0), _reach(facts, use))
    moved = [size for sizes in (read, written) for name, size in sizes.items() if name not in scratch]
    return total + sum(ceil(size / machine.line_bytes) * machine.line_cycles(size) for size in moved)


def _vectors(facts: Facts, lanes: str, width: int) -> int:
    points = prod(e for n, e in facts.extents.items() if n != lanes)
    return points * ceil(facts.extents.get(lanes, 1) / width)


def _step(machine: Machine, part: Vectors) -> float:
    """One vector of every statement."""
    arithmetic = loads = stores = 0.0
    seen: set[str] = set()
    for facts, lanes in zip(part.facts, part.lanes, strict=True):
        extent = facts.extents.get(lanes, 1)
        live = extent / ceil(extent / part.width)
        arithmetic += machine.operation_cycles(facts, part.width)
        stores += _move(machine, facts.out, lanes, part.width, live, True)
        arithmetic += machine.guard_cycles * bool(facts.guarded)
        for use in facts.reads:
            if str(use.access) not in seen:
                seen.add(str(use.access))
                loads += _move(machine, use, lanes, part.width, live, False)
    slowest = max(arithmetic, loads, stores)
    rest = arithmetic + loads + stores - slowest
    return slowest + machine.crowding * rest + machine.loop_cycles


def _move(machine: Machine, use: Use, lanes: str, width: int, live: float, written: bool) -> float:
    """One vector, of which so many lanes exist, between registers and memory."""
    stride = use.stride(lanes) if lanes else 1
    if stride not in (0, 1):
        return live * machine.lane_cycles
    if written:
        return machine.store_cycles(use.dtype, width)
    return machine.load_cycles(use.dtype, width) if stride else machine.broadcast_cycles(use.dtype, width)


def _reach(facts: Facts, use: Use) -> int:
    """Bytes of the elements that a use touches, each once."""
    total = use.bytes
    for terms in use.dims:
        own = [(facts.extents[n], abs(c)) for n, c in terms if n in facts.extents]
        total *= min(prod(extent for extent, _ in own), 1 + sum(c * (extent - 1) for extent, c in own))
    return total
