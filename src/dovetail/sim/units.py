"""How many units of each kind a machine has, and which of them share what.

Units are listed outermost first and counts multiply: 132 ``sm`` of 4 ``warpgroup`` are 528 warpgroups, and warpgroup
number 7 belongs to sm number 1. The empty name is the machine itself, of which there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from dovetail.ir.nest_verify import Machine
from dovetail.targets.model import Memory, MemoryKind, Target


@dataclass(frozen=True, slots=True)
class Topology:
    """``totals``: how many of each unit there are in the whole machine."""

    totals: Mapping[str, int]
    owners: Mapping[str, str]
    """Memory -> the unit it belongs to."""

    def instance(self, unit: str, kind: str, number: int) -> int:
        """Which ``unit`` the ``kind`` of that number belongs to; the first of its own where it has several."""
        return number * self.totals[unit] // self.totals[kind]

    def sharers(self, unit: str, kind: str) -> int:
        """How many units of ``kind`` share one ``unit``."""
        return max(1, self.totals[kind] // self.totals[unit])

    def is_private(self, memory: str) -> bool:
        """Whether there are several of a memory."""
        return self.totals[self.owners[memory]] > 1


def topology(target: Target) -> Topology:
    """The units of ``target``."""
    totals, total = {"": 1}, 1
    for unit in target.units:
        total *= prod(unit.count)
        totals[unit.name] = total
    return Topology(totals, {m.name: m.per for m in target.memories})


def nest_machine(target: Target) -> Machine:
    """What the verifier of nests needs to know of ``target``."""
    registers = frozenset(m.name for m in target.memories if m.kind is MemoryKind.REGISTERS)
    memories = frozenset(m.name for m in target.memories)
    return Machine(target.by_name, memories, registers, frozenset(u.name for u in target.units))


def is_placed(memory: Memory) -> bool:
    """Whether data lies where the nest puts it; caches and the memory behind them take care of themselves."""
    return memory.kind in (MemoryKind.SCRATCHPAD, MemoryKind.REGISTERS)
