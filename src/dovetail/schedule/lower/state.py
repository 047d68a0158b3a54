"""What is known at a place of the plan while it becomes a nest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from dovetail.base.dtypes import DType
from dovetail.base.errors import PlanError
from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.interval import interval
from dovetail.ir.nest import Alloc, Buffer, Node
from dovetail.ir.plan import Digit, Leaf, PlanNode
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.schedule.repertoire import Repertoire
from dovetail.targets.model import Target

Pair = tuple[int, str]
"""A loop of a statement."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is left of a loop: ``extent`` iterations from ``base``. ``valid`` (lanes only): how many of them exist,

    at least ``sure``."""

    base: Index
    extent: Index
    valid: Index | None = None
    sure: int = 1

    @property
    def size(self) -> int | None:
        """The extent where it is known now."""
        return self.extent.const if self.extent.is_constant else None


@dataclass(frozen=True, slots=True)
class InRegisters:
    """A tensor held in registers: cell = (index - base), the lane dimension in units of ``width``.

    ``partial``: each cell holds ``width`` partial results of one element."""

    buffer: str
    dtype: DType
    base: tuple[Index, ...]
    shape: tuple[int, ...]
    lane_dim: int | None
    width: int
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Following:
    """What the next round of a tile will copy of a tensor: ``extents`` elements from ``base`` on. The copy of this
    round is read by statements under the tile, in all of their rounds but the ``outside`` outermost ones."""

    tensor: str
    base: tuple[Index, ...]
    extents: tuple[int, ...]
    outside: int


@dataclass(frozen=True, slots=True)
class InMemory:
    """A tensor held in memory with another layout; ``padded``: whole vectors may be read past its end; ``fetched``:
    it is asked for ahead of its use. ``following``: so is what will be copied next."""

    buffer: str
    base: tuple[Index, ...]
    digits: tuple[Digit, ...]
    padded: bool = False
    fetched: bool = False
    following: Following | None = None


Held = InRegisters | InMemory


@dataclass(frozen=True, slots=True)
class Turn:
    """One round of a tile around a statement: ``start`` iterations into the ``extent`` that ``loop`` has from ``begin``
    on."""

    loop: str
    begin: Index
    start: Index
    step: int
    extent: int
    varies: bool = False
    """The extent is what it is likely to be; there may be more rounds, or fewer."""

    @property
    def rounds(self) -> int:
        return -(-self.extent // self.step)


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """Partial results of ``tensor`` that become ``whole`` once the statement of ``leaf`` has run in ``body``.

    Partial are lanes (``whole`` has none), or one round of several (``whole`` is ``held``)."""

    body: tuple[PlanNode, ...]
    leaf: Leaf
    tensor: str
    held: InRegisters
    whole: InRegisters


@dataclass(frozen=True, slots=True)
class State:
    """Immutable; ``with_...`` gives the state further in."""

    spans: Mapping[Pair, Span]
    ranges: Mapping[str, tuple[int, int]]
    conditions: Mapping[int, tuple[Condition, ...]]
    held: Mapping[str, Held] = field(default_factory=dict)
    parallel: bool = False
    first: Mapping[int, tuple[Index, ...]] = field(default_factory=dict)
    """Per statement: counters of outer reduction tiles; all zero the first time an element is met."""
    joins: tuple[Join, ...] = ()
    late: Mapping[int, tuple[Condition, ...]] = field(default_factory=dict)
    """Per statement: true in the last round of tiles around it that it does not take part in."""

    turns: Mapping[int, tuple[Turn, ...]] = field(default_factory=dict)
    """Per statement: the rounds it is in, outermost first; of tiles over a known number of iterations."""
    copies: int = 1
    """How often what is here stands in the code, since loops around it were taken apart."""

    def with_spans(self, changed: Mapping[Pair, Span]) -> State:
        return replace(self, spans={**self.spans, **changed})

    def with_range(self, var: str, low: int, high: int) -> State:
        return replace(self, ranges={**self.ranges, var: (low, max(low, high))})

    def with_held(self, tensor: str, held: Held) -> State:
        return replace(self, held={**self.held, tensor: held})

    def with_conditions(self, statement: int, conditions: tuple[Condition, ...]) -> State:
        return replace(self, conditions={**self.conditions, statement: conditions})

    def bases(self, statement: int) -> dict[str, Index]:
        """Every loop of a statement at the first iteration left of it."""
        return {loop: span.base for (s, loop), span in self.spans.items() if s == statement}

    def always(self, condition: Condition) -> bool:
        """True for all values of what is in it."""
        found = interval(condition.index, self.ranges)
        return found is not None and (found == (0, 0) if condition.equal else found[0] >= 0)

    def never(self, condition: Condition) -> bool:
        found = interval(condition.index, self.ranges)
        if found is None:
            return False
        return found[1] < 0 or (condition.equal and found[0] > 0)

    def condition_range(self, statement: int, condition: Condition) -> tuple[int, int] | None:
        """Range of a condition's index over everything that is left of the statement's loops."""
        index, ranges = condition.index, dict(self.ranges)
        values: dict[str, Index] = {}
        for name in index.names():
            span = self.spans.get((statement, name))
            if span is None:
                continue
            left = interval(span.extent, self.ranges)
            if left is None:
                return None
            ranges[f"{name}'"] = (0, max(0, left[1] - 1))
            values[name] = span.base + Index(((f"{name}'", 1),))
        return interval(index.substitute(values), ranges)


class Workshop:
    """What the lowering of one plan shares: the program, the target, and fresh names."""

    def __init__(self, program: Program, target: Target, instructions: Repertoire, number: int = 0) -> None:
        self.program = program
        self.target = target
        self.instructions = instructions
        self.statements: dict[int, Statement] = dict(enumerate(program.statements))
        self.dtypes: dict[str, DType] = dict(program.dtypes)
        self.strides: dict[str, tuple[Index | None, ...]] = {}
        self.padded_copies: set[int] = set()
        self.initialised: dict[str, Combine] = {}
        """Tensors accumulated in memory, set to their neutral element beforehand."""
        self._count = number * 1_000_000
        self._taken = {t.name for t in program.tensors} | {size.name for size in program.sizes}

    def likely(self, extent: Index) -> int | None:
        """What an extent is planned for that sizes decide alone; None where loops have a part in it."""
        sizes = {size.name: size.likely for size in self.program.sizes}
        return extent.evaluate(sizes) if extent.is_affine and extent.names() <= sizes.keys() else None

    def starts_in_memory(self, tensor: str) -> bool:
        """An ``op=`` into ``tensor`` goes on from what is in memory."""
        declared = next((t for t in self.program.tensors if t.name == tensor), None)
        if tensor in self.initialised or (declared is not None and declared.role is Role.INOUT):
            return True
        return any(s.combine is Combine.SET for s in self.program.statements if s.out.tensor == tensor)

    def fresh(self, prefix: str) -> str:
        """A name that nothing has: neither one made before nor a tensor or size of the program."""
        self._count += 1
        while f"{prefix}{self._count}" in self._taken:
            self._count += 1
        return f"{prefix}{self._count}"

    def add_statement(self, statement: Statement) -> int:
        """A statement of the compiler's own (a copy, an initialisation)."""
        number = 1_000_000 + len(self.statements)
        self.statements[number] = statement
        return number

    def needed_outside(self, tensor: str, statements: set[int]) -> bool:
        """Anyone but ``statements`` looks at ``tensor``."""
        if self.program.tensor(tensor).role in (Role.OUT, Role.INOUT):
            return True
        return any(
            access.tensor == tensor
            for number, statement in enumerate(self.program.statements)
            if number not in statements
            for access in statement.reads()
        )

    @property
    def registers(self) -> str:
        memory = self.target.registers
        if memory is None:
            raise PlanError(f"target '{self.target.name}' has no registers", hint="give it a memory of kind registers")
        return memory.name


def alloc(buffers: list[Buffer], body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` with ``buffers`` alive around it."""
    for buffer in reversed(buffers):
        body = (Alloc(buffer, body),)
    return body


def points(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All points of a box, last dimension fastest."""
    return product(*map(range, sizes))


def row_major(shape: tuple[Index, ...]) -> tuple[Index | None, ...]:
    """Strides in elements; None where a stride is a product of run-time sizes."""
    strides: list[Index | None] = []
    stride: Index | None = constant(1)
    for extent in reversed(shape):
        strides.append(stride)
        if stride is None:
            continue
        known = extent.is_constant or stride.is_constant
        stride = (stride * extent.const if extent.is_constant else extent * stride.const) if known else None
    return tuple(reversed(strides))
