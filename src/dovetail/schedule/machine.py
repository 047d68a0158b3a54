"""The numbers of a target that decide plans, read from its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd

from dovetail.base.dtypes import DTYPES
from dovetail.ir.expr import Apply, walk
from dovetail.schedule.facts import Facts
from dovetail.schedule.lanes import lane_counts
from dovetail.schedule.repertoire import Entry, Repertoire, repertoire
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.model import Target

LINE_BYTES = 64


@dataclass(frozen=True)
class Machine:
    """Registers, throughputs and caches of one unit."""

    instructions: Repertoire
    registers: int
    caches: tuple[int, ...]
    """Bytes of each cache a unit can use, innermost first."""
    cache_bytes_per_cycle: tuple[float, ...]
    """From the next level outwards into each cache; the last is main memory."""
    ahead_cycles: float = 0.0
    """How long before its use a line of many rows is asked for; 0: the innermost cache brings it by itself."""
    ask_cycles: float = 0.25
    """Asking for one."""
    join_cycles: float = 14.0
    loop_cycles: float = 0.6
    crowding: float = 0.15
    """How much of the shorter of arithmetic and loads does not hide behind the longer."""
    enter_cycles: float = 24.0
    """Starting the innermost loop."""
    enter_cycles_seen: float = 0.5
    """What of that is seen where arithmetic goes on meanwhile."""
    tile_cycles: float = 60.0
    copy_cycles: float = 1.5
    """Moving one element to another layout, one by one."""
    strided_passes: int = 2
    """How much more bytes count that are read in strides, and so are not fetched ahead."""
    run_cycles: float = 10.0
    """Beginning to read another stretch of memory."""
    far_run_cycles: float = 8.0
    """The same in main memory and on another page, for stretches that are read in passing."""
    page_bytes: int = 4096
    line_bytes: int = LINE_BYTES
    barrier_cycles: float = 1500.0
    scatter_cycles: float = 4.5
    """Moving one lane of a vector to or from a place of its own."""
    lane_cycles: float = 0.9
    """The same where many of them are on their way at once."""
    guard_cycles: float = 1.0
    """Asking whether a vector's conditions hold."""
    crowded: float = 0.22
    """How much of the time to fill the innermost cache is seen beside arithmetic that takes as long; of a part of that
    time less, with the square of the part."""
    exposed: float = 0.4
    """How much of the time to fill the caches further out is not hidden behind arithmetic."""
    sustained: float = 0.65
    """How much of the bandwidth between two caches a stream beside arithmetic gets."""
    sustained_seen: float = 0.85
    pages: int = 56
    """Pages whose addresses are remembered close by."""
    far_pages: int = 1000
    """Pages whose addresses are remembered further out."""
    waiting: float = 0.4
    """How much of the shorter of computing and bringing data from main memory does not hide behind the longer."""
    shared_line_cycles: float = 150.0
    """A line that two units write in turn."""
    passed_line_cycles: float = 20.0
    """Writing a line anew that other units have read since."""
    start_cycles: float = 4_000.0
    """Waking the other units and waiting for the last."""
    conflict_cycles: float = 2.0
    """Reading a vector that others of the same set have driven out of the innermost cache."""
    uneven: float = 0.25
    """By how much of a part one unit is behind another when they meet: others use the machine too."""
    gone_cycles: float = 7.0
    """A step along memory whose lines share so few sets that even the second cache has lost them before the next sweep,
    though they are asked for ahead."""
    set_cycles: float = 0.7
    """Reading one of several rows that fall into the same sets of a cache."""
    row_cycles: float = 0.01
    """Reading one of several rows side by side, each a stretch of memory of its own, rather than one."""
    page_cycles: float = 4.0
    """Reading from another page than the step before."""
    asked_page_cycles: float = 0.7
    """The same where code asks ahead, and of more pages than are remembered further out."""
    scattered_lines: float = 2.0
    """How much dearer lines are that do not follow each other in memory."""
    fetch_vectors: int = 400
    """Vectors of a tile that take as long as bringing a line from far away."""
    fetched_lines: float = 0.2
    """What is left of the cost of a line that was asked for ahead of time."""
    line_cost: tuple[float, ...] = (0.8, 2.5, 5.0, 12.0)
    shares: tuple[float, ...] = (0.5, 0.65, 0.17)
    """What of each cache a block can count on: beside data that streams past it, and in the third one beside what
    other units and other programs keep there."""
    share_kept: float = 0.6
    """The part of the last cache in which a program finds again what it used in the call before."""
    share_alone: float = 0.42
    """The same of the second cache, when one unit is at work."""

    def seen(self, near: Sequence[float], computing: float) -> float:
        """What filling each cache from the next one adds to the arithmetic that it runs beside, all in cycles."""
        if not near or not computing:
            return 0.0
        return self.crowded * near[0] * min(1.0, near[0] / computing) + self.exposed * sum(near[1:])

    def balance(self, parts: float, units: int) -> float:
        """How much longer the last unit takes than if all finished together: they take whole parts, the last of which
        may be smaller, and they are seldom equally fast."""
        if units == 1 or not parts:
            return 1.0
        whole = ceil(parts) - 1
        longest = ceil(whole / units) if whole % units else whole // units + parts - whole
        return (longest + self.uneven) * units / parts

    def line_cycles(self, footprint_bytes: int) -> float:
        """Bringing one line of data of this size into the innermost cache, when lines follow each other."""
        level = next((n for n, size in enumerate(self.caches) if footprint_bytes <= size), len(self.caches))
        return self.line_cost[min(level, len(self.line_cost) - 1)]

    @property
    def usable(self) -> tuple[int, ...]:
        """Bytes of each cache that a block can count on."""
        last = len(self.shares) - 1
        return tuple(int(size * self.shares[min(level, last)]) for level, size in enumerate(self.caches))

    def for_units(self, units: int) -> Machine:
        """The machine as ``units`` units at work see it. One alone has the third cache to itself, so that passing over
        data there once more costs less than a block so large that pages drive each other out of the second one."""
        return self if units > 1 else replace(self, shares=(self.shares[0], self.share_alone, *self.shares[2:]))

    def in_the_long_run(self) -> Machine:
        """The machine as a program sees it that is called again and again, with what is usual and not what may be."""
        return replace(
            self,
            enter_cycles=self.enter_cycles_seen,
            scatter_cycles=self.lane_cycles,
            sustained=self.sustained_seen,
            shares=(*self.shares[:-1], self.share_kept),
        )

    def ways(self, stride_bytes: int, level: int = 0) -> float:
        """How many lines this far apart a cache holds at once; the sets of the innermost one span one page, those of
        others a power of two."""
        size = self.caches[level] if level < len(self.caches) else 32768 << 4 * level
        associativity = max(1, (self.caches[0] if self.caches else 32768) // self.page_bytes)
        span = 1 << max(1, size // associativity).bit_length() - 1
        associativity = size // span
        return span // max(gcd(stride_bytes, span), self.line_bytes) * associativity

    def asks(self, stride_bytes: int) -> bool:
        """Whether code asks ahead for what it reads at steps this far apart."""
        return self.ahead_cycles > 0 and stride_bytes >= self.line_bytes

    def loses(self, stride_bytes: int, steps: int) -> bool:
        """Whether the second cache keeps fewer of the lines that code asks for than a sweep of ``steps`` takes."""
        return self.asks(stride_bytes) and steps > self.ways(stride_bytes, 1)

    def paging_cycles(self, stride_bytes: int, steps: int) -> float:
        """What a step costs more when a sweep of ``steps`` touches more pages than are remembered; little where code
        asks for its lines ahead of time."""
        pages = stride_bytes * steps / self.page_bytes
        if self.asks(stride_bytes):
            return self.asked_page_cycles * min(1.0, stride_bytes / self.page_bytes) if pages > self.far_pages else 0.0
        return self.page_cycles * min(1.0, stride_bytes / self.page_bytes) if pages > self.pages else 0.0

    def lane_counts(self, facts: Facts) -> tuple[int, ...]:
        """Lanes the statement can run in, widest first."""
        dtypes = {use.access.tensor: DTYPES[use.dtype] for use in (facts.out, *facts.reads)}
        return lane_counts(facts.statement, dtypes, self.instructions)

    def cycles(self, *key: str | int | bool) -> float | None:
        """Issue cost of an instruction, None where the target has none such."""
        entry = self.instructions.find(*key)
        return None if entry is None else evaluate_cost(entry.instruction.cycles, _full(entry))

    def load_cycles(self, dtype: str, width: int) -> float:
        return self.cycles("load", dtype, width, False, False) or 0.5

    def store_cycles(self, dtype: str, width: int) -> float:
        return self.cycles("store", dtype, width, False, False) or 1.0

    def broadcast_cycles(self, dtype: str, width: int) -> float:
        return self.cycles("broadcast", "memory", dtype, width) or self.load_cycles(dtype, width)

    def rows_cycles(self, dtype: str, width: int, rows: int) -> float:
        """Storing vectors whose lanes are rows of memory, and that are neighbours there."""
        total = 0.0
        for count in self.instructions.row_parts(dtype, width, rows):
            together = self.cycles("store_rows", dtype, width, count) if count > 1 else None
            total += width * self.scatter_cycles if together is None else together
        return total

    def latency(self, facts: Facts, width: int) -> float:
        """Cycles before an accumulator can be used again."""
        statement = facts.statement
        if isinstance(statement.value, Apply):
            entry = self.instructions.find(
                "accumulate", statement.combine.value, statement.value.function, facts.out.dtype, width
            )
            if entry is not None:
                return evaluate_cost(entry.instruction.latency, _full(entry))
        return 4.0

    def operation_cycles(self, facts: Facts, width: int) -> float:
        """Cycles of the arithmetic of one vector of a statement."""
        statement, dtype = facts.statement, facts.out.dtype
        value = statement.value
        if isinstance(value, Apply):
            joint = self.cycles("accumulate", statement.combine.value, value.function, dtype, width)
            if joint is not None and facts.is_contraction:
                return joint
        total = 0.0
        for node in walk(value):
            if isinstance(node, Apply):
                total += self.cycles("apply", node.function, dtype, width) or 1.0
        function = statement.combine.function
        return total + (self.cycles("apply", function, dtype, width) or 1.0 if function else 0.0)


def _full(entry: Entry) -> dict[str, int]:
    """Parameters at their largest: whole vectors."""
    return {s.name: s.high for s in entry.instruction.program.sizes}


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
        caches[0].ahead_cycles if caches else 0.0,
    )
