"""Terms on which a rule can fire: its left side, with random types, sizes, functions and data for its metas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from random import Random

from dovetail.base.errors import DovetailError
from dovetail.ir.functional.infer import infer
from dovetail.ir.functional.inference import Inference
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.sizes import substitute
from dovetail.ir.functional.term import Definition, Literal, Param, Pattern, Scalar, Term
from dovetail.ir.functional.type_text import parse_type
from dovetail.ir.functional.types import Array, Function, Tuple, Type, Unknown, shape
from dovetail.ir.index import Index, constant
from dovetail.ir.program import Role
from dovetail.rewrite.algebra import neutral
from dovetail.rewrite.build import build
from dovetail.rewrite.check.draw import DTYPES, STARTS, Draw
from dovetail.rewrite.conditions import Test
from dovetail.rewrite.match import Binding
from dovetail.rewrite.rule import RESULT, Rule, compiled, term_metas

_SIZES = (0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6, 8)
_SMALL = (0, 1, 1, 2, 2, 2, 3, 3)
_LARGE = (4, 6, 8, 9, 12)
"""Settings and sizes of data that mostly fit each other."""
MOST_ELEMENTS = 600
"""Of one operand: terms are small, so that many can be run."""
_HINTS = {
    "bilinear": parse_type("(?e[?e_size], ?e[?e_size]) -> ?e_result"),
    "associative": parse_type("(?a, ?a) -> ?a"),
}
"""Types of functions that are likely to be what a condition asks for."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """The types of a rule's metas, and what in them is free."""

    before: Term
    metas: Mapping[str, Type]
    settings: tuple[str, ...]
    sizes: Mapping[str, Index]
    """Values of settings that follow from others."""
    starts: tuple[tuple[str, str], ...]
    """Functions, and metas that should be their neutral elements."""
    known: Mapping[str, Term]
    """The plainest terms that metas of which a condition asks something can be: sums."""


def scheme_of(rule: Rule, hints: bool = False) -> Scheme:
    """Types of the metas of the left side, by inference; ``hints`` narrows them to what ``when`` is likely to take."""
    read = compiled(rule)
    inference = Inference()
    found = inference.infer(read.before, {})
    for name, kind in read.types:
        own = found if name == RESULT else inference.metas.get(name)
        if own is not None:
            inference.demand(own, kind, f"the type of ?{name} in rule '{rule.name}'")
    for test in read.conditions if hints else ():
        if isinstance(test, Test) and test.predicate in _HINTS:
            inference.demand(inference.metas[test.metas[0]], _HINTS[test.predicate], f"the type of ?{test.metas[0]}")
    inference.settle()
    typing = inference.typing(found)
    settings = tuple(sorted(term_metas(read.before) - set(typing.metas)))
    sizes = {name: inference.resolve_size(index) for name, index in typing.sizes.items()}
    asked = (test.metas for test in read.conditions if isinstance(test, Test) and test.predicate == "neutral")
    starts = tuple((metas[0], metas[1]) for metas in asked)
    sums = [t.metas[0] for t in read.conditions if isinstance(t, Test) and t.predicate == "associative"]
    known: dict[str, Term] = {name: Scalar("add") for name in sums}
    known |= {start: Literal(0) for _, start in starts}
    return Scheme(read.before, typing.metas, settings, sizes, starts, known)


def subjects(rule: Rule, random: Random, dtypes: tuple[str, ...] = ()) -> Iterator[Definition | None]:
    """Definitions whose body is an instance of the left side, without end; None for a draw that has no type.

    ``dtypes`` are those that numbers are drawn from.
    """
    schemes = [scheme_of(rule), scheme_of(rule, hints=True)]
    bilinear = any(isinstance(test, Test) and test.predicate == "bilinear" for test in compiled(rule).conditions)
    while True:
        draw = Draw(random, dtypes or DTYPES, bilinear)
        try:
            found = _subject(random.choice(schemes), draw)
        except DovetailError:
            found = None
        yield found


def unknown_sizes(scheme: Scheme) -> frozenset[str]:
    """Sizes that can be anything, settings too; the others follow from them."""
    found = {name for index in _indices(scheme) for name in _unknown(index)} | {f"?{name}" for name in scheme.settings}
    return frozenset(found - scheme.sizes.keys())


def unknown_types(scheme: Scheme) -> frozenset[str]:
    """Types that can be anything."""
    return frozenset(name for kind in scheme.metas.values() for name in _type_names(kind))


def _subject(scheme: Scheme, draw: Draw) -> Definition | None:
    """One draw; None or an error where its sizes do not fit each other."""
    names = sorted(
        {name for index in _indices(scheme) for name in _unknown(index)} | {f"?{n}" for n in scheme.settings}
    )
    settings = {f"?{name}" for name in scheme.settings}
    apart = draw.random.random() < 0.5
    sizes = {
        name: constant(draw.random.choice((_SMALL if name in settings else _LARGE) if apart else _SIZES))
        for name in names
    }
    sizes |= {name: substitute(index, sizes) for name, index in scheme.sizes.items()}
    kinds: dict[str, Type] = {}
    for name in sorted(unknown_types(scheme)):
        again = kinds and draw.random.random() < 0.5
        kinds[name] = draw.random.choice(list(kinds.values())) if again else draw.kind()
    types = {name: filled(kind, kinds, sizes) for name, kind in scheme.metas.items()}
    if not all(map(_sound, types.values())):
        return None
    terms = {name: draw.term(kind) for name, kind in types.items()}
    for function, start in scheme.starts:
        terms[start] = _start(terms[function], types[start], terms[start])
    given = {name: sizes[f"?{name}"] for name in scheme.settings}
    return _definition(build(scheme.before, Binding(terms, given, {})), draw)


def _start(function: Term, kind: Type, otherwise: Term) -> Term:
    """The neutral element of a function, where it has one."""
    extents, _ = shape(kind)
    for value in STARTS:
        start: Term = Literal(value)
        for size in reversed(extents):
            start = Pattern("repeat", (size,), (start,))
        if neutral(function, start):
            return start
    return otherwise


def _definition(body: Term | None, draw: Draw) -> Definition | None:
    if body is None:
        return None
    params = tuple(Param(Role.IN, name, kind) for name, kind in draw.params.items())
    infer(body, draw.params)
    return Definition("subject", params, ("result",), simplify(body))


def _indices(scheme: Scheme) -> Iterator[Index]:
    for kind in scheme.metas.values():
        yield from _sizes_in(kind)
    yield from scheme.sizes.values()


def _sizes_in(kind: Type) -> Iterator[Index]:
    match kind:
        case Array(size, element):
            yield size
            yield from _sizes_in(element)
        case Tuple(members):
            for member in members:
                yield from _sizes_in(member)
        case Function(params, result):
            for part in (*params, result):
                yield from _sizes_in(part)


def _unknown(index: Index) -> Iterator[str]:
    """Single unknown sizes; products and quotients hold several."""
    for name in index.names():
        yield from re.findall(r"\?\w+", name)


def _type_names(kind: Type) -> Iterator[str]:
    match kind:
        case Unknown(name):
            yield name
        case Array(_, element):
            yield from _type_names(element)
        case Tuple(members):
            for member in members:
                yield from _type_names(member)
        case Function(params, result):
            for part in (*params, result):
                yield from _type_names(part)


def filled(kind: Type, kinds: Mapping[str, Type], sizes: Mapping[str, Index]) -> Type:
    """``kind`` with nothing unknown left."""
    match kind:
        case Unknown(name):
            return kinds[name]
        case Array(size, element):
            return Array(substitute(size, sizes), filled(element, kinds, sizes))
        case Tuple(members):
            return Tuple(tuple(filled(member, kinds, sizes) for member in members))
        case Function(params, result):
            return Function(tuple(filled(p, kinds, sizes) for p in params), filled(result, kinds, sizes))
    return kind


def _sound(kind: Type) -> bool:
    """Whether its sizes are positive numbers, and not too many elements."""
    match kind:
        case Tuple(members):
            return all(map(_sound, members))
        case Function(params, result):
            return all(map(_sound, (*params, result)))
    extents, inner = shape(kind)
    numbers = [size.const if size.is_constant else 0 for size in extents]
    return (
        min(numbers, default=1) > 0
        and prod(numbers) <= MOST_ELEMENTS
        and (not isinstance(inner, Tuple) or _sound(inner))
    )
