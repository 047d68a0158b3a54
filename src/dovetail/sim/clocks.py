"""The state of a timed run: what each unit waits for and when each resource is free; times in ticks.

A resource is a unit's pipe, its engine for asynchronous calls, or the port of a memory. A lane is a unit that runs
the nest, or several that do exactly the same. Nothing before a lane's clock matters to it any more, so a state is
compared by times after the clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dovetail.ir.index import Index
from dovetail.sim.costs import Footprint

Resource = tuple[str, str, int]
"""Kind ("unit", "engine", "memory"), name, and which of them."""
FAR = 1 << 62
"""Later than anything."""


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
    """When all that was started with each is done."""
    handled: dict[str, int] = field(default_factory=dict)
    """How often each was started or waited for."""
    bases: dict[str, int] = field(default_factory=dict)
    """Buffer -> where the places of the steps that are run now count from."""

    def fork(self, number: int, weight: int) -> Lane:
        hazards = [Hazard(h.buffer, h.footprint, h.offset, h.readable, h.writable) for h in self.hazards]
        return replace(
            self,
            number=number,
            env=dict(self.env),
            weight=weight,
            hazards=hazards,
            tokens=dict(self.tokens),
            handled=dict(self.handled),
        )

    def place(self, buffer: str, offset: Index | None) -> int | None:
        """Where an operand lies; None where only a run with data knows."""
        return None if offset is None else offset.evaluate(self.env) + self.bases.get(buffer, 0)

    def move(self, shifts: Iterable[tuple[str, int]], times: int) -> None:
        """Count places from elsewhere."""
        for buffer, distance in shifts:
            self.bases[buffer] = self.bases.get(buffer, 0) + distance * times

    def start(self, token: str, done: int) -> None:
        self.handled[token] = self.handled.get(token, 0) + 1
        self.tokens[token] = max(done, self.tokens.get(token, 0))

    def wait(self, token: str) -> None:
        self.handled[token] = self.handled.get(token, 0) + 1
        self.clock = max(self.clock, self.tokens.pop(token, 0))

    def shift_tokens(self, before: Tokens, ticks: int, clock: int) -> None:
        """Those that were started since ``before``, and are not done yet, are done ``ticks`` later."""
        for name, time in self.tokens.items():
            if time > clock and self.handled[name] != before[name][1]:
                self.tokens[name] = time + ticks

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
    uses: dict[Resource, int] = field(default_factory=dict)
    """How often each was used, those of loops that were taken in one step not counted."""
    end: int = 0
    margin: int = FAR
    """How long calls have waited for their pipe at least; negative where a pipe waited for a call."""
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def servers(self, key: Resource, count: int) -> list[int]:
        """Those of a resource that is used now."""
        self.uses[key] = self.uses.get(key, 0) + 1
        found = self.free.get(key)
        if found is None:
            found = self.free[key] = [0] * count
        return found

    def count(self, what: str, name: str, number: int) -> None:
        key = (what, name)
        self.counts[key] = self.counts.get(key, 0) + number

    def skip(self, lanes: list[Lane], before: Snapshot, times: int, moves: Mapping[str, int | None], steps: int) -> int:
        """As if what happened since ``before`` had happened ``times`` more; its ticks.

        ``steps`` strides each time, in each of which places move by ``moves``."""
        ticks = (min(lane.clock for lane in lanes) - before.base) * times
        self.shift(before, ticks)
        for lane, tokens in zip(lanes, before.tokens, strict=True):
            lane.shift_tokens(tokens, ticks, lane.clock)
            lane.clock += ticks
            for hazard in lane.hazards:
                hazard.readable += ticks
                hazard.writable += ticks
                if hazard.offset is not None:
                    hazard.offset += (moves.get(hazard.buffer) or 0) * steps * times
        self.repeat(lanes, before, times)
        if ticks:
            self.end = max([self.end, *(h.writable for lane in lanes for h in lane.hazards)])
        return ticks

    def queue(self, lane: Lane, before: Snapshot, times: int, ticks: int) -> None:
        """As if the starts since ``before`` had been made ``times`` more, each round of them ``ticks`` later."""
        self.shift(before, ticks * times)
        lane.shift_tokens(before.tokens[0], ticks * times, lane.clock)
        self.repeat([lane], before, times)

    def shift(self, before: Snapshot, ticks: int) -> None:
        for servers, earlier in zip(self.free.values(), before.free, strict=True):
            servers[:] = [t if t == was else t + ticks for t, was in zip(servers, earlier, strict=True)]

    def repeat(self, lanes: list[Lane], before: Snapshot, times: int) -> None:
        """The counts, and the end, after ``times`` more of what was done since ``before``.

        Of what was done, all that ends behind its lane's clock is known there: by tokens that were used since, and
        by hazards, which are all of calls made since when the clock has moved."""
        for lane, tokens in zip(lanes, before.tokens, strict=True):
            later = [time for name, time in lane.tokens.items() if lane.handled[name] != tokens[name][1]]
            self.end = max([self.end, lane.clock, *later])
        for key, number in self.counts.items():
            self.counts[key] = number + (number - before.counts.get(key, 0)) * times


Tokens = Mapping[str, tuple[int, int]]
"""Name -> when its calls are done, and how often it was started or waited for."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state; times are compared after the clock of the slowest lane."""

    base: int
    free: tuple[tuple[int, ...], ...]
    """Of all resources, as it is."""
    uses: tuple[int, ...]
    tokens: tuple[Tokens, ...]
    """Of each lane."""
    clocks: tuple[tuple[int, int], ...]
    hazards: tuple[tuple[str, Footprint, int, int, int], ...]
    offsets: tuple[int | None, ...]
    counts: Mapping[tuple[str, str], int]

    def repeats(self, before: Snapshot, moves: Mapping[str, int | None], steps: int) -> bool:
        """Whether this is the state ``before``, with places moved by ``steps`` strides.

        What was not used in between does not matter: it stays as it is, and the others go on."""
        if self.clocks != before.clocks or self.hazards != before.hazards or len(self.free) != len(before.free):
            return False
        for new, old, used, earlier in zip(self.free, before.free, self.uses, before.uses, strict=True):
            if used != earlier and _after(new, self.base) != _after(old, before.base):
                return False
        for mine, theirs, (_, behind) in zip(self.tokens, before.tokens, self.clocks, strict=True):
            if not _same_tokens(mine, theirs, self.base + behind, before.base + behind):
                return False
        return self.same_places(before, moves, steps)

    def same_places(self, before: Snapshot, moves: Mapping[str, int | None], steps: int) -> bool:
        """Whether all that calls wait for has moved as the places of its buffer do."""
        for (buffer, *_), new, old in zip(self.hazards, self.offsets, before.offsets, strict=True):
            if new is None or old is None:
                if new is not old:
                    return False
                continue
            moved = moves.get(buffer, 0)
            if moved is None or new - old != moved * steps:
                return False
        return True

    def queued(self, before: Snapshot) -> int:
        """By how much everything that was used since ``before`` is later, while the only lane has not moved; else 0."""
        still = self.base == before.base and self.hazards == before.hazards and self.offsets == before.offsets
        if not still or len(self.free) != len(before.free) or self.tokens[0].keys() != before.tokens[0].keys():
            return 0
        found = set()
        for new, old, used, earlier in zip(self.free, before.free, self.uses, before.uses, strict=True):
            found |= {t - was for t, was in zip(new, old, strict=True)} if used != earlier else set()
        for name, (time, used) in self.tokens[0].items():
            was, earlier = before.tokens[0][name]
            found |= {time - was} if used != earlier else set()
        return found.pop() if len(found) == 1 else 0


def snapshot(clocks: Clocks, lanes: list[Lane]) -> Snapshot:
    """The state of ``lanes`` and all resources."""
    base = min(lane.clock for lane in lanes)
    for lane in lanes:
        lane.settle()
    hazards = [(lane, h) for lane in lanes for h in lane.hazards]
    return Snapshot(
        base,
        tuple([tuple(servers) for servers in clocks.free.values()]),
        tuple([clocks.uses[key] for key in clocks.free]),
        tuple({name: (time, lane.handled[name]) for name, time in lane.tokens.items()} for lane in lanes),
        tuple((lane.number, lane.clock - base) for lane in lanes),
        tuple(
            (h.buffer, h.footprint, max(h.readable - x.clock, 0), h.writable - x.clock, x.number) for x, h in hazards
        ),
        tuple(h.offset for _, h in hazards),
        dict(clocks.counts),
    )


def _after(times: tuple[int, ...], base: int) -> list[int]:
    return [t - base if t > base else 0 for t in times]


def _same_tokens(now: Tokens, before: Tokens, clock: int, earlier: int) -> bool:
    """Whether those that were started or waited for since are done as long after the clock as they were."""
    if now.keys() != before.keys():
        return False
    for name, (time, used) in now.items():
        was, used_before = before[name]
        if used != used_before and max(time - clock, 0) != max(was - earlier, 0):
            return False
    return True
