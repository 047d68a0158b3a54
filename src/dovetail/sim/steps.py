"""A nest made ready for timing: sizes bound, each operand's place one index, instructions looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.base.errors import CallError, SimulationError
from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.instruction_function import dense_strides
from dovetail.ir.nest import Alloc, Barrier, Buffer, Call, Cell, Loop, Nest, Node, Parallel, Place, Start, Wait, When
from dovetail.sim.allocate import elements_of
from dovetail.sim.operands import spread_buffers
from dovetail.sim.units import Topology, topology
from dovetail.targets.model import Instruction, Target


@dataclass(frozen=True, slots=True)
class OperandStep:
    """Where an operand lies: ``offset`` elements behind the buffer's first; None where only a run with data knows."""

    buffer: str
    memory: str
    offset: Index | None
    part: int = 0
    """Elements on each unit, of a buffer that is spread over units."""


@dataclass(frozen=True, slots=True, eq=False)
class CallStep:
    """A call, started when it has a token."""

    call: Call
    instruction: Instruction
    params: tuple[tuple[Index, ...], ...]
    operands: tuple[OperandStep | None, ...]
    token: str
    written: int
    """The operand that is written."""
    text: str
    number: int
    """Its own among all calls of the nest."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopStep:
    """A loop; ``down`` runs from its last value to its first."""

    var: str
    lower: tuple[Index, ...]
    upper: tuple[Index, ...]
    step: int
    down: bool
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ParallelStep:
    unit: str
    var: str
    extent: tuple[Index, ...]
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AllocStep:
    buffer: Buffer
    shape: tuple[Index, ...]
    strides: tuple[Index, ...]
    units: int
    """Over how many it is spread."""
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WaitStep:
    token: str


@dataclass(frozen=True, slots=True, eq=False)
class BarrierStep:
    unit: str


@dataclass(frozen=True, slots=True, eq=False)
class WhenStep:
    conditions: tuple[Condition, ...]
    body: tuple[Step, ...]
    otherwise: tuple[Step, ...]


Step = CallStep | LoopStep | ParallelStep | AllocStep | WaitStep | BarrierStep | WhenStep


def prepare(nest: Nest, target: Target, sizes: Mapping[str, int]) -> tuple[tuple[AllocStep, ...], tuple[Step, ...]]:
    """The arguments' storage, and what is done; fetches take no time of their own."""
    missing = [name for name in nest.sizes if name not in sizes]
    if missing:
        raise CallError(f"size '{missing[0]}' is not given")
    bound = {name: constant(sizes[name]) for name in nest.sizes}
    builder = _Builder(target, bound, topology(target), spread_buffers(nest, target))
    arguments = tuple(builder.storage(buffer, ()) for buffer in nest.arguments)
    return arguments, builder.nodes(nest.body)


@dataclass(slots=True)
class _Builder:
    target: Target
    sizes: Mapping[str, Index]
    topology: Topology
    spread: frozenset[str]
    buffers: dict[str, AllocStep] = field(default_factory=dict)
    calls: int = 0

    def storage(self, buffer: Buffer, body: tuple[Step, ...]) -> AllocStep:
        units = self.topology.totals[self.topology.owners[buffer.memory]] if buffer.name in self.spread else 1
        made = AllocStep(buffer, self.bound(buffer.shape), self.bound(buffer.strides), units, body)
        self.buffers[buffer.name] = made
        return made

    def nodes(self, nodes: tuple[Node, ...]) -> tuple[Step, ...]:
        made = (self.node(node) for node in nodes)
        return tuple(step for step in made if step is not None)

    def node(self, node: Node) -> Step | None:
        if isinstance(node, Call):
            return self.call(node, "")
        if isinstance(node, Start):
            return self.call(node.call, node.token)
        if isinstance(node, Wait):
            return WaitStep(node.token)
        if isinstance(node, Barrier):
            return BarrierStep(node.unit)
        if isinstance(node, Loop):
            lower, upper = self.decisive(node.lower), self.decisive(node.upper)
            return LoopStep(node.var, lower, upper, node.step, node.downward, self.nodes(node.body))
        if isinstance(node, Parallel):
            return ParallelStep(node.unit, node.var, self.decisive(node.extent), self.nodes(node.body))
        if isinstance(node, When):
            self.decisive(tuple(c.index for c in node.conditions))
            conditions = tuple(c.substitute(self.sizes) for c in node.conditions)
            return WhenStep(conditions, self.nodes(node.body), self.nodes(node.otherwise))
        if isinstance(node, Alloc):
            storage = self.storage(node.buffer, ())
            body = self.nodes(node.body)
            del self.buffers[node.buffer.name]
            return AllocStep(node.buffer, storage.shape, storage.strides, storage.units, body)
        return None

    def call(self, call: Call, token: str) -> CallStep:
        instruction = self.target.instruction(call.instruction)
        params = tuple(self.bound(indices) for _, indices in call.params)
        if any(True for indices in params for index in indices for _ in index.reads()):
            raise SimulationError("the time depends on data: a parameter is read while the nest runs", where=str(call))
        operands = tuple(self.operand(o) if isinstance(o, Cell | Place) else None for o in call.operands)
        out = instruction.program.statements[-1].out.tensor
        written = next(n for n, o in enumerate(instruction.operands) if o.name == out)
        self.calls += 1
        return CallStep(call, instruction, params, operands, token, written, str(call), self.calls)

    def operand(self, operand: Cell | Place) -> OperandStep:
        storage = self.buffers[operand.buffer]
        buffer = storage.buffer
        if isinstance(operand, Cell):
            steps = zip(operand.position, dense_strides([e.const for e in storage.shape]), strict=True)
            return OperandStep(buffer.name, buffer.memory, constant(sum(p * s for p, s in steps) * buffer.lanes))
        indices = self.bound(operand.indices)
        if any(True for index in indices for _ in index.reads()):
            return OperandStep(buffer.name, buffer.memory, None)
        if not all(e.is_constant for e in (*storage.shape, *storage.strides)):
            return OperandStep(buffer.name, buffer.memory, None)
        strides = tuple(s.const for s in storage.strides) or dense_strides([e.const for e in storage.shape])
        total = constant(0)
        for index, stride in zip(indices, strides, strict=True):
            total = total + index * stride
        return OperandStep(buffer.name, buffer.memory, total, self.part(storage))

    def part(self, storage: AllocStep) -> int:
        shape, strides = (tuple(i.const for i in indices) for indices in (storage.shape, storage.strides))
        elements = elements_of(shape, strides, storage.buffer.lanes)
        return -(-elements // storage.units) if storage.units > 1 else 0

    def decisive(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        """Bounds and conditions, which decide what is done when; data may not."""
        for index in indices:
            if any(True for _ in index.reads()):
                raise SimulationError(
                    f"the time depends on data: {index} is read while the nest runs",
                    hint="time a nest whose loops and conditions do not read their bounds",
                )
        return self.bound(indices)

    def bound(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        return tuple(i.substitute(self.sizes) for i in indices)
