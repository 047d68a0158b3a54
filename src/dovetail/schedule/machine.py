"""The numbers of a target that decide plans, read from its file."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.ir.expr import Apply, walk
from dovetail.schedule.facts import Facts
from dovetail.schedule.repertoire import Repertoire, repertoire
from dovetail.targets.model import Target


@dataclass(frozen=True)
class Machine:
    """Registers, throughputs and caches of one unit."""

    instructions: Repertoire
    registers: int
    caches: tuple[int, ...]
    """Bytes of each cache a unit can use, innermost first."""
    cache_bytes_per_cycle: tuple[float, ...]
    """From the next level outwards into each cache; the last is main memory."""
    latency: float = 4.0
    load_cycles: float = 0.5
    store_cycles: float = 1.0
    join_cycles: float = 10.0
    loop_cycles: float = 0.6
    tile_cycles: float = 12.0
    copy_cycles: float = 1.5

    def widths(self, dtype: str) -> tuple[int, ...]:
        return self.instructions.widths(dtype)

    def operation_cycles(self, facts: Facts) -> float:
        """Cycles of the arithmetic of one vector of a statement."""
        if facts.is_contraction:
            return 0.5
        operations = sum(isinstance(n, Apply) for n in walk(facts.statement.value))
        return max(0.5, 0.5 * (operations + (facts.statement.combine.value != "=")))


def machine_of(target: Target) -> Machine:
    """The numbers of ``target``."""
    registers = target.registers
    caches = target.caches
    inward = [m.bytes_per_cycle for m in caches[1:]] + [target.main.bytes_per_cycle]
    return Machine(
        repertoire(target),
        registers.count if registers is not None else 1,
        tuple(m.bytes for m in caches),
        tuple(inward),
    )
