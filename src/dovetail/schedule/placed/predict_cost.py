"""What a call costs on a machine: cycles of its pipe, until its result is there, and of each memory's port.

Units that do the same at the same time stand for one; where they share a pipe or a port, each is held for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from dovetail.ir.index import Index
from dovetail.ir.interval import interval
from dovetail.ir.program import Combine
from dovetail.targets.cost import cost_names, evaluate_cost
from dovetail.targets.model import Instruction, MemoryKind, Operand, Target

Values = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """``totals``: how many units of each kind there are; ``owners``: the unit a memory belongs to."""

    target: Target
    totals: Mapping[str, int]
    owners: Mapping[str, str]
    rates: Mapping[str, float]
    """Bytes per cycle of each memory that has a port."""
    grids: Mapping[str, tuple[int, ...]]
    spread: frozenset[str]
    """Layouts over units."""
    default_unit: str


@lru_cache(maxsize=64)
def machine(target: Target) -> Machine:
    """What ``target`` says about pipes and ports."""
    totals, total = {"": 1}, 1
    for unit in target.units:
        total *= prod(unit.count)
        totals[unit.name] = total
    cached = bool(target.caches)
    rates = {
        m.name: m.bytes_per_cycle
        for m in target.memories
        if m.bytes_per_cycle > 0 and m.kind is not MemoryKind.CACHE and not (cached and m.kind is MemoryKind.MAIN)
    }
    return Machine(
        target,
        totals,
        {m.name: m.per for m in target.memories},
        rates,
        {unit.name: unit.count for unit in target.units},
        frozenset(layout.name for layout in target.layouts if layout.units),
        target.units[0].name if len(target.units) == 1 else "",
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Who makes a call: ``weight`` of the ``total`` units of a kind, at the same time."""

    kind: str
    total: int
    weight: int


@dataclass(frozen=True, slots=True)
class Share:
    """What a call holds: the pipe of ``unit`` for as many of its cycles as ``turns`` units take one after the other."""

    unit: str
    turns: int
    servers: int
    """Pipes of that kind for each that calls."""
    ports: tuple[PortShare, ...]


@dataclass(frozen=True, slots=True)
class PortShare:
    """An operand that passes the port of its memory."""

    memory: str
    operand: Operand
    passes: int
    """How often: what is read and written passes twice."""
    turns: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Cycles: ``hold`` of the pipe, ``result`` until the result is there, one number for each port."""

    hold: float
    result: float
    ports: tuple[float, ...]


def share(instruction: Instruction, on: Machine, group: Group, spread: tuple[bool, ...]) -> Share:
    """The pipe and the ports of a call by ``group``, whose kind is empty outside of a parallel.

    ``spread``: which operands lie in buffers that are spread over units."""
    if not group.kind:
        owners = (on.owners[o.memory] for o, over in zip(instruction.operands, spread, strict=True) if not over)
        copies = max((on.totals[owner] for owner in owners), default=1)
        group = Group("", copies, copies)
    calls = group.weight
    if instruction.broadcast:
        calls = -(-group.weight // _reach(instruction, on, group))
    unit = instruction.unit or group.kind or on.default_unit
    total = on.totals[unit]
    turns = min(calls, max(1, group.total // total))
    ports = []
    written = instruction.program.statements[-1]
    for operand in instruction.operands:
        if operand.memory in on.rates:
            others = max(1, group.total // on.totals[on.owners[operand.memory]])
            joins = operand.name == written.out.tensor and written.combine is not Combine.SET
            ports.append(PortShare(operand.memory, operand, 1 + joins, min(calls, others)))
    return Share(unit, turns, max(1, total // group.total), tuple(ports))


def names(instruction: Instruction, shared: Share) -> frozenset[str]:
    """The parameters that decide what a call costs."""
    found = cost_names(instruction.cycles) | cost_names(instruction.latency)
    for port in shared.ports:
        for extent in instruction.program.tensor(port.operand.name).shape:
            found |= extent.names()
    return found


def cost(instruction: Instruction, shared: Share, on: Machine, values: Values) -> Cost:
    """The cycles of a call with these parameters."""
    busy, latency = _cycles(instruction.cycles, values), _cycles(instruction.latency, values)
    given = dict(values)
    ports = tuple(
        _bytes(instruction, port, on.target, given) * port.turns / on.rates[port.memory] for port in shared.ports
    )
    return Cost(busy * shared.turns, busy * (shared.turns - 1) + max(busy, latency), ports)


@lru_cache(maxsize=65536)
def _cycles(text: str, values: Values) -> float:
    return evaluate_cost(text, dict(values))


def _bytes(instruction: Instruction, port: PortShare, target: Target, values: Mapping[str, int]) -> float:
    """Bytes that pass one port; an operand that is spread over units passes all of theirs at once."""
    operand, units = port.operand, 1
    shape = [e.evaluate(values) for e in instruction.program.tensor(operand.name).shape]
    if operand.layout:
        layout = next(one for one in target.layouts if one.name == operand.layout)
        ranges = {name: (0, max(extent - 1, 0)) for name, extent in zip(layout.elements, shape, strict=True)}
        units = prod(_extents(layout.units, ranges))
        shape = [units, *_extents(layout.places, ranges)]
    return prod(shape) * operand.dtype.bytes * port.passes / units


def _extents(indices: tuple[Index, ...], ranges: Mapping[str, tuple[int, int]]) -> list[int]:
    ends = [interval(index, ranges) for index in indices]
    return [end[1] + 1 for end in ends if end is not None]


def _reach(instruction: Instruction, on: Machine, group: Group) -> int:
    """How many units one broadcast reaches."""
    grid = on.grids[instruction.broadcast]
    reached = prod(grid) if instruction.along is None else grid[instruction.along]
    return reached * max(1, on.totals[group.kind or instruction.broadcast] // on.totals[instruction.broadcast])
