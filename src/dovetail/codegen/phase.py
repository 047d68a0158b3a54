"""A part of a nest without barriers, as one LLVM function.

Between two barriers a unit alone touches what it writes, so each buffer may be passed as ``noalias``; across a
barrier that would be wrong, since other units write to shared buffers. Hence one function per part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from dovetail.base.errors import CodegenError
from dovetail.codegen.arithmetic import Arithmetic
from dovetail.codegen.buffers import Addresses, MemoryBuffer, Reach
from dovetail.codegen.constants import constant_text
from dovetail.codegen.control import Control
from dovetail.codegen.emission import Emission, Emissions
from dovetail.codegen.function_text import FunctionText
from dovetail.codegen.shares import MOST_SHARES
from dovetail.ir.index import ONE, Access, Index
from dovetail.ir.nest import (
    Alloc,
    Call,
    Cell,
    Fetch,
    Loop,
    Node,
    Number,
    Operand,
    Parallel,
    Place,
    Start,
    Wait,
    When,
    calls,
    walk,
)
from dovetail.ir.nest_verify import node_indices
from dovetail.targets.model import MemoryKind
from dovetail.targets.model import Operand as InstructionOperand
from dovetail.targets.template import register_type


@dataclass(frozen=True, slots=True)
class Outside:
    """What a phase finds around it: buffers in memory, and sizes and enclosing loops with what is known of them."""

    buffers: Mapping[str, MemoryBuffer]
    arithmetic: Arithmetic

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.arithmetic.variables)


@dataclass(frozen=True, slots=True)
class Phase:
    """Its text, and the call that runs it given values of ``names`` by name."""

    symbol: str
    text: str
    buffers: tuple[MemoryBuffer, ...]
    names: tuple[str, ...]

    def call(self, pointers: Mapping[str, str], values: Mapping[str, str]) -> str:
        arguments = ["i64 %unit", "i64 %units", "ptr %status"]
        arguments += [f"ptr {pointers[b.buffer.name]}" for b in self.buffers]
        arguments += [f"i64 {values[n]}" for n in self.names]
        return f"call void @{self.symbol}({', '.join(arguments)})"


def lower_phase(symbol: str, nodes: tuple[Node, ...], outside: Outside, emissions: Emissions) -> Phase:
    """``nodes`` as ``define internal void @symbol(unit, units, status, buffers..., sizes and loops...)``."""
    used = _used_buffers(nodes)
    buffers = tuple(b for name, b in outside.buffers.items() if name in used)
    writer = _PhaseWriter(outside, emissions)
    states = [emissions.state(s) for s in _states(nodes, emissions)]
    for state in states:
        writer.function.do(f"call void @{state}_enter()")
    writer.lower(nodes)
    for state in states:
        writer.function.do(f"call void @{state}_leave()")
    arguments = ["i64 %unit", "i64 %units", "ptr %status", *(b.argument for b in buffers)]
    arguments += [f"i64 %n{number}" for number in range(len(outside.names))]
    head = f"define internal void @{symbol}({', '.join(arguments)}) noinline nounwind {{\nentry:"
    return Phase(symbol, f"{head}\n{writer.function.text()}\n  ret void\n}}", buffers, outside.names)


class _PhaseWriter:
    """Writes one phase; ``cells`` are the stack slots of registers, which LLVM turns into registers."""

    def __init__(self, outside: Outside, emissions: Emissions) -> None:
        self.function = FunctionText()
        self.emissions = emissions
        self.buffers = outside.buffers
        values = {name: f"%n{number}" for number, name in enumerate(outside.names)}
        self.arithmetic = outside.arithmetic.moved(self.function, values, self._read)
        self.addresses = Addresses(self.arithmetic, outside.buffers, "%status")
        self.control = Control(self.arithmetic, self.lower)
        self.cells: dict[tuple[str, tuple[int, ...]], tuple[str, str]] = {}

    def lower(self, nodes: tuple[Node, ...]) -> None:
        """One node after the other; a memory fence for the compiler alone keeps neighbouring scopes of registers
        apart, lest LLVM share their loads and run out of registers. It becomes no instruction."""
        for number, node in enumerate(nodes):
            if number and isinstance(node, Alloc) and isinstance(nodes[number - 1], Alloc):
                self.function.do('call void asm sideeffect "", "~{memory}"()')
            self.node(node)

    def node(self, node: Node) -> None:
        if isinstance(node, Call):
            self.call(node)
        elif isinstance(node, Loop):
            self.control.loop(node)
        elif isinstance(node, Alloc):
            self.alloc(node)
        elif isinstance(node, When):
            self.control.when(node)
        elif isinstance(node, Parallel):
            self.control.parallel(node, "%unit", "%units", self._share(node))
        elif isinstance(node, Start):
            self.call(node.call)  # a processor runs a started call at once
        elif isinstance(node, Fetch):
            place = self.addresses.pointer(node.place)
            self.function.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(node.write)}, i32 3, i32 1)")
        else:
            assert isinstance(node, Wait), "a phase holds no barrier"

    def _share(self, node: Parallel) -> int | None:
        """A number for counters of its own, where units may help each other."""
        if node.extent == (ONE,) or self.emissions.shares == MOST_SHARES:
            return None
        self.emissions.shares += 1
        return self.emissions.shares - 1

    def alloc(self, node: Alloc) -> None:
        """Registers become one stack slot per cell; buffers in memory are arguments already."""
        buffer = node.buffer
        if self.emissions.target.memory(buffer.memory).kind is MemoryKind.REGISTERS:
            kind = register_type(buffer.dtype, buffer.lanes)
            for position in product(*(range(extent.const) for extent in buffer.shape)):
                slot = self.function.fresh("c")
                self.function.header.append(f"  {slot} = alloca {kind}")
                self.cells[buffer.name, position] = (slot, kind)
        self.lower(node.body)

    def call(self, call: Call) -> None:
        emission = self.emissions.of(call.instruction)
        values = dict(call.params)
        assert len(call.operands) == len(emission.instruction.operands), f"operands of {call}"
        arguments = [self._argument(emission, o, call.operands[at], values) for at, o in emission.arguments]
        for name in emission.strides:
            arguments.append(f"i64 {self.arithmetic.smallest(values[name])}")
        parameters = {name: self._parameter(values[name]) for name in emission.parameters}
        arguments += [f"i32 {value}" for value in parameters.values()]
        arguments += [self._mask(emission, name, parameters[name]) for name in emission.masks]
        text = f"call {emission.result_type} @{emission.symbol}({', '.join(arguments)})"
        if emission.returned is None:
            self.function.do(text)
            return
        cell = call.operands[emission.returned]
        assert isinstance(cell, Cell), "registers are written as cells"
        slot, kind = self._cell(cell)
        self.function.do(f"store {kind} {self.function.local(text)}, ptr {slot}")

    def _argument(
        self,
        emission: Emission,
        wanted: InstructionOperand,
        operand: Operand,
        values: Mapping[str, tuple[Index, ...]],
    ) -> str:
        kind = emission.operand_type(wanted)
        if isinstance(operand, Place):
            reaches = self._reaches(emission, wanted, values) if any(i.is_indirect for i in operand.indices) else ()
            return f"ptr {self.addresses.pointer(operand, reaches)}"
        if isinstance(operand, Cell):
            slot, held = self._cell(operand)
            return f"{kind} {self.function.local(f'load {held}, ptr {slot}')}"
        if isinstance(operand, Number):
            return f"{kind} {constant_text(operand.value, wanted.dtype, emission.lanes(wanted))}"
        value = self.arithmetic.value(operand.index)
        return f"{kind} {self._spread(value, kind, emission.lanes(wanted))}"

    def _reaches(
        self, emission: Emission, wanted: InstructionOperand, values: Mapping[str, tuple[Index, ...]]
    ) -> tuple[Reach, ...]:
        """Dimensions along which the instruction goes on from a place, with strides known at compile time."""
        shape = emission.instruction.program.tensor(wanted.name).shape
        reaches: list[Reach] = []
        dense = 1
        for dimension in reversed(range(len(shape))):
            stride, extent = wanted.strides[dimension] if wanted.strides else dense, shape[dimension]
            if isinstance(stride, int) and extent != ONE:
                terms = [(self.arithmetic.smallest(values[str(name)]), c) for name, c in extent.terms]
                reaches.append(Reach(self.arithmetic.sum(terms, extent.const - 1), stride))
            dense *= emission.highest(extent)
        return tuple(reaches)

    def _spread(self, value: str, kind: str, lanes: int) -> str:
        if lanes == 1:
            return value
        one = self.function.pure(f"insertelement {kind} poison, i64 {value}, i64 0", value)
        return self.function.pure(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer", one)

    def _parameter(self, indices: tuple[Index, ...]) -> str:
        value = self.arithmetic.smallest(indices)
        return self.function.pure(f"trunc i64 {value} to i32", value) if value[0] == "%" else value

    def _mask(self, emission: Emission, name: str, value: str) -> str:
        """Lane l is on where l is below the parameter."""
        lanes = emission.mask_lanes(name)
        kind = f"<{lanes} x i1>"
        if value[0] != "%":
            on = ", ".join(f"i1 {'true' if lane < int(value) else 'false'}" for lane in range(lanes))
            return f"{kind} <{on}>"
        one = self.function.pure(f"insertelement <{lanes} x i32> poison, i32 {value}, i64 0", value)
        wide = self.function.pure(
            f"shufflevector <{lanes} x i32> {one}, <{lanes} x i32> poison, <{lanes} x i32> zeroinitializer", one
        )
        count = ", ".join(f"i32 {lane}" for lane in range(lanes))
        return f"{kind} {self.function.pure(f'icmp sgt <{lanes} x i32> {wide}, <{count}>', wide)}"

    def _cell(self, cell: Cell) -> tuple[str, str]:
        found = self.cells.get((cell.buffer, cell.position))
        if found is None:
            raise CodegenError(f"no register {cell}", why="its buffer is not allocated here or has no such cell")
        return found

    def _read(self, access: Access) -> str:
        return self.addresses.read(access)


def _used_buffers(nodes: tuple[Node, ...]) -> frozenset[str]:
    """Buffers in memory that a phase touches, indirect reads included."""
    found: set[str] = set()
    for node in walk(nodes):
        for index in node_indices(node):
            if not index.is_affine:
                found.update(read.tensor for read in index.reads())
        if isinstance(node, Fetch):
            found.add(node.place.buffer)
    for call in calls(nodes):
        found.update(operand.buffer for operand in call.operands if isinstance(operand, Place))
    return frozenset(found)


def _states(nodes: tuple[Node, ...], emissions: Emissions) -> Sequence[str]:
    """The state the instructions of a phase need; it surrounds the phase."""
    found = dict.fromkeys(emissions.of(c.instruction).instruction.state for c in calls(nodes))
    found.pop("", None)
    if len(found) > 1:
        raise CodegenError(
            f"instructions that need the states {' and '.join(found)} meet between two barriers",
            why="only one state can be entered at a time",
            hint="a plan that separates them by a barrier",
        )
    return tuple(found)
