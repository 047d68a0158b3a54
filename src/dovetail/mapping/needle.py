"""An instruction read as a needle: its loops, the slots its operands fill, and what each slot's element tells apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Position, Read, walk
from dovetail.ir.index import Access, Atom, Condition, Index
from dovetail.ir.program import Combine, Size, Statement
from dovetail.mapping.isl_text import isl_texts
from dovetail.mapping.typed import Typed, typed
from dovetail.poly.tiling import Group, Tiling, determines
from dovetail.targets.model import Instruction

MOST_VALUES = 4096
"""How many values of a parameter are tried against its constraints."""


@dataclass(frozen=True, slots=True)
class NeedleLoop:
    """A loop of an instruction that runs ``most`` times, or any multiple of ``granule`` times up to that."""

    name: str
    most: int
    granule: int


@dataclass(frozen=True, slots=True)
class Slot:
    """One operand in one place: ``determined`` are the loops whose value can be told from the element's indices."""

    name: str
    dtype: DType
    access: Access
    loops: frozenset[str]
    determined: frozenset[str]
    order: tuple[str, ...]
    """Its loops, outermost dimension first."""

    is_plain: bool
    """Different points of its own loops are different elements, whatever the extents."""


@dataclass(frozen=True, slots=True)
class Needle:
    """What mapping needs to know of an instruction; ``refusal`` says why it can fit nothing."""

    instruction: Instruction
    number: int
    statement: Statement
    value: Typed
    loops: tuple[NeedleLoop, ...]
    result: Slot
    slots: tuple[Slot, ...]
    """What the value reads, in order of first occurrence."""
    refusal: str = ""

    @property
    def combine(self) -> Combine:
        return self.statement.combine

    @property
    def reduced(self) -> frozenset[str]:
        return frozenset(loop.name for loop in self.loops if loop.name not in self.result.loops)

    def slot(self, name: str) -> Slot:
        return next((s for s in self.slots if s.name == name), self.result)


def read_needle(instruction: Instruction, number: int) -> Needle:
    """``instruction``, number ``number`` of its target, taken apart."""
    program = instruction.program
    statement = program.statements[0]
    dtypes = program.dtypes
    value = typed(statement.value, dtypes, dtypes[statement.out.tensor])
    loops = tuple(_loop(loop.name, loop.extent, program.sizes, instruction.constraints) for loop in statement.loops)
    reads = {node.expr.access: None for node in value.walk() if isinstance(node.expr, Read)}
    refusal = _refusal(instruction, tuple(reads))
    sound = not refusal
    slots = tuple(_slot(access, dtypes, loops, sound) for access in reads)
    return Needle(
        instruction, number, statement, value, loops, _slot(statement.out, dtypes, loops, sound), slots, refusal
    )


def _refusal(instruction: Instruction, reads: tuple[Access, ...]) -> str:
    """Why nothing can be bound to it."""
    program = instruction.program
    statement = program.statements[0]
    if len(program.statements) > 1:
        return "computes several statements, mapping binds one"
    if statement.seq or statement.where:
        return "has a guard or a sequence of its own, mapping binds plain loops"
    if any(list(access.reads()) for access in (statement.out, *reads)):
        return "addresses memory through an index, mapping binds direct accesses"
    if any(isinstance(node, Position) for node in walk(statement.value)):
        return "computes with its own loop counters, mapping binds elements"
    if len({access.tensor for access in reads}) < len(reads):
        return "reads one operand in two places, mapping binds one element for each operand"
    return ""


def _loop(name: str, extent: Index, sizes: tuple[Size, ...], constraints: tuple[Condition, ...]) -> NeedleLoop:
    used = [size for size in sizes if size.name in extent.names()]
    if not used:
        return NeedleLoop(name, extent.const, max(1, extent.const))
    if len(used) > 1:
        most = extent.evaluate({size.name: size.high for size in used})
        return NeedleLoop(name, most, max(1, extent.evaluate({size.name: max(1, size.low) for size in used})))
    least, most = _allowed(used[0], constraints)
    return NeedleLoop(name, extent.evaluate({used[0].name: most}), max(1, extent.evaluate({used[0].name: least})))


@lru_cache(maxsize=1024)
def _allowed(size: Size, constraints: tuple[Condition, ...]) -> tuple[int, int]:
    """The least and the greatest value above zero that satisfies every constraint on this size alone."""
    own = [c for c in constraints if c.names() == {size.name}]
    low = max(1, size.low)

    def holds(value: int) -> bool:
        return all(c.holds({size.name: value}) for c in own)

    least = next((v for v in range(low, min(size.high, low + MOST_VALUES) + 1) if holds(v)), low)
    most = next((v for v in range(size.high, max(low, size.high - MOST_VALUES) - 1, -1) if holds(v)), size.high)
    return least, most


def _slot(access: Access, dtypes: Mapping[str, DType], loops: tuple[NeedleLoop, ...], sound: bool) -> Slot:
    used = access.names()
    own = frozenset(loop.name for loop in loops if loop.name in used)
    extents = tuple((loop.name, loop.most) for loop in loops)
    determined = _determined(access.indices, own, extents) if sound else own
    order = dict.fromkeys(name for index in access.indices for name in sorted(index.names() & own))
    plain = told_apart(access.indices, own) == own
    return Slot(access.tensor, dtypes[access.tensor], access, own, determined, tuple(order), plain)


@lru_cache(maxsize=4096)
def _determined(
    indices: tuple[Index, ...], loops: frozenset[str], extents: tuple[tuple[str, int], ...]
) -> frozenset[str]:
    found = told_apart(indices, loops)
    if found == loops:
        return found
    names = {name: f"u{n}" for n, (name, _) in enumerate(extents)}
    known = isl_texts(indices, names)
    if known is None:
        return found
    box = Tiling(tuple(str(e) for _, e in extents), tuple(Group((n,), e) for n, (_, e) in enumerate(extents)))
    return found | frozenset(name for name in loops - found if determines(box, known, (names[name],)))


def told_apart(
    indices: tuple[Index, ...], loops: frozenset[str], extents: Mapping[str, int] | None = None
) -> frozenset[str]:
    """Loops whose values follow from the values of ``indices``, by solving for one loop at a time.

    With ``extents`` also for several that are the digits of an index, as u and p are in 4 * p + u with u < 4."""
    found: set[str] = set()
    while True:
        fresh: set[str] = set()
        for index in indices:
            unknown = (index.names() & loops) - found
            if len(unknown) == 1 and index.coefficient(*unknown):
                quasi = any(not isinstance(atom, str) and unknown & _names(atom) for atom, _ in index.terms)
                fresh |= set() if quasi else unknown
            elif _are_digits(index, unknown, extents or {}):
                fresh |= unknown
        if not fresh:
            return frozenset(found)
        found |= fresh


def _are_digits(index: Index, loops: frozenset[str], extents: Mapping[str, int]) -> bool:
    """Whether each of ``loops`` moves ``index`` further than all that move it less do together."""
    if not loops <= extents.keys() or any(not isinstance(atom, str) for atom, _ in index.terms):
        return False
    reach = 0
    for coefficient, loop in sorted((abs(index.coefficient(loop)), loop) for loop in loops):
        if coefficient <= reach:
            return False
        reach += coefficient * max(0, extents[loop] - 1)
    return bool(loops)


def _names(atom: Atom) -> frozenset[str]:
    if isinstance(atom, str):
        return frozenset((atom,))
    return atom.names() if isinstance(atom, Access) else atom.index.names()
