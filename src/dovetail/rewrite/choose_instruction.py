"""Which instruction does a single operation, and in which sizes: the fewest cycles of all that match.

A spelling of an instruction matches without regard to sizes. Each loop then runs in parts as large as the instruction
allows; what does not divide is padded. Cycles are those that the target file states, times the calls that are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from dovetail.base.dtypes import DTYPES, DType, join
from dovetail.ir.functional.infer import typing_of
from dovetail.ir.functional.term import Definition, Lambda, Pattern, Scalar, Term, walk
from dovetail.ir.functional.types import Array, Type, shape
from dovetail.ir.functional.types import Scalar as Number
from dovetail.rewrite.match import match
from dovetail.rewrite.passes import is_view
from dovetail.rewrite.rule import compiled
from dovetail.rewrite.run import Run
from dovetail.rewrite.shape import Node, label_of, shape_of
from dovetail.rewrite.shape import Shape as Matched
from dovetail.rewrite.tables.arithmetic import ARITHMETIC
from dovetail.rewrite.tables.hardware import Spelling, spellings
from dovetail.rewrite.tables.instruction_sizes import allowed, are_allowed, largest, least_above, parameter
from dovetail.rewrite.typed import Path
from dovetail.rewrite.unit_sites import LAYOUT
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.model import Instruction, Target


@dataclass(frozen=True, slots=True)
class Candidate:
    """A spelling that matches at a place, with the sizes its loops have and those of one call."""

    at: Path
    spelling: Spelling
    given: tuple[DType, ...]
    """Of the operands as they are."""
    sizes: Mapping[str, int]
    parts: Mapping[str, int]
    cycles: float
    calls: int

    @property
    def price(self) -> tuple[float, bool, int, int]:
        """Cycles first; then a spelling without loops that run once, fewer calls, less padding."""
        return self.cycles, bool(self.spelling.once), self.calls, prod(self.parts.values())


def best_candidate(run: Run, value: Path, machine: Machine) -> Candidate | None:
    """The cheapest way to do the operation that a stored value is; None where no instruction does it."""
    return min(candidates(run, value, machine), key=lambda c: c.price, default=None)


def candidates(run: Run, value: Path, machine: Machine) -> Iterator[Candidate]:
    """Every instruction that matches in the nest of a stored value."""
    known = families(machine)
    for at, times in places(run, value, 1):
        term = run.at(at)
        for family in known.get(label_of(term), ()):
            binding = next(match(family.pattern, term, run.context.host), None)
            if binding is not None:
                kinds = [run.whole.type_inside(at, binding.terms[name]) for name in family.operands]
                yield from _sized_all(family, at, kinds, run.type_at(at), times)


@dataclass(frozen=True, slots=True)
class Family:
    """Spellings that match the same terms, of whatever sizes and dtypes."""

    pattern: Matched
    operands: tuple[str, ...]
    spellings: tuple[Spelling, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """A target as far as a definition needs it: instructions that apply only ``functions`` to only ``dtypes``."""

    target: Target
    functions: frozenset[str]
    dtypes: frozenset[str]


def machine_for(definition: Definition, target: Target) -> Machine:
    """What of a target may do some of a definition, or of what rules of arithmetic make of it."""
    types = typing_of(definition).at.values()
    scalars = {part.function for part in walk(definition.body) if isinstance(part, Scalar)}
    written = {part.function for rule in ARITHMETIC for part in walk(compiled(rule).after) if isinstance(part, Scalar)}
    dtypes = {str(shape(kind)[1]) for kind in types} & DTYPES.keys()
    wider = {name for name in DTYPES if any(widens(DTYPES[d], DTYPES[name]) for d in dtypes)}
    return Machine(target, frozenset(scalars | written | {"cast"}), frozenset(dtypes | wider))


@lru_cache(64)
def families(machine: Machine) -> dict[str, tuple[Family, ...]]:
    """The spellings of a machine by the outermost operation of what they match."""
    by_key: dict[Term, list[Spelling]] = {}
    for spelling in spellings(machine.target, machine.functions, machine.dtypes):
        by_key.setdefault(spelling.shape.key, []).append(spelling)
    found: dict[str, list[Family]] = {}
    for several in by_key.values():
        first = several[0]
        pattern = shape_of(first.shape.pattern)
        if isinstance(pattern, Node):
            names = tuple(name for name, _ in first.shape.operands)
            found.setdefault(pattern.label, []).append(Family(pattern, names, tuple(several)))
    return {label: tuple(several) for label, several in found.items()}


def places(run: Run, at: Path, times: int) -> Iterator[tuple[Path, int]]:
    """Places in a nest where one operation may begin, and how often each is done."""
    term = run.at(at)
    yield at, times
    match term:
        case Pattern("map", _, (function, _)) if is_view(function):
            yield from places(run, (*at, 1), times)
        case Pattern("map", _, (Lambda(), _)):
            kind = run.type_at(at)
            count = kind.size.const if isinstance(kind, Array) and kind.size.is_constant else 1
            yield from places(run, (*at, 0, 0), times * max(1, count))
        case Pattern(name, _, args) if name in LAYOUT and name != "zip":
            for number in range(len(args)):
                yield from places(run, (*at, number), times)


def _sized_all(family: Family, at: Path, kinds: list[Type | None], result: Type, times: int) -> Iterator[Candidate]:
    _, element = shape(result)
    for spelling in family.spellings:
        found = _sizes(spelling, kinds) if element == Number(spelling.result) else None
        if found is not None:
            yield from _sized(at, spelling, *found, times)


def _sizes(spelling: Spelling, kinds: list[Type | None]) -> tuple[tuple[DType, ...], dict[str, int]] | None:
    """Dtypes of the operands and sizes of the loops; None where they are not those of the instruction."""
    sizes: dict[str, int] = {}
    dtypes: list[DType] = []
    for (_, loops), wanted, kind in zip(spelling.shape.operands, spelling.operands, kinds, strict=True):
        extents, element = shape(kind) if kind is not None else ((), None)
        if not isinstance(element, Number) or len(extents) != len(loops):
            return None
        if not widens(element.dtype, wanted):
            return None
        for loop, extent in zip(loops, extents, strict=True):
            if not extent.is_constant or sizes.setdefault(loop, extent.const) != extent.const:
                return None
        dtypes.append(element.dtype)
    return tuple(dtypes), sizes


def widens(given: DType, wanted: DType) -> bool:
    """Whether ``wanted`` is of the same kind and holds all values of ``given``."""
    return given.kind is wanted.kind and (join(given, wanted) == wanted)


def _sized(
    at: Path, spelling: Spelling, given: tuple[DType, ...], sizes: dict[str, int], times: int
) -> Iterator[Candidate]:
    instruction = spelling.instruction
    once = {loop: least_above(instruction, loop, 1) or 1 for loop in spelling.once}
    parts = {loop: _part(instruction, loop, size) for loop, size in sizes.items()}
    while parts and not are_allowed(instruction, {**parts, **once}):
        widest = max(parts, key=lambda loop: parts[loop])
        smaller = largest(instruction, widest, parts[widest] - 1)
        if smaller >= parts[widest]:
            return
        parts[widest] = smaller
    calls = times * prod(-(-size // parts[loop]) for loop, size in sizes.items())
    values = {name: size for loop, size in {**parts, **once}.items() if (name := parameter(instruction, loop))}
    yield Candidate(at, spelling, given, sizes, parts, calls * evaluate_cost(instruction.cycles, values), calls)


@lru_cache(4096)
def _part(instruction: Instruction, loop: str, size: int) -> int:
    """What one call does of a loop: the part that needs least padding, the largest of those."""
    most = largest(instruction, loop, size)
    whole = least_above(instruction, loop, size)
    options = [v for v in allowed(instruction, loop) if most // 2 < v <= most] or [most]
    if whole is not None:
        options.append(whole)
    return min(options, key=lambda part: (-(-size // part) * part, -part))
