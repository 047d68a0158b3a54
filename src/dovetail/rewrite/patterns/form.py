"""What both sides of a pattern are: operations on holes, as a small graph in which equal parts are one.

part = ?x | number | operation | one of several results
     | repeat ?n: a chain of steps, each made of the one before it           (a form of its own for the step)
     | each: on the right side, as many operands as the chain had steps

A part stands behind the parts it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dovetail.rewrite.graph_text import AnyAttribute, AttributeTerm, MadeAttribute


@dataclass(frozen=True, slots=True)
class Hole:
    """``?x``: any value, the same one at every place."""

    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """``each(?b)`` in a step: any value, another one at every step."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A constant all of whose elements are this number."""

    value: float


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator on parts; ``results`` is how many values it makes."""

    op: str
    operands: tuple[int, ...]
    attributes: tuple[tuple[str, AttributeTerm], ...] = ()
    results: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    """One of the values of an operation that makes several."""

    operation: int
    number: int


@dataclass(frozen=True, slots=True)
class Chain:
    """``count`` steps, each a ``step`` whose hole ``previous`` is the step before; that of the first is ``start``."""

    count: str
    least: int
    start: int
    previous: str
    step: Form


@dataclass(frozen=True, slots=True)
class Each:
    """For every step of a chain: what ``form`` makes of that step's values."""

    form: Form


Part = Hole | Item | Number | Operation | Result | Chain | Each


@dataclass(frozen=True)
class Form:
    """Parts, and which of them are what the pattern makes. Not slotted: what follows from it is worked out once."""

    parts: tuple[Part, ...]
    sinks: tuple[int, ...]

    def operations(self) -> Iterator[Operation]:
        """Every operation, those of steps too."""
        for part in self.parts:
            if isinstance(part, Operation):
                yield part
            for inner in inner_forms(part):
                yield from inner.operations()

    def chains(self) -> tuple[Chain, ...]:
        return tuple(part for part in self.parts if isinstance(part, Chain))

    @cached_property
    def holes(self) -> frozenset[str]:
        """Names of values; what a step calls the one before it is none."""
        found = {part.name for part in self.parts if isinstance(part, Hole | Item)}
        for part in self.parts:
            for inner in inner_forms(part):
                found |= inner.holes - {part.previous if isinstance(part, Chain) else ""}
        return frozenset(found)

    @cached_property
    def items(self) -> frozenset[str]:
        """Holes of which every step has its own."""
        own = {part.name for part in self.parts if isinstance(part, Item)}
        return frozenset(own).union(*(inner.items for part in self.parts for inner in inner_forms(part)))

    @cached_property
    def attribute_metas(self) -> frozenset[str]:
        """Names of attributes."""
        return frozenset().union(*(_metas(term) for one in self.operations() for _, term in one.attributes))


def inner_forms(part: Part) -> tuple[Form, ...]:
    """The forms inside a part."""
    match part:
        case Chain():
            return (part.step,)
        case Each(form):
            return (form,)
    return ()


def reads(part: Part) -> tuple[int, ...]:
    """The parts that a part reads."""
    match part:
        case Operation():
            return part.operands
        case Result(operation, _):
            return (operation,)
        case Chain():
            return (part.start,)
    return ()


@dataclass(slots=True)
class FormBuilder:
    """Parts added one by one; one that is already there is not added again."""

    depth: int = 0
    """1 for the step of a repetition."""
    parts: list[Part] = field(default_factory=list)
    _places: dict[Part, int] = field(default_factory=dict)

    def add(self, part: Part) -> int:
        if part not in self._places:
            self._places[part] = len(self.parts)
            self.parts.append(part)
        return self._places[part]

    def form(self, *sinks: int) -> Form:
        """The parts that the sinks need."""
        needed = set(sinks)
        for place in range(len(self.parts) - 1, -1, -1):
            if place in needed:
                needed.update(reads(self.parts[place]))
        places = {old: new for new, old in enumerate(sorted(needed))}
        return Form(tuple(_moved(self.parts[old], places) for old in places), tuple(places[sink] for sink in sinks))


def unrolled(chain: Chain, count: int) -> Form:
    """The last ``count`` steps of a chain, written out; what comes before them may be anything."""
    builder = FormBuilder()
    value = builder.add(Hole("?"))
    for number in range(count):
        places: dict[int, int] = {}
        for place, part in enumerate(chain.step.parts):
            match part:
                case Hole(name) if name == chain.previous:
                    places[place] = value
                case Item(name):
                    places[place] = builder.add(Hole(f"{name} {number}"))
                case _:
                    places[place] = builder.add(_moved(part, places))
        value = places[chain.step.sinks[0]]
    return builder.form(value)


def _moved(part: Part, places: dict[int, int]) -> Part:
    match part:
        case Operation(op, operands, attributes, results):
            return Operation(op, tuple(places[one] for one in operands), attributes, results)
        case Result(operation, number):
            return Result(places[operation], number)
        case Chain(count, least, start, previous, step):
            return Chain(count, least, places[start], previous, step)
    return part


def _metas(term: AttributeTerm) -> frozenset[str]:
    match term:
        case AnyAttribute(name):
            return frozenset((name,))
        case MadeAttribute(_, args):
            return frozenset().union(*map(_metas, args))
    return frozenset()
