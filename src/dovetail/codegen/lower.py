"""Nest -> LLVM module.

    void k_<hash>(i32 unit, i32 units, ptr words)

is run by every unit at once. ``words`` points to 64-bit words: the arguments' addresses in order, the sizes, the
shared arena, the private arenas, the bytes from one unit's private arena to the next one's, and the address of two
status words with counters behind them (``shares``). These must be zero before; after, word 0 is zero or
1 + (buffer number << 8 | dimension) of an indirect index that left its buffer, and word 1 that index. Arenas start
at multiples of 64 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from dovetail.base.errors import CodegenError
from dovetail.codegen.arena import Arena
from dovetail.codegen.arithmetic import Arithmetic
from dovetail.codegen.buffers import MemoryBuffer
from dovetail.codegen.control import Control
from dovetail.codegen.emission import Emissions
from dovetail.codegen.function_text import FunctionText
from dovetail.codegen.phase import Outside, Phase, lower_phase
from dovetail.codegen.shares import TAKE
from dovetail.ir.index import Access
from dovetail.ir.nest import Alloc, Barrier, Loop, Nest, Node, Parallel, When, walk
from dovetail.targets.model import MemoryKind, Target

_REPORT = """\
define internal void @report(ptr %status, i64 %code, i64 %value) cold noinline nounwind {
  %pair = cmpxchg ptr %status, i64 0, i64 %code monotonic monotonic
  %first = extractvalue { i64, i1 } %pair, 1
  br i1 %first, label %keep, label %done
keep:
  %second = getelementptr i8, ptr %status, i64 8
  store i64 %value, ptr %second
  br label %done
done:
  ret void
}"""
_ENTRY = "@entry_point"


@dataclass(frozen=True, slots=True)
class LlvmModule:
    """A kernel as LLVM text, and what its caller must hand in."""

    text: str
    entry: str
    shared: Arena
    private: Arena
    buffers: tuple[str, ...]
    """Names of tensors (or buffers) by the number that status words use."""
    beside: tuple[tuple[str, str], ...] = ()
    """Symbols that it leaves open beside ``dt_barrier``, and the files that define them."""


def lower(nest: Nest, target: Target) -> LlvmModule:
    """The LLVM module that runs ``nest`` on ``target``."""
    memory = _memory_buffers(nest, target)
    emissions = Emissions(target)
    entry = _EntryWriter(nest, target, memory, emissions)
    entry.write()
    parts = [emissions.text(), *(p.text for p in entry.phases), entry.text()]
    parts.append(_REPORT if any("@report(" in p for p in parts) else "")
    parts.append(TAKE if any("@take(" in p for p in parts) else "")
    if any("@dt_barrier(" in p for p in parts):
        parts.append("declare extern_weak void @dt_barrier(i32)")
    text = "\n".join(p for p in parts if p) + "\n"
    symbol = "k_" + sha256(f"{target.llvm}\n{text}".encode()).hexdigest()[:16]
    names = tuple(b.buffer.tensor or b.buffer.name for b in memory.values())
    whole = text.replace(_ENTRY, f"@{symbol}")
    return LlvmModule(whole, symbol, entry.shared, entry.private, names, emissions.beside())


class _EntryWriter:
    """Writes the entry point: finds the buffers, then runs phases, with barriers between them."""

    def __init__(self, nest: Nest, target: Target, memory: Mapping[str, MemoryBuffer], emissions: Emissions) -> None:
        self.nest = nest
        self.target = target
        self.memory = memory
        self.emissions = emissions
        self.shared = Arena(tuple(b.buffer for b in memory.values() if b.private is False))
        self.private = Arena(tuple(b.buffer for b in memory.values() if b.private is True))
        self.function = FunctionText()
        self.arithmetic = Arithmetic(self.function, {}, _no_reads)
        self.control = Control(self.arithmetic, self.lower)
        self.phases: list[Phase] = []
        self.pointers: dict[str, str] = {}

    def text(self) -> str:
        head = f"define void {_ENTRY}(i32 %unit.i32, i32 %units.i32, ptr %words) nounwind {{\nentry:"
        return f"{head}\n{self.function.text()}\n  ret void\n}}"

    def write(self) -> None:
        header = self.function.header
        header.append("  %unit = zext i32 %unit.i32 to i64")
        header.append("  %units = zext i32 %units.i32 to i64")
        for number, argument in enumerate(self.nest.arguments):
            self.pointers[argument.name] = self._word(number, "ptr")
        count = len(self.nest.arguments)
        for number, size in enumerate(self.nest.sizes):
            self.arithmetic.variables[size] = self._word(count + number, "i64")
        count += len(self.nest.sizes)
        shared, private, stride = self._word(count, "ptr"), self._word(count + 1, "ptr"), self._word(count + 2, "i64")
        header.append(f"  %status = load ptr, ptr {self._word_pointer(count + 3)}")
        share = self.arithmetic.multiply(stride, "%unit")
        mine = self.function.pure(f"getelementptr i8, ptr {private}, i64 {share}", share)
        self.pointers |= self.shared.pointers(shared, self.arithmetic)
        self.pointers |= self.private.pointers(mine, self.arithmetic)
        self.lower(self.nest.body)

    def lower(self, nodes: tuple[Node, ...]) -> None:
        """Neighbours without a barrier in them become one phase."""
        group: list[Node] = []
        for node in nodes:
            if not _has_barrier(node):
                group.append(node)
                continue
            self._phase(tuple(group))
            group = []
            self._node(node)
        self._phase(tuple(group))

    def _phase(self, nodes: tuple[Node, ...]) -> None:
        if not nodes:
            return
        phase = lower_phase(f"p{len(self.phases)}", nodes, Outside(self.memory, self.arithmetic), self.emissions)
        self.phases.append(phase)
        self.function.do(phase.call(self.pointers, self.arithmetic.variables))

    def _node(self, node: Node) -> None:
        if isinstance(node, Barrier):
            self._barrier()
        elif isinstance(node, Loop):
            self.control.loop(node)
        elif isinstance(node, When):
            self.control.when(node)
        elif isinstance(node, Alloc):
            if self.target.memory(node.buffer.memory).kind is MemoryKind.REGISTERS:
                raise CodegenError(f"registers {node.buffer} are alive across a barrier", hint="allocate them after it")
            self.lower(node.body)
        else:
            raise CodegenError("a barrier inside a parallel", why="not all units come to it", hint="put it after")

    def _barrier(self) -> None:
        """Skipped by a single unit, which then needs no thread pool."""
        several, after = self.function.fresh("l"), self.function.fresh("l")
        test = self.function.pure("icmp ugt i32 %units.i32, 1")
        self.function.do(f"br i1 {test}, label {several}, label {after}")
        self.function.start_block(several)
        self.function.do("call void @dt_barrier(i32 %units.i32)")
        self.function.do(f"br label {after}")
        self.function.start_block(after)

    def _word(self, number: int, kind: str) -> str:
        return self.function.pure(f"load {kind}, ptr {self._word_pointer(number)}")

    def _word_pointer(self, number: int) -> str:
        name = f"%word{number}"
        self.function.header.append(f"  {name} = getelementptr i64, ptr %words, i64 {number}")
        return name


def _memory_buffers(nest: Nest, target: Target) -> dict[str, MemoryBuffer]:
    """Arguments, then allocated buffers that are not registers, numbered."""
    found = {b.name: MemoryBuffer(b, number, None) for number, b in enumerate(nest.arguments)}

    def visit(nodes: tuple[Node, ...], private: bool) -> None:
        for node in nodes:
            if isinstance(node, Alloc) and target.memory(node.buffer.memory).kind is not MemoryKind.REGISTERS:
                _check_alloc(node, nest, found)
                found[node.buffer.name] = MemoryBuffer(node.buffer, len(found), private)
            if isinstance(node, Loop | Parallel | Alloc | When):
                visit(node.body, private or isinstance(node, Parallel))
            if isinstance(node, When):
                visit(node.otherwise, private)

    visit(nest.body, False)
    return found


def _check_alloc(node: Alloc, nest: Nest, found: Mapping[str, MemoryBuffer]) -> None:
    if node.buffer.name in found:
        raise CodegenError(f"two buffers are called '{node.buffer.name}'")
    for extent in (*node.buffer.shape, *node.buffer.strides):
        loops = extent.names() - set(nest.sizes)
        if loops or extent.is_indirect:
            why = f"{extent} is no number before the loops run"
            raise CodegenError(f"buffer {node.buffer} has no size", why=why, hint="its largest extent")


def _has_barrier(node: Node) -> bool:
    return any(isinstance(n, Barrier) for n in walk((node,)))


def _no_reads(access: Access) -> str:
    raise CodegenError(f"indirect read {access} in a bound around a barrier", hint="read it inside a place")
