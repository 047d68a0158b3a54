"""Rules as data.

    Rule("map-map",      "map(?f, map(?g, ?x))", "map(?f . ?g, ?x)"),
    Rule("split-reduce", "reduce(?f, ?z, ?x)",   "reduce(?f, ?z, map(reduce(?f, ?z), split(?n, ?x)))",
         when=("associative(?f)", "neutral(?f, ?z)"), types=("x: ?t[?m]",), choose=("n: divisors(?m)",),
         kind="reassociating"),

A rule is text, and is read when it is first used. ``types`` gives names to the sizes and dtypes of what was matched,
``when`` says when it may fire, ``choose`` which sizes of the right side are free.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from dovetail.base.errors import DovetailError, ParseError, RuleError
from dovetail.base.suggest import closest
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import Meta, Pattern, Term, free_names, walk
from dovetail.ir.functional.text import parse_term
from dovetail.ir.functional.type_text import parse_type
from dovetail.ir.functional.types import Array, Function, Tuple, Type, Unknown
from dovetail.rewrite.conditions import (
    OF_TYPES,
    Choice,
    Condition,
    Test,
    condition_metas,
    parse_choice,
    parse_condition,
)
from dovetail.rewrite.shape import Shape, shape_of
from dovetail.rewrite.sizes import index_metas, setting_metas

KINDS = ("bit-exact", "reassociating", "relaxed")
STATED = re.compile(r"\s*(\d[\d.]*(?:[eE][-+]?\d+)?) \* eps\b")
ERROR_EXAMPLE = 'error = "16 * eps * the largest sum(|x| * |w|)"'
LEVELS = ("dsl", "algorithmic", "hardware")
RESULT = "result"
"""In ``types``: what the left side as a whole has; no meta has this name."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rule:
    """``before`` may be replaced by ``after``; both are text, or terms with metas.

    ``kind``: *bit-exact* gives the same bits; *reassociating* sums in another order, always allowed; *relaxed* changes
    values within ``error``, only where the user allows it.
    """

    name: str
    before: str | Term
    after: str | Term
    when: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    choose: tuple[str, ...] = ()
    kind: str = "bit-exact"
    level: str = "algorithmic"
    doc: str = ""
    error: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule that was read."""

    rule: Rule
    before: Term
    after: Term
    shape: Shape
    conditions: tuple[Condition, ...]
    types: tuple[tuple[str, Type], ...]
    choices: tuple[Choice, ...]


@cache
def compiled(rule: Rule) -> Compiled:
    """The rule, read and checked once: its metas are bound, its conditions known; its types are ``check_types``'s."""
    check_words(rule)
    before, after = _term(rule, "before"), _term(rule, "after")
    conditions = tuple(parsed_part(rule, "when", text, parse_condition) for text in rule.when)
    types = tuple(parsed_part(rule, "types", text, parsed_type) for text in rule.types)
    choices = tuple(parsed_part(rule, "choose", text, parse_choice) for text in rule.choose)
    try:
        shape = shape_of(before)
    except RuleError as problem:
        raise at(rule, "before", problem) from None
    found = Compiled(rule, before, after, shape, conditions, types, choices)
    _check_bound(found)
    return found


def at(rule: Rule, key: str, problem: DovetailError, text: str = "") -> RuleError:
    """The problem as one of this rule, at this key."""
    where = f"rule '{rule.name}', {key}: {text or getattr(rule, key)}"
    return RuleError(problem.what, where=where, why=problem.why, hint=problem.hint)


def term_metas(term: Term) -> frozenset[str]:
    """The metas in a term, those in settings too, without their ``?``."""
    return frozenset(_metas(term))


def _metas(term: Term) -> Iterator[str]:
    for part in walk(term):
        if isinstance(part, Meta):
            yield part.name
        elif isinstance(part, Pattern):
            for setting in part.settings:
                yield from setting_metas(setting)


def type_metas(kind: Type) -> frozenset[str]:
    """The names of unknown types and sizes in a type, without their ``?``."""
    match kind:
        case Unknown(name):
            return frozenset((name,))
        case Array(size, element):
            return index_metas(size) | type_metas(element)
        case Tuple(members):
            return frozenset().union(*map(type_metas, members))
        case Function(params, result):
            return frozenset().union(*map(type_metas, (*params, result)))
    return frozenset()


def check_words(rule: Rule) -> None:
    """Raise unless name, kind, level and error are words that fit together."""
    if not rule.name:
        raise RuleError("a rule has no name", where=f"{rule.before} -> {rule.after}")
    for key, given, known in (("kind", rule.kind, KINDS), ("level", rule.level, LEVELS)):
        if given not in known:
            raise RuleError(f"unknown {key} '{given}'", where=f"rule '{rule.name}', {key}", hint=closest(given, known))
    if (rule.kind == "relaxed") != bool(rule.error):
        what = "a relaxed rule without an error bound" if not rule.error else f"an error bound of a {rule.kind} rule"
        hint = f"{ERROR_EXAMPLE}, or another kind"
        raise RuleError(what, where=f"rule '{rule.name}', error", why="relaxed rules alone change values", hint=hint)
    if rule.error and not STATED.match(rule.error):
        why = "checks allow that number of roundings of the largest sum of magnitudes"
        what = f"'{rule.error}' states no number of roundings"
        raise RuleError(what, where=f"rule '{rule.name}', error", why=why, hint=ERROR_EXAMPLE)


def stated_error(rule: Rule) -> float:
    """How many roundings of the largest sum of magnitudes a rule allows."""
    found = STATED.match(rule.error)
    return float(found.group(1)) if found else 0.0


def _term(rule: Rule, key: str) -> Term:
    given = rule.before if key == "before" else rule.after
    if not isinstance(given, str):
        return given
    try:
        term = simplify(parse_term(given, f"rule '{rule.name}', {key}"))
    except ParseError as problem:
        raise RuleError(problem.what, where=problem.where, why=problem.why, hint=problem.hint) from None
    if unknown := sorted(free_names(term)) if key == "before" else ():
        raise RuleError(
            f"'{unknown[0]}' is not bound",
            where=f"rule '{rule.name}', {key}: {given}",
            why="a rule matches terms by their form: it knows no names from outside",
            hint=f"?{unknown[0]} for any term",
        )
    return term


def parsed_part(rule: Rule, key: str, text: str, parse: Callable[[str], T]) -> T:
    """One text of a rule, read; what is wrong with it is said of this rule and key."""
    try:
        return parse(text)
    except RuleError as problem:
        raise at(rule, key, problem, text) from None


def parsed_type(text: str) -> tuple[str, Type]:
    """``x: ?t[?n]`` -> the name and the type."""
    name, colon, kind = text.partition(":")
    if not colon or not name.strip().lstrip("?").isidentifier():
        raise RuleError("no type of a meta", hint="x: ?t[?n, ?m]")
    try:
        return name.strip().lstrip("?"), parse_type(kind.strip())
    except ParseError as problem:
        raise RuleError(problem.what, why=problem.where, hint=problem.hint or "x: ?t[?n, ?m]") from None


def _check_bound(rule: Compiled) -> None:
    """Every name is bound before it is used: by the left side, then by types, then by choice."""
    matched = term_metas(rule.before)
    known = set(matched)
    for name, kind in rule.types:
        if name not in matched and name != RESULT:
            raise _unbound(rule.rule, "types", name, matched, "only what the left side matched has a type")
        known |= type_metas(kind)
    for choice in rule.choices:
        if choice.name in known:
            why = "the match already says what it is"
            raise RuleError(f"'?{choice.name}' is no choice", where=f"rule '{rule.rule.name}', choose", why=why)
        for used in choice.args:
            need(rule.rule, "choose", index_metas(used), known)
    known |= {choice.name for choice in rule.choices}
    for condition in rule.conditions:
        need(rule.rule, "when", condition_metas(condition), known)
        if isinstance(condition, Test) and condition.predicate not in OF_TYPES:
            need(rule.rule, "when", frozenset(condition.metas), matched)
    need(rule.rule, "after", term_metas(rule.after), known)


def need(rule: Rule, key: str, used: frozenset[str], known: frozenset[str] | set[str]) -> None:
    """Raise unless every name that ``key`` uses is known."""
    for name in sorted(used - known):
        raise _unbound(rule, key, name, known, "nothing on the left side, in types or in choose says what it is")


def _unbound(rule: Rule, key: str, name: str, known: frozenset[str] | set[str], why: str) -> RuleError:
    given = getattr(rule, key)
    text = given if isinstance(given, str) else ", ".join(given) if isinstance(given, tuple) else str(given)
    hint = f"bound are {', '.join(f'?{meta}' for meta in sorted(known))}" if known else "nothing is bound"
    return RuleError(f"'?{name}' is not bound", where=f"rule '{rule.name}', {key}: {text}", why=why, hint=hint)
