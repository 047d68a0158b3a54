"""What a piece of a nest did from a state, to be done again at once where it starts from the same state.

A piece does the same calls in the same order whenever it runs. Compared is what it uses: its resources, its tokens
and what is under way in its buffers, in ticks after the lane's clock and in elements from where its places start.
All else stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.sim.clocks import Clocks, Hazard, Lane, Resource
from dovetail.sim.costs import Footprint
from dovetail.sim.steps import AllocStep, BarrierStep, CallStep, LoopStep, Step, WaitStep, WhenStep

MOST_USELESS = 64
"""States of a piece that are remembered without one of them coming again."""
LEAST_CALLS = 3
"""Calls below which a piece is run rather than remembered."""
Busy = tuple[str, Footprint, int | None, int, int]
"""A hazard: buffer, elements, first of them, and when they can be read and written."""
State = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a piece does; times are ticks after the clock at its start."""

    ticks: int
    end: int
    """Of its last call."""
    servers: tuple[tuple[int, ...], ...]
    """When each of its resources is free."""
    uses: tuple[int, ...]
    tokens: tuple[tuple[str, int | None, int], ...]
    """When what was started with each is done, if it has not been waited for, and how often it was used."""
    hazards: tuple[Busy, ...]
    counts: tuple[tuple[tuple[str, str], int], ...]


@dataclass(slots=True, eq=False)
class Piece:
    """Steps, and what they did from the states that were met."""

    buffers: frozenset[str]
    tokens: tuple[str, ...]
    has_buffers_inside: bool
    is_remembered: bool
    resources: tuple[Resource, ...] = ()
    """Known after the first run."""
    effects: dict[State, Effect] = field(default_factory=dict)
    found: int = 0

    def under_way(self, lane: Lane, around: State) -> State:
        """What the piece may wait for; ``around`` are the things it depends on besides."""
        clock, tokens = lane.clock, lane.tokens
        marks = [max(tokens[name] - clock, 0) if name in tokens else -1 for name in self.tokens]
        return (*around, *marks, frozenset(self.hazards(lane)) if lane.hazards else None)

    def queues(self, free: Mapping[Resource, Sequence[int]], clock: int) -> State:
        """When its resources are free."""
        return tuple([max(t - clock, 0) for key in self.resources for t in free.get(key, (0,))])

    def hazards(self, lane: Lane) -> list[Busy]:
        """What is under way in the buffers of the piece."""
        clock, bases = lane.clock, lane.bases
        return [
            (
                h.buffer,
                h.footprint,
                None if h.offset is None else h.offset - bases.get(h.buffer, 0),
                max(h.readable - clock, 0),
                h.writable - clock,
            )
            for h in lane.hazards
            if h.writable > clock and h.buffer in self.buffers
        ]

    def keep(self, state: State, effect: Effect) -> None:
        self.effects[state] = effect
        if len(self.effects) >= MOST_USELESS and self.found < len(self.effects):
            self.is_remembered = False
            self.effects.clear()


def piece(steps: tuple[Step, ...]) -> Piece:
    """``steps`` as a piece that nothing is known of yet."""
    buffers: set[str] = set()
    tokens: dict[str, None] = {}
    calls, inside, whole = 0, False, True
    left = [(step, 1) for step in steps]
    while left:
        step, times = left.pop()
        if isinstance(step, CallStep):
            calls += times
            buffers.update(o.buffer for o in step.operands if o is not None)
        if isinstance(step, CallStep | WaitStep) and step.token:
            tokens[step.token] = None
        if isinstance(step, LoopStep):
            times *= 2
        if isinstance(step, LoopStep | AllocStep | WhenStep):
            left += [(inner, times) for inner in step.body]
            inside |= isinstance(step, AllocStep)
        if isinstance(step, WhenStep):
            left += [(inner, times) for inner in step.otherwise]
        whole &= not isinstance(step, BarrierStep)
    return Piece(frozenset(buffers), tuple(sorted(tokens)), inside, whole and calls >= LEAST_CALLS)


@dataclass(slots=True)
class Start:
    """What was there when a piece began."""

    clock: int
    end: int
    free: dict[Resource, tuple[int, ...]]
    uses: dict[Resource, int]
    handled: dict[str, int]
    counts: dict[tuple[str, str], int]


def begin(clocks: Clocks, lane: Lane) -> Start:
    """Before a piece is run; the clocks' end is counted from here until ``finish``."""
    free = {key: tuple(servers) for key, servers in clocks.free.items()}
    found = Start(lane.clock, clocks.end, free, dict(clocks.uses), dict(lane.handled), dict(clocks.counts))
    clocks.end = lane.clock
    return found


def finish(start: Start, piece: Piece, clocks: Clocks, lane: Lane) -> Effect:
    """After it: what it did. Its resources are known from now on."""
    clock = start.clock
    piece.resources = tuple([key for key, used in clocks.uses.items() if used != start.uses.get(key, 0)])
    end, clocks.end = clocks.end - clock, max(start.end, clocks.end)
    later = lane.clock - clock
    hazards = [(b, f, o, max(r + later, 0), w + later) for b, f, o, r, w in piece.hazards(lane)]
    tokens = [
        (name, None if name not in lane.tokens else lane.tokens[name] - clock, lane.handled.get(name, 0))
        for name in piece.tokens
    ]
    counts = start.counts
    return Effect(
        later,
        end,
        tuple([tuple([t - clock for t in clocks.free[key]]) for key in piece.resources]),
        tuple([clocks.uses[key] - start.uses.get(key, 0) for key in piece.resources]),
        tuple([(name, time, used - start.handled.get(name, 0)) for name, time, used in tokens]),
        tuple(hazards),
        tuple([(key, now - counts.get(key, 0)) for key, now in clocks.counts.items() if now != counts.get(key, 0)]),
    )


def again(effect: Effect, piece: Piece, clocks: Clocks, lane: Lane) -> None:
    """What ``piece`` did, done from where the lane stands now."""
    clock = lane.clock
    for key, servers, used in zip(piece.resources, effect.servers, effect.uses, strict=True):
        clocks.free[key][:] = [clock + t for t in servers]
        clocks.uses[key] += used
    for name, time, used in effect.tokens:
        lane.handled[name] = lane.handled.get(name, 0) + used
        if time is None:
            lane.tokens.pop(name, None)
        else:
            lane.tokens[name] = clock + time
    for what, number in effect.counts:
        clocks.counts[what] += number
    lane.clock = clock + effect.ticks
    clocks.end = max(clocks.end, clock + effect.end)
    others = [h for h in lane.hazards if h.buffer not in piece.buffers and h.writable > lane.clock]
    for buffer, footprint, offset, readable, writable in effect.hazards:
        place = None if offset is None else offset + lane.bases.get(buffer, 0)
        others.append(Hazard(buffer, footprint, place, clock + readable, clock + writable))
    lane.hazards = others
