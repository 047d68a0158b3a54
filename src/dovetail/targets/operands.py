"""Operands and parameters of an instruction: their texts, roles and shapes.

    operand = dtype "@" memory ["[" stride, ... "]"] [":" layout]      -- "T @ memory [ld, 1]", "i8 @ tiles : vnni"
    stride  = int | name                                               -- a name is passed at run time as i64
    param   = int ".." (int | "L")
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import TargetError
from dovetail.ir.index import Access, Condition, Index, Quotient, Remainder, constant
from dovetail.ir.program import Combine, Role, Size, Statement
from dovetail.targets.tables import Entry, unknown

Roles = dict[str, Role]
_OPERAND = re.compile(
    r"\s*(?P<dtype>\w+)\s*@\s*(?P<memory>[\w.-]+)\s*(?:\[(?P<strides>[^\]]*)\])?\s*(?::\s*(?P<layout>[\w.-]+))?\s*"
)
_RANGE = re.compile(r"\s*(\d+)\s*\.\.\s*(\d+|L)\s*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TRIES = 200_000


@dataclass(frozen=True, slots=True)
class OperandText:
    """An operand before dtypes are chosen: ``dtype`` may be T or U."""

    dtype: str
    memory: str
    strides: tuple[int | str, ...]
    layout: str


@dataclass(frozen=True, slots=True)
class Range:
    """A parameter's range; no upper bound means L."""

    low: int
    high: int | None

    def at(self, name: str, lanes: int) -> Size:
        return Size(name, self.low, lanes if self.high is None else self.high)


def parse_operands(entry: Entry, memories: frozenset[str], layouts: Mapping[str, int]) -> dict[str, OperandText]:
    """The operands of an [[instruction]] table, in their order."""
    found = {}
    for name, text in entry.table("operands").items():
        where = f"{entry.where('operands')}, operand '{name}'"
        match = _OPERAND.fullmatch(text)
        if match is None:
            hint = 'dtype @ memory [strides] : layout, e.g. "f32 @ memory [ld, 1]"'
            raise TargetError(f"cannot read the operand '{text}'", where=where, hint=hint)
        dtype, memory, layout = match["dtype"], match["memory"], match["layout"] or ""
        if dtype not in DTYPES and dtype not in _placeholders(entry):
            raise unknown("dtype", dtype, {*DTYPES, *_placeholders(entry)}, where)
        if memory not in memories:
            raise unknown("memory", memory, memories, where)
        if layout and layout not in layouts:
            raise unknown("layout", layout, layouts, where)
        found[name] = OperandText(dtype, memory, _strides(match["strides"], where), layout)
    return found


def parse_params(entry: Entry) -> dict[str, Range]:
    """The parameters of an [[instruction]] table."""
    found = {}
    for name, text in entry.table("params").items():
        match = _RANGE.fullmatch(text)
        where = f"{entry.where('params')}, parameter '{name}'"
        if match is None:
            raise TargetError(f"cannot read the range '{text}'", where=where, hint='low..high, e.g. "1..64" or "1..L"')
        high = None if match[2] == "L" else int(match[2])
        if high is not None and high < int(match[1]):
            raise TargetError(f"the range '{text}' is empty", where=where)
        found[name] = Range(int(match[1]), high)
    return found


def roles_of(statement: Statement, operands: Mapping[str, OperandText], entry: Entry) -> Roles:
    """``out`` for =, ``inout`` for op=, ``in`` for what is read; every operand must occur."""
    roles: Roles = {access.tensor: Role.IN for access in statement.reads()}
    written = statement.out.tensor
    if written in roles:
        why = "an instruction that adds to what is there says so with +="
        raise TargetError(f"'{written}' is both read and written", where=entry.where("computes"), hint=why)
    roles[written] = Role.OUT if statement.combine is Combine.SET else Role.INOUT
    for name in operands:
        if name not in roles:
            raise TargetError(f"operand '{name}' does not occur in computes", where=entry.where("operands"))
    return roles


def infer_shapes(
    statement: Statement, operands: Mapping[str, OperandText], entry: Entry
) -> dict[str, tuple[Index, ...]]:
    """Each operand's extents: one more than the largest index that occurs."""
    extents = {loop.name: loop.extent for loop in statement.all_loops}
    shapes: dict[str, tuple[Index, ...]] = {}
    for access in (statement.out, *statement.reads()):
        shape = tuple(_largest(index, extents, entry) + 1 for index in access.indices)
        shapes[access.tensor] = _joined(access, shapes.get(access.tensor, shape), shape, entry)
    for name, operand in operands.items():
        if operand.strides and len(operand.strides) != len(shapes[name]):
            given, rank = len(operand.strides), len(shapes[name])
            raise TargetError(
                f"operand '{name}' has {rank} dimensions and {given} strides", where=entry.where("operands")
            )
    return shapes


def check_ranges(sizes: tuple[Size, ...], conditions: tuple[Condition, ...], entry: Entry) -> None:
    """Raise when no values of the parameters meet all conditions (as far as ``_TRIES`` tries can tell)."""
    names = sorted({name for condition in conditions for name in condition.names()})
    ranges = {size.name: range(size.low, size.high + 1) for size in sizes}
    points = itertools.islice(itertools.product(*(ranges[name] for name in names)), _TRIES + 1)
    tried = 0
    for point in points:
        tried += 1
        values = dict(zip(names, point, strict=True))
        if all(condition.holds(values) for condition in conditions):
            return
    if names and tried <= _TRIES:
        shown = ", ".join([*map(str, conditions), *map(str, sizes)])
        raise TargetError("no parameters meet these constraints", where=entry.where("where"), why=shown)


def _placeholders(entry: Entry) -> tuple[str, ...]:
    first = next(iter(entry.items("dtypes")), None)
    if first is None:
        return ()
    return ("T", "U") if isinstance(first, list) or "->" in str(first) else ("T",)


def _strides(text: str | None, where: str) -> tuple[int | str, ...]:
    if text is None:
        return ()
    found: list[int | str] = []
    for part in (part.strip() for part in text.split(",")):
        if not part.isdigit() and not _NAME.fullmatch(part):
            raise TargetError(f"cannot read the stride '{part}'", where=where, hint="a whole number or a name")
        found.append(int(part) if part.isdigit() else part)
    return tuple(found)


def _joined(access: Access, a: tuple[Index, ...], b: tuple[Index, ...], entry: Entry) -> tuple[Index, ...]:
    if len(a) != len(b):
        what = f"'{access.tensor}' is used with {len(a)} and with {len(b)} dimensions"
        raise TargetError(what, where=entry.where("computes"))
    return tuple(_larger(x, y, access, entry) for x, y in zip(a, b, strict=True))


def _larger(a: Index, b: Index, access: Access, entry: Entry) -> Index:
    difference = a - b
    if not difference.is_constant:
        raise TargetError(f"the extents of '{access.tensor}' differ: {a} and {b}", where=entry.where("computes"))
    return a if difference.const >= 0 else b


def _largest(index: Index, extents: Mapping[str, Index], entry: Entry) -> Index:
    """The largest value of an index, as an index over parameters."""
    total = constant(index.const)
    for atom, factor in index.terms:
        if isinstance(atom, str):
            top = extents[atom] - 1 if atom in extents else Index(((atom, 1),), 0)
            total = total + (top * factor if factor > 0 or atom not in extents else constant(0))
        elif isinstance(atom, Quotient) and factor > 0:
            total = total + (_largest(atom.index, extents, entry) // atom.divisor) * factor
        elif isinstance(atom, Remainder) and factor > 0:
            total = total + (atom.divisor - 1) * factor
        elif isinstance(atom, Access):
            raise TargetError(
                f"'{atom}' is an indirect index, which an instruction cannot have", where=entry.where("computes")
            )
    return total
