"""What an instruction that does a whole tile in memory asks for: extents of the tile, and where operands' elements lie.

    for i<6, j<16, k<n: c[i, j] += a[k, i] * b[k, j]    a = "f32 @ memory", b = "f32 @ memory [ldb, 1]"

wants 6 of i, 16 of j, up to n of k; neighbours along i next to each other in a, along k six elements apart; neighbours
along j next to each other in b, along k as far apart as ldb says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Read
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Size, Statement
from dovetail.targets.model import Instruction, Operand

Bound = Mapping[str, tuple[str, ...]]
"""Loop of the instruction -> loops of the statement it runs over."""
Strides = Mapping[str, Index]
"""Elements between neighbours along each loop of the instruction."""
UNKNOWN = "%unknown"
"""Stands for a product of run-time sizes, which no stride of a buffer is compared with."""


@dataclass(frozen=True, slots=True)
class TileLoop:
    """A loop of the instruction: exactly ``most`` iterations, or what ``size`` and the constraints on it allow."""

    name: str
    most: int
    size: Size | None = None
    constraints: tuple[Condition, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Not every smaller number of iterations will do."""
        return self.size is None or self.size.low > 1 or bool(self.constraints)

    def largest(self, count: int) -> int:
        """The most iterations, up to ``count``, that one call can do; 0 when it cannot do so few."""
        if self.size is None:
            return self.most if count >= self.most else 0
        tries = range(min(count, self.size.high), max(0, self.size.low - 1), -1)
        return next((n for n in tries if self._allows(n)), 0)

    def allows(self, count: Index, at_most: int | None) -> bool:
        """Whether a call can do ``count`` iterations, which are no more than ``at_most`` (None: unknown)."""
        if count.is_constant:
            return count.const > 0 and self.largest(count.const) == count.const
        if self.size is None or self.constraints or at_most is None:
            return False
        return self.size.low <= 1 and at_most <= self.size.high

    def _allows(self, count: int) -> bool:
        return all(c.holds({self.size.name: count}) for c in self.constraints) if self.size is not None else False


@dataclass(frozen=True, slots=True)
class TileShape:
    """An instruction taken apart."""

    instruction: Instruction
    loops: tuple[TileLoop, ...]

    @property
    def statement(self) -> Statement:
        return self.instruction.program.statements[0]

    @property
    def kept(self) -> frozenset[str]:
        """Loops of the result."""
        return self.statement.out.names()

    def parameters(self, extents: Mapping[str, Index]) -> dict[str, Index] | None:
        """The instruction's parameters for a tile of these extents; None where constraints forbid it."""
        found: dict[str, Index] = {}
        for loop in self.loops:
            if loop.size is not None and found.setdefault(loop.size.name, extents[loop.name]) != extents[loop.name]:
                return None
        fixed = {name: value.const for name, value in found.items() if value.is_constant}
        for condition in self.instruction.constraints:
            if not condition.names() <= fixed.keys() or not condition.holds(fixed):
                return None
        return found

    def wanted(self, operand: Operand, extents: Mapping[str, Index]) -> dict[str, Index | None]:
        """Distance of neighbours along each loop of an operand; None where the instruction is told."""
        access = self.access(operand.name)
        found: dict[str, Index | None] = {}
        steps = self._steps(operand, extents)
        for loop in (x.name for x in self.loops if x.name in access.names()):
            total: Index | None = constant(0)
            for index, step in zip(access.indices, steps, strict=True):
                c = index.coefficient(loop)
                total = None if total is None or (c and isinstance(step, str)) else total
                if total is not None and isinstance(step, Index):
                    total = total + step * c
            found[loop] = total
        return found

    def told(self, operand: Operand, strides: Strides, extents: Mapping[str, Index]) -> dict[str, Index] | None:
        """Named strides for an operand whose elements lie at ``strides``; None when it cannot take them so."""
        access = self.access(operand.name)
        steps = self._steps(operand, extents)
        told: dict[str, Index] = {}
        moving = [x.name for x in self.loops if x.name in access.names() and extents[x.name] != constant(1)]
        for index, step in zip(access.indices, steps, strict=True):
            if isinstance(step, str) and step not in told:
                walkers = [n for n in moving if index.coefficient(n) == 1 and _dimensions(access, n) == 1]
                told[step] = strides[walkers[0]] if walkers else constant(0)
        for loop in moving:
            total = constant(0)
            for index, step in zip(access.indices, steps, strict=True):
                total = total + (told[step] if isinstance(step, str) else step) * index.coefficient(loop)
            if total != strides[loop]:
                return None
        return told

    def access(self, operand: str) -> Access:
        accesses = (self.statement.out, *self.statement.reads())
        return next(a for a in accesses if a.tensor == operand)

    def _steps(self, operand: Operand, extents: Mapping[str, Index]) -> list[Index | str]:
        """Strides per dimension of an operand; those of a dense one follow from the extents of the call."""
        if operand.strides:
            return [s if isinstance(s, str) else constant(s) for s in operand.strides]
        names = {x.size.name: extents[x.name] for x in self.loops if x.size is not None}
        shape = [e.substitute(names) for e in self.instruction.program.tensor(operand.name).shape]
        steps: list[Index | str] = []
        step = constant(1)
        for extent in reversed(shape):
            steps.append(step)
            known = step.is_constant or extent.is_constant
            step = _product(step, extent) if known else variable(UNKNOWN)
        return list(reversed(steps))


def _product(a: Index, b: Index) -> Index:
    return b * a.const if a.is_constant else a * b.const


def _dimensions(access: Access, loop: str) -> int:
    return sum(loop in index.names() for index in access.indices)


@lru_cache(maxsize=1024)
def tile_shape(instruction: Instruction) -> TileShape | None:
    """``instruction`` taken apart; None when it is not one plain statement over tiles that plans can cut."""
    program = instruction.program
    statement = program.statements[0]
    accesses = (statement.out, *statement.reads())
    if len(program.statements) != 1 or statement.where or statement.seq:
        return None
    if len({a.tensor for a in accesses}) < len(accesses) or not all(i.is_affine for a in accesses for i in a.indices):
        return None
    sizes = {size.name: size for size in program.sizes}
    loops: list[TileLoop] = []
    for loop in statement.loops:
        size = next((s for n, s in sizes.items() if loop.extent == variable(n)), None)
        if size is None and not loop.extent.is_constant:
            return None
        own = tuple(c for c in instruction.constraints if size is not None and c.names() == {size.name})
        found = TileLoop(loop.name, loop.extent.const if size is None else size.high, size, own)
        loops.append(found if size is None else TileLoop(loop.name, found.largest(size.high), size, own))
    used = {loop.size.name for loop in loops if loop.size is not None}
    inner = frozenset[str]().union(*(a.names() for a in accesses)) - {loop.name for loop in loops}
    return TileShape(instruction, tuple(loops)) if used == sizes.keys() and not inner else None


def operand_accesses(
    shape: TileShape, statement: Statement, bound: Bound, dtypes: Mapping[str, DType]
) -> dict[str, Access] | None:
    """The element of the program each operand stands for; None when the instruction does not do this statement."""
    own = shape.statement
    loops = {loop.name for loop in statement.loops}
    over = [loop for group in bound.values() for loop in group]
    named = list(bound) == [loop.name for loop in own.loops]
    if not named or len(set(over)) < len(over) or not set(over) <= loops or own.combine is not statement.combine:
        return None
    written = statement.out.names()
    if any((loop in written) != (needle in shape.kept) for needle, group in bound.items() for loop in group):
        return None
    for found in _matches(own.value, statement.value, {own.out.tensor: statement.out}):
        if all(_suits(shape, name, access, bound, dtypes) for name, access in found.items()):
            return found
    return None


def _suits(shape: TileShape, name: str, access: Access, bound: Bound, dtypes: Mapping[str, DType]) -> bool:
    """Same dtype, and it moves only along loops that the operand has."""
    mine = shape.access(name).names()
    others = {loop for needle, group in bound.items() if needle not in mine for loop in group}
    direct = not any(True for _ in access.reads())
    return shape.instruction.operand(name).dtype == dtypes[access.tensor] and not others & access.names() and direct


def _matches(pattern: Expr, value: Expr, found: dict[str, Access]) -> Iterator[dict[str, Access]]:
    """Every way to read ``value`` as ``pattern``: operand -> access."""
    if isinstance(pattern, Read):
        name = pattern.access.tensor
        if isinstance(value, Read) and found.get(name, value.access) == value.access:
            yield {**found, name: value.access}
    elif isinstance(pattern, Literal):
        if pattern == value:
            yield found
    elif isinstance(pattern, Cast | Bitcast):
        if type(value) is type(pattern) and isinstance(value, Cast | Bitcast) and value.dtype == pattern.dtype:
            yield from _matches(pattern.arg, value.arg, found)
    elif isinstance(pattern, Apply) and isinstance(value, Apply) and pattern.function == value.function:
        orders = permutations(value.args) if PRIMITIVES[pattern.function].commutative else (value.args,)
        for args in orders:
            yield from _all_match(pattern.args, tuple(args), found)


def _all_match(
    patterns: tuple[Expr, ...], values: tuple[Expr, ...], found: dict[str, Access]
) -> Iterator[dict[str, Access]]:
    if not patterns:
        yield found
        return
    for first in _matches(patterns[0], values[0], found):
        yield from _all_match(patterns[1:], values[1:], first)
