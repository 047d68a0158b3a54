"""What a piece of a nest did from a state, to be done again at once where it starts from the same state.

A piece does the same calls in the same order whenever it runs. Compared is what it uses: its resources, its tokens
and what is under way in its buffers, in ticks after the lane's clock and in elements from where its places start.
All else stays as it is.

A piece that only starts copies waits for nothing but elements, and while its engine is behind, each copy begins when
the one before it ends: then it does not matter by how much the engine is behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.sim.clocks import FAR, Clocks, Hazard, Lane, Resource
from dovetail.sim.costs import Footprint
from dovetail.sim.reach import Covers, Reach
from dovetail.sim.steps import AllocStep, BarrierStep, CallStep, LoopStep, Step, WaitStep, WhenStep

MOST_USELESS = 64
"""States of a piece that are remembered without one of them coming again."""
LEAST_CALLS = 3
"""Calls below which a piece is run rather than remembered."""
Busy = tuple[str, Footprint, int | None, int, int]
"""A hazard: buffer, elements, first of them, and when they can be read and written."""
State = tuple[object, ...]
Counts = tuple[tuple[tuple[str, str], int], ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a piece does; times are ticks after the clock at its start, or after its engine is free."""

    ticks: int
    end: int
    """Of its last call."""
    margin: int
    """How long calls waited for their resources at least, less what these were behind at the start."""
    servers: tuple[tuple[int, ...], ...]
    """When each of its resources is free."""
    uses: tuple[int, ...]
    tokens: tuple[tuple[str, int | None, int], ...]
    """When what was started with each is done, if it has not been waited for, and how often it was used."""
    hazards: tuple[Busy, ...]
    counts: Counts


@dataclass(slots=True, eq=False)
class Piece:
    """Steps, and what they did from the states that were met."""

    steps: tuple[Step, ...]
    buffers: frozenset[str]
    tokens: tuple[str, ...]
    has_buffers_inside: bool
    only_starts: bool
    is_remembered: bool
    resources: tuple[Resource, ...] = ()
    """Known after the first run, as is the engine where it is one that does all calls."""
    engine: Resource | None = None
    effects: dict[State, Effect] = field(default_factory=dict)
    queued: dict[State, Effect] = field(default_factory=dict)
    """Of copies that queue: times are ticks after the engine is free."""
    found: int = 0
    _covers: list[Covers | None] = field(default_factory=list)
    _met: dict[tuple[str, Footprint, int], bool] = field(default_factory=dict)

    def learn(self, resources: tuple[Resource, ...]) -> None:
        """After the first run."""
        self.resources = resources
        engines = [key for key in resources if key[0] != "memory"]
        self.engine = engines[0] if self.only_starts and len(engines) == 1 else None

    def queue(self, free: Mapping[Resource, Sequence[int]], clock: int) -> int | None:
        """When the engine that does all calls is free, where that is not before ``clock``."""
        servers = () if self.engine is None else free.get(self.engine, ())
        return servers[0] if len(servers) == 1 and servers[0] >= clock else None

    def under_way(self, lane: Lane, reach: Reach) -> State:
        """What the piece may wait for."""
        clock, tokens = lane.clock, lane.tokens
        hazards = frozenset(self.hazards(lane, reach)) if lane.hazards else None
        if self.only_starts:
            return (hazards,)
        return (hazards, *[max(tokens[name] - clock, 0) if name in tokens else -1 for name in self.tokens])

    def queues(self, free: Mapping[Resource, Sequence[int]], clock: int) -> State:
        """When its resources are free."""
        return tuple([max(t - clock, 0) for key in self.resources for t in free.get(key, (0,))])

    def hazards(self, lane: Lane, reach: Reach) -> list[Busy]:
        """What is under way in the buffers of the piece; only what it meets, where that is known."""
        clock, bases = lane.clock, lane.bases
        found: list[Busy] = []
        for h in lane.hazards:
            if h.writable > clock and h.buffer in self.buffers:
                offset = None if h.offset is None else h.offset - bases.get(h.buffer, 0)
                if not self.only_starts or offset is None or self.meets(h.buffer, h.footprint, offset, reach):
                    found.append((h.buffer, h.footprint, offset, max(h.readable - clock, 0), h.writable - clock))
        return found

    def meets(self, buffer: str, footprint: Footprint, offset: int, reach: Reach) -> bool:
        """Whether the piece touches one of these elements, as far as that is known."""
        key = (buffer, footprint, offset)
        found = self._met.get(key)
        if found is None:
            if not self._covers:
                self._covers.append(reach.of(self.steps))
            covers = self._covers[0]
            if covers is None or not footprint.has_bits:
                found = True
            else:
                found = buffer in covers and covers[buffer].meets(footprint, offset)
            self._met[key] = found
        return found

    def keep(self, state: State, effect: Effect) -> None:
        self.effects[state] = effect
        if len(self.effects) >= MOST_USELESS and self.found < len(self.effects):
            self.is_remembered = False
            self.effects.clear()


def piece(steps: tuple[Step, ...]) -> Piece:
    """``steps``, in which all values are put in, as a piece that nothing is known of yet."""
    buffers: set[str] = set()
    tokens: set[str] = set()
    calls, inside, whole, starts = 0, False, True, True
    left = [(step, 1) for step in steps]
    while left:
        step, times = left.pop()
        if isinstance(step, CallStep):
            calls += times
            buffers.update(o.buffer for o in step.operands if o is not None)
        if isinstance(step, CallStep | WaitStep) and step.token:
            tokens.add(step.token)
        if isinstance(step, LoopStep | AllocStep | WhenStep):
            times *= max(2, step.upper[0].const) if isinstance(step, LoopStep) else 1
            left += [(inner, times) for inner in step.body]
            inside |= isinstance(step, AllocStep)
        if isinstance(step, WhenStep):
            left += [(inner, times) for inner in step.otherwise]
        whole &= not isinstance(step, BarrierStep)
        starts &= isinstance(step, LoopStep | WhenStep) or (isinstance(step, CallStep) and bool(step.token))
    remembered = whole and calls >= LEAST_CALLS
    return Piece(steps, frozenset(buffers), tuple(sorted(tokens)), inside, starts, remembered)


@dataclass(slots=True)
class Start:
    """What was there when a piece began."""

    clock: int
    end: int
    margin: int
    free: dict[Resource, tuple[int, ...]]
    uses: dict[Resource, int]
    tokens: dict[str, int]
    """Of a piece that only starts copies, to which those are added."""
    handled: dict[str, int]
    counts: dict[tuple[str, str], int]


def begin(piece: Piece, clocks: Clocks, lane: Lane) -> Start:
    """Before a piece is run; the clocks' end and margin are counted from here until ``finish``."""
    free = {key: tuple(servers) for key, servers in clocks.free.items()}
    earlier = {name: lane.tokens.pop(name) for name in piece.tokens if name in lane.tokens} if piece.only_starts else {}
    handled, counts = dict(lane.handled), dict(clocks.counts)
    found = Start(lane.clock, clocks.end, clocks.margin, free, dict(clocks.uses), earlier, handled, counts)
    clocks.end, clocks.margin = lane.clock, FAR
    return found


def finish(start: Start, piece: Piece, clocks: Clocks, lane: Lane, reach: Reach, base: int) -> Effect:
    """After it: what it did, times counted from ``base``. Its resources are known from now on."""
    later = lane.clock - base
    hazards = () if piece.only_starts else piece.hazards(lane, reach)
    tokens = lane.tokens
    effect = Effect(
        lane.clock - start.clock,
        clocks.end - base,
        clocks.margin - (base - start.clock),
        tuple([tuple([t - base for t in clocks.free[key]]) for key in piece.resources]),
        tuple([clocks.uses[key] - start.uses.get(key, 0) for key in piece.resources]),
        tuple([(n, tokens[n] - base if n in tokens else None, _more(n, lane, start)) for n in piece.tokens]),
        tuple([(b, f, o, r + later, w + later) for b, f, o, r, w in hazards]),
        tuple([(k, n - start.counts.get(k, 0)) for k, n in clocks.counts.items() if n != start.counts.get(k, 0)]),
    )
    clocks.end, clocks.margin = max(start.end, clocks.end), min(start.margin, clocks.margin)
    for name, time in start.tokens.items():
        tokens[name] = max(time, tokens.get(name, 0))
    return effect


def used(start: Start, clocks: Clocks) -> tuple[Resource, ...]:
    """The resources that were used since."""
    return tuple([key for key, uses in clocks.uses.items() if uses != start.uses.get(key, 0)])


def again(effect: Effect, piece: Piece, clocks: Clocks, lane: Lane, base: int) -> None:
    """What ``piece`` did, done from where the lane stands now; times are after ``base``."""
    for key, servers, uses in zip(piece.resources, effect.servers, effect.uses, strict=True):
        clocks.free[key][:] = [base + t for t in servers]
        clocks.uses[key] += uses
    for name, time, times in effect.tokens:
        lane.handled[name] = lane.handled.get(name, 0) + times
        if time is not None:
            earlier = lane.tokens.get(name, 0) if piece.only_starts else 0
            lane.tokens[name] = max(earlier, base + time)
        elif not piece.only_starts:
            lane.tokens.pop(name, None)
    for what, number in effect.counts:
        clocks.counts[what] += number
    clocks.end = max(clocks.end, base + effect.end)
    clocks.margin = min(clocks.margin, effect.margin + base - lane.clock)
    lane.clock += effect.ticks
    left = [h for h in lane.hazards if h.writable > lane.clock and (piece.only_starts or h.buffer not in piece.buffers)]
    for buffer, footprint, offset, readable, writable in effect.hazards:
        place = None if offset is None else offset + lane.bases.get(buffer, 0)
        left.append(Hazard(buffer, footprint, place, base + readable, base + writable))
    lane.hazards = left


def _more(name: str, lane: Lane, start: Start) -> int:
    return lane.handled.get(name, 0) - start.handled.get(name, 0)
