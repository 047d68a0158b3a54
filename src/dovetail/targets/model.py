"""A target as data: units, memories, layouts, instructions. ``load`` builds it from TOML.

An instruction is a ``Program`` of one statement over its operands, plus where the operands live and what to emit.
Its parameters (``n`` in ``for l<n: r[l] = m[l]``) are the sizes of that program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Protocol

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
    runs: str = ""
    """Name of the target whose scalar instructions it runs: a processor beside the machine, for what nothing fits."""


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
    ahead_cycles: float = 0.0
    """A cache: how long before its use code should ask for a line, where rows go on at many places; 0: it brings what
    follows by itself."""
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
    along: int | None = None
    """Dimension of that unit's grid along which it does; None: the whole grid."""
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
    relax: str = ""
    """The assembler instruction that a thread waiting in a loop runs; empty when the machine has none."""


class Choice(Protocol):
    """An instruction that has a name and dtypes already, and its program and emission once they are asked for."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> tuple[str, ...]: ...

    @property
    def dtypes(self) -> frozenset[str]:
        """Of all its operands."""
        ...

    @property
    def functions(self) -> frozenset[str]:
        """Primitives it applies; "cast" and "bitcast" too."""
        ...

    @property
    def most_loops(self) -> int:
        """No fewer than the loops of its program."""
        ...

    @property
    def is_external(self) -> bool:
        """It is a call of a symbol that others define."""
        ...

    def build(self) -> Instruction: ...


class InstructionSet(Mapping[str, Instruction]):
    """Instructions by name, in the target file's order; each is built when it is first asked for."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._choices = {choice.name: choice for choice in choices}
        self._built: dict[str, Instruction] = {}

    def __getitem__(self, name: str) -> Instruction:
        found = self._built.get(name)
        if found is None:
            found = self._built[name] = self._choices[name].build()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._choices)

    def __len__(self) -> int:
        return len(self._choices)

    def __contains__(self, name: object) -> bool:
        return name in self._choices

    def over(self, functions: Set[str], dtypes: Set[str]) -> tuple[Instruction, ...]:
        """Those that apply no other primitives and have operands of no other dtypes."""
        return tuple(
            self[name]
            for name, choice in self._choices.items()
            if choice.dtypes <= dtypes and choice.functions <= functions
        )

    def with_loops(self, least: int) -> tuple[Instruction, ...]:
        """Those whose program has at least so many loops."""
        found = (self[name] for name, choice in self._choices.items() if choice.most_loops >= least)
        return tuple(i for i in found if len(i.program.statements[0].loops) >= least)

    @cached_property
    def external(self) -> tuple[Instruction, ...]:
        """Those that call a symbol."""
        return tuple(self[name] for name, choice in self._choices.items() if choice.is_external)

    @cached_property
    def features(self) -> frozenset[str]:
        """All that some instruction needs."""
        return frozenset(feature for choice in self._choices.values() for feature in choice.features)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A machine. ``parents`` are the targets it inherits from, nearest first. Equal when digests are."""

    name: str
    doc: str
    units: tuple[Unit, ...]
    memories: tuple[Memory, ...]
    by_name: Mapping[str, Instruction] = field(repr=False)
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Target) or not self.digest:
            return self is other
        return (self.name, self.digest) == (other.name, other.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All of them; builds what has not been asked for yet."""
        return tuple(self.by_name.values())

    def instructions_for(self, functions: Set[str], dtypes: Set[str]) -> tuple[Instruction, ...]:
        """The instructions that apply only these primitives ("cast" and "bitcast" too) to only these dtypes.

        Building a few dozen of a target's two thousand instructions is what makes a small program quick to compile.
        """
        if isinstance(self.by_name, InstructionSet):
            return self.by_name.over(functions, dtypes)
        return self.instructions

    @property
    def tile_instructions(self) -> tuple[Instruction, ...]:
        """Instructions of two or more loops whose operands all lie in main memory: microkernels and their like.

        Finding out that there are none takes microseconds."""
        several = self.by_name.with_loops(2) if isinstance(self.by_name, InstructionSet) else self.instructions
        main = self.main.name
        return tuple(
            i
            for i in several
            if len(i.program.statements[0].loops) > 1 and all(o.memory == main for o in i.operands) and not i.is_async
        )

    @property
    def external_instructions(self) -> tuple[Instruction, ...]:
        """Instructions that are calls of symbols outside generated code."""
        if isinstance(self.by_name, InstructionSet):
            return self.by_name.external
        return tuple(i for i in self.instructions if i.call)

    def instruction(self, name: str) -> Instruction:
        return self.by_name[name]

    @property
    def features(self) -> frozenset[str]:
        """Everything a machine must have to run its code, without + or -."""
        wanted = {f.removeprefix("+") for f in self.llvm.features if not f.startswith("-")} if self.llvm else set()
        instructions = self.by_name if isinstance(self.by_name, InstructionSet) else None
        named = {f for i in self.instructions for f in i.features} if instructions is None else instructions.features
        return frozenset(wanted | named)

    def memory(self, name: str) -> Memory:
        return next(m for m in self.memories if m.name == name)

    def unit(self, name: str) -> Unit:
        return next(u for u in self.units if u.name == name)

    @property
    def host(self) -> Unit | None:
        """The unit that runs what no instruction fits, where the machine has one."""
        return next((u for u in self.units if u.runs), None)

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
