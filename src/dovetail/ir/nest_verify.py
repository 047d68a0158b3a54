"""Whether a nest means anything on a machine: buffers and registers exist, operands suit their instructions.

It knows no target: what it needs of one is handed in as ``Machine``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Protocol

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import CodegenError
from dovetail.ir.index import Condition, Index
from dovetail.ir.nest import (
    Alloc,
    Barrier,
    Buffer,
    Call,
    Cell,
    Fetch,
    Loop,
    Nest,
    Node,
    Number,
    Operand,
    Parallel,
    Place,
    Start,
    Value,
    Wait,
    When,
)
from dovetail.ir.program import Program, Role


class OperandLike(Protocol):
    """An operand of an instruction."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def memory(self) -> str: ...
    @property
    def strides(self) -> tuple[int | str, ...]: ...


class InstructionLike(Protocol):
    """What a nest needs to know of an instruction."""

    @property
    def name(self) -> str: ...
    @property
    def program(self) -> Program: ...
    @property
    def operands(self) -> Sequence[OperandLike]: ...
    @property
    def constraints(self) -> tuple[Condition, ...]: ...


@dataclass(frozen=True, slots=True)
class Machine:
    """What a nest may use: instructions by name, memories (which of them are registers), units."""

    instructions: Mapping[str, InstructionLike]
    memories: frozenset[str]
    registers: frozenset[str]
    units: frozenset[str]


def verify_nest(nest: Nest, machine: Machine) -> None:
    """Raise a CodegenError where ``nest`` cannot run on ``machine``."""
    _Verifier(nest, machine).nest()


class _Verifier:
    """Walks a nest with what is in force: buffers, loops, started calls, and the parallel around."""

    def __init__(self, nest: Nest, machine: Machine) -> None:
        self.whole = nest
        self.machine = machine
        self.buffers: dict[str, Buffer] = {}
        self.names: set[str] = set(nest.sizes)
        self.started: set[str] = set()
        self.waited: set[str] = set()
        self.inside_parallel = False

    def nest(self) -> None:
        for argument in self.whole.arguments:
            if argument.memory in self.machine.registers:
                raise CodegenError(f"argument {argument} lies in registers", hint="arguments lie in main memory")
            self.declare(argument)
        for name in self.whole.written:
            if name not in self.buffers:
                raise CodegenError(f"'{name}' is written but is no argument")
        self.nodes(self.whole.body)
        self.tokens()

    def tokens(self) -> None:
        """Each token is started and waited for somewhere; in which order, only a run can say."""
        for token in sorted(self.started - self.waited):
            raise CodegenError(f"call '{token}' is started but never waited for")
        for token in sorted(self.waited - self.started):
            raise CodegenError(f"wait for '{token}', which is not started")

    def nodes(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            for index in node_indices(node):
                self.index(index, node)
            self.node(node)

    def node(self, node: Node) -> None:
        if isinstance(node, Call):
            self.call(node)
        elif isinstance(node, Loop):
            self.loop(node)
        elif isinstance(node, Parallel):
            self.parallel(node)
        elif isinstance(node, Alloc):
            self.alloc(node)
        elif isinstance(node, When):
            self.nodes(node.body)
            self.nodes(node.otherwise)
        elif isinstance(node, Start):
            self.started.add(node.token)
            self.call(node.call)
        elif isinstance(node, Fetch):
            self.fetch(node)
        elif isinstance(node, Wait):
            self.waited.add(node.token)
        else:
            self.barrier(node)

    def loop(self, node: Loop) -> None:
        if node.step < 1 or not node.lower or not node.upper:
            raise CodegenError(f"loop {node.var} has no bounds or a step below 1")
        with self.variable(node.var):
            self.nodes(node.body)

    def parallel(self, node: Parallel) -> None:
        self.unit(node.unit)
        if self.inside_parallel:
            raise CodegenError(f"parallel {node.unit} {node.var} inside another parallel")
        self.inside_parallel = True
        with self.variable(node.var):
            self.nodes(node.body)
        self.inside_parallel = False

    def barrier(self, node: Barrier) -> None:
        self.unit(node.unit)
        if self.inside_parallel:
            raise CodegenError(f"barrier {node.unit} inside a parallel", why="not all units come to it")

    def fetch(self, node: Fetch) -> None:
        buffer = self.buffers.get(node.place.buffer)
        if buffer is None:
            raise CodegenError(f"fetch of {node.place}, which is in no buffer here")
        if len(buffer.shape) != len(node.place.indices):
            raise CodegenError(f"fetch of {node.place}: the buffer has {len(buffer.shape)} dimensions")

    def unit(self, name: str) -> None:
        if name not in self.machine.units:
            raise CodegenError(f"unknown unit '{name}'", hint=f"one of {', '.join(sorted(self.machine.units))}")

    def alloc(self, node: Alloc) -> None:
        self.declare(node.buffer)
        self.nodes(node.body)
        del self.buffers[node.buffer.name]

    def declare(self, buffer: Buffer) -> None:
        if buffer.name in self.buffers:
            raise CodegenError(f"buffer '{buffer.name}' is declared twice")
        if buffer.memory not in self.machine.memories:
            raise CodegenError(f"buffer {buffer} lies in an unknown memory")
        if buffer.memory in self.machine.registers and not all(e.is_constant for e in buffer.shape):
            raise CodegenError(
                f"registers {buffer} are not counted", why="which register is meant is fixed in the code"
            )
        if buffer.strides and len(buffer.strides) != len(buffer.shape):
            raise CodegenError(f"buffer {buffer} has {len(buffer.strides)} strides")
        self.buffers[buffer.name] = buffer

    @contextmanager
    def variable(self, name: str) -> Iterator[None]:
        if name in self.names:
            raise CodegenError(f"loop variable '{name}' is already in use")
        self.names.add(name)
        yield
        self.names.discard(name)

    def index(self, index: Index, node: Node) -> None:
        unknown = index.names() - self.names
        if unknown:
            raise CodegenError(
                f"unknown name '{min(unknown)}' in {index}", where=str(node) if isinstance(node, Call) else None
            )
        for read in index.reads():
            buffer = self.memory_buffer(read.tensor, len(read.indices), str(read))
            if not buffer.dtype.is_integer:
                raise CodegenError(f"index read from {buffer}", why="an index is an integer")

    def memory_buffer(self, name: str, rank: int, where: str) -> Buffer:
        buffer = self.buffers.get(name)
        if buffer is None:
            raise CodegenError(f"unknown buffer '{name}'", where=where)
        if buffer.memory in self.machine.registers:
            raise CodegenError(f"place in the registers {buffer}", where=where, hint="name a cell")
        if rank != len(buffer.shape):
            raise CodegenError(f"{rank} indices into {buffer}", where=where)
        return buffer

    def call(self, call: Call) -> None:
        instruction = self.machine.instructions.get(call.instruction)
        if instruction is None:
            raise CodegenError(f"unknown instruction '{call.instruction}'", where=str(call))
        if len(call.operands) != len(instruction.operands):
            raise CodegenError(f"{len(call.operands)} operands, {len(instruction.operands)} expected", where=str(call))
        for wanted, operand in zip(instruction.operands, call.operands, strict=True):
            try:
                self.operand(instruction, wanted, operand)
            except CodegenError as error:
                raise CodegenError(f"operand '{wanted.name}': {error.what}", where=str(call), why=error.why) from error
        _check_parameters(instruction, call)

    def operand(self, instruction: InstructionLike, wanted: OperandLike, operand: Operand) -> None:
        written = instruction.program.statements[-1].out.tensor == wanted.name
        if isinstance(operand, Place):
            buffer = self.memory_buffer(operand.buffer, len(operand.indices), str(operand))
            self.types(wanted, buffer.dtype, wanted.memory not in self.machine.registers, operand)
            if written and buffer in self.whole.arguments and buffer.name not in self.whole.written:
                raise CodegenError(f"writes {operand}, an argument that is only read")
            return
        if wanted.memory not in self.machine.registers:
            raise CodegenError(f"{operand} is no place in memory '{wanted.memory}'")
        if isinstance(operand, Cell):
            self.cell(instruction, wanted, operand)
        elif written:
            raise CodegenError(f"writes {operand}")
        else:
            self.types(wanted, operand.dtype if isinstance(operand, Number) else DTYPES["i64"], True, operand)

    def cell(self, instruction: InstructionLike, wanted: OperandLike, cell: Cell) -> None:
        buffer = self.buffers.get(cell.buffer)
        if buffer is None or buffer.memory not in self.machine.registers:
            raise CodegenError(f"no registers '{cell.buffer}'")
        shape = tuple(e.const for e in buffer.shape)
        if len(shape) != len(cell.position) or not all(0 <= p < e for p, e in zip(cell.position, shape, strict=True)):
            raise CodegenError(f"{cell} is outside of {buffer}")
        self.types(wanted, buffer.dtype, buffer.memory == wanted.memory, cell)
        lanes = register_lanes(instruction.program, wanted.name)
        if lanes != buffer.lanes:
            raise CodegenError(f"{cell} has {buffer.lanes} lanes, {lanes} expected")

    def types(self, wanted: OperandLike, dtype: DType, memory_fits: bool, operand: Operand) -> None:
        if not memory_fits:
            raise CodegenError(f"{operand} is not in memory '{wanted.memory}'")
        if dtype != wanted.dtype:
            raise CodegenError(f"{operand} is {dtype}, {wanted.dtype} expected")


def node_indices(node: Node) -> Iterator[Index]:
    """Every index a node itself holds, those of nodes inside it left out."""
    if isinstance(node, Loop):
        yield from (*node.lower, *node.upper)
    elif isinstance(node, Parallel):
        yield from (*node.extent, node.backward)
    elif isinstance(node, Alloc):
        yield from (*node.buffer.shape, *node.buffer.strides)
    elif isinstance(node, When):
        yield from (c.index for c in node.conditions)
    elif isinstance(node, Fetch):
        yield from node.place.indices
    elif isinstance(node, Call | Start):
        call = node if isinstance(node, Call) else node.call
        for operand in call.operands:
            if isinstance(operand, Place):
                yield from operand.indices
            elif isinstance(operand, Value):
                yield operand.index
        for _, indices in call.params:
            yield from indices


def register_lanes(program: Program, operand: str) -> int:
    """Elements of a register operand: its shape at the parameters' largest values."""
    high = {s.name: s.high for s in program.sizes}
    return prod(extent.evaluate(high) for extent in program.tensor(operand).shape)


def is_result(program: Program, operand: str) -> bool:
    """Whether an operand is written without being read."""
    written = program.statements[-1].out.tensor == operand
    return written and program.tensor(operand).role in (Role.OUT, Role.TEMP)


def _check_parameters(instruction: InstructionLike, call: Call) -> None:
    given = dict(call.params)
    named = {s for o in instruction.operands for s in o.strides if isinstance(s, str)}
    wanted = named | {s.name for s in instruction.program.sizes}
    if given.keys() != wanted:
        differing = min(given.keys() ^ wanted)
        raise CodegenError(f"parameter '{differing}' is {'not ' if differing in wanted else ''}given", where=str(call))
    for size in instruction.program.sizes:
        numbers = [i.const for i in given[size.name] if i.is_constant]
        low = min(numbers, default=size.low)
        if low < size.low or (len(numbers) == len(given[size.name]) and low > size.high):
            why = f"'{size.name}' lies in {size.low}..{size.high}"
            raise CodegenError(f"parameter {size.name} = {low}", where=str(call), why=why)
    static = {n: min(i.const for i in v) for n, v in given.items() if all(i.is_constant for i in v)}
    for condition in instruction.constraints:
        if condition.names() <= static.keys() and not condition.holds(static):
            raise CodegenError(f"parameters break the constraint {condition}", where=str(call))
