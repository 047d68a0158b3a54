"""What stays in a memory from step to step of a sequence: states, temporaries of a step, inputs that come ahead.

    tile t of 3.t, 4.t by 1:                     alloc h_1: f16[2, 64] @ vector   alloc y_2: f32[64] @ vector
      hold h in vector as d0%2, d1               start h_1 = toChip(h_1[0, 0], h[0, 0])   call VVZero(y_2[0])
      hold y in vector as d0%1, d1        ->     loop t in 0..8:
      do 3 by MVMul64 ...                          call MVMul64(y_2[0], w_3[0, 0], h_1[t % 2, 0])
      do 4 by VVTanh ...                           call VVTanh(h_1[(t + 1) % 2, 0], y_2[0])   call VVZero(y_2[0])

A hold with a digit ``dN%m`` keeps the last ``m`` places along the dimension that the steps go through, one without
such a digit what is the same in all steps. What is read before a step has written it is there from the beginning; what
nothing in the steps writes is filled for the next step while this one runs; what is needed outside leaves after its
last part is in. Sums start from zero again after their last use. Temporaries that are not needed at the same time, of
one size, have one buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dovetail.base.errors import PlanError
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.nest import Buffer, Node, Start, Wait, When, walk
from dovetail.ir.plan import Hold, Tile
from dovetail.ir.program import Combine, Program, Role
from dovetail.schedule.placed.alignment import start_unit
from dovetail.schedule.placed.fills import Held, Mover
from dovetail.schedule.placed.frame import Frame, Kept, Live, Site
from dovetail.schedule.placed.padding import padded_loops
from dovetail.schedule.placed.shape import leaves_of
from dovetail.schedule.placed.standing import Spot, Standing, span
from dovetail.schedule.placed.storage import Axis, Wanted, dense_store, suits


@dataclass(frozen=True, slots=True)
class Use:
    """An operand of the node at ``position`` among those of a step; ``place``: which step's part it is."""

    position: int
    wanted: Wanted
    statement: int
    place: Index


@dataclass(slots=True)
class Steps:
    """The steps of a sequence with what is kept: nodes around the loop and, by position, around those of a step."""

    lives: list[Live] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    first: list[Node] = field(default_factory=list)
    ready: list[Node] = field(default_factory=list)
    """What the first step waits for."""
    before: dict[int, list[Node]] = field(default_factory=dict)
    after: dict[int, list[Node]] = field(default_factory=dict)
    last: list[Node] = field(default_factory=list)


def kept_steps(site: Site, tile: Tile, frame: Frame, count: int) -> Steps:
    """Everything for the holds of ``tile``, which takes ``count`` steps; ``frame`` is the one inside it."""
    found = Steps()
    free: list[tuple[int, Buffer]] = []
    """Buffers of temporaries, and the last position at which each is used."""
    several = [_Keeper(site, tile, frame, count, hold) for hold in tile.holds]
    for keeper in sorted(several, key=lambda k: k.uses[0].position):
        keeper.take(found, free)
    return found


def can_keep(site: Site, tile: Tile, frame: Frame, count: int, hold: Hold) -> bool:
    """Whether ``hold`` can be one of the holds of a tile of steps."""
    try:
        keeper = _Keeper(site, tile, frame, count, hold)
        keeper.take(Steps(), [])
    except PlanError:
        return False
    return True


def needed_outside(program: Program, tensor: str, group: Sequence[int]) -> bool:
    """Whether anything but the statements of a group reads what they write of a tensor."""
    others = (s for n, s in enumerate(program.statements) if n not in group)
    read = any(access.tensor == tensor for s in others for access in s.reads())
    return read or program.tensor(tensor).role in (Role.OUT, Role.INOUT)


class _Keeper:
    """One hold."""

    def __init__(self, site: Site, tile: Tile, frame: Frame, count: int, hold: Hold) -> None:
        self.site, self.tile, self.frame, self.count, self.hold = site, tile, frame, count, hold
        self.tensor = site.program.tensor(hold.tensor)
        along = next((digit for digit in hold.digits if digit.modulus), None)
        self.dimension, self.size = (-1, 1) if along is None else (along.dimension, along.modulus)
        self.uses = self.all_uses()
        self.writes = [use for use in self.uses if use.wanted.is_written]
        reads = [use for use in self.uses if not use.wanted.is_written]
        self.place = (self.writes or reads)[0].place
        self.carried = sorted({use.place for use in reads if use.place != self.place}, key=str)
        self.check()
        self.lows, extents = self.region()
        self.store = self.stored(extents)
        self.extents = extents

    # -- what there is

    def all_uses(self) -> list[Use]:
        found: list[Use] = []
        for position, node in enumerate(self.tile.body):
            for leaf in leaves_of((node,)):
                statement = self.site.program.statements[leaf.statement]
                if not any(a.tensor == self.hold.tensor for a in (statement.out, *statement.reads())):
                    continue
                if not leaf.instruction:
                    raise PlanError(f"'{self.hold}': the host, which runs '{statement}', finds nothing there")
                bases = {name: s.base for name, s in self.frame.spots[leaf.statement].items()}
                for wanted in self.site.operands(leaf):
                    if wanted.access.tensor == self.hold.tensor:
                        indices = (*wanted.access.indices, constant(0))
                        place = indices[self.dimension].substitute(bases)
                        found.append(Use(position, wanted, leaf.statement, place))
                if padded_loops(self.site, leaf, self.hold.tensor):
                    raise PlanError(f"'{self.hold}': '{leaf}' wants zeros around what is kept")
        if not found:
            raise PlanError(f"'{self.hold}': nothing inside its tile uses '{self.hold.tensor}'")
        return found

    def check(self) -> None:
        """One part is written and read in a step, and the one before it where it is carried."""
        before = self.place.substitute({self.tile.name: variable(self.tile.name) - 1})
        wanted = {(use.wanted.memory, use.wanted.dtype, use.wanted.layout) for use in self.uses}
        dtype = next(iter(wanted))[1]
        step_apart = not self.carried or (self.writes and (self.count == 1 or self.carried == [before]))
        rounds = bool(self.writes) and dtype != self.tensor.dtype
        if len({use.place for use in self.writes}) > 1 or not step_apart or len(wanted) > 1 or rounds:
            raise PlanError(f"'{self.hold}': the statements of a step use '{self.hold.tensor}' in several ways")
        if next(iter(wanted)) != (self.hold.memory, dtype, None) or (self.carried and self.size < 2):
            raise PlanError(f"'{self.hold}': its uses want it elsewhere, or in more places")
        if self.writes and self.dimension < 0:
            raise PlanError(f"'{self.hold}': it changes from step to step")
        if start_unit(self.site.target, self.hold.memory, dtype) > 1:
            raise PlanError(f"'{self.hold}': operands do not start anywhere in '{self.hold.memory}'")

    def region(self) -> tuple[tuple[Index, ...], tuple[int, ...]]:
        """Where what is kept of each dimension begins, and how much it is: of all uses together."""
        lows: list[Index] = []
        extents: list[int] = []
        sizes = self.site.sizes(self.hold.tensor)
        for dimension, size in enumerate(sizes):
            if dimension == self.dimension:
                lows.append(constant(0))
                extents.append(1)
                continue
            spans = [
                span(u.wanted.access.indices[dimension], self.frame.spots[u.statement], size, self.frame.ranges)
                for u in self.uses
            ]
            if not all(s.low.is_constant for s in spans):
                raise PlanError(f"'{self.hold}': its place in '{self.hold.tensor}' moves from step to step")
            low = min(s.low.const for s in spans)
            lows.append(constant(low))
            extents.append(max(s.low.const + s.extent for s in spans) - low)
        return tuple(lows), tuple(extents)

    def stored(self, extents: tuple[int, ...]) -> Live:
        rank = len(extents)
        axes = tuple(
            Axis(extent, tuple(int(d == n) for d in range(rank)), n) for n, extent in enumerate(extents) if extent > 1
        )
        name = self.site.fresh(self.hold.tensor)
        wanted = self.uses[0].wanted
        store = dense_store(name, wanted, axes, self.site.target, self.size)
        for use in self.uses:
            left = {
                loop: replace(standing, left=self.site.lefts[use.statement][loop])
                for loop, standing in self.frame.spots[use.statement].items()
            }
            if not suits(store, use.wanted, left):
                raise PlanError(f"'{self.hold}': '{use.wanted.access}' does not lie there as its instruction wants it")
        ring = Kept(self.dimension, self.size, self.lows)
        return Live(self.hold, store, wanted, -1, {}, constant(0), 0, ring)

    def around(self, place: Index, extents: tuple[int, ...]) -> Spot:
        """A spot whose region is what is kept of one step, for an access with a loop for each dimension."""
        sizes = self.site.sizes(self.hold.tensor)
        bases = [place if d == self.dimension else low for d, low in enumerate(self.lows)]
        return {
            f"d{n}": Standing(base, extent, size)
            for n, (base, extent, size) in enumerate(zip(bases, extents, sizes, strict=True))
        }

    # -- nodes

    def take(self, steps: Steps, free: list[tuple[int, Buffer]]) -> None:
        """Add the buffer, and what happens to it, to ``steps``."""
        first, last = self.uses[0].position, self.uses[-1].position
        drained = bool(self.writes) and needed_outside(self.site.program, self.hold.tensor, self.numbers)
        summed = self.begins_at_zero()
        buffer = self.store.store.buffer
        if self.writes and not (drained or summed or self.carried) and self.size == 1:
            self.reuse(free, first, last)
        if buffer is self.store.store.buffer:
            steps.buffers.append(buffer)
        steps.lives.append(self.store)
        if not self.writes:
            self.filled(steps, first)
        for place in self.carried:
            nodes = self.copied(place.substitute({self.tile.name: constant(0)}), True)
            steps.first += nodes
            steps.ready += self.waits(nodes)
        if drained:
            self.drained(steps, self.writes[0].position, self.writes[-1].position, summed)
        elif summed:
            self.cleared(steps, first, last)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(number for number, _ in self.tile.loops)

    def begins_at_zero(self) -> bool:
        if not self.writes:
            return False
        combine = self.site.program.statements[self.writes[0].statement].combine
        others = (n for n, s in enumerate(self.site.program.statements) if s.out.tensor == self.hold.tensor)
        if combine is Combine.SET:
            return False
        if combine is not Combine.ADD or self.carried or any(n not in self.numbers for n in others):
            raise PlanError(f"'{self.hold}': what it is combined with is not there at the beginning of a step")
        return True

    def reuse(self, free: list[tuple[int, Buffer]], first: int, last: int) -> None:
        """The buffer of another temporary of the same size that is over before this one begins."""
        mine = self.store.store.buffer
        for number, (over, buffer) in enumerate(free):
            same = (buffer.memory, buffer.dtype, buffer.shape) == (mine.memory, mine.dtype, mine.shape)
            if over < first and same:
                free[number] = (last, buffer)
                self.store = replace(self.store, store=replace(self.store.store, buffer=buffer))
                return
        free.append((last, mine))

    def filled(self, steps: Steps, first: int) -> None:
        """What the steps only read: each step's part on its way while the one before it runs."""
        if self.dimension < 0:
            nodes = self.copied(self.place, True)
            steps.first += nodes
            steps.ready += self.waits(nodes)
            return
        if self.size == 1 or self.count == 1:
            nodes = self.copied(self.place, True)
            steps.before.setdefault(first, []).extend([*nodes, *self.waits(nodes)])
            return
        step = variable(self.tile.name)
        steps.first += self.copied(self.place.substitute({self.tile.name: constant(0)}), True)
        ahead = self.copied(self.place.substitute({self.tile.name: step + 1}), True)
        exists = Condition(constant(self.count - 2) - step)
        steps.before.setdefault(first, []).extend([*self.waits(ahead), When((exists,), ahead)])

    def drained(self, steps: Steps, first: int, last: int, summed: bool) -> None:
        """What is needed outside, on its way to main memory after its last part is in."""
        nodes = self.copied(self.place, False)
        waits = self.waits(nodes)
        begun: list[Node] = list(waits)
        if waits and self.count > 1:
            begun = [When((Condition(variable(self.tile.name) - 1),), waits)]
        steps.before.setdefault(first, []).extend([*begun, *(self.clear() if summed else ())])
        steps.after.setdefault(last, []).extend(nodes)
        steps.last += waits

    def cleared(self, steps: Steps, first: int, last: int) -> None:
        """Zeros while the sum before this one is computed, else as soon as the last step's are used."""
        statements = self.site.program.statements
        sums = [
            n for n in range(first) if any(statements[x.statement].reduced for x in leaves_of((self.tile.body[n],)))
        ]
        if sums:
            steps.after.setdefault(sums[-1], []).extend(self.clear())
            return
        steps.first += self.clear()
        steps.after.setdefault(last, []).extend(self.clear())

    def clear(self) -> tuple[Node, ...]:
        return self.mover().clear(self.held(self.place), self.site.zero(self.store.store.buffer.dtype))

    def copied(self, place: Index, fills: bool) -> tuple[Node, ...]:
        sizes, far = self.site.sizes(self.hold.tensor), self.site.whole(self.hold.tensor)
        move = self.mover().fill if fills else self.mover().drain
        return move(self.held(place), far, sizes, self.store.store.buffer.name, frozenset())

    def held(self, place: Index) -> Held:
        """What is kept of the step that ``place`` belongs to."""
        access = Access(self.hold.tensor, tuple(variable(f"d{n}") for n in range(len(self.extents))))
        return Held(self.store.store, access, self.around(place, self.extents), place % self.size)

    def mover(self) -> Mover:
        return Mover(self.site.target, self.site.fresh, self.frame.ranges, False)

    def waits(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        token = self.store.store.buffer.name
        started = any(isinstance(node, Start) and node.token == token for node in walk(tuple(nodes)))
        return (Wait(token),) if started else ()
