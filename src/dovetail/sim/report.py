"""What a timed run says: cycles, how busy instructions, units and memories were, and a timeline for trace viewers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dovetail.sim.clocks import Clocks
from dovetail.sim.costs import TICKS
from dovetail.sim.issue import Event
from dovetail.sim.units import topology
from dovetail.targets.model import Target


@dataclass(frozen=True, slots=True)
class InstructionTime:
    """One instruction: calls by all units, and the cycles that their pipes were held by it, summed."""

    name: str
    calls: int
    busy_cycles: float


@dataclass(frozen=True, slots=True)
class UnitTime:
    """The pipes of one kind of unit, or its engines for asynchronous calls."""

    name: str
    is_engine: bool
    count: int
    busy_cycles: float
    """Summed over all of them."""
    utilisation: float


@dataclass(frozen=True, slots=True)
class MemoryTime:
    """The ports of one memory."""

    name: str
    count: int
    bytes: int
    busy_cycles: float
    utilisation: float
    peak_bytes: int
    """The most that one of them held at a time."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The result of a timed run."""

    cycles: float
    instructions: tuple[InstructionTime, ...]
    units: tuple[UnitTime, ...]
    memories: tuple[MemoryTime, ...]
    events: tuple[Event, ...]
    """In ticks; empty of what repeats, which is one event."""
    stepped_calls: int
    """Calls that were stepped through; the others were taken with the loops that repeat."""

    def instruction(self, name: str) -> InstructionTime:
        return next(i for i in self.instructions if i.name == name)

    def unit(self, name: str, is_engine: bool = False) -> UnitTime:
        return next(u for u in self.units if u.name == name and u.is_engine is is_engine)

    def memory(self, name: str) -> MemoryTime:
        return next(m for m in self.memories if m.name == name)


def timing(
    target: Target, clocks: Clocks, end: int, events: Iterable[Event], calls: int, peak_bytes: Mapping[str, int]
) -> Timing:
    """The counts of a run that ended at tick ``end``, in cycles."""
    counts, totals = clocks.counts, topology(target).totals
    cycles = end / TICKS

    def share(ticks: int, count: int) -> float:
        return ticks / (end * count) if end else 0.0

    instructions = tuple(
        InstructionTime(name, number, counts[("busy", name)] / TICKS)
        for (what, name), number in counts.items()
        if what == "calls"
    )
    units = tuple(
        UnitTime(name, what == "engine", totals[name], ticks / TICKS, share(ticks, totals[name]))
        for (what, name), ticks in counts.items()
        if what in ("unit", "engine")
    )
    memories = []
    for memory in target.memories:
        ticks, bytes_ = counts.get(("memory", memory.name), 0), counts.get(("bytes", memory.name), 0)
        count = totals[memory.per]
        busy = MemoryTime(memory.name, count, bytes_, ticks / TICKS, share(ticks, count), peak_bytes[memory.name])
        if bytes_ or busy.peak_bytes:
            memories.append(busy)
    return Timing(cycles, instructions, units, tuple(memories), tuple(events), calls)


def table(timing: Timing, predicted_cycles: float | None = None) -> str:
    """Cycles and utilisation as text; ``predicted_cycles`` are shown beside the simulated ones."""
    head = f"{timing.cycles:,.0f} cycles simulated"
    if predicted_cycles is not None:
        off = f", {predicted_cycles / timing.cycles - 1:+.1%}" if timing.cycles else ""
        head += f", {predicted_cycles:,.0f} predicted{off}"
    rows = [("", "calls", "bytes", "busy cycles", "of the time")]
    for i in sorted(timing.instructions, key=lambda i: -i.busy_cycles):
        rows.append((f"instruction {i.name}", f"{i.calls:,}", "", f"{i.busy_cycles:,.0f}", ""))
    for u in timing.units:
        name = f"unit {u.name or 'machine'}{' copies' if u.is_engine else ''}{_times(u.count)}"
        rows.append((name, "", "", f"{u.busy_cycles:,.0f}", f"{u.utilisation:.1%}"))
    for m in timing.memories:
        busy = (f"{m.busy_cycles:,.0f}", f"{m.utilisation:.1%}") if m.busy_cycles else ("", "")
        rows.append((f"memory {m.name}{_times(m.count)}", "", f"{m.bytes:,}", *busy))
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join([head, "", *(line.rstrip() for line in lines)])


def chrome_trace(timing: Timing, frequency_hz: float = 0.0) -> dict[str, object]:
    """The timeline in Chrome's trace event format; one cycle is a microsecond unless the frequency is known."""
    scale = 1e6 / frequency_hz if frequency_hz else 1.0
    tracks = sorted({(e.lane, e.track) for e in timing.events})
    numbers = {track: number for number, track in enumerate(tracks)}
    names: list[dict[str, object]] = [
        {"ph": "M", "name": "thread_name", "pid": lane, "tid": numbers[lane, track], "args": {"name": track}}
        for lane, track in tracks
    ]
    events = [
        {
            "ph": "X",
            "name": e.name,
            "cat": "repeat" if e.is_repeat else "call",
            "pid": e.lane,
            "tid": numbers[e.lane, e.track],
            "ts": e.start / TICKS * scale,
            "dur": (e.end - e.start) / TICKS * scale,
            "args": {"call": e.text, "cycle": e.start / TICKS, "cycles": (e.end - e.start) / TICKS},
        }
        for e in timing.events
    ]
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ns"}


def write_chrome_trace(timing: Timing, path: Path, frequency_hz: float = 0.0) -> None:
    """``chrome_trace`` as a file that trace viewers open."""
    path.write_text(json.dumps(chrome_trace(timing, frequency_hz)), encoding="utf-8")


def _times(count: int) -> str:
    return f" x {count}" if count > 1 else ""
