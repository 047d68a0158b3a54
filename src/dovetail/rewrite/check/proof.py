"""Proofs of rules that only move elements: for all values of run-time sizes, by isl.

The left side is made with opaque functions of numbers and with symbolic sizes where the language allows them, the
engine fires the rule, both sides are normalised, and the programs are compared: equal text, or the same elements read
for each element written. Split factors and window sizes are numbers; several are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import DovetailError, RewriteError
from dovetail.ir.functional.infer import infer
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.sizes import is_solved, substitute
from dovetail.ir.functional.term import Definition, Literal, Param, Pattern, Scalar, Term, Var
from dovetail.ir.functional.types import Array, Function, Tuple, Type, Unknown, shape
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.index import Index, constant, variable
from dovetail.ir.program import Program, Role, Size
from dovetail.rewrite.apply import context_of, rewrites
from dovetail.rewrite.build import build
from dovetail.rewrite.check.accesses import first_difference, is_plain
from dovetail.rewrite.check.subjects import Scheme, filled, scheme_of, unknown_sizes, unknown_types
from dovetail.rewrite.check.values import NOT_THERE, numbers_in
from dovetail.rewrite.match import Binding
from dovetail.rewrite.rule import Rule, compiled
from dovetail.rewrite.typed import Typed

OPAQUE = {1: ("exp", "tanh", "sin", "cos"), 2: ("pow", "div")}
"""Functions that nothing is known of but their names, by how many values they take."""
STEP = 12
"""A symbolic size is this many times a run-time one, and some more: 2, 3, 4 and 6 can divide it."""
NUMBERS = (2, 2, 3, 4, 8)
"""What other sizes are: never 0 or 1, which many a wrong rule is right for."""
OFFSETS = (0, 0, 1, 2)
SYMBOLS = 2
"""Run-time sizes at once: more are rarely affine together."""
CASES = 4
"""Different sizes and factors that one rule is proven for."""
TRIES = 25
"""Sizes drawn for one choice of which are symbolic."""


@dataclass(frozen=True, slots=True)
class Proof:
    """``cases``: how many choices of numbers it was proven for, each for all values of ``symbols`` run-time sizes."""

    cases: int
    symbols: int
    refuted: str | None = None


def prove(rule: Rule, seed: int = 1) -> Proof:
    """Prove that both sides read the same elements; no case where that cannot be asked."""
    cases, most = 0, 0
    for before, after, symbols in islice(_pairs(rule, Random(seed)), CASES):
        if str(before) != str(after):
            if not (is_plain(before) and is_plain(after)):
                return Proof(cases, most)
            found = first_difference(before, after)
            if found is not None:
                return Proof(cases, most, f"{found}\n{before}\n->\n{after}")
        cases, most = cases + 1, max(most, symbols)
    return Proof(cases, most)


def _pairs(rule: Rule, random: Random) -> Iterator[tuple[Program, Program, int]]:
    """The two sides as programs, for different sizes; with as many symbolic ones as there can be."""
    scheme = scheme_of(rule)
    names = sorted(unknown_sizes(scheme))
    choices = tuple(choice.name for choice in compiled(rule).choices)
    for count in range(min(SYMBOLS, len(names)), 0, -1):
        found = False
        for _ in range(TRIES * (1 + len(names))):
            free = tuple(random.sample(names, count))
            definition = _definition(scheme, _sizes(names, free, random), count)
            numbers = {name: random.choice((2, 3)) for name in choices}
            sides = None if definition is None else _programs(definition, rule, numbers)
            for one, other in sides or ():
                found = True
                yield one, other, count
        if found:
            return


def _sizes(names: list[str], free: tuple[str, ...], random: Random) -> dict[str, Index]:
    """Values of unknown sizes: symbolic ones and somewhat more, others small numbers."""
    return {
        name: variable(f"n{free.index(name)}") * STEP + random.choice(OFFSETS)
        if name in free
        else constant(random.choice(NUMBERS))
        for name in names
    }


def _definition(scheme: Scheme, sizes: Mapping[str, Index], symbols: int) -> Definition | None:
    """The left side with opaque functions, where all of its sizes can be written down."""
    values = {**sizes, **{name: substitute(index, sizes) for name, index in scheme.sizes.items()}}
    kinds: dict[str, Type] = {name: Number(DTYPES["f32"]) for name in unknown_types(scheme)}
    types = {name: filled(kind, kinds, values) for name, kind in scheme.metas.items()}
    settings = {name: values[f"?{name}"] for name in scheme.settings}
    if not all(map(_solved, types.values())) or not all(map(is_solved, settings.values())):
        return None
    params: list[Param] = []
    terms: dict[str, Term] = {}
    for name, kind in types.items():
        term = scheme.known.get(name) or (_opaque(kind, terms) if isinstance(kind, Function) else Var(f"in_{name}"))
        if term is None:
            return None
        terms[name] = term
        if isinstance(term, Var):
            params.append(Param(Role.IN, term.name, kind))
    body = build(scheme.before, Binding(terms, settings, {}))
    ranges = tuple(Size(f"n{number}", 2, 1 << 16) for number in range(symbols))
    if body is None:
        return None
    try:
        infer(body, {param.name: param.type for param in params}, ranges)
    except DovetailError:
        return None
    return Definition("subject", tuple(params), ("result",), simplify(body), ranges)


def _opaque(kind: Function, used: Mapping[str, Term]) -> Term | None:
    """A function of numbers that no other meta stands for; None where there is none."""
    params = kind.params[0].members if len(kind.params) == 1 and isinstance(kind.params[0], Tuple) else kind.params
    if len(params) == 1 and isinstance(params[0], Array) and isinstance(kind.result, Number):
        return Pattern("reduce", (), (Scalar("max"), Literal(float("-inf"))))
    if not all(isinstance(part, Number) for part in (*params, kind.result)):
        return None
    free = (Scalar(name) for name in OPAQUE.get(len(params), ()))
    return next((term for term in free if term not in used.values()), None)


def _programs(definition: Definition, rule: Rule, choose: Mapping[str, int]) -> list[tuple[Program, Program]]:
    """Both sides as programs, one pair for each array of numbers; none where a side has no program."""
    try:
        found = next(rewrites(Typed.of(definition), rule, (), context_of(definition), choose), None)
    except RewriteError:
        return []
    if found is None:
        return []
    kind = infer(definition.body, {param.name: param.type for param in definition.params}, definition.sizes)
    sides = (numbers_in(body, kind, _filled_in) for body in (definition.body, found.after))
    try:
        return [
            (normalise(replace(definition, body=simplify(one))), normalise(replace(definition, body=simplify(other))))
            for one, other in zip(*sides, strict=True)
        ]
    except DovetailError:
        return []


def _filled_in(value: Term, dtype: DType) -> Term:
    """A number everywhere: programs have no results that are not there."""
    return Scalar("orelse", (value, Literal(NOT_THERE)))


def _solved(kind: Type) -> bool:
    if isinstance(kind, Function):
        return all(map(_solved, (*kind.params, kind.result)))
    extents, inner = shape(kind)
    return not isinstance(inner, Unknown) and all(is_solved(extent) for extent in extents)
