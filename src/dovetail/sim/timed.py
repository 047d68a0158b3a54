"""A nest timed without data: who runs what when, by the rules of ``issue``, loops that repeat taken in one step.

parallel    iteration v runs on unit v modulo their number. Units that decide everything alike are one lane;
            all wait for the last at the end
loop        when the state after an iteration is the state after an earlier one, as many rounds as are decided
            alike are added at once. What the loop does not use keeps its own time. Starts alone leave the clock
            where it is: then what they use must be later by the same in each round. The result is that of stepping
            through all of them, to the tick
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dovetail.base.errors import SimulationError
from dovetail.ir.index import Condition
from dovetail.ir.nest import Nest
from dovetail.ir.nest_verify import verify_nest
from dovetail.sim.allocate import Allocator, Block, elements_of
from dovetail.sim.clocks import Lane, Snapshot, snapshot
from dovetail.sim.costs import Costs
from dovetail.sim.issue import Event, Group, Issuer
from dovetail.sim.lanes import fork, join
from dovetail.sim.memo import Piece, State, again, begin, finish, piece, used
from dovetail.sim.operands import target_shapes
from dovetail.sim.reach import Reach
from dovetail.sim.repeat import MOST_STRIDE, Facts, facts, synchronous_buffers
from dovetail.sim.report import Timing, timing
from dovetail.sim.special import Specials
from dovetail.sim.steps import (
    AllocStep,
    BarrierStep,
    CallStep,
    LoopStep,
    ParallelStep,
    Step,
    WaitStep,
    WhenStep,
    prepare,
)
from dovetail.sim.units import nest_machine, topology
from dovetail.targets.model import Target

MOST_EVENTS = 100_000
MOST_CALLS = 50_000_000
"""Stepped through, not counting those of loops that repeat: some twenty minutes."""


def simulate_time(
    nest: Nest,
    target: Target,
    sizes: Mapping[str, int] | None = None,
    *,
    close_loops: bool = True,
    most_events: int = MOST_EVENTS,
    most_calls: int = MOST_CALLS,
) -> Timing:
    """How long ``nest`` takes on ``target``. ``close_loops=False`` steps through every iteration."""
    verify_nest(nest, nest_machine(target))
    arguments, body = prepare(nest, target, sizes or {})
    specials = Specials(frozenset(synchronous_buffers(body)))
    runner = _Runner(target, close_loops, most_events, most_calls, specials)
    lane = Lane(0, {})
    for argument in arguments:
        runner.take(argument, [lane])
    runner.steps(body, [lane])
    if lane.tokens:
        raise SimulationError(f"'{min(lane.tokens)}' is started but never waited for")
    issuer = runner.issuer
    return timing(
        target, issuer.clocks, max(issuer.clocks.end, lane.clock), issuer.events, issuer.calls, runner.peak_bytes
    )


@dataclass(slots=True)
class _Rounds:
    """A loop being run: iteration n has ``firsts + n * delta`` in ``var``, each lane its own."""

    var: str
    delta: int
    body: tuple[Step, ...]
    firsts: dict[int, int]
    """By the lane's number."""
    counts: dict[int, int]
    before: Snapshot | None = None
    """An earlier state, after iteration ``at``; the next one is kept after ``patience`` strides without a repeat."""
    at: int = 0
    patience: int = 1
    known: Facts | None = None


class _Runner:
    """Walks the steps with all lanes side by side."""

    def __init__(
        self, target: Target, close_loops: bool, most_events: int, most_calls: int, specials: Specials
    ) -> None:
        self.topology = topology(target)
        self.issuer = Issuer(target, self.topology, Costs(target_shapes(target)), most_events, most_calls)
        self.allocator = Allocator(target)
        self.close_loops = close_loops
        self.units = 1
        """At work in the parallel around."""
        self.specials = specials
        self.is_alone = close_loops
        """Whether the lane that runs is the only one, and may do again what it did before."""
        self.is_special = False
        """Whether the values of all loops around are put in: the steps do the same whenever they are run."""
        self.reach = Reach(specials, self.issuer.costs)
        self._pieces: dict[int, Piece] = {}
        self._facts: dict[tuple[int, int, int], Facts] = {}

    @property
    def peak_bytes(self) -> Mapping[str, int]:
        return self.allocator.peak_bytes

    # -- steps

    def steps(self, steps: tuple[Step, ...], lanes: list[Lane]) -> None:
        for step in steps:
            if isinstance(step, CallStep):
                self.issuer.issue(step, lanes)
            elif isinstance(step, LoopStep):
                self.loop(step, lanes)
            elif isinstance(step, WaitStep):
                self.issuer.wait(step.token, lanes)
            elif isinstance(step, WhenStep):
                self.when(step, lanes)
            elif isinstance(step, BarrierStep):
                self.issuer.barrier(lanes)
            elif isinstance(step, AllocStep):
                block = self.take(step, lanes)
                self.steps(step.body, lanes)
                self.allocator.release(block)
            else:
                self.parallel(step, lanes[0])

    def take(self, step: AllocStep, lanes: list[Lane]) -> Block:
        """Room for a buffer, as much as the lane that wants most."""
        most = 0
        for lane in lanes:
            shape, strides = (tuple(i.evaluate(lane.env) for i in indices) for indices in (step.shape, step.strides))
            most = max(most, elements_of(shape, strides, step.buffer.lanes))
        kind, owner = self.issuer.group.kind, self.topology.owners[step.buffer.memory]
        sharers = min(self.units, self.topology.sharers(owner, kind)) if kind else 1
        return self.allocator.take(step.buffer, -(-most // step.units), sharers)

    def when(self, step: WhenStep, lanes: list[Lane]) -> None:
        inside = [lane for lane in lanes if all(_holds(c, lane) for c in step.conditions)]
        outside = [lane for lane in lanes if lane not in inside]
        if inside:
            self.steps(step.body, inside)
        if outside:
            self.steps(step.otherwise, outside)

    def loop(self, step: LoopStep, lanes: list[Lane]) -> None:
        if self.is_special:
            number = lanes[0].number
            rounds = _Rounds(step.var, 1, step.body, {number: 0}, {number: step.upper[0].const})
            self.once((step,), lanes[0], step.var, lambda: self.rounds(rounds, lanes))
            return
        if self.is_alone and self.specials.pays((step,)):
            self.special((step,), lanes[0], lanes[0].env, step.var)
            return
        firsts, counts = {}, {}
        for lane in lanes:
            low = max([i.evaluate(lane.env) for i in step.lower])
            count = max(0, -(-(min([i.evaluate(lane.env) for i in step.upper]) - low) // step.step))
            firsts[lane.number] = low + (count - 1) * step.step if step.down else low
            counts[lane.number] = count
        self.rounds(_Rounds(step.var, -step.step if step.down else step.step, step.body, firsts, counts), lanes)

    def parallel(self, step: ParallelStep, lane: Lane) -> None:
        total = self.topology.totals[step.unit]
        extent = max(0, min([i.evaluate(lane.env) for i in step.extent]))
        self.units = max(1, min(extent, total))
        known = self.facts(step.body, step.var, 1, 1)
        self.issuer.group = Group(step.unit, total)
        if self.units == 1 or (known.is_regular and known.hold(lane.env, step.var, 0, extent - 1)):
            self.together(step, lane, total, extent)
        else:
            alone = extent > total or not known.is_regular or _has_rows(step.body)
            weights = [1] * self.units if alone else self.classes(known, step.var, lane, extent)
            self.apart(step, lane, total, extent, weights)
        self.issuer.group, self.units = Group("", 1), 1

    def together(self, step: ParallelStep, lane: Lane, total: int, extent: int) -> None:
        """All units do the same: one lane stands for them."""
        full, rest = divmod(extent, total)
        for weight, first, count in ((total, 0, full), (rest, full * total, 1)):
            if weight and count:
                lane.weight = weight
                self.rounds(_Rounds(step.var, total, step.body, {lane.number: first}, {lane.number: count}), [lane])
        lane.weight = 1

    def classes(self, known: Facts, var: str, lane: Lane, extent: int) -> list[int]:
        """How many neighbours each decide everything alike."""
        weights: list[int] = []

        def hold(count: int) -> bool:
            return known.hold(lane.env, var, sum(weights), sum(weights) + count - 1)

        while sum(weights) < extent:
            weights.append(max(1, _most(hold, extent - sum(weights))))
        return weights

    def apart(self, step: ParallelStep, lane: Lane, total: int, extent: int, weights: list[int]) -> None:
        """Units differ: a lane for each, or for each of ``weights`` neighbours."""
        lanes = fork(lane, weights, self.issuer.clocks, self.topology)
        firsts = {one.number: one.number for one in lanes}
        counts = {one.number: -(-(extent - one.number) // total) for one in lanes}
        around, self.is_alone = self.is_alone, False
        self.rounds(_Rounds(step.var, total, step.body, firsts, counts), lanes)
        self.is_alone = around
        join(lane, lanes, self.issuer.clocks)

    # -- iterations

    def rounds(self, rounds: _Rounds, lanes: list[Lane]) -> None:
        number, most = 0, max(rounds.counts.values())
        around = self.is_special
        while number < most:
            active = [lane for lane in lanes if rounds.counts[lane.number] > number]
            for lane in active:
                lane.env[rounds.var] = rounds.firsts[lane.number] + number * rounds.delta
            if around and self.specials.pays(rounds.body):
                self.special(rounds.body, active[0], {rounds.var: active[0].env[rounds.var]}, rounds.var)
            else:
                self.is_special = False
                self.steps(rounds.body, active)
            number += 1
            if self.close_loops and number < most:
                number += self.close(rounds, active, number)
        self.is_special = around
        for lane in lanes:
            lane.env.pop(rounds.var, None)

    def special(self, steps: tuple[Step, ...], lane: Lane, values: Mapping[str, int], name: str) -> None:
        """``steps`` with ``values`` put in."""
        found = self.specials.of(steps, values)
        around, self.is_special = self.is_special, True
        lane.move(found.shifts, 1)
        if len(found.body) > 1:
            self.once(found.body, lane, name, lambda: self.steps(found.body, [lane]))
        else:
            self.steps(found.body, [lane])
        lane.move(found.shifts, -1)
        self.is_special = around

    def once(self, steps: tuple[Step, ...], lane: Lane, name: str, run: Callable[[], None]) -> None:
        """``run`` the ``steps``, or do again what they did from the same state before."""
        key = id(steps[0] if len(steps) == 1 else steps)
        what = self._pieces.get(key)
        if what is None:
            what = self._pieces[key] = piece(steps)
        if not what.is_remembered:
            run()
            return
        clocks, start = self.issuer.clocks, lane.clock
        levels = self.allocator.levels if what.has_buffers_inside else ()
        around = (lane.weight, self.units, *levels, what.under_way(lane, self.reach))
        if self.recall(what, lane, around):
            self.mark(f"{name} as before", lane, start, lane.clock - start)
            return
        before = begin(what, clocks, lane)
        run()
        if not what.resources:
            what.learn(used(before, clocks))
        base = what.queue(before.free, start) if clocks.margin >= 0 else None
        if base is not None:
            state = (around, what.queues(before.free, base))
            what.queued[state] = finish(before, what, clocks, lane, self.reach, base)
        else:
            what.keep((around, what.queues(before.free, start)), finish(before, what, clocks, lane, self.reach, start))

    def recall(self, what: Piece, lane: Lane, around: State) -> bool:
        """Do again what a piece did from this state, if it is known."""
        clocks, start = self.issuer.clocks, lane.clock
        base = what.queue(clocks.free, start)
        effect = None if base is None else what.queued.get((around, what.queues(clocks.free, base)))
        if effect is None or base is None or effect.margin + base - start < 0:
            base, effect = start, what.effects.get((around, what.queues(clocks.free, start)))
        if effect is None:
            return False
        what.found += 1
        again(effect, what, clocks, lane, base)
        return True

    def close(self, rounds: _Rounds, active: list[Lane], number: int) -> int:
        """How many of the iterations after ``number`` were taken in one step, because they repeat earlier ones."""
        known = rounds.known
        if known is None:
            most = _longest_stride(max(rounds.counts.values()))
            known = rounds.known = self.facts(rounds.body, rounds.var, rounds.delta, most)
        left = min([rounds.counts[lane.number] for lane in active]) - number
        if not known.is_regular or left < known.stride or number % known.stride:
            return 0
        now, before, period = snapshot(self.issuer.clocks, active), rounds.before, number - rounds.at
        strides = period // known.stride
        if before is not None and now.repeats(before, known.moves, strides):
            times = self.alike(rounds, known, active, number, left // period)
            if times:
                ticks = self.issuer.clocks.skip(active, before, times, known.moves, strides)
                self.mark(_closed(times * period, rounds.var), active[0], now.base, ticks)
                rounds.before, rounds.patience = None, 1
                return times * period
        elif before is not None and known.only_starts and len(active) == 1 and (ticks := now.queued(before)) > 0:
            times = self.alike(rounds, known, active, number, left // period)
            times = self.unhindered(rounds, active[0], number, times * period) // period
            if times:
                self.issuer.clocks.queue(active[0], before, times, ticks)
                self.mark(_closed(times * period, rounds.var), active[0], now.base, ticks * times)
                rounds.before, rounds.patience = None, 1
                return times * period
        if before is None or strides >= rounds.patience:
            rounds.patience = 1 if before is None else 2 * rounds.patience
            rounds.before, rounds.at = now, number
        return 0

    def alike(self, rounds: _Rounds, known: Facts, active: list[Lane], number: int, most: int) -> int:
        """The largest number of further periods, up to ``most``, in which everything is decided as in the last."""
        period = number - rounds.at

        def hold(times: int) -> bool:
            ends = (rounds.at, number + times * period - 1)
            for lane in active:
                first, last = (rounds.firsts[lane.number] + n * rounds.delta for n in ends)
                if not known.hold(lane.env, rounds.var, min(first, last), max(first, last)):
                    return False
            return True

        return _most(hold, most)

    def unhindered(self, rounds: _Rounds, lane: Lane, number: int, most: int) -> int:
        """How many of the iterations after ``number`` start their calls without waiting for anything."""
        used = {o.buffer for step in rounds.body if isinstance(step, CallStep) for o in step.operands if o is not None}
        if not any(h.buffer in used for h in lane.hazards):
            return most
        here = lane.env[rounds.var]
        for n in range(most):
            lane.env[rounds.var] = rounds.firsts[lane.number] + (number + n) * rounds.delta
            steps = (step for step in rounds.body if isinstance(step, CallStep))
            if any(self.issuer.ready(step, self.issuer.cost(step, lane), lane) > lane.clock for step in steps):
                most = n
                break
        lane.env[rounds.var] = here
        return most

    def mark(self, text: str, lane: Lane, start: int, ticks: int) -> None:
        issuer = self.issuer
        if len(issuer.events) < issuer.most_events:
            issuer.events.append(Event(text, "repeats", lane.number, start, start + ticks, is_repeat=True))

    def facts(self, body: tuple[Step, ...], var: str, delta: int, most_stride: int) -> Facts:
        key = (id(body), delta, most_stride)
        found = self._facts.get(key)
        if found is None:
            found = self._facts[key] = facts(var, delta, body, most_stride)
        return found


def _closed(iterations: int, var: str) -> str:
    return f"{iterations} iterations of {var} like those before"


def _longest_stride(iterations: int) -> int:
    """A stride that a loop has several of; a power of two, so that loops of many lengths share what is known."""
    return min(MOST_STRIDE, max(4, 1 << (iterations // 4).bit_length()))


def _most(hold: Callable[[int], bool], most: int) -> int:
    """The largest number up to ``most`` for which ``hold``; it holds for all below one for which it does."""
    if hold(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if hold(middle) else (low, middle)
    return low


def _has_rows(body: tuple[Step, ...]) -> bool:
    """Whether a broadcast goes along a dimension of the grid, so that it matters who is where."""
    for step in body:
        if isinstance(step, CallStep) and step.instruction.along is not None:
            return True
        inside = step.body if isinstance(step, LoopStep | AllocStep | WhenStep) else ()
        if isinstance(step, WhenStep):
            inside = (*inside, *step.otherwise)
        if _has_rows(inside):
            return True
    return False


def _holds(condition: Condition, lane: Lane) -> bool:
    value = condition.index.evaluate(lane.env)
    return value == 0 if condition.equal else value >= 0
