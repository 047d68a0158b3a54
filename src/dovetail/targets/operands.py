"""Operands and parameters of an instruction: their texts and ranges.

operand = dtype "@" memory ["[" stride, ... "]"] [":" layout]      -- "T @ memory [ld, 1]", "i8 @ tiles : vnni"
stride  = int | name                                               -- a name is passed at run time as i64
param   = int ".." (int | "L")
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import TargetError
from dovetail.ir.program import Size
from dovetail.targets.tables import Entry, unknown

_OPERAND = re.compile(
    r"\s*(?P<dtype>\w+)\s*@\s*(?P<memory>[\w.-]+)\s*(?:\[(?P<strides>[^\]]*)\])?\s*(?::\s*(?P<layout>[\w.-]+))?\s*"
)
_RANGE = re.compile(r"\s*(\d+)\s*\.\.\s*(\d+|L)\s*")
_NAME = re.compile(r"[A-Za-z_]\w*")


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
