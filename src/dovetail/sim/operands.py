"""What an instruction's operands occupy for given parameters: shapes and strides, layouts applied.

A layout turns an element's indices into units and places; the operand then has one dimension for each, dense in that
order unless the target file gives strides:

    b[k, n] : panel8, k<256, n<64    ->  b[n // 8, k, n % 8] of shape [8, 256, 8]

An operand whose layout names units is spread over their memories. Its buffer holds their parts one after the other, so
its first dimensions are the grid: f64[8, 8, 2, 16, 16] is two tiles of 128 x 128 over 8 x 8 units, the second of which
starts at [0, 0, 1, 0, 0]. An element lies at ``unit * (elements of the buffer / units) + place``.
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
from dovetail.ir.nest import Nest, Place, calls
from dovetail.ir.program import Combine, Program
from dovetail.targets.model import Instruction, Layout, Operand, Target


@dataclass(frozen=True, slots=True)
class Shapes:
    """What a target says about where elements lie."""

    layouts: Mapping[str, Layout]
    grids: Mapping[str, tuple[int, ...]]
    """Memory -> the grid of the units that have one of their own."""


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
    units: int = 1
    """Units it is spread over."""

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


def spread_buffers(nest: Nest, target: Target) -> frozenset[str]:
    """The buffers that instructions take as spread over units."""
    spread = {layout.name for layout in target.layouts if layout.units}
    found = set()
    for call in calls(nest.body) if spread else ():
        for operand, wanted in zip(call.operands, target.instruction(call.instruction).operands, strict=True):
            if isinstance(operand, Place) and wanted.layout in spread:
                found.add(operand.buffer)
    return frozenset(found)


def target_shapes(target: Target) -> Shapes:
    """Layouts and grids of ``target``."""
    counts = {unit.name: unit.count for unit in target.units}
    layouts = {layout.name: layout for layout in target.layouts}
    return Shapes(layouts, {m.name: counts.get(m.per, (1,)) for m in target.memories})


def regions(
    instruction: Instruction,
    machine: Shapes,
    values: Mapping[str, int],
    in_registers: Sequence[bool],
    parts: Sequence[int],
) -> tuple[Region, ...]:
    """What each operand occupies. Registers keep their shape whatever the parameters.

    ``parts``: for operands spread over units, the elements of their buffer that each unit holds.
    """
    program = instruction.program
    written = program.statements[-1].out.tensor
    joins = program.statements[-1].combine is not Combine.SET
    full = {**values, **{s.name: s.high for s in program.sizes}}
    found = []
    for operand, is_register, part in zip(instruction.operands, in_registers, parts, strict=True):
        shape = tuple(e.evaluate(full if is_register else values) for e in program.tensor(operand.name).shape)
        first: tuple[int, ...] = ()
        units = 1
        if operand.layout:
            layout = layout_of(operand, machine.layouts, instruction)
            shape = _place_shape(layout, shape)
            units = prod(shape[: len(layout.units)])
            first = _unit_strides(layout, machine.grids[operand.memory], part, instruction)
        named = tuple(values[s] if isinstance(s, str) else s for s in operand.strides)
        if named and len(named) != len(shape) - len(first):
            what = f"operand '{operand.name}' of {instruction.name} has {len(named)} strides"
            why = f"its places have {len(shape) - len(first)} dimensions"
            raise SimulationError(what, where=instruction.source, why=why)
        writes = operand.name == written
        strides = (*first, *(named or dense_strides(shape[len(first) :])))
        kind = (operand.name, operand.memory, operand.dtype)
        found.append(Region(*kind, shape, strides, joins or not writes, writes, units))
    return tuple(found)


def laid_out(instruction: Instruction, layouts: Mapping[str, Layout]) -> Program:
    """The instruction's program over places instead of elements; itself where no operand has a layout."""
    chosen = {o.name: layout_of(o, layouts, instruction) for o in instruction.operands if o.layout}
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


def _unit_strides(layout: Layout, grid: tuple[int, ...], part: int, instruction: Instruction) -> tuple[int, ...]:
    """How far apart in a buffer lie the parts of neighbouring units."""
    if not layout.units:
        return ()
    steps = dense_strides(grid) if len(layout.units) == len(grid) else (1,)
    if len(steps) != len(layout.units):
        what = (
            f"layout '{layout.name}' gives {len(layout.units)} numbers for a unit of a grid of {len(grid)} dimensions"
        )
        raise SimulationError(what, where=instruction.source)
    return tuple(step * part for step in steps)


def _place_shape(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    ranges = {name: (0, max(extent - 1, 0)) for name, extent in zip(layout.elements, shape, strict=True)}
    ends = [interval(index, ranges) for index in (*layout.units, *layout.places)]
    return tuple(end[1] + 1 for end in ends if end is not None)


def layout_of(operand: Operand, layouts: Mapping[str, Layout], instruction: Instruction) -> Layout:
    layout = layouts[operand.layout]
    if layout.xors:
        raise SimulationError(
            f"layout '{layout.name}' of operand '{operand.name}' has swizzles, which are not simulated",
            where=instruction.source,
        )
    return layout
