"""From a nest to the steps of its prediction: instructions looked up, buffers and tokens numbered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from dovetail.base.errors import SimulationError
from dovetail.ir.index import Atom, Condition, Index, Remainder, constant, variable
from dovetail.ir.interval import interval
from dovetail.ir.nest import Alloc, Barrier, Call, Cell, Loop, Nest, Node, Parallel, Place, Start, Wait, When, calls
from dovetail.schedule.placed.predict_cost import Group, Machine, machine, names, share
from dovetail.schedule.placed.predict_hazards import NONE, Hazards, moving, number_hazards, operands
from dovetail.schedule.placed.predict_keys import Decision, depends, items, largest, smallest, within
from dovetail.schedule.placed.predict_steps import (
    CLOCK,
    END,
    CallStep,
    LoopStep,
    Resource,
    Step,
    Steps,
    WaitStep,
    WhenStep,
)
from dovetail.targets.model import Target

_MANY = 32
"""Iterations of all loops around; from there on remainders in them are simplified."""


def build(nest: Nest, target: Target, sizes: Mapping[str, int]) -> Steps:
    """The steps of ``nest``; run-time sizes have the values in ``sizes``."""
    hazards, size = number_hazards(nest, target, max(CLOCK, END) + 1)
    on = machine(target)
    builder = _Builder(target, on, _spread(nest, target, on), hazards, size)
    builder.known = {name: constant(value) for name, value in sizes.items()}
    body, _ = builder.nodes(nest.body)
    resources = {n: r for r, n in builder.numbers.items() if isinstance(r, Resource)}
    return Steps(body, builder.size, resources)


@dataclass(slots=True)
class _Inside:
    """What a piece of a nest has inside."""

    decisions: list[Decision] = field(default_factory=list)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    moving: dict[str, frozenset[str]] = field(default_factory=dict)
    """Buffer -> the loops with which all of its places move."""

    def add(self, other: _Inside) -> None:
        self.decisions += other.decisions
        self.ranges |= other.ranges
        self.touched |= other.touched
        for name, loops in other.moving.items():
            self.moving[name] = self.moving[name] & loops if name in self.moving else loops


@dataclass(slots=True)
class _Builder:
    target: Target
    on: Machine
    spread: frozenset[str]
    """Buffers that are spread over units."""
    hazards: Mapping[str, Hazards]
    size: int
    """Of the state, as far as it is numbered."""
    known: dict[str, Index] = field(default_factory=dict)
    """What names stand for: sizes, and loops that do not start at a constant, counted from where they start."""
    numbers: dict[Resource | str, int] = field(default_factory=dict)
    """Resources, and tokens by name."""
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    group: Group = field(default_factory=lambda: Group("", 1, 1))

    # -- numbers of the state

    def numbered(self, what: Resource | str) -> int:
        found = self.numbers.get(what)
        if found is None:
            found = self.numbers[what] = self.size
            self.size += 1
        return found

    # -- steps

    def nodes(self, nodes: tuple[Node, ...]) -> tuple[tuple[Step, ...], _Inside]:
        steps: list[Step] = []
        inside = _Inside()
        for node in nodes:
            for step, more in self.node(node):
                steps.append(step)
                inside.add(more)
        return tuple(steps), inside

    def node(self, node: Node) -> Iterator[tuple[Step, _Inside]]:
        if isinstance(node, Call):
            yield self.call(node, "")
        elif isinstance(node, Start):
            yield self.call(node.call, node.token)
        elif isinstance(node, Wait):
            yield self.wait((self.numbered(node.token),))
        elif isinstance(node, Barrier):
            yield self.wait(tuple(n for h in self.hazards.values() for n in h.numbers()))
        elif isinstance(node, Alloc):
            for inner in node.body:
                yield from self.node(inner)
        elif isinstance(node, When):
            yield self.when(node)
        elif isinstance(node, Loop):
            yield self.loop(node)
        elif isinstance(node, Parallel):
            yield from self.parallel(node)

    def wait(self, awaited: tuple[int, ...]) -> tuple[Step, _Inside]:
        return WaitStep(awaited), _Inside(touched={CLOCK, *awaited})

    def when(self, node: When) -> tuple[Step, _Inside]:
        conditions = tuple(Condition(i, c.equal) for c in node.conditions for i in self.bound((c.index,)))
        body, inside = self.nodes(node.body)
        inside.decisions = [within(d, conditions, self.ranges | inside.ranges) for d in inside.decisions]
        otherwise, more = self.nodes(node.otherwise)
        inside.add(more)
        for c in conditions:
            if c.index.terms:
                inside.decisions.append(Decision(c.index, -1, 1 if c.equal else 0))
        return WhenStep(conditions, body, otherwise), inside

    def call(self, call: Call, token: str) -> tuple[Step, _Inside]:
        instruction = self.target.instruction(call.instruction)
        shared = share(instruction, self.on, self.group, tuple(self.is_spread(o) for o in call.operands))
        wanted = names(instruction, shared)
        params = tuple((name, self.bound(indices)) for name, indices in call.params if name in wanted)
        pipe = self.numbered(Resource("engine" if instruction.is_async else "unit", shared.unit))
        ports = tuple(self.numbered(Resource("memory", port.memory)) for port in shared.ports)
        awaited: set[int] = set()
        results: set[int] = set()
        read: set[int] = set()
        number = self.numbered(token) if token else NONE
        inside = _Inside(touched={CLOCK, END, pipe, *ports, *([number] if token else [])})
        for operand, _, writes in operands(call, instruction):
            hazards = self.hazards[operand.buffer]
            awaited |= {hazards.written, hazards.read} if writes else {hazards.written}
            if not instruction.is_async and writes:
                results |= {hazards.written, hazards.written_first}
            elif not instruction.is_async:
                read |= {hazards.read, hazards.read_first}
            inside.add(_Inside(moving={operand.buffer: moving(operand, self.known)}))
        for numbers in (awaited, results, read):
            numbers.discard(NONE)
            inside.touched |= numbers
        for _, indices in params:
            inside.decisions += smallest(indices)
        left = tuple(results), tuple(read)
        return CallStep(instruction, params, shared, self.on, pipe, ports, tuple(awaited), *left, number), inside

    def is_spread(self, operand: object) -> bool:
        return isinstance(operand, Place | Cell) and operand.buffer in self.spread

    def loop(self, node: Loop) -> tuple[Step, _Inside]:
        lower, upper = self.bound(node.lower), self.bound(node.upper)
        base = next((i for i in lower if i.terms), None)
        if base is not None:
            self.known[node.var] = variable(node.var) + base
            lower, upper = tuple(i - base for i in lower), tuple(i - base for i in upper)
        found = self.rounds(node.var, lower, upper, node.step, node.body)
        self.known.pop(node.var, None)
        return found

    def parallel(self, node: Parallel) -> Iterator[tuple[Step, _Inside]]:
        """All units do what the first one does; those of the last, shorter round are fewer."""
        total = self.on.totals[node.unit]
        extent = min(self.ends(i)[1] for i in self.bound(node.extent))
        full, rest = divmod(max(0, extent), total)
        for first, count, weight in ((0, full, total), (full * total, 1, rest)):
            if count and weight:
                self.group = Group(node.unit, total, weight)
                bounds = (constant(first),), (constant(first + total * count),)
                yield self.rounds(node.var, *bounds, total, node.body)
        self.group = Group("", 1, 1)

    def rounds(
        self, var: str, lower: tuple[Index, ...], upper: tuple[Index, ...], step: int, nodes: tuple[Node, ...]
    ) -> tuple[Step, _Inside]:
        low = max(self.ends(i)[0] for i in lower)
        high = max(low, min(self.ends(i)[1] for i in upper) - 1)
        before = self.ranges.get(var)
        self.ranges[var] = (low, high)
        body, inside = self.nodes(nodes)
        del self.ranges[var]
        if before is not None:
            self.ranges[var] = before
        touched = tuple(sorted(inside.touched))
        own, pairs = self.own(var, inside, touched)
        body_items = items(inside.decisions, inside.ranges)
        inside.decisions += [*smallest(upper, low), *largest(lower)]
        inside.ranges[var] = (low, high)
        outer = items(inside.decisions, inside.ranges)
        mine = tuple(item for item in body_items if depends(item, var))
        others = tuple(item for item in body_items if not depends(item, var))
        return LoopStep(var, lower, upper, step, body, touched, own, pairs, outer, mine, others), inside

    def own(
        self, var: str, inside: _Inside, touched: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Positions in ``touched`` of the buffers through which a loop goes, and which of them are pairs."""
        at = {number: position for position, number in enumerate(touched)}
        own: list[int] = []
        pairs: list[tuple[int, int]] = []
        for buffer, loops in inside.moving.items():
            if var in loops:
                hazards = self.hazards[buffer]
                own += [at[n] for n in hazards.numbers() if n in at]
                pairs += [(at[first], at[last]) for first, last in hazards.pairs() if first in at and last in at]
        return tuple(own), tuple(pairs)

    def bound(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        """What decides, in terms of the loops as they are counted here."""
        found = tuple(i.substitute(self.known) if self.known else i for i in indices)
        for index in found:
            if any(True for _ in index.reads()):
                raise SimulationError(
                    f"the time depends on data: {index} is read while the nest runs",
                    hint="predict a nest whose loops, conditions and parameters do not read their bounds",
                )
        if all(i.is_affine for i in found) or prod(high - low + 1 for low, high in self.ranges.values()) < _MANY:
            return found
        return tuple(i.map_atoms(self.in_place) for i in found)

    def in_place(self, atom: Atom) -> Index | None:
        """``(v + 1) % n`` is ``v`` where ``v`` goes through 0 to n - 1: copies that are started for the next of many
        tiles are taken to be those for this one, since all tiles have their turn. Not so where a large and a small one
        alternate, since the small one is then started during the large one."""
        if isinstance(atom, Remainder) and atom.divisor > 2:
            for name, factor in atom.index.terms:
                if factor == 1 and isinstance(name, str) and self.ranges.get(name) == (0, atom.divisor - 1):
                    return variable(name)
        return None

    def ends(self, index: Index) -> tuple[int, int]:
        found = interval(index, self.ranges)
        if found is None:
            raise SimulationError(f"'{index}' has no value before the nest runs", hint="give the sizes")
        return found


def _spread(nest: Nest, target: Target, on: Machine) -> frozenset[str]:
    """The buffers that instructions take as spread over units."""
    found = set()
    for call in calls(nest.body) if on.spread else ():
        for operand, layout, _ in operands(call, target.instruction(call.instruction)):
            if layout in on.spread:
                found.add(operand.buffer)
    return frozenset(found)
