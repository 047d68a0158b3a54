"""The program language: what a model computes and what a machine's instruction computes.

    program = decl* stmt*
    decl    = ("in" | "const" | "out" | "inout" | "temp") name ":" dtype "[" extent, ... "]"
            | "size" name "in" lo ".." hi ["about" usual]
    stmt    = ["seq" loops ":"] ["for" loops ["where" condition, ...] ":"] access op expr
    loops   = name "<" extent, ...
    op      = "=" | "+=" | "*=" | "max=" | "min="

``for`` has no order. ``seq`` has one: neighbouring statements with the same ``seq`` loops run together, all of
them at step t before any at step t + 1, and may read what earlier steps wrote. ``out`` and ``temp`` of an ``op=``
start at its neutral element, ``inout`` at its value. Where a condition is false the point is not there.
Each element is written once, or by statements that all use the same ``op=``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from dovetail.base.dtypes import DType, Kind
from dovetail.ir.expr import Expr, names, reads, rename, substitute
from dovetail.ir.index import Access, Condition, Index


class Role(Enum):
    """Who owns a tensor and who writes it."""

    IN = "in"
    CONST = "const"
    OUT = "out"
    INOUT = "inout"
    TEMP = "temp"


class Combine(Enum):
    """How a statement's value meets what is there."""

    SET = "="
    ADD = "+="
    MUL = "*="
    MAX = "max="
    MIN = "min="

    @property
    def function(self) -> str | None:
        """The primitive that joins two contributions; None for plain assignment."""
        return _FUNCTIONS.get(self)

    def neutral(self, dtype: DType) -> int | float | bool:
        """What an ``op=`` starts from."""
        if self in (Combine.ADD, Combine.MUL):
            number = 0 if self is Combine.ADD else 1
            return bool(number) if dtype.kind is Kind.BOOL else float(number) if dtype.is_float else number
        if dtype.is_float:
            return float("-inf") if self is Combine.MAX else float("inf")
        extreme = dtype.low if self is Combine.MAX else dtype.high
        return bool(extreme) if dtype.kind is Kind.BOOL else extreme


_FUNCTIONS = {Combine.ADD: "add", Combine.MUL: "mul", Combine.MAX: "max", Combine.MIN: "min"}


@dataclass(frozen=True, slots=True)
class Loop:
    """``name < extent``; the extent is a number or affine in sizes."""

    name: str
    extent: Index

    def __str__(self) -> str:
        return f"{self.name}<{self.extent}"


@dataclass(frozen=True, slots=True)
class Size:
    """A run-time extent, the range it is promised to lie in, and what it usually is; 0: nobody knows."""

    name: str
    low: int
    high: int
    usual: int = 0

    def __str__(self) -> str:
        return f"size {self.name} in {self.low}..{self.high}{f' about {self.usual}' if self.usual else ''}"

    @property
    def likely(self) -> int:
        """The value to plan for."""
        return max(self.low, min(self.high, self.usual or (self.low + self.high) // 2))


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named array."""

    role: Role
    name: str
    dtype: DType
    shape: tuple[Index, ...]

    def __str__(self) -> str:
        return f"{self.role.value} {self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Statement:
    """``out op= value`` at every point of ``loops``; loops absent from ``out`` are reduced.

    One statement describes a layer of a model or an instruction of a machine.
    Mapping is finding where the second fits inside the first.
    """

    loops: tuple[Loop, ...]
    out: Access
    combine: Combine
    value: Expr
    where: tuple[Condition, ...] = ()
    seq: tuple[Loop, ...] = ()
    line: int = field(default=0, compare=False)
    """Line of the source text, for messages."""

    def __str__(self) -> str:
        text = f"seq {', '.join(map(str, self.seq))}: " if self.seq else ""
        if self.loops or self.where:
            text += f"for {', '.join(map(str, self.loops))}".rstrip()
            text += f" where {', '.join(map(str, self.where))}" if self.where else ""
            text += ": "
        return f"{text}{self.out} {self.combine.value} {self.value}"

    @property
    def place(self) -> str:
        """Where a message points to."""
        return f"line {self.line}: {self}" if self.line else str(self)

    @property
    def all_loops(self) -> tuple[Loop, ...]:
        return self.seq + self.loops

    @property
    def reduced(self) -> tuple[Loop, ...]:
        """Loops that do not occur in ``out``."""
        used = self.out.names()
        return tuple(loop for loop in self.loops if loop.name not in used)

    def reads(self) -> Iterator[Access]:
        """Everything read: operands, indirect indices of operands and of the output."""
        yield from self.out.reads()
        for condition in self.where:
            yield from condition.index.reads()
        yield from reads(self.value)

    def names(self) -> frozenset[str]:
        """Loops and sizes used in indices, conditions and the value (not in loop extents)."""
        inside = self.out.names() | names(self.value)
        return inside.union(*(c.names() for c in self.where))

    def substitute(self, values: Mapping[str, Index], loops: tuple[Loop, ...]) -> Statement:
        """The same work over ``loops``, with old loops replaced by indices over the new ones."""
        return Statement(
            loops,
            self.out.substitute(values),
            self.combine,
            substitute(self.value, values),
            tuple(c.substitute(values) for c in self.where),
            self.seq,
            self.line,
        )

    def rename(self, tensors: Mapping[str, str]) -> Statement:
        """The same work on renamed tensors."""
        where = tuple(Condition(c.index.rename(tensors), c.equal) for c in self.where)
        value = rename(self.value, tensors)
        return Statement(self.loops, self.out.rename(tensors), self.combine, value, where, self.seq, self.line)


@dataclass(frozen=True)
class Program:
    """Declarations and statements. ``parse`` builds one from text, ``verify`` says whether it means anything.

    Not slotted: its text, and what a name stands for, are kept when they are first asked for.
    """

    tensors: tuple[Tensor, ...]
    statements: tuple[Statement, ...]
    sizes: tuple[Size, ...] = ()

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return "\n".join(map(str, (*self.sizes, *self.tensors, *self.statements)))

    def tensor(self, name: str) -> Tensor:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, Tensor]:
        return {t.name: t for t in reversed(self.tensors)}

    @cached_property
    def dtypes(self) -> dict[str, DType]:
        return {t.name: t.dtype for t in self.tensors}

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Tensors the caller gives, in order: in, const and inout."""
        return tuple(t for t in self.tensors if t.role in (Role.IN, Role.CONST, Role.INOUT))

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Tensors the caller gets, in order: out and inout."""
        return tuple(t for t in self.tensors if t.role in (Role.OUT, Role.INOUT))

    @property
    def temps(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors if t.role is Role.TEMP)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Statement numbers, neighbours with the same ``seq`` loops together."""
        groups: list[list[int]] = []
        for number, statement in enumerate(self.statements):
            before = self.statements[number - 1].seq if number else ()
            if statement.seq and statement.seq == before:
                groups[-1].append(number)
            else:
                groups.append([number])
        return tuple(map(tuple, groups))


def touch(one: Iterable[Statement], other: Iterable[Statement]) -> bool:
    """Whether one of two groups of statements writes a tensor that the other reads or writes."""
    mine, theirs = tuple(one), tuple(other)
    made, wanted = {s.out.tensor for s in mine}, {s.out.tensor for s in theirs}
    read, needed = {a.tensor for s in mine for a in s.reads()}, {a.tensor for s in theirs for a in s.reads()}
    return not (made.isdisjoint(wanted | needed) and wanted.isdisjoint(read))
