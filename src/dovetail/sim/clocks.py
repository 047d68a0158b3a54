"""The state of a timed run: what each unit waits for and when each resource is free; times in ticks.

A resource is a unit's pipe, its engine for asynchronous calls, or the port of a memory. A lane is a unit that runs
the nest, or several that do exactly the same. Nothing before a lane's clock matters to it any more, so a state is
compared by times after the clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.sim.costs import Footprint

Resource = tuple[str, str, int]
"""Kind ("unit", "engine", "memory"), name, and which of them."""


@dataclass(slots=True)
class Hazard:
    """Elements that a call still writes, or still reads: when others may read and write them."""

    buffer: str
    footprint: Footprint
    offset: int | None
    readable: int
    writable: int

    def meets(self, footprint: Footprint, offset: int | None) -> bool:
        if self.offset is None or offset is None:
            return True
        return self.footprint.meets(footprint, offset - self.offset)


@dataclass(slots=True, eq=False)
class Lane:
    """A unit: its loops' values, where it stands, and what it has under way."""

    number: int
    env: dict[str, int]
    weight: int = 1
    """Units it stands for, those of the next numbers."""
    clock: int = 0
    hazards: list[Hazard] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)

    def fork(self, number: int, weight: int) -> Lane:
        hazards = [Hazard(h.buffer, h.footprint, h.offset, h.readable, h.writable) for h in self.hazards]
        return Lane(number, dict(self.env), weight, self.clock, hazards, dict(self.tokens))

    def settle(self) -> None:
        """Forget what is over."""
        clock = self.clock
        if any(h.writable <= clock for h in self.hazards):
            self.hazards = [h for h in self.hazards if h.writable > clock]


@dataclass(slots=True)
class Clocks:
    """All resources, the end of the last call, and counts of what was done."""

    free: dict[Resource, list[int]] = field(default_factory=dict)
    """When each server of a resource is free."""
    end: int = 0
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def count(self, what: str, name: str, number: int) -> None:
        key = (what, name)
        self.counts[key] = self.counts.get(key, 0) + number

    def skip(self, lanes: list[Lane], before: Snapshot, times: int, moves: Mapping[str, int | None], steps: int) -> int:
        """As if what happened since ``before`` had happened ``times`` more; its ticks.

        ``steps`` strides each time, in each of which places move by ``moves``."""
        base = min(lane.clock for lane in lanes)
        ticks = (base - before.base) * times
        for servers, earlier in zip(self.free.values(), before.free, strict=True):
            servers[:] = [t if t == was else t + ticks for t, was in zip(servers, earlier, strict=True)]
        for lane in lanes:
            lane.tokens = {name: time + ticks if time > lane.clock else time for name, time in lane.tokens.items()}
            lane.clock += ticks
            for hazard in lane.hazards:
                hazard.readable += ticks
                hazard.writable += ticks
                if hazard.offset is not None:
                    hazard.offset += (moves.get(hazard.buffer) or 0) * steps * times
        self.end += ticks
        for key, number in self.counts.items():
            self.counts[key] = number + (number - before.counts.get(key, 0)) * times
        return ticks


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state after the clock of its slowest lane."""

    base: int
    free: tuple[tuple[int, ...], ...]
    """Of all resources, as it is: what has not changed since was not used."""
    times: tuple[object, ...]
    hazards: tuple[tuple[str, Footprint, int, int, int], ...]
    offsets: tuple[int | None, ...]
    counts: Mapping[tuple[str, str], int]

    def repeats(self, before: Snapshot, moves: Mapping[str, int | None], steps: int) -> bool:
        """Whether this is the state ``before``, with places moved by ``steps`` strides."""
        if self.times != before.times or self.hazards != before.hazards:
            return False
        for (buffer, *_), new, old in zip(self.hazards, self.offsets, before.offsets, strict=True):
            if new is None or old is None:
                if new is not old:
                    return False
                continue
            moved = moves.get(buffer, 0)
            if moved is None or new - old != moved * steps:
                return False
        return True


def snapshot(clocks: Clocks, lanes: list[Lane]) -> Snapshot:
    """The state of ``lanes`` and all resources."""
    base = min(lane.clock for lane in lanes)
    for lane in lanes:
        lane.settle()
    free = tuple([tuple(servers) for servers in clocks.free.values()])
    later = tuple([t - base if t > base else 0 for servers in free for t in servers])
    each = tuple((lane.number, lane.clock - base, tuple(_tokens(lane))) for lane in lanes)
    hazards = [(lane, h) for lane in lanes for h in lane.hazards]
    return Snapshot(
        base,
        free,
        (len(free), later, each, clocks.end - base),
        tuple(
            (h.buffer, h.footprint, max(h.readable - x.clock, 0), h.writable - x.clock, x.number) for x, h in hazards
        ),
        tuple(h.offset for _, h in hazards),
        dict(clocks.counts),
    )


def _tokens(lane: Lane) -> Iterator[tuple[str, int]]:
    for name, time in lane.tokens.items():
        yield name, max(time - lane.clock, 0)
