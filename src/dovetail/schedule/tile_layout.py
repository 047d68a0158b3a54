"""Where the operands of a tile instruction come from: as they lie in memory, or held in a layout that it can take.

a dense f32[k, 6] panel of x[m, k]    ->    hold x as d0/6, d1, d0%6
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from dovetail.ir.index import Access, Index, constant
from dovetail.ir.plan import Digit, Hold
from dovetail.ir.program import Program, Role
from dovetail.schedule.facts import Facts
from dovetail.schedule.lower.state import row_major
from dovetail.schedule.machine import Machine
from dovetail.schedule.tile_shape import Bound, TileShape
from dovetail.targets.model import Operand

OuterTile = tuple[str, int, bool]
"""(loop, step, spread over the units)"""
Placed = tuple[int, Hold]
"""(position of the outer tile that fills it, -1 for the whole kernel; the hold)"""


@dataclass(frozen=True, slots=True)
class TileFit:
    """An instruction on a statement: what its loops run over, how far in one call, what its operands are."""

    shape: TileShape
    bound: Bound
    steps: dict[str, int]
    """Iterations of each bound loop of the statement in one call."""
    extents: dict[str, Index]
    """Of each loop of the instruction in a whole tile."""
    accesses: dict[str, Access]


@dataclass(frozen=True, slots=True)
class Layouts:
    """Chooses for one order of the outer tiles."""

    program: Program
    facts: Facts
    fit: TileFit
    machine: Machine
    memory: str
    outer: tuple[OuterTile, ...]
    units: int

    def choose(self) -> tuple[tuple[Placed, ...], float] | None:
        """Holds for all operands and their cycles; None when an operand cannot be had in the layout it needs."""
        held: list[Placed] = []
        total = 0.0
        written = self.fit.shape.statement.out.tensor
        for operand in self.fit.shape.instruction.operands:
            direct = self.direct_cycles(operand)
            ways: list[tuple[float, Placed | None]] = [] if direct is None else [(direct, None)]
            if operand.name != written:
                ways += [(cycles, placed) for cycles, placed in self.held(operand)]
            if not ways:
                return None
            cycles, placed = min(ways, key=lambda way: (way[0], way[1] is None, -(way[1] or (0,))[0]))
            total += cycles
            held += [placed] if placed is not None else []
        if len({hold.tensor for _, hold in held}) < len(held):
            return None
        return tuple(held), total

    # -- as it is

    def direct_cycles(self, operand: Operand) -> float | None:
        """What it costs more than neighbouring elements to read an operand as it lies; None when it cannot be."""
        access = self.fit.accesses[operand.name]
        steps = row_major(self.program.tensor(access.tensor).shape)
        strides: dict[str, Index] = {}
        for needle, group in self.fit.bound.items():
            stride = _fused_stride(access, group, steps, self.facts)
            if stride is None:
                return None
            strides[needle] = stride
        if self.fit.shape.told(operand, strides, self.fit.extents) is None:
            return None
        return self.page_cycles(operand, access)

    def page_cycles(self, operand: Operand, access: Access) -> float:
        """A new page with every step of the reduction."""
        use = next((u for u in self.facts.reads if u.access == access), None)
        deep = [loop for loop, step in self.fit.steps.items() if loop in self.facts.reduced and step > 1]
        if use is None or not any(abs(use.stride(n) or 0) * use.bytes >= self.machine.page_bytes for n in deep):
            return 0.0
        tile = prod(step for loop, step in self.fit.steps.items() if loop not in deep)
        return self.facts.points / max(1, tile) * self.machine.page_cycles / self.units

    # -- held

    def held(self, operand: Operand) -> list[tuple[float, Placed]]:
        """Every place where the operand can be held as the instruction wants it, with the cycles of filling it."""
        access = self.fit.accesses[operand.name]
        tensor = self.program.tensor(access.tensor)
        elsewhere = sum(a.tensor == tensor.name for s in self.program.statements for a in (s.out, *s.reads())) > 1
        found: list[tuple[float, Placed]] = []
        own = [a for a in (self.facts.statement.out, *self.facts.statement.reads()) if a.tensor == tensor.name]
        if len(own) > 1 or not all(i.is_affine and all(c > 0 for _, c in i.terms) for i in access.indices):
            return found
        for position in range(0 if elsewhere else -1, len(self.outer)):
            left = self.left(position)
            digits = self.digits(operand, access, left)
            if digits is None:
                continue
            plain = all(len(i.terms) <= 1 and i.const == 0 for i in access.indices)
            static = all(extent.is_constant for extent in tensor.shape)
            ahead = position < 0 and tensor.role is Role.CONST and plain and static
            if not ahead and self.facts.guarded & access.names():
                continue  # what conditions keep away may not be there to be laid out
            shared = not ahead and not any(parallel for _, _, parallel in self.outer[: position + 1])
            hold = Hold(tensor.name, self.memory, digits, ahead=ahead, shared=shared)
            found.append((0.0 if ahead else self.fill_cycles(access, digits, position, left), (position, hold)))
        return found

    def left(self, position: int) -> dict[str, int]:
        """Iterations left of every loop inside the tile at ``position``."""
        found = dict(self.facts.extents)
        for loop, step, _ in self.outer[: position + 1]:
            found[loop] = min(found[loop], step)
        return found

    def fill_cycles(self, access: Access, digits: tuple[Digit, ...], position: int, left: dict[str, int]) -> float:
        fills = 1
        rest = dict(self.facts.extents)
        for loop, step, _ in self.outer[: position + 1]:
            fills *= -(-rest[loop] // step)
            rest[loop] = min(rest[loop], step)
        elements = prod(_span(index, left) for index in access.indices)
        in_row = digits[-1].dimension == len(access.indices) - 1
        return fills * elements * self.machine.copy_cycles / (4 if in_row else 1) / self.units

    def digits(self, operand: Operand, access: Access, left: dict[str, int]) -> tuple[Digit, ...] | None:
        """The layout in which the operand's tile lies as the instruction wants it; None when there is none."""
        chain = self.chain(operand)
        outermost: list[Digit] = []
        inner: list[Digit] = []
        reach = 1
        for number, (needle, wanted) in enumerate(chain):
            dimension = self.dimension(access, needle, left)
            if dimension is None or (wanted is not None and wanted != reach):
                return None
            loop = self.fit.bound[needle][0]
            extent = self.fit.steps[loop]
            whole = _span(access.indices[dimension], left)
            following = chain[number + 1][1] if number + 1 < len(chain) else None
            modulus = extent if following is None else following // reach
            is_last = number + 1 == len(chain) and (number > 0 or whole == extent)
            if is_last or (modulus == whole and loop not in self.facts.dynamic):
                inner.append(Digit(dimension))
            elif modulus == extent:
                outermost.append(Digit(dimension, modulus))
                inner.append(Digit(dimension, 1, modulus))
            else:
                return None
            reach *= modulus
        used = {d.dimension for d in inner}
        if len(used) < len(inner) or len(outermost) > 1:
            return None
        others = [Digit(d) for d in range(len(access.indices)) if d not in used]
        return (*outermost, *others, *reversed(inner)) if inner else None

    def chain(self, operand: Operand) -> list[tuple[str, int | None]]:
        """Loops of the operand, nearest neighbours first, with the distance the instruction insists on."""
        wanted = self.fit.shape.wanted(operand, self.fit.extents)
        moving = [n for n in wanted if self.fit.bound[n] and self.fit.extents[n] != constant(1)]
        insisted = [(n, w.const) for n in moving if (w := wanted[n]) is not None]
        free = sorted((n for n in moving if wanted[n] is None), key=lambda n: n not in self.fit.shape.kept)
        return [*sorted(insisted, key=lambda pair: pair[1]), *((n, None) for n in free)]

    def dimension(self, access: Access, needle: str, left: dict[str, int]) -> int | None:
        """The dimension that a loop walks alone and one by one, once the loops around have been taken out."""
        group = self.fit.bound[needle]
        if len(group) != 1:
            return None
        found = [d for d, index in enumerate(access.indices) if group[0] in index.names()]
        if len(found) != 1 or access.indices[found[0]].coefficient(group[0]) != 1:
            return None
        others = access.indices[found[0]].names() - {group[0]}
        return found[0] if all(left.get(n, 1) == 1 for n in others) else None


def _span(index: Index, left: dict[str, int]) -> int:
    return 1 + sum(c * (left[str(n)] - 1) for n, c in index.terms if n in left)


def _fused_stride(
    access: Access, group: tuple[str, ...], steps: tuple[Index | None, ...], facts: Facts
) -> Index | None:
    """Elements between neighbours along fused loops; None where that changes on the way or is unknown."""
    inner: Index | None = None
    count = 1
    for loop in reversed(group):
        stride = constant(0)
        for index, step in zip(access.indices, steps, strict=True):
            c = index.coefficient(loop)
            if loop in (index - Index(((loop, c),)) if c else index).names() or (c and step is None):
                return None
            stride = stride + step * c if c and step is not None else stride
        if inner is not None and stride != inner * count:
            return None
        inner = stride if inner is None else inner
        count *= facts.extents[loop]
    return constant(0) if inner is None else inner
