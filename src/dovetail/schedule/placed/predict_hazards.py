"""Which buffers make calls wait, and the numbers of the state that say until when.

Calls leave hazards: what they write is not there yet, what they read must not be overwritten. Copies that were started
leave none, their tokens are waited for. A buffer of which all calls go through one pipe needs no number, since that
does one after the other; one that loops go through has two, for the place they come to first and for the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dovetail.ir.index import Access, Index
from dovetail.ir.nest import Call, Cell, Nest, Operand, Place, Start, walk
from dovetail.targets.model import Instruction, Target

NONE = -1


@dataclass(slots=True)
class Hazards:
    """The numbers of a buffer; ``NONE`` where nothing has to wait."""

    written: int = NONE
    """When what is written is there."""
    written_first: int = NONE
    """The same of the place that loops come to first."""
    read: int = NONE
    """When what is read may be overwritten."""
    read_first: int = NONE

    def pairs(self) -> Iterator[tuple[int, int]]:
        """First place and last."""
        if self.written_first != NONE:
            yield self.written_first, self.written
        if self.read_first != NONE:
            yield self.read_first, self.read

    def numbers(self) -> Iterator[int]:
        return (n for n in (self.written, self.written_first, self.read, self.read_first) if n != NONE)


def number_hazards(nest: Nest, target: Target, first: int) -> tuple[dict[str, Hazards], int]:
    """The hazards of each buffer, numbered from ``first``, and the next free number."""
    uses: dict[str, list[_Use]] = {}
    for node in walk(nest.body):
        call = node.call if isinstance(node, Start) else node
        if isinstance(call, Call):
            instruction = target.instruction(call.instruction)
            for operand, _, writes in operands(call, instruction):
                uses.setdefault(operand.buffer, []).append(_Use(instruction, writes, bool(moving(operand))))
    found: dict[str, Hazards] = {}
    numbers = _Numbers(first)
    for buffer, all_uses in uses.items():
        found[buffer] = _hazards(all_uses, numbers)
    return found, numbers.following


def operands(call: Call, instruction: Instruction) -> Iterator[tuple[Place | Cell, str, bool]]:
    """Each operand in memory or registers, its layout, and whether it is written."""
    out = instruction.program.statements[-1].out.tensor
    for operand, wanted in zip(call.operands, instruction.operands, strict=True):
        if isinstance(operand, Place | Cell):
            yield operand, wanted.layout, wanted.name == out


def moving(operand: Operand, known: dict[str, Index] | None = None) -> frozenset[str]:
    """The loops with which a place moves; not those of which only a remainder or quotient counts.

    ``known``: what loops stand for that are counted from somewhere else."""
    found: set[str] = set()
    others: set[str] = set()
    for index in operand.indices if isinstance(operand, Place) else ():
        factors: dict[str, int] = {}
        for atom, factor in index.terms:
            start = known.get(atom) if known and isinstance(atom, str) else None
            for inner, c in start.terms if start is not None else ((atom, 1),):
                if isinstance(inner, str):
                    factors[inner] = factors.get(inner, 0) + factor * c
                else:
                    others |= inner.names() if isinstance(inner, Access) else inner.index.names()
        found |= {name for name, factor in factors.items() if factor}
    return frozenset(found - others)


@dataclass(frozen=True, slots=True)
class _Use:
    instruction: Instruction
    writes: bool
    moves: bool

    @property
    def pipe(self) -> tuple[bool, str]:
        return self.instruction.is_async, self.instruction.unit

    @property
    def is_late(self) -> bool:
        """Its result comes after its pipe is free."""
        return self.instruction.latency != self.instruction.cycles


@dataclass(slots=True)
class _Numbers:
    following: int = field(default=0)

    def take(self) -> int:
        self.following += 1
        return self.following - 1


def _hazards(uses: list[_Use], numbers: _Numbers) -> Hazards:
    found = Hazards()
    plain = [use for use in uses if not use.instruction.is_async]
    writers, readers = [use for use in plain if use.writes], [use for use in plain if not use.writes]
    if any(_waits(writer, other) for writer in writers for other in uses):
        found.written = numbers.take()
        if any(w.moves and u.moves and _waits(w, u) for w in writers for u in uses):
            found.written_first = numbers.take()
    if any(u.writes and u.pipe != reader.pipe for reader in readers for u in uses):
        found.read = numbers.take()
        if any(r.moves and u.moves and u.writes and u.pipe != r.pipe for r in readers for u in uses):
            found.read_first = numbers.take()
    return found


def _waits(writer: _Use, other: _Use) -> bool:
    """Whether the second may have to wait for what the first wrote although its pipe is free."""
    return writer.is_late or writer.pipe != other.pipe
