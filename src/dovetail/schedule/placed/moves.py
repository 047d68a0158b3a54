"""Copy inference: which instruction moves a region between two memories, and how it is told where elements lie.

A region is a list of *lines*, each with its extent and the distance of neighbours on both sides. A copy instruction
takes some of them (several at once where they follow each other without a gap on both sides); the others are loops
around it. All ways are tried, the one that takes the fewest cycles by the target file is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import inf, lcm, prod

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Literal, Read
from dovetail.ir.index import Access, Quotient, Remainder
from dovetail.ir.program import Combine
from dovetail.schedule.placed.alignment import start_unit
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.model import Instruction, Layout, Operand, Target


@dataclass(frozen=True, slots=True)
class Line:
    """One axis of a region, of ``extent`` elements or, unless it ``is_full``, up to as many."""

    number: int
    """Of the axis."""
    extent: int
    is_full: bool
    near: int
    """Distance of neighbours in the buffer that is filled or drained."""
    far: int
    """Distance on the other side."""
    needle: int = -1
    """The dimension of a block with a layout that it belongs to."""
    is_shifted: bool = False
    """It does not begin at the first element."""
    within: int = -1
    """The axis whose loop must be around it: how many there are differs from one of its iterations to the next."""


@dataclass(frozen=True, slots=True)
class Side:
    """Where a region lies on one side; ``layout`` is that of its blocks."""

    memory: str
    dtype: DType
    layout: Layout | None = None

    def __hash__(self) -> int:
        """By names: layouts are large, and asked for often."""
        return hash((self.memory, self.dtype.name, self.layout.name if self.layout is not None else ""))


@dataclass(frozen=True, slots=True)
class Move:
    """Calls of ``instruction``: each of its loops takes some lines, outermost first; ``around`` are left as loops."""

    instruction: Instruction
    near: str
    """The operand that is the buffer."""
    taken: tuple[tuple[str, tuple[Line, ...]], ...]
    around: tuple[Line, ...]
    strides: tuple[tuple[str, int], ...]
    cycles: float
    """Of all calls together."""
    chunks: tuple[tuple[int, int], ...] = ()
    """Lines (by number) of which a call takes so many at a time."""


@lru_cache(maxsize=65536)
def best_move(
    lines: tuple[Line, ...], near: Side, far: Side | None, target: Target, fills: bool, everywhere: str = ""
) -> Move | None:
    """The cheapest way to fill the near side (from the far one; with zeros where there is none) or to drain it.

    ``everywhere``: units that all fill their own from the same place, so that one broadcast serves them."""
    found: Move | None = None
    units = tuple(start_unit(target, side.memory, side.dtype) for side in (near, far) if side is not None)
    for mover in _suited(target, near, far, fills, everywhere):
        for taken in _taken(mover, lines):
            move = _told(mover, taken, lines, found.cycles if found is not None else inf)
            if move is None or not all(_starts_suit(move, lines, units[n], n) for n in range(len(units))):
                continue
            if found is None or (move.cycles, len(move.around)) < (found.cycles, len(found.around)):
                found = move
    return found


def is_misaligned(lines: tuple[Line, ...], near: Side, far: Side | None, target: Target, fills: bool) -> bool:
    """Whether there would be a way if operands could start anywhere."""
    movers = _suited(target, near, far, fills, "")
    return any(_told(mover, taken, lines, inf) is not None for mover in movers for taken in _taken(mover, lines))


def copies_between(target: Target, source: Side, sink: Side) -> tuple[Instruction, ...]:
    """Instructions that copy from one side to the other, whatever they can be told."""
    ends = {(source.memory, source.dtype), (sink.memory, sink.dtype)}
    found = (i for i in _movers(target, "") if i.is_copy and i.operand(_written(i)).memory == sink.memory)
    return tuple(i for i in found if {(o.memory, o.dtype) for o in i.operands} == ends)


def _starts_suit(move: Move, lines: Sequence[Line], unit: int, side: int) -> bool:
    """Whether all calls start at multiples of ``unit`` on one side, if the whole does."""
    moving = [*move.around, *(line for line in lines if line.is_shifted and side == 0)]
    chunks = dict(move.chunks)
    chunked = [(line, chunks[line.number]) for line in lines if line.number in chunks]
    steps = [(line, 1) for line in moving] + chunked
    return all((line.far if side else line.near) * step % unit == 0 for line, step in steps)


@lru_cache(maxsize=64)
def _movers(target: Target, everywhere: str) -> tuple[Instruction, ...]:
    """Instructions that only move, or only set to zero; those that reach all units of a kind first."""
    found = [i for i in target.instructions if not i.emit and (i.is_copy or is_zero(i))]
    private = {m.name for m in target.memories if m.per == everywhere}
    sent = [i for i in found if everywhere and i.broadcast == everywhere and i.along is None]
    sent = [i for i in sent if not any(o.memory in private for o in i.operands if o.name != _written(i))]
    return (*sent, *(i for i in found if not i.broadcast))


def _written(instruction: Instruction) -> str:
    return instruction.program.statements[0].out.tensor


def is_zero(instruction: Instruction) -> bool:
    """Whether it does nothing but set elements to zero."""
    statement = instruction.program.statements[0]
    plain = statement.combine is Combine.SET and len(instruction.program.statements) == 1 and not statement.where
    return plain and isinstance(statement.value, Literal) and statement.value.value == 0


@dataclass(frozen=True, slots=True)
class _Mover:
    """An instruction that moves between two sides, and by which of its accesses it reaches each."""

    instruction: Instruction
    sides: tuple[tuple[Side, Access], ...]
    """The near one first."""


@lru_cache(maxsize=512)
def _suited(target: Target, near: Side, far: Side | None, fills: bool, everywhere: str) -> tuple[_Mover, ...]:
    """What moves between two sides, whatever it can be told."""
    found = (_between(instruction, near, far, fills) for instruction in _movers(target, everywhere))
    return tuple(mover for mover in found if mover is not None)


def _between(instruction: Instruction, near: Side, far: Side | None, fills: bool) -> _Mover | None:
    statement = instruction.program.statements[0]
    read = statement.value.access if isinstance(statement.value, Read) else None
    if statement.where or statement.seq or (read is None) != (far is None):
        return None
    out = statement.out
    sides: tuple[tuple[Side, Access], ...] = ((near, out),)
    if far is not None and read is not None:
        sides = ((near, out), (far, read)) if fills else ((near, read), (far, out))
    for side, access in sides:
        operand = instruction.operand(access.tensor)
        layout = side.layout.name if side.layout is not None else ""
        if (operand.memory, operand.dtype, operand.layout) != (side.memory, side.dtype, layout):
            return None
        if not all(len(i.terms) == 1 and not i.const and i.terms[0][1] == 1 for i in access.indices):
            return None
    return _Mover(instruction, sides)


def _taken(mover: _Mover, lines: Sequence[Line]) -> list[dict[str, tuple[Line, ...]]]:
    """Which lines the loops of a mover may take; those that leave the fewest calls first."""
    loops = tuple(loop.name for loop in mover.instruction.program.statements[0].loops)
    found = list(_assignments(loops, lines, _block_needles(mover.sides[0])))
    return sorted(found, key=lambda taken: -prod(line.extent for group in taken.values() for line in group))


def _block_needles(near: tuple[Side, Access]) -> dict[str, int]:
    """Loop of the instruction -> dimension of the block that it must walk; {} where there is no layout."""
    side, access = near
    if side.layout is None:
        return {}
    return {str(index.terms[0][0]): n for n, index in enumerate(access.indices)}


def _assignments(
    loops: tuple[str, ...], lines: Sequence[Line], block: Mapping[str, int]
) -> Iterator[dict[str, tuple[Line, ...]]]:
    """Every choice of lines for each loop, none twice. Of a block each loop takes its own dimension, or one element;
    the first also what follows on it, block by block."""
    if not loops:
        yield {}
        return
    for rest in _assignments(loops[1:], lines, block):
        used = {line.number for group in rest.values() for line in group}
        yield {loops[0]: (), **rest}
        for group in _groups([line for line in lines if line.number not in used]):
            needle = block.get(loops[0], -1)
            inside = [line for line in group if line.needle == needle]
            beyond = group[: len(group) - len(inside)]
            if inside and all(line.needle < 0 for line in beyond) and (not beyond or needle <= 0):
                yield {loops[0]: group, **rest}


def _groups(lines: Sequence[Line]) -> Iterator[tuple[Line, ...]]:
    """Lines that follow each other without a gap, outermost first."""
    for first in lines:
        group = [first]
        yield (first,)
        while True:
            inner = next((line for line in lines if line not in group and _continues(group[-1], line)), None)
            if inner is None:
                break
            group.append(inner)
            yield tuple(group)


def _continues(outer: Line, inner: Line) -> bool:
    whole = inner.is_full and inner.extent > 1
    return whole and outer.near == inner.near * inner.extent and outer.far == inner.far * inner.extent


def _told(mover: _Mover, taken: Mapping[str, tuple[Line, ...]], lines: Sequence[Line], at_most: float) -> Move | None:
    """The move by these lines, or None where the instruction cannot be told so or it takes more cycles."""
    instruction = mover.instruction
    chunks = _extents_suit(instruction, taken)
    if chunks is None:
        return None
    used = {line.number for group in taken.values() for line in group}
    around = tuple(line for line in lines if line.number not in used and line.extent > 1)
    cycles = _cycles(instruction, taken, chunks) * prod(line.extent for line in around)
    if cycles > at_most or any(line.within in used for line in lines):
        return None
    strides: dict[str, int] = {}
    for number, (side, access) in enumerate(mover.sides):
        operand = instruction.operand(access.tensor)
        apart = [_apart(taken[str(i.terms[0][0])], number) for i in access.indices]
        if side.layout is not None:
            told: dict[str, int] | None = {} if _block_suits(taken, access, lines, side.layout) else None
        else:
            groups = [taken[str(i.terms[0][0])] for i in access.indices]
            even = _is_even(operand, groups, chunks)
            told = _operand_told(operand, apart, list(map(_extent, groups))) if even else None
        if told is None or any(strides.get(name, value) != value for name, value in told.items()):
            return None
        strides |= told
    near, pairs = mover.sides[0][1].tensor, tuple(chunks.items())
    return Move(instruction, near, tuple(taken.items()), around, tuple(strides.items()), cycles, pairs)


def _cycles(instruction: Instruction, taken: Mapping[str, tuple[Line, ...]], chunks: Mapping[int, int]) -> float:
    """Of the calls that take these lines, the last of a line perhaps with less."""
    pieces: list[list[tuple[str, int, int]]] = []
    for loop in instruction.program.statements[0].loops:
        group = taken[loop.name]
        for name in loop.extent.names():
            extent = _extent(group)
            most = (
                chunks[group[0].number] * extent // group[0].extent if group and group[0].number in chunks else extent
            )
            full, rest = divmod(extent, most)
            pieces.append([(name, most, full), *([(name, rest, 1)] if rest else [])])
    total = 0.0
    for chosen in product(*pieces):
        cycles = _cost(instruction.cycles, tuple((name, value) for name, value, _ in chosen))
        total += cycles * prod(count for _, _, count in chosen)
    return total


@lru_cache(maxsize=65536)
def _cost(cycles: str, values: tuple[tuple[str, int], ...]) -> float:
    return evaluate_cost(cycles, dict(values))


def _extents_suit(instruction: Instruction, taken: Mapping[str, tuple[Line, ...]]) -> dict[int, int] | None:
    """Which lines calls take in chunks, where a parameter does not go so far; None where they cannot take them."""
    chunks: dict[int, int] = {}
    sizes = {size.name: size for size in instruction.program.sizes}
    values: dict[str, int] = {}
    varying: set[str] = set()
    for loop in instruction.program.statements[0].loops:
        group = taken[loop.name]
        extent, full = _extent(group), all(line.is_full for line in group)
        if loop.extent.is_constant:
            if loop.extent.const != extent or not full:
                return None
            continue
        name = next(iter(loop.extent.names()))
        if loop.extent.coefficient(name) != 1 or loop.extent.const or name in values:
            return None
        if extent > sizes[name].high and all(line.needle < 0 for line in group) and sizes[name].low <= 1:
            inner = extent // group[0].extent
            if sizes[name].high < inner:
                return None
            chunks[group[0].number] = sizes[name].high // inner
            extent, full = chunks[group[0].number] * inner, False
        if not sizes[name].low <= extent <= sizes[name].high or (not full and sizes[name].low > 1):
            return None
        values[name] = extent
        if not full:
            varying.add(name)
    for condition in instruction.constraints:
        if condition.names() & varying or not condition.holds(values):
            return None
    return chunks


def _block_suits(taken: Mapping[str, tuple[Line, ...]], access: Access, lines: Sequence[Line], layout: Layout) -> bool:
    """Whether the elements of a call lie as they do in the whole block, from where the call begins."""
    groups = [taken[str(index.terms[0][0])] for index in access.indices]
    extents = [_extent(group) for group in groups]
    for n, group in enumerate(groups):
        own = sorted((line for line in lines if line.needle == n), key=lambda line: line.near)
        inside = [line for line in group if line.needle == n]
        period = _period(layout, layout.elements[n])
        if group and (group[-1] != own[0] or any(line.is_shifted for line in inside)):
            return False
        if len(inside) < max(len(own), len(group)) and _extent(tuple(inside)) % period and inside:
            return False
        is_whole = len(inside) == len(own) and all(line.is_full for line in inside)
        if len(group) > len(inside) and not is_whole:
            return False
        if not is_whole and any(extents[m] > _period(layout, layout.elements[m]) for m in range(n)):
            return False
    return True


@lru_cache(maxsize=256)
def _period(layout: Layout, element: str) -> int:
    """After how many elements along one of its dimensions a layout begins again, one place further."""
    found = 1
    for index in (*layout.units, *layout.places):
        for atom, _ in index.terms:
            if isinstance(atom, Quotient | Remainder) and element in atom.index.names():
                found = lcm(found, atom.divisor)
    return found


def _is_even(operand: Operand, groups: Sequence[tuple[Line, ...]], chunks: Mapping[int, int]) -> bool:
    """Whether distances are the same in every call: those of a dense operand follow from its inner extents."""
    inner = [line for group in groups[1:] for line in group]
    return bool(operand.strides) or all(line.is_full and line.number not in chunks for line in inner)


def _operand_told(operand: Operand, apart: Sequence[int], extents: Sequence[int]) -> dict[str, int] | None:
    """Values for the named strides of an operand; None where it takes none that are so far apart."""
    wanted: list[int | str] = list(operand.strides)
    if not wanted:
        step = 1
        for extent in reversed(extents):
            wanted.insert(0, step)
            step *= extent
    told: dict[str, int] = {}
    for need, have, extent in zip(wanted, apart, extents, strict=True):
        if isinstance(need, str):
            value = have if extent > 1 else told.get(need, have)
            if told.setdefault(need, value) != value:
                return None
        elif need != have and extent > 1:
            return None
    return told


def _apart(group: tuple[Line, ...], side: int) -> int:
    """How far apart neighbours along the innermost line are on one side."""
    return (group[-1].near if side == 0 else group[-1].far) if group else 0


def _extent(group: tuple[Line, ...]) -> int:
    return prod(line.extent for line in group)
