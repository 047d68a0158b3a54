"""A nest run with data: every call's program is evaluated on memories with capacities, addresses and rules.

    memories    hold what their buffers were given; private ones exist once per unit
    addresses   from ``allocate``; an operand in a scratchpad starts at a multiple of the memory's ``align``
    parallel    iteration v runs on unit v modulo their number; outside of one, every unit does the same
    broadcast   all units that take part make the call and each receives the data
    start       the copy owns its destination, and forbids writes to its source, until the wait; so two copies under
                way never share a destination, of one token or of two

A broken rule is a ``SimulationError`` that names the call, the loops' values and the place; nothing is returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import CallError, SimulationError
from dovetail.ir.index import Condition, Index
from dovetail.ir.instruction_function import dense_strides
from dovetail.ir.nest import Alloc, Barrier, Buffer, Call, Fetch, Loop, Nest, Node, Parallel, Start, Wait, When
from dovetail.ir.nest_verify import verify_nest
from dovetail.sim.allocate import Allocator, elements_of
from dovetail.sim.execute import Execution
from dovetail.sim.operands import spread_buffers
from dovetail.sim.storage import Held
from dovetail.sim.units import nest_machine, topology
from dovetail.targets.model import Target

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class FunctionalResult:
    """What a functional run leaves."""

    arrays: Mapping[str, Array]
    """The arguments that are written."""
    peak_bytes: Mapping[str, int]
    """The most that each memory (of one unit) held."""
    calls: int


def simulate(
    nest: Nest, target: Target, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None
) -> FunctionalResult:
    """Run ``nest`` on ``target``. ``arrays`` are the arguments; one that is only written may be left out."""
    verify_nest(nest, nest_machine(target))
    runner = _Runner(nest, target, sizes or {})
    with np.errstate(all="ignore"):
        return runner.run(arrays)


class _Runner:
    """Walks the nest; calls are left to ``Execution``."""

    def __init__(self, nest: Nest, target: Target, sizes: Mapping[str, int]) -> None:
        missing = [name for name in nest.sizes if name not in sizes]
        if missing:
            raise CallError(f"size '{missing[0]}' is not given")
        self.nest = nest
        self.topology = topology(target)
        self.allocator = Allocator(target)
        self.env = {name: sizes[name] for name in nest.sizes}
        self.execution = Execution(target, self.topology, self.env)
        self.spread = spread_buffers(nest, target)
        self.lanes = 1
        """Units at work in the parallel around."""

    def run(self, arrays: Mapping[str, Array]) -> FunctionalResult:
        for buffer in self.nest.arguments:
            self.argument(buffer, arrays)
        self.nodes(self.nest.body)
        self.execution.finish()
        results = {b.name: self.result(b) for b in self.nest.arguments if b.name in self.nest.written}
        return FunctionalResult(results, self.allocator.peak_bytes, self.execution.calls)

    def argument(self, buffer: Buffer, arrays: Mapping[str, Array]) -> None:
        held = self.hold(buffer)
        array = arrays.get(buffer.name)
        if array is None:
            if buffer.name not in self.nest.written:
                raise CallError(f"argument '{buffer.name}' is not given")
            return
        if array.shape != held.shape or array.dtype != buffer.dtype.numpy:
            expected = f"{buffer.dtype}{list(held.shape)}"
            raise CallError(f"argument '{buffer.name}' is {array.dtype}{list(array.shape)}, expected {expected}")
        if held.common.flat.size:
            held.view()[...] = array
            held.shaped(held.common.written)[...] = True

    def result(self, buffer: Buffer) -> Array:
        held = self.execution.buffers[buffer.name]
        if not held.common.flat.size:
            return held.common.flat.reshape(held.shape)
        missing = np.argwhere(np.logical_not(held.shaped(held.common.written)))
        if missing.size:
            first = ", ".join(map(str, missing[0]))
            raise SimulationError(f"{len(missing)} elements of '{buffer.name}' are never written, first [{first}]")
        return held.view().copy()

    # -- buffers

    def hold(self, buffer: Buffer) -> Held:
        shape, given = self.numbers(buffer.shape), self.numbers(buffer.strides)
        elements = elements_of(shape, given, buffer.lanes)
        kind, number = self.execution.unit
        owner = self.topology.owners[buffer.memory]
        sharers = min(self.lanes, self.topology.sharers(owner, kind)) if kind else 1
        units = self.topology.totals[owner] if buffer.name in self.spread else 1
        block = self.allocator.take(buffer, -(-elements // units), sharers)
        held = Held(buffer, block, shape, given or dense_strides(shape), elements, number % sharers)
        held.part = -(-elements // units) if units > 1 else 0
        held.is_private = not kind and units == 1 and self.topology.is_private(buffer.memory)
        self.execution.buffers[buffer.name] = held
        return held

    def alloc(self, node: Alloc) -> None:
        held = self.hold(node.buffer)
        self.nodes(node.body)
        self.execution.check_free(held)
        del self.execution.buffers[node.buffer.name]
        self.allocator.release(held.block)

    # -- nodes

    def nodes(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            if isinstance(node, Call):
                self.execution.call(node, "")
            elif isinstance(node, Loop):
                self.loop(node)
            elif isinstance(node, When):
                self.nodes(node.body if self.holds(node.conditions) else node.otherwise)
            elif isinstance(node, Alloc):
                self.alloc(node)
            elif isinstance(node, Start):
                self.execution.call(node.call, node.token)
            elif isinstance(node, Wait):
                self.execution.wait(node.token)
            elif isinstance(node, Parallel):
                self.parallel(node)
            else:
                assert isinstance(node, Barrier | Fetch)

    def loop(self, node: Loop) -> None:
        values = range(max(self.numbers(node.lower)), min(self.numbers(node.upper)), node.step)
        for value in reversed(values) if node.downward else values:
            self.env[node.var] = value
            self.nodes(node.body)
        self.env.pop(node.var, None)

    def parallel(self, node: Parallel) -> None:
        total, extent = self.topology.totals[node.unit], min(self.numbers(node.extent))
        self.lanes = max(1, min(extent, total))
        for value in range(extent):
            self.execution.unit = (node.unit, value % total)
            self.env[node.var] = value
            self.nodes(node.body)
        self.env.pop(node.var, None)
        self.execution.unit, self.lanes = ("", 0), 1

    def holds(self, conditions: tuple[Condition, ...]) -> bool:
        """Conditions that read an index are tested last, each only where those before it hold."""
        ordered = sorted(conditions, key=lambda c: any(True for _ in c.index.reads()))
        return all(self.condition(c) for c in ordered)

    def condition(self, condition: Condition) -> bool:
        value = self.number(condition.index)
        return value == 0 if condition.equal else value >= 0

    def numbers(self, indices: tuple[Index, ...]) -> tuple[int, ...]:
        return tuple(self.number(i) for i in indices)

    def number(self, index: Index) -> int:
        return self.execution.number(index)
