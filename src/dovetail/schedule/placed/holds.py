"""Buffers of a nest under construction: where each begins, how it is filled, when it is drained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from dovetail.base.errors import PlanError
from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.nest import Buffer, Call, Node, Place, Start, Wait, When, walk
from dovetail.ir.plan import Hold, Leaf, PlanNode
from dovetail.ir.program import Combine, Role, Statement
from dovetail.schedule.placed.copying import moved_access
from dovetail.schedule.placed.fills import Held, Mover, Whole
from dovetail.schedule.placed.frame import Frame, Live, Ring, Site, following, is_not_last, number_of
from dovetail.schedule.placed.padding import exact_loops, padded_axes
from dovetail.schedule.placed.paths import lies_in, path
from dovetail.schedule.placed.shape import accesses_of, leaves_of
from dovetail.schedule.placed.storage import Wanted, store_for
from dovetail.schedule.placed.zeros import zero_call


@dataclass(slots=True)
class Level:
    """A place where holds are filled: what comes before and after the loops inside it."""

    rings: int
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)


class Holds:
    """All buffers; ``levels`` are the places around, outermost first, of which the scope's own begin at ``base``."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.levels: list[Level] = []
        self.base = 0
        self.buffers: list[Buffer] = []

    @contextmanager
    def scope(self) -> Iterator[list[Buffer]]:
        """Buffers that are taken inside are given to whoever opens it."""
        outside = self.buffers, self.base
        self.buffers, self.base = [], len(self.levels)
        yield self.buffers
        self.buffers, self.base = outside

    @contextmanager
    def level(self, frame: Frame) -> Iterator[Level]:
        here = Level(len(frame.rings))
        self.levels.append(here)
        yield here
        self.levels.pop()

    def in_order(self, holds: Sequence[Hold]) -> list[Hold]:
        """Nearest to main memory first: what is further away is filled from it."""
        target = self.site.target
        return sorted(holds, key=lambda h: len(path(target, self.site.main, h.memory) or ()))

    # -- what is held

    def live(self, hold: Hold, frame: Frame, nodes: tuple[PlanNode, ...]) -> Live:
        leaf = next((x for x in leaves_of(nodes) if x.instruction and self.uses(x, hold)), None)
        if leaf is None:
            raise PlanError(f"'{hold}': nothing inside its tile uses '{hold.tensor}'")
        wanted = self.wanted(hold, leaf)
        number = leaf.statement
        here = frame.spots[number]
        left = {name: replace(s, left=self.site.lefts[number][name]) for name, s in here.items()}
        for name in sorted(exact_loops(self.site, leaf) & wanted.access.names()):
            if here[name].left % left[name].left:
                what = f"'{hold}' has {here[name].left} of '{name}', for calls that each do {left[name].left}"
                raise PlanError(what, hint=f"a tile of '{name}' around it by a multiple of {left[name].left}")
        rings = self.rings(hold, frame)
        copies = 2 if hold.twice and rings else 1
        name = self.site.fresh(hold.tensor)
        sizes = self.site.sizes(hold.tensor)
        store = store_for(name, wanted, here, left, sizes, self.site.target, copies, frame.ranges)
        self.buffers.append(store.buffer)
        copy = number_of(rings) % 2 if copies > 1 else constant(0)
        return Live(hold, store, wanted, number, here, copy, len(self.levels) - 1)

    def uses(self, leaf: Leaf, hold: Hold) -> bool:
        found = accesses_of(self.site.program.statements[leaf.statement], hold.tensor)
        return bool(found) and hold.statement in (-1, leaf.statement)

    def wanted(self, hold: Hold, leaf: Leaf) -> Wanted:
        """The operand that the hold is for, as it must lie in the hold's memory."""
        operand = next((w for w in self.site.operands(leaf) if w.access.tensor == hold.tensor), None)
        if operand is None:
            raise PlanError(f"'{hold}': '{leaf}' has no operand for it")
        if operand.memory == hold.memory:
            return operand
        found = lies_in(self.site.target, hold.memory, operand)
        if found is None:
            there, here = operand.memory, hold.memory
            way = f"from '{there}' to '{here}'" if operand.is_written else f"from '{here}' to '{there}'"
            where = f"target '{self.site.target.name}'"
            raise PlanError(f"'{hold}': no copies lead {way}", where=where, hint="a copy instruction between them")
        return found

    def source(self, hold: Hold, frame: Frame) -> Live | None:
        """What is already held of the same; None: it is in main memory."""
        key = (hold.tensor, hold.statement)
        return next((x for x in reversed(frame.live) if (x.hold.tensor, x.hold.statement) == key), None)

    def far(self, live: Live, frame: Frame) -> Held | Whole:
        source = self.source(live.hold, frame)
        return self.site.whole(live.hold.tensor) if source is None else source.held

    def origin(self, hold: Hold, frame: Frame) -> Level:
        """The level from which on a hold can be filled ahead."""
        source = self.source(hold, frame)
        return self.levels[self.base if source is None else max(source.depth, self.base)]

    def rings(self, hold: Hold, frame: Frame) -> tuple[Ring, ...]:
        return frame.rings[self.origin(hold, frame).rings :]

    # -- fills

    def fill(self, live: Live, frame: Frame) -> list[Node]:
        """What makes the region available where the nest stands."""
        if live.wanted.is_written:
            return self.begin(live, frame)
        token, rings = live.store.buffer.name, self.rings(live.hold, frame)
        if live.store.copies == 1:
            nodes = self.copy_in(live, frame, {})
            return _when(frame.exists, (*nodes, *_waits(nodes, token)))
        first = self.copy_in(live, frame, {ring.var: constant(0) for ring in rings})
        self.origin(live.hold, frame).before += first
        ahead = following(rings)
        exists = tuple(c.substitute(ahead) for c in frame.exists)
        after = self.copy_in(live, frame, ahead)
        next_one = When((is_not_last(rings), *exists), after)
        return [*_when(frame.exists, _waits((*first, *after), token)), next_one]

    def copy_in(self, live: Live, frame: Frame, values: Mapping[str, Index]) -> tuple[Node, ...]:
        """The fill of where loops have these values."""
        near = replace(live.held, spot=frame.spot(live.statement, values), copy=live.copy.substitute(values))
        mover, far = self.mover(frame, live.statement), self.far(live, frame)
        sizes = self.site.sizes(live.hold.tensor)
        zeros: tuple[Node, ...] = ()
        padded = padded_axes(self.site, live)
        if isinstance(far, Whole):
            whole = mover.whole(near, sizes, padded)
            if whole is not None:
                zeros = (When(whole, (), mover.clear(near, self.site.zero(live.store.buffer.dtype))),)
        return (*zeros, *mover.fill(near, far, sizes, live.store.buffer.name, padded))

    def begin(self, live: Live, frame: Frame) -> list[Node]:
        """A result before its first part is in."""
        statement = self.site.program.statements[live.statement]
        if statement.combine is Combine.SET or moved_access(self.site.program, live.statement) is not None:
            return []
        spot = frame.spots[live.statement]
        if any(spot[x.name].left < spot[x.name].extent for x in statement.reduced):
            raise PlanError(f"'{live.hold}' is inside a part of its own sum", hint="hold it further outside")
        mover = self.mover(frame, live.statement)
        if self.goes_on(live.statement, statement):
            nodes = self.copy_in(live, frame, {})
            return _when(frame.exists, (*nodes, *_waits(nodes, live.store.buffer.name)))
        if statement.combine is not Combine.ADD:
            raise PlanError(f"'{live.hold}': a result of '{statement.combine.value}' does not start from zero")
        return _when(frame.exists, mover.clear(live.held, self.site.zero(live.store.buffer.dtype)))

    def goes_on(self, number: int, statement: Statement) -> bool:
        """Whether it adds to what is there already."""
        earlier = (s.out.tensor for s in self.site.program.statements[:number])
        is_given = self.site.program.tensor(statement.out.tensor).role is Role.INOUT
        return is_given or statement.out.tensor in earlier

    def drain(self, live: Live, frame: Frame) -> list[Node]:
        if not live.wanted.is_written:
            return []
        token = live.store.buffer.name
        mover = self.mover(frame, live.statement)
        sizes, padded = self.site.sizes(live.hold.tensor), padded_axes(self.site, live)
        nodes = mover.drain(live.held, self.far(live, frame), sizes, token, padded)
        if live.store.copies == 1:
            return _when(frame.exists, (*nodes, *_waits(nodes, token)))
        rings = self.rings(live.hold, frame)
        self.origin(live.hold, frame).after += _waits(nodes, token)
        before = When((Condition(number_of(rings) - 1),), _waits(nodes, token))
        return _when(frame.exists, (before, *nodes))

    def mover(self, frame: Frame, number: int) -> Mover:
        guarded = bool(self.site.program.statements[number].where)
        return Mover(self.site.target, self.site.fresh, frame.ranges, guarded, frame.unit)

    # -- zeros

    def used_zeros(self, nodes: tuple[Node, ...]) -> list[Whole]:
        calls = [n.call if isinstance(n, Start) else n for n in walk(nodes) if isinstance(n, Start | Call)]
        used = {o.buffer for call in calls for o in call.operands if isinstance(o, Place)}
        return [zero for zero in self.site.zeros.values() if zero.name in used]


def zero_cells(zeros: Sequence[Whole]) -> tuple[tuple[Buffer, Call], ...]:
    """Each zero's buffer, and the host's call that sets it."""
    return tuple(
        (Buffer(z.name, z.side.memory, z.side.dtype, (constant(1),)), zero_call(z.name, z.side.dtype)) for z in zeros
    )


def _when(conditions: tuple[Condition, ...], nodes: tuple[Node, ...]) -> list[Node]:
    return [When(conditions, nodes)] if conditions and nodes else list(nodes)


def _waits(nodes: Sequence[Node], token: str) -> tuple[Node, ...]:
    """A wait, where something was started."""
    started = any(isinstance(node, Start) and node.token == token for node in walk(tuple(nodes)))
    return (Wait(token),) if started else ()
