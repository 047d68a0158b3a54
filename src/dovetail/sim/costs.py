"""What one call costs: cycles of its unit, latency, bytes of each memory, and the elements that make calls wait.

Time is counted in ticks, whole parts of a cycle, so that sums are exact and a state that repeats is seen to repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd, isfinite, prod

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import TargetError
from dovetail.ir.nest import Place
from dovetail.sim.operands import Region, Shapes, check_parameters, regions
from dovetail.sim.steps import CallStep
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.model import Instruction

TICKS = 3840
"""Per cycle; the costs that occur most, halves to 256ths, thirds and fifths of a cycle, are whole ticks."""
_MOST_ELEMENTS = 1 << 18
"""Larger footprints are compared by their first and last element only."""
_MOST_BITS = 1 << 23
"""Footprints that are spread further are compared element by element."""


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """Elements an operand covers, relative to its first. One object per shape, so that it is compared by identity."""

    low: int
    high: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    _meets: dict[tuple[Footprint, int], bool] = field(default_factory=dict)
    _columns: list[tuple[int, int, int]] = field(default_factory=list)
    _bits: list[int] = field(default_factory=list)

    def meets(self, other: Footprint, distance: int) -> bool:
        """Whether ``other``, ``distance`` elements further on, shares an element with this one."""
        if self.high < other.low + distance or other.high + distance < self.low:
            return False
        if distance == 0 and other is self:
            return True
        if self._in_other_columns(other, distance):
            return False
        found = self._meets.get((other, distance))
        if found is None:
            found = self._meets[other, distance] = self._overlap(other, distance)
        return found

    def _in_other_columns(self, other: Footprint, distance: int) -> bool:
        """Whether the two lie in different columns of the rows that both consist of."""
        (low, high, row), (other_low, other_high, other_row) = self.columns, other.columns
        both = gcd(row, other_row)
        if high - low >= both or other_high - other_low >= both:
            return False
        apart = (other_low + distance - low) % both
        return apart > high - low and apart + other_high - other_low < both

    @property
    def columns(self) -> tuple[int, int, int]:
        """First and last element of a row, and a number that the distances of all rows are multiples of."""
        if not self._columns:
            low = high = row = 0
            steps = sorted((abs(s), s, e) for e, s in zip(self.extents, self.strides, strict=True) if e > 1)
            for size, stride, extent in steps:
                if row or size > high - low:
                    row = gcd(row, size) if (row or high > low) else 0
                if not row:
                    low, high = low + min(0, (extent - 1) * stride), high + max(0, (extent - 1) * stride)
            self._columns.append((low, high, row))
        return self._columns[0]

    def _overlap(self, other: Footprint, distance: int) -> bool:
        if prod(self.extents) > _MOST_ELEMENTS or prod(other.extents) > _MOST_ELEMENTS:
            return True
        if not (self.has_bits and other.has_bits):
            return bool(np.isin(_places(self), _places(other) + distance).any())
        further = other.low + distance - self.low
        mine, others = self.bits >> max(further, 0), other.bits >> max(-further, 0)
        return mine & others != 0

    @property
    def has_bits(self) -> bool:
        """Whether it is small enough to be compared as ``bits``."""
        return self.high - self.low <= _MOST_BITS and prod(self.extents) <= _MOST_ELEMENTS

    @property
    def bits(self) -> int:
        """A bit for each element from the lowest to the highest, set where it is covered."""
        if not self._bits:
            found = int(all(self.extents))
            for extent, stride in zip(self.extents, self.strides, strict=True):
                found = _repeated(found, extent, abs(stride))
            self._bits.append(found)
        return self._bits[0]


@dataclass(frozen=True, slots=True)
class OperandCost:
    """One operand of a call."""

    number: int
    memory: str
    footprint: Footprint
    reads: bool
    writes: bool
    bytes: int
    units: int
    """Units it is spread over."""


@dataclass(frozen=True, slots=True, eq=False)
class CallCost:
    """``busy`` ticks of a unit; the result is there ``latency`` ticks after the start, no less than ``busy``."""

    busy: int
    latency: int
    operands: tuple[OperandCost, ...]


class Costs:
    """Costs of calls, each worked out once."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self._footprints: dict[tuple[tuple[int, ...], tuple[int, ...]], Footprint] = {}
        self._costs: dict[tuple[int, tuple[int, ...]], CallCost] = {}

    def of(self, step: CallStep, values: tuple[int, ...]) -> CallCost:
        """``values`` are the call's parameters."""
        found = self._costs.get((step.number, values))
        if found is None:
            call, instruction = step.call, step.instruction
            in_registers = tuple(not isinstance(o, Place) for o in call.operands)
            parts = tuple(0 if o is None else o.part for o in step.operands)
            given = {name: value for (name, _), value in zip(call.params, values, strict=True)}
            check_parameters(instruction, given, f"call {call}")
            boxes = regions(instruction, self.shapes, given, in_registers, parts)
            operands = tuple(self._operand(n, box) for n, box in enumerate(boxes))
            busy = cost_ticks(instruction, "cycles", given)
            found = CallCost(busy, max(busy, cost_ticks(instruction, "latency", given)), operands)
            self._costs[step.number, values] = found
        return found

    def _operand(self, number: int, region: Region) -> OperandCost:
        footprint = self._footprints.get((region.extents, region.strides))
        if footprint is None:
            footprint = Footprint(region.low, region.high, region.extents, region.strides)
            self._footprints[region.extents, region.strides] = footprint
        return OperandCost(number, region.memory, footprint, region.reads, region.writes, region.bytes, region.units)


def cost_ticks(instruction: Instruction, field_name: str, values: Mapping[str, int]) -> int:
    """``cycles`` or ``latency`` in ticks; a TargetError that names the field where it is no time."""
    text = instruction.cycles if field_name == "cycles" else instruction.latency
    where = f"{instruction.source}: {field_name} = {text}"
    given = ", ".join(f"{name} = {value}" for name, value in values.items())
    try:
        cycles = evaluate_cost(text, values)
    except TargetError as problem:
        raise TargetError(problem.what, where=where, why=f"with {given}" if given else None) from problem
    except (OverflowError, ValueError) as problem:
        raise TargetError(f"the cost '{text}' is no number of cycles", where=where) from problem
    if not isfinite(cycles) or cycles < 0:
        hint = "a cost that is never negative, e.g. max(0, ...)"
        what = f"{instruction.name} takes {cycles:g} cycles" + (f" with {given}" if given else "")
        raise TargetError(what, where=where, hint=hint)
    return round(cycles * TICKS)


def _repeated(bits: int, times: int, distance: int) -> int:
    """``bits`` as often as that, each time ``distance`` further on."""
    found, done = bits, 1
    while done < times:
        more = min(done, times - done)
        found |= found << (more * distance)
        done += more
    return found


def _places(footprint: Footprint) -> npt.NDArray[np.int64]:
    places = np.zeros(1, np.int64)
    for extent, stride in zip(footprint.extents, footprint.strides, strict=True):
        places = (places[:, None] + np.arange(extent, dtype=np.int64) * stride).ravel()
    return places
