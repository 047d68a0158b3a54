"""What a rule may ask for under ``when``, and where the sizes come from that it may ``choose``: two closed tables.

when   = size comparison size | ["not"] predicate ["(" "?" name, ... ")"]
choose = name ":" source "(" size, ... ")"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dovetail.base.errors import ParseError, RuleError
from dovetail.base.suggest import closest
from dovetail.ir.functional.simplify import same
from dovetail.ir.functional.sizes import parse_size
from dovetail.ir.functional.term import Lambda, Let, Literal, Pattern, Term, Var, free_names
from dovetail.ir.functional.types import Array, Scalar, Type, shape
from dovetail.ir.index import Index, constant
from dovetail.ir.program import Size
from dovetail.rewrite import algebra
from dovetail.rewrite.match import Binding
from dovetail.rewrite.sizes import Comparison, holds, index_metas, parse_comparison, resolve

_PREDICATE = re.compile(r"\s*(not\s+)?([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*")
_CHOICE = re.compile(r"\s*\??([A-Za-z_]\w*)\s*:\s*([A-Za-z_]\w*)\s*\((.*)\)\s*")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known where a rule may fire."""

    binding: Binding[Term]
    type_of: Callable[[str], Type | None] = lambda name: None
    """The type of what a meta stands for."""
    ranges: Mapping[str, Size] = field(default_factory=dict)
    constants: frozenset[str] = frozenset()
    """Parameters whose values never change."""
    allowed: frozenset[str] = frozenset()
    """What the user vouches for: ``finite``."""

    def term(self, name: str) -> Term:
        return self.binding.terms[name]


@dataclass(frozen=True, slots=True)
class Predicate:
    """One row of the table: of how many metas, what it means."""

    name: str
    arity: int
    meaning: Callable[..., bool]
    doc: str


@dataclass(frozen=True, slots=True)
class Test:
    """A predicate and the metas it is asked of."""

    predicate: str
    metas: tuple[str, ...]
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A size of the right side alone, and where its values come from."""

    name: str
    source: str
    args: tuple[Index, ...]


Condition = Comparison | Test


def parse_condition(text: str, table: Mapping[str, tuple[int, str]] | None = None) -> Condition:
    """Text -> comparison or predicate, which must be known and have as many metas as it takes.

    ``table`` says of each predicate how many and what it means; those of terms where it is not given.
    """
    found = _PREDICATE.fullmatch(text)
    if found is None:
        return parse_comparison(text)
    negated, name, inside = found.groups()
    table = table or {row.name: (row.arity, row.doc) for row in PREDICATES.values()}
    if name not in table:
        raise RuleError(f"unknown predicate '{name}'", hint=closest(name, table))
    metas = tuple(word.strip() for word in inside.split(",")) if inside else ()
    expected, doc = table[name]
    if len(metas) != expected or any(not re.fullmatch(r"\?[A-Za-z_]\w*", meta) for meta in metas):
        shown = f"{name}({', '.join(f'?{letter}' for letter in 'abc'[:expected])})" if expected else name
        raise RuleError(f"'{text}' is not how '{name}' is asked", hint=f"{shown}: {doc}")
    return Test(name, tuple(meta[1:] for meta in metas), not negated)


def parse_choice(text: str) -> Choice:
    """``n: divisors(?m)`` -> choice."""
    found = _CHOICE.fullmatch(text)
    if found is None:
        raise RuleError(f"'{text}' does not say where the size comes from", hint="n: divisors(?m)")
    name, source, inside = found.groups()
    if source not in SOURCES:
        raise RuleError(f"unknown source '{source}' of a size", hint=closest(source, SOURCES))
    try:
        return Choice(name, source, tuple(parse_size(part) for part in inside.split(",")))
    except ParseError as problem:
        raise RuleError(problem.what, where=problem.where, hint=f"{name}: {source}(?m)") from None


def condition_metas(condition: Condition) -> frozenset[str]:
    """The metas a condition speaks of."""
    if isinstance(condition, Test):
        return frozenset(condition.metas)
    return index_metas(condition.left) | index_metas(condition.right)


def satisfied(condition: Condition, facts: Facts) -> bool:
    """Whether a condition is known to be true; what is not known is not."""
    if isinstance(condition, Test):
        return PREDICATES[condition.predicate].meaning(facts, *condition.metas) == condition.wanted
    return holds(condition, facts.binding.settings, facts.ranges)


def values_of(choice: Choice, binding: Binding[Term]) -> tuple[int, ...]:
    """The sizes that may be chosen, smallest first; none where a size is only known at run time."""
    sizes = [resolve(arg, binding.settings) for arg in choice.args]
    if any(size is None or not size.is_constant for size in sizes):
        return ()
    return tuple(SOURCES[choice.source](*(size.const for size in sizes if size is not None)))


def _is_stored(facts: Facts, name: str) -> bool:
    term = facts.term(name)
    return isinstance(term, Var) or (isinstance(term, Pattern) and term.name == "to")


def _is_constant(facts: Facts, name: str) -> bool:
    return free_names(facts.term(name)) <= facts.constants


def _element(facts: Facts, name: str) -> Type | None:
    kind = facts.type_of(name)
    return None if kind is None else shape(kind)[1]


def _is_float(facts: Facts, name: str) -> bool:
    element = _element(facts, name)
    return isinstance(element, Scalar) and element.dtype.is_float


def _is_integer(facts: Facts, name: str) -> bool:
    element = _element(facts, name)
    return isinstance(element, Scalar) and not element.dtype.is_float


def _are_different(facts: Facts, first: str, second: str) -> bool:
    return not same(facts.term(first), facts.term(second))


def _may_be_filled(facts: Facts, name: str, factor: str) -> bool:
    return "finite" in facts.allowed or algebra.total(facts.term(name)) or _is_integer(facts, factor)


PREDICATES = {
    row.name: row
    for row in (
        Predicate(
            "associative", 1, lambda facts, f: algebra.associative(facts.term(f)), "f(f(a, b), c) = f(a, f(b, c))"
        ),
        Predicate("commutative", 1, lambda facts, f: algebra.commutative(facts.term(f)), "f(a, b) = f(b, a)"),
        Predicate("idempotent", 1, lambda facts, f: algebra.idempotent(facts.term(f)), "f(a, a) = a"),
        Predicate(
            "neutral", 2, lambda facts, f, z: algebra.neutral(facts.term(f), facts.term(z)), "second: f(z, a) = a"
        ),
        Predicate(
            "distributes",
            2,
            lambda facts, f, g: algebra.distributes(facts.term(f), facts.term(g)),
            "first over second: f(a, g(b, c)) = g(f(a, b), f(a, c))",
        ),
        Predicate("linear", 1, lambda facts, f: algebra.linear(facts.term(f)), "a function of one value, linear in it"),
        Predicate("bilinear", 1, lambda facts, b: algebra.bilinear(facts.term(b)), "of two values, linear in each"),
        Predicate("strict", 1, lambda facts, f: algebra.strict(facts.term(f)), "gives none where a value is none"),
        Predicate("total", 1, lambda facts, x: algebra.total(facts.term(x)), "there is no none in it"),
        Predicate("stored", 1, _is_stored, "it has a name, or lies in a memory"),
        Predicate("constant", 1, _is_constant, "it is made of constant parameters and numbers alone"),
        Predicate("literal", 1, lambda facts, x: isinstance(facts.term(x), Literal), "it is a number"),
        Predicate("function", 1, lambda facts, f: isinstance(facts.term(f), Lambda), "it is written as a function"),
        Predicate("lets", 1, lambda facts, x: isinstance(facts.term(x), Let), "it begins with a let"),
        Predicate("scalar", 1, lambda facts, x: isinstance(facts.type_of(x), Scalar), "it is one number"),
        Predicate("array", 1, lambda facts, x: isinstance(facts.type_of(x), Array), "it is an array"),
        Predicate("float", 1, _is_float, "its numbers are floats"),
        Predicate("integer", 1, _is_integer, "its numbers are integers"),
        Predicate("different", 2, _are_different, "they are not the same term"),
        Predicate(
            "filled",
            2,
            _may_be_filled,
            "the first leaves nothing out, or zeros may stand there: the second, which they meet, is finite",
        ),
        Predicate("finite", 0, lambda facts: "finite" in facts.allowed, "the user says: no infinities and no NaN"),
    )
}


OF_TYPES = frozenset({"scalar", "array", "float", "integer"})
"""Predicates of types: they may be asked of ``?t``, too."""


def _divisors(size: int) -> tuple[int, ...]:
    return tuple(part for part in range(2, size) if size % part == 0)


def _powers(size: int) -> tuple[int, ...]:
    return tuple(2**power for power in range(1, size.bit_length()) if 2**power <= size)


def _between(low: int, high: int) -> tuple[int, ...]:
    return tuple(range(low, high + 1))


SOURCES: dict[str, Callable[..., tuple[int, ...]]] = {
    "divisors": _divisors,
    "powers": _powers,
    "between": _between,
    "one_of": lambda *sizes: sizes,
}
"""Divisors other than 1 and the size itself; powers of two up to a size; all from .. to; those listed."""


def chosen(binding: Binding[Term], name: str, value: int) -> Binding[Term]:
    """The binding with one more size."""
    return Binding(binding.terms, {**binding.settings, name: constant(value)}, binding.types, binding.inside)
