"""Fits and misfits: where an instruction can do a part of a program, and why it cannot.

A fit covers one node of a statement's value, or the whole statement with its ``op=``. Its loops bind every loop of
the instruction to none, one or several (fused, outermost first) loops of the statement; its operands bind every
tensor of the instruction to what the program has in that place. Tile sizes are the plan's business: two fits are
equal when bindings and adapters are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.ir.expr import Expr
from dovetail.ir.index import Access

WHOLE: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopBinding:
    """Instruction loop ``needle`` runs over ``loops`` of the statement, in parts; none: it runs once, padded."""

    needle: str
    loops: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.needle} = {'*'.join(self.loops) if self.loops else '1'}"


@dataclass(frozen=True, slots=True)
class OperandBinding:
    """Instruction operand ``needle`` holds ``value``: an element of a tensor, or a value put into a temporary."""

    needle: str
    value: Expr | Access

    def __str__(self) -> str:
        return f"{self.needle} = {self.value}"


@dataclass(frozen=True, slots=True)
class Adapter:
    """What an operand needs before the instruction can take it.

    ``kind`` is pack (another layout), transpose, broadcast (one value for all points of an instruction loop),
    pad (extents not multiples of the instruction's), zero-fill (points the guard removes), convert (dtype).
    """

    operand: str
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.operand}{f' ({self.detail})' if self.detail else ''}"


@dataclass(frozen=True, slots=True)
class Fit:
    """One way an instruction does a part of a statement."""

    statement: int
    node: tuple[int, ...] | None
    """Path of the covered node in the value (() is the value itself); None when ``op=`` is covered too."""
    instruction: str
    loops: tuple[LoopBinding, ...]
    operands: tuple[OperandBinding, ...]
    adapters: tuple[Adapter, ...] = ()
    transformations: tuple[str, ...] = field(default=(), compare=False)
    """split, fuse, reorder, broadcast, pad, commute, insert temporary, insert identity: how it came to fit."""

    def __str__(self) -> str:
        bound = ", ".join(map(str, self.loops))
        return f"{self.instruction} on statement {self.statement} with {bound or 'no loops'}"


@dataclass(frozen=True, slots=True)
class Misfit:
    """The smallest reason why an instruction does not fit a statement, and the cheapest change that would help."""

    statement: int
    instruction: str
    reason: str
    program_line: str
    target_field: str
    repair: str = ""

    def __str__(self) -> str:
        text = f"{self.instruction}  {self.reason}"
        return f"{text}\n  try: {self.repair}" if self.repair else text


@dataclass(frozen=True, slots=True)
class MappingResult:
    """Everything a search found, in a fixed order, and what stopped it ("" when nothing did)."""

    fits: tuple[Fit, ...]
    misfits: tuple[Misfit, ...]
    stopped_by: str = ""
