"""What an instruction's operands occupy for given parameters: shapes and strides, layouts applied.

A layout turns an element's indices into units and places; the operand then has one dimension for each, dense in that
order unless the target file gives strides:

    b[k, n] : panel8, k<256, n<64    ->  b[n // 8, k, n % 8] of shape [8, 256, 8]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from dovetail.base.dtypes import DType
from dovetail.base.errors import SimulationError
from dovetail.ir.expr import Expr, Read, rebuild
from dovetail.ir.index import Access, Index, constant
from dovetail.ir.instruction_function import dense_strides
from dovetail.ir.interval import interval
from dovetail.ir.program import Combine, Program
from dovetail.targets.model import Instruction, Layout, Operand


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of one operand, relative to its first: a box with strides."""

    name: str
    memory: str
    dtype: DType
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    reads: bool
    writes: bool

    @property
    def bytes(self) -> int:
        """Bytes that one call moves: what is read and written counts twice."""
        return prod(self.extents) * self.dtype.bytes * (self.reads + self.writes)

    @property
    def low(self) -> int:
        return sum(min(0, (e - 1) * s) for e, s in zip(self.extents, self.strides, strict=True))

    @property
    def high(self) -> int:
        return sum(max(0, (e - 1) * s) for e, s in zip(self.extents, self.strides, strict=True))


def check_parameters(instruction: Instruction, values: Mapping[str, int], where: str) -> None:
    """Raise where a parameter leaves its range or breaks a constraint."""
    for size in instruction.program.sizes:
        if not size.low <= values[size.name] <= size.high:
            raise SimulationError(
                f"{instruction.name} is called with {size.name} = {values[size.name]}",
                where=where,
                why=f"'{size.name}' lies in {size.low}..{size.high}",
            )
    for condition in instruction.constraints:
        if not condition.holds(values):
            given = ", ".join(f"{name} = {values[name]}" for name in sorted(condition.names()))
            what = f"{instruction.name} is called with {given}"
            raise SimulationError(what, where=where, why=f"{condition} is required ({instruction.source})")


def regions(
    instruction: Instruction, layouts: Mapping[str, Layout], values: Mapping[str, int], in_registers: Sequence[bool]
) -> tuple[Region, ...]:
    """What each operand occupies. Registers keep their shape whatever the parameters."""
    program = instruction.program
    written = program.statements[-1].out.tensor
    joins = program.statements[-1].combine is not Combine.SET
    full = {**values, **{s.name: s.high for s in program.sizes}}
    found = []
    for operand, is_register in zip(instruction.operands, in_registers, strict=True):
        shape = tuple(e.evaluate(full if is_register else values) for e in program.tensor(operand.name).shape)
        if operand.layout:
            shape = _place_shape(_layout(operand, layouts, instruction), shape)
        named = tuple(values[s] if isinstance(s, str) else s for s in operand.strides)
        if named and len(named) != len(shape):
            what = (
                f"operand '{operand.name}' of {instruction.name} has {len(named)} strides for {len(shape)} dimensions"
            )
            raise SimulationError(what, where=instruction.source)
        writes = operand.name == written
        strides = named or dense_strides(shape)
        found.append(Region(operand.name, operand.memory, operand.dtype, shape, strides, joins or not writes, writes))
    return tuple(found)


def laid_out(instruction: Instruction, layouts: Mapping[str, Layout]) -> Program:
    """The instruction's program over places instead of elements; itself where no operand has a layout."""
    chosen = {o.name: _layout(o, layouts, instruction) for o in instruction.operands if o.layout}
    if not chosen:
        return instruction.program

    def moved(access: Access) -> Access:
        layout = chosen.get(access.tensor)
        if layout is None:
            return access
        at: dict[str, Index] = dict(zip(layout.elements, access.indices, strict=True))
        return Access(access.tensor, tuple(i.substitute(at) for i in (*layout.units, *layout.places)))

    def change(e: Expr) -> Expr:
        return Read(moved(e.access)) if isinstance(e, Read) else e

    statements = tuple(
        replace(s, out=moved(s.out), value=rebuild(s.value, change)) for s in instruction.program.statements
    )
    tensors = tuple(
        replace(t, shape=tuple(constant(0) for _ in (*chosen[t.name].units, *chosen[t.name].places)))
        if t.name in chosen
        else t
        for t in instruction.program.tensors
    )
    return Program(tensors, statements, instruction.program.sizes)


def _place_shape(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    ranges = {name: (0, max(extent - 1, 0)) for name, extent in zip(layout.elements, shape, strict=True)}
    ends = [interval(index, ranges) for index in (*layout.units, *layout.places)]
    return tuple(end[1] + 1 for end in ends if end is not None)


def _layout(operand: Operand, layouts: Mapping[str, Layout], instruction: Instruction) -> Layout:
    layout = layouts[operand.layout]
    if layout.xors:
        raise SimulationError(
            f"layout '{layout.name}' of operand '{operand.name}' has swizzles, which are not simulated",
            where=instruction.source,
        )
    return layout
