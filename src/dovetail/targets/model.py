"""A target as data: units, memories, layouts, instructions. ``load`` builds it from TOML.

An instruction is a ``Program`` of one statement over its operands, plus where the operands live and what to emit.
Its parameters (``n`` in ``for l<n: r[l] = m[l]``) are the sizes of that program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Read
from dovetail.ir.index import Condition, Index
from dovetail.ir.program import Combine, Program


class MemoryKind(Enum):
    """How data gets into a memory."""

    MAIN = "main"
    """Where tensors live."""
    CACHE = "cache"
    """Fills itself."""
    SCRATCHPAD = "scratchpad"
    """Filled by copy instructions."""
    REGISTERS = "registers"
    """Operands of instructions by value; the innermost memory."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Something that works in parallel with others of its kind; listed outermost first."""

    name: str
    count: tuple[int, ...]
    """A grid, e.g. (8, 8); (16,) for 16 cores."""
    index: str = ""
    """LLVM intrinsic that gives the unit's number, where there is one."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A place for data. ``bytes`` and ``bytes_per_cycle`` are per unit named ``per`` (or for all when empty)."""

    name: str
    kind: MemoryKind
    bytes: int
    per: str = ""
    bytes_per_cycle: float = 0.0
    latency_cycles: float = 0.0
    startup_cycles: float = 0.0
    align: int = 1
    count: int = 0
    """Registers: how many."""
    address_space: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """``[k, n] -> [k // 4, 4 * n + k % 4]``: from element to place; ``xors`` pairs are swizzles a ^= b."""

    name: str
    elements: tuple[str, ...]
    units: tuple[Index, ...]
    places: tuple[Index, ...]
    xors: tuple[tuple[int, Index], ...] = ()


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of an instruction: a tensor of its program, and where it lives."""

    name: str
    dtype: DType
    memory: str
    layout: str = ""
    strides: tuple[int | str, ...] = ()
    """Memory operands: element strides per dimension; a name is passed at run time as i64. Dense when empty."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One thing a machine can do."""

    name: str
    program: Program
    operands: tuple[Operand, ...]
    constraints: tuple[Condition, ...] = ()
    """On its parameters: ``m % 4 == 0`` and the like."""
    cycles: str = "1"
    """Issue cost: a number or an expression of the parameters."""
    latency: str = "1"
    unit: str = ""
    features: tuple[str, ...] = ()
    emit: str = ""
    """Body of an LLVM function; empty on a simulator target."""
    declares: tuple[str, ...] = ()
    """LLVM declarations the body needs."""
    call: str = ""
    """Symbol in ``object``, C calling convention, instead of ``emit``."""
    object: Path | None = None
    state: str = ""
    is_async: bool = False
    broadcast: str = ""
    """Unit over which a copy reaches all destinations at once."""
    source: str = ""
    """file: table, for messages."""
    family: str = ""
    """The table it was expanded from: "fma" for fma.f32x8; its own name where there are no siblings."""
    lanes: int = 1
    """L of the family."""
    ulps: float = 0
    """Largest error of an elementary function, in units in the last place; 0: as exact as its dtype."""

    def operand(self, name: str) -> Operand:
        return next(o for o in self.operands if o.name == name)

    @property
    def is_copy(self) -> bool:
        """Its program only moves elements."""
        statement = self.program.statements[0]
        return statement.combine is Combine.SET and isinstance(statement.value, Read)


@dataclass(frozen=True, slots=True)
class State:
    """Fragments that must surround some instructions, e.g. a tile configuration."""

    name: str
    enter: str
    leave: str
    declares: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Llvm:
    """How LLVM is to see the machine. Empty triple: the default of this host."""

    triple: str = ""
    cpu: str = ""
    features: tuple[str, ...] = ()
    calling_convention: str = ""
    definitions: str = ""
    """Functions and globals shared by emissions."""


@dataclass(frozen=True, slots=True)
class Target:
    """A machine. ``parents`` are the targets it inherits from, nearest first."""

    name: str
    doc: str
    units: tuple[Unit, ...]
    memories: tuple[Memory, ...]
    instructions: tuple[Instruction, ...]
    layouts: tuple[Layout, ...] = ()
    states: tuple[State, ...] = ()
    llvm: Llvm | None = None
    frequency_hz: float = 0.0
    vector_bytes: tuple[int, ...] = ()
    """Widths of vector registers that families expand to, narrowest first; () is scalar code only."""
    parents: tuple[str, ...] = ()
    path: str = ""
    reason: str = ""
    """Why this target stands for the host (detection only)."""
    digest: str = ""
    """Hash of everything that decides generated code."""
    by_name: dict[str, Instruction] = field(default_factory=dict, compare=False, repr=False)

    def instruction(self, name: str) -> Instruction:
        return self.by_name[name]

    def memory(self, name: str) -> Memory:
        return next(m for m in self.memories if m.name == name)

    def unit(self, name: str) -> Unit:
        return next(u for u in self.units if u.name == name)

    @property
    def main(self) -> Memory:
        return next(m for m in self.memories if m.kind is MemoryKind.MAIN)

    @property
    def registers(self) -> Memory | None:
        return next((m for m in self.memories if m.kind is MemoryKind.REGISTERS), None)

    @property
    def caches(self) -> tuple[Memory, ...]:
        """Innermost first."""
        found = [m for m in self.memories if m.kind is MemoryKind.CACHE]
        return tuple(sorted(found, key=lambda m: m.bytes))
