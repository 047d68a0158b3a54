"""When a call runs. The rules, all of them:

    issue      a unit issues its calls in order, each when the elements it reads are there and those it writes are
               no longer needed; several may issue at the same time on different pipes
    pipe       a call holds a pipe of its instruction's ``unit`` for ``cycles``; asynchronous instructions hold the
               unit's engine instead, so the two overlap. An instruction without a unit runs on the unit that calls
    memory     each operand's bytes pass through the port of their memory at ``bytes_per_cycle``, first come first
               served; a call holds its pipe until its last byte has passed. Caches, and what lies behind them, have
               no ports
    latency    the result is there ``latency`` after the start, and not before the pipe is let go
    start      does not hold up the unit that issues it; wait does, until the results of all calls that were
               started with its token, if any, are there. A plain call of an asynchronous instruction is a start and
               a wait
    barrier    waits until all plain calls before it have their results
    sharing    units that do the same at the same time and share a pipe or a port are served together, one after
               the other; of those that a broadcast reaches only the first is served and all have the result

``startup_cycles`` and ``latency_cycles`` of a memory describe it; what a copy takes stands in its own ``cycles``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from dovetail.base.errors import LimitError, SimulationError
from dovetail.sim.clocks import Clocks, Hazard, Lane
from dovetail.sim.costs import TICKS, CallCost, Costs
from dovetail.sim.steps import CallStep
from dovetail.sim.units import Topology
from dovetail.targets.model import MemoryKind, Target


@dataclass(frozen=True, slots=True)
class Event:
    """Something on the timeline, in ticks: a call, or iterations that were taken in one step."""

    name: str
    track: str
    lane: int
    start: int
    end: int
    text: str = ""
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The units at work: of what kind, and how many there are."""

    kind: str
    total: int


@dataclass(slots=True)
class Issuer:
    """Issues calls on the resources of a machine."""

    target: Target
    topology: Topology
    costs: Costs
    most_events: int
    most_calls: int
    clocks: Clocks = field(default_factory=Clocks)
    group: Group = field(default_factory=lambda: Group("", 1))
    events: list[Event] = field(default_factory=list)
    calls: int = 0
    """Calls that were stepped through, each lane's counted."""
    rates: dict[str, float] = field(default_factory=dict)
    """Bytes per tick of each memory that has a port."""
    default_unit: str = ""

    def __post_init__(self) -> None:
        cached = bool(self.target.caches)
        for memory in self.target.memories:
            hidden = memory.kind is MemoryKind.CACHE or (cached and memory.kind is MemoryKind.MAIN)
            if memory.bytes_per_cycle > 0 and not hidden:
                self.rates[memory.name] = memory.bytes_per_cycle / TICKS
        if len(self.target.units) == 1:
            self.default_unit = self.target.units[0].name

    def issue(self, step: CallStep, lanes: list[Lane]) -> None:
        """Every lane makes the call, the earliest first; a broadcast is made once for all of them."""
        if step.token and not step.instruction.is_async:
            hint = f"async = true in {step.instruction.source}, or a plain call"
            what = f"start of {step.instruction.name}, which is not asynchronous"
            raise SimulationError(what, where=str(step.call), hint=hint)
        if len(lanes) == 1:
            self.run(step, lanes[0], lanes)
        elif step.instruction.broadcast:
            for receivers in self.receivers(step, lanes):
                ready = max(self.ready(step, self.cost(step, lane), lane) for lane in receivers)
                receivers[0].clock = max(receivers[0].clock, ready)
                self.run(step, receivers[0], receivers)
        else:
            for lane in sorted(lanes, key=lambda lane: (lane.clock, lane.number)):
                self.run(step, lane, [lane])

    def run(self, step: CallStep, lane: Lane, receivers: list[Lane]) -> None:
        """The call on ``lane``'s resources; ``receivers`` have its result."""
        self.calls += 1
        if self.calls > self.most_calls:
            hint = "fewer, larger calls, or loops whose iterations are alike"
            raise LimitError(f"timing the nest takes more than {self.most_calls} calls", where=step.text, hint=hint)
        cost, instruction = self.cost(step, lane), step.instruction
        issued = self.ready(step, cost, lane)
        group = self.group if self.group.kind else self.everywhere(step)
        weight = sum(one.weight for one in receivers) if self.group.kind else group.total
        share = -(-weight // self.reach(step)) if instruction.broadcast else weight
        name = instruction.unit or group.kind or self.default_unit
        servers, waiting, engines = self.pipe(name, instruction.is_async, group, lane, share)
        server = servers.index(min(servers))
        start = max(issued, servers[server])
        self.clocks.margin = min(self.clocks.margin, servers[server] - issued)
        end = max(start + cost.busy * waiting, self.move(cost, step, group, lane, weight, share, start))
        servers[server] = end
        done = max(end, start + cost.busy * (waiting - 1) + cost.latency)
        self.clocks.end = max(self.clocks.end, done)
        self.record(step, name, lane, start, end, done, engines)
        for receiver in receivers:
            self.clocks.count("calls", instruction.name, receiver.weight)
            self.advance(step, cost, receiver, issued, start, end, done)

    def cost(self, step: CallStep, lane: Lane) -> CallCost:
        env = lane.env
        if not step.params:
            return self.costs.of(step, ())
        values = tuple([min([i.evaluate(env) for i in indices]) for indices in step.params])
        return self.costs.of(step, values)

    def ready(self, step: CallStep, cost: CallCost, lane: Lane) -> int:
        """When the lane can issue the call, as far as its own operands go."""
        time = lane.clock
        if not lane.hazards:
            return time
        lane.settle()
        for operand in cost.operands:
            place = step.operands[operand.number]
            if place is None:
                continue
            mine = [h for h in lane.hazards if h.buffer == place.buffer]
            if not mine:
                continue
            offset = lane.place(place.buffer, place.offset)
            for hazard in mine:
                until = hazard.writable if operand.writes else hazard.readable
                if until > time and hazard.meets(operand.footprint, offset):
                    time = until
        return time

    def everywhere(self, step: CallStep) -> Group:
        """A call outside of a parallel is made by every unit that has a memory of its own among the operands.

        One on operands that are spread over units is made once, by all of them together."""
        found = [o for o in step.operands if o is not None and not o.part]
        copies = [self.topology.totals[self.topology.owners[o.memory]] for o in found]
        return Group("", max(copies, default=1))

    def reach(self, step: CallStep) -> int:
        """How many units one broadcast reaches."""
        instruction, kind = step.instruction, self.group.kind or step.instruction.broadcast
        grid = self.target.unit(instruction.broadcast).count
        reached = prod(grid) if instruction.along is None else grid[instruction.along]
        return reached * self.topology.sharers(instruction.broadcast, kind)

    def receivers(self, step: CallStep, lanes: list[Lane]) -> list[list[Lane]]:
        """Lanes that one broadcast reaches, together: those that differ only ``along`` a dimension of the grid."""
        instruction = step.instruction
        grid = self.target.unit(instruction.broadcast).count
        found: dict[tuple[int, int], list[Lane]] = {}
        for lane in lanes:
            number = self.topology.instance(instruction.broadcast, self.group.kind, lane.number)
            outer, inner = divmod(number, prod(grid))
            if instruction.along is None:
                inner = 0
            else:
                step_along = prod(grid[instruction.along + 1 :])
                inner -= inner // step_along % grid[instruction.along] * step_along
            found.setdefault((outer, inner), []).append(lane)
        return list(found.values())

    def pipe(self, name: str, is_async: bool, group: Group, lane: Lane, share: int) -> tuple[list[int], int, int]:
        """The servers for a call, how many calls of the lane one of them serves, and how many are at work."""
        total = self.topology.totals[name]
        waiting = min(share, max(1, group.total // total))
        instance = lane.number * total // group.total
        key = ("engine" if is_async else "unit", name, instance)
        return self.clocks.servers(key, max(1, total // group.total)), waiting, -(-share // waiting)

    def move(
        self, cost: CallCost, step: CallStep, group: Group, lane: Lane, weight: int, share: int, start: int
    ) -> int:
        """When the last byte of the operands has passed its memory's port."""
        last = start
        for operand in cost.operands:
            if step.operands[operand.number] is None:
                continue
            total = self.topology.totals[self.topology.owners[operand.memory]]
            waiting = min(share, max(1, group.total // total))
            ports = -(-weight // waiting) if total > 1 else 1
            self.clocks.count("bytes", operand.memory, operand.bytes * waiting * ports)
            rate = self.rates.get(operand.memory)
            if rate is None:
                continue
            instance = lane.number * total // group.total
            port = self.clocks.servers(("memory", operand.memory, instance), 1)
            ticks = round(operand.bytes * waiting / rate / operand.units)
            port[0] = max(port[0], start) + ticks
            last = max(last, port[0])
            self.clocks.count("memory", operand.memory, ticks * ports * operand.units)
        return last

    def advance(self, step: CallStep, cost: CallCost, lane: Lane, issued: int, start: int, end: int, done: int) -> None:
        """The lane goes on."""
        if step.token:
            lane.start(step.token, done)
            lane.clock = max(lane.clock, issued)
            return
        if step.instruction.is_async:
            lane.clock = max(lane.clock, done)
            return
        lane.clock = max(lane.clock, start)
        for operand in cost.operands:
            place = step.operands[operand.number]
            if place is None:
                continue
            offset = lane.place(place.buffer, place.offset)
            readable, writable = (done, done) if operand.writes else (0, end)
            lane.hazards.append(Hazard(place.buffer, operand.footprint, offset, readable, writable))

    def record(self, step: CallStep, unit: str, lane: Lane, start: int, end: int, done: int, engines: int) -> None:
        name, is_async = step.instruction.name, step.instruction.is_async
        self.clocks.count("busy", name, (end - start) * engines)
        self.clocks.count("engine" if is_async else "unit", unit, (end - start) * engines)
        if len(self.events) < self.most_events:
            track = f"{unit or 'machine'}{' copies' if is_async else ''}"
            self.events.append(Event(name, track, lane.number, start, end, step.text))
            if done > end:
                self.events.append(Event(f"{name} (latency)", f"{track} results", lane.number, end, done))

    def wait(self, token: str, lanes: list[Lane]) -> None:
        for lane in lanes:
            lane.wait(token)

    def barrier(self, lanes: list[Lane]) -> None:
        for lane in lanes:
            lane.clock = max([lane.clock, *(hazard.writable for hazard in lane.hazards)])
