"""The patterns of the functional language, one row each: settings, terms, type, meaning.

``settings`` are known when a term is compiled and are written first; ``terms`` follow, the data last. Leaving terms
out from the right gives a function of those. The scheme is the type of the pattern as a function of its terms; a
setting's name with ``?`` is its value there. Where the number of terms is free (``several``), or the type depends on
more than sizes, there is no scheme and ``infer`` has a function for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dovetail.base.dtypes import DTYPES
from dovetail.ir.functional.term import Call, Pattern, Scalar, Term
from dovetail.ir.functional.type_text import parse_type
from dovetail.ir.functional.types import Function, Type
from dovetail.ir.primitives import PRIMITIVES


@dataclass(frozen=True, slots=True)
class Setting:
    """``kind`` is size, number (not negative), memory, combine (``=``, ``+=``, ...), places; several: sizes, writes.

    A write is a combine, the number of the array that is written, and places; the first loops of these are the steps.
    """

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class PatternRow:
    """One operation on whole arrays."""

    name: str
    settings: tuple[Setting, ...]
    terms: tuple[str, ...]
    scheme: Type | None
    doc: str
    several: bool = False
    """Whether it takes any number of terms, at least as many as ``terms`` names."""


def _row(name: str, settings: str, terms: str, scheme: str, doc: str, several: bool = False) -> PatternRow:
    """``settings`` are ``name:kind`` words; a setting without a kind is a size."""
    found = tuple(Setting(*(word.split(":") if ":" in word else (word, "size"))) for word in settings.split())
    return PatternRow(name, found, tuple(terms.split()), parse_type(scheme) if scheme else None, doc, several)


PATTERNS = {
    row.name: row
    for row in (
        _row("map", "", "f x", "(?a -> ?b, ?a[?n]) -> ?b[?n]", "f of every element"),
        _row("reduce", "", "f z x", "((?s, ?e) -> ?s, ?s, ?e[?n]) -> ?s", "all elements combined by f from z on"),
        _row("scan", "", "f z x", "((?s, ?e) -> ?s, ?s, ?e[?n]) -> ?s[?n]", "the state after each element, in order"),
        _row("zip", "", "x", "", "arrays of one size as an array of tuples", several=True),
        _row("slide", "n step", "x", "?a[?m] -> ?a[(?m - ?n) // ?step + 1, ?n]", "windows of n, step apart"),
        _row("split", "n", "x", "?a[?k * ?n] -> ?a[?k, ?n]", "parts of n elements each"),
        _row("join", "", "x", "?a[?k, ?n] -> ?a[?k * ?n]", "an array of arrays, end to end"),
        _row("transpose", "", "x", "?a[?m, ?n] -> ?a[?n, ?m]", "the two outermost dimensions swapped"),
        _row("pad", "left right", "z x", "(?a, ?a[?n]) -> ?a[?n + ?left + ?right]", "z before and after the elements"),
        _row("to", "memory:memory", "x", "?a -> ?a", "a stored copy in a memory"),
        _row(
            "call", "instruction:memory", "f x", "", "f of the terms, done by an instruction of a machine", several=True
        ),
        _row("tuple", "", "a", "", "several values side by side", several=True),
        _row("get", "k:number", "t", "", "member k of a tuple"),
        _row("array", "", "e", "", "values of one type as an array", several=True),
        _row("iota", "n", "", "i64[?n]", "0, 1, ... n - 1"),
        _row("repeat", "n", "x", "?a -> ?a[?n]", "n copies of a value"),
        _row("slice", "start count step", "x", "?a[?m] -> ?a[?count]", "count elements from start on, step apart"),
        _row("view", "places:places", "x", "", "elements at places: none where a condition is false"),
        _row("scatter", "combine:combine sizes:sizes places:places", "x", "", "elements combined at places"),
        _row("steps", "loops:number writes:writes", "f s", "", "arrays changed in place, step by step"),
    )
}

WORDS = frozenset(
    {*PATTERNS, *PRIMITIVES, *DTYPES, *(f"bitcast_{d}" for d in DTYPES)}
    | {"orelse", "none", "true", "false", "inf", "nan", "let", "in", "def", "size", "where", "const", "inout"}
)
"""Names that have a meaning in the language and cannot be bound."""


def arity(term: Pattern | Scalar) -> int:
    """How many terms it takes in all; as many as it has where the number is free."""
    if isinstance(term, Pattern):
        row = PATTERNS[term.name]
        return max(len(term.args), len(row.terms)) if row.several else len(row.terms)
    return scalar_arity(term.function)


def scalar_arity(function: str) -> int:
    """How many values a primitive, a cast or ``orelse`` takes."""
    if function == "orelse":
        return 2
    return PRIMITIVES[function].arity if function in PRIMITIVES else 1


def missing(term: Term) -> int:
    """How many terms a pattern or primitive still waits for: it is a function of so many."""
    return arity(term) - len(term.args) if isinstance(term, Pattern | Scalar) else 0


def apply(function: Term, args: tuple[Term, ...]) -> Term:
    """``function`` applied: a pattern or primitive takes the terms it waits for, anything else is called.

    One value for a function of several is the tuple of them, not the first.
    """
    if isinstance(function, Pattern | Scalar) and missing(function) == len(args):
        return replace(function, args=(*function.args, *args))
    return Call(function, args)


def scheme_of(name: str) -> tuple[tuple[Type, ...], Type] | None:
    """Types of the terms and of the result; None where there is no scheme."""
    scheme = PATTERNS[name].scheme
    if scheme is None:
        return None
    return (scheme.params, scheme.result) if isinstance(scheme, Function) else ((), scheme)
