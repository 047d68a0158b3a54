"""``check_rule``: whether a rule keeps types and values, by trying it.

Its left side is drawn at random with types, sizes, functions and data for its metas (``subjects``), the engine fires
it, and both sides are run on the same data (``values``). What only moves elements is also proven (``proof``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, prod
from random import Random
from zlib import crc32

from dovetail.base.errors import RewriteError
from dovetail.ir.functional.term import Definition, Literal, Term, walk
from dovetail.ir.functional.types import Tuple, Type, shape
from dovetail.ir.graph.graph import Graph
from dovetail.rewrite.apply import Rewrite, context_of, rewrites
from dovetail.rewrite.check.graph_subjects import graph_subject
from dovetail.rewrite.check.graph_values import graph_difference
from dovetail.rewrite.check.subjects import subjects
from dovetail.rewrite.check.values import difference
from dovetail.rewrite.graph_apply import GraphRewrite, apply_graph_rewrite, graph_rewrites
from dovetail.rewrite.rule import Rule, stated_error
from dovetail.rewrite.rule_types import check_types
from dovetail.rewrite.typed import Typed

SPARE = 4
"""So many are fired for each that is run: whether the right side has a type is found out soon."""
LONG = 500
"""Characters of both sides of a rule that takes time to be typed."""


def is_long(rule: Rule) -> bool:
    return len(str(rule.before)) + len(str(rule.after)) >= LONG


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried: ``terms`` on which the rule fires, fewer where they are long, with ``examples`` in all."""

    terms: int = 8
    examples: int = 1024
    seed: int = 1
    tries: int = 4000
    """Left sides drawn before a rule is said never to fire: most have sizes that do not fit each other."""

    def terms_of(self, rule: Rule) -> int:
        return max(1, self.terms // 3) if is_long(rule) else self.terms


DEFAULT_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found: how many examples were the same on both sides, and the first that was not."""

    rule: Rule
    examples: int
    failure: str | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None

    def __str__(self) -> str:
        if self.failure is not None:
            return f"{self.rule.name}: {self.failure}"
        return f"{self.rule.name}: {self.examples} examples, {self.rule.kind}"


def check_rule(rule: Rule, effort: Effort = DEFAULT_EFFORT) -> Report:
    """Fire the rule on random terms and compare what both sides compute."""
    if rule.level == "dsl":
        return _check_graph_rule(rule, effort)
    examples = 0
    terms = effort.terms_of(rule)
    runs = -(-effort.examples // terms)
    try:
        check_types(rule)
        for number, (before, fired) in enumerate(_fired(rule, terms, effort)):
            found = difference(before, fired.after, rule.kind, stated_error(rule), effort.seed + number, runs)
            if found is not None:
                return Report(rule, examples, f"{found}\n  {before.body}\n  -> {fired.after}")
            examples += runs
    except RewriteError as problem:
        return Report(rule, examples, str(problem))
    return Report(rule, examples, None if examples else "it never fires")


def _check_graph_rule(rule: Rule, effort: Effort) -> Report:
    """The same on random graphs."""
    examples, runs = 0, -(-effort.examples // effort.terms)
    try:
        for number, (before, fired) in enumerate(_fired_graphs(rule, effort)):
            after = apply_graph_rewrite(before, fired)
            found = graph_difference(before, after, rule.kind, effort.seed + number, runs)
            if found is not None:
                return Report(rule, examples, f"{found}\n{before}\n->\n{after}")
            examples += runs
    except RewriteError as problem:
        return Report(rule, examples, str(problem))
    return Report(rule, examples, None if examples else "it never fires")


def _fired_graphs(rule: Rule, effort: Effort) -> Iterator[tuple[Graph, GraphRewrite]]:
    """Graphs on which the rule fires, and one way in which it does."""
    random = Random(effort.seed ^ crc32(rule.name.encode()))
    found = 0
    for _ in range(effort.tries):
        if found == effort.terms:
            return
        before = graph_subject(rule, random)
        ways = [] if before is None else list(graph_rewrites(before, rule))
        if before is not None and ways:
            found += 1
            yield before, random.choice(ways)


def _fired(rule: Rule, terms: int, effort: Effort) -> Iterator[tuple[Definition, Rewrite]]:
    """So many terms on which the rule fires, each the largest of some, and one way in which it does."""
    spare = 1 if is_long(rule) else SPARE
    allowed = frozenset({"finite"} & set(rule.when))
    random = Random(effort.seed ^ crc32(rule.name.encode()))
    found = 0
    group: list[tuple[int, int, Definition, Rewrite]] = []
    for tries, before in enumerate(subjects(rule, random)):
        if found == terms or tries == effort.tries:
            return
        if before is None or (allowed and not _is_finite(before.body)):
            continue
        whole = Typed.of(before)
        ways = list(rewrites(whole, rule, (), context_of(before, allowed)))
        if not ways:
            continue
        group.append((_elements(whole.types[()]), len(group), before, random.choice(ways)))
        if len(group) == spare:
            *_, chosen, fired = max(group)
            found, group = found + 1, []
            yield chosen, fired


def _is_finite(term: Term) -> bool:
    """Whether no number written in it is infinite or NaN: what a rule that asks for finite data is tried on."""
    numbers = (part.value for part in walk(term) if isinstance(part, Literal) and part.value is not None)
    return all(isfinite(number) for number in numbers)


def _elements(kind: Type) -> int:
    """Numbers in the first leaf of a value: where there are more, more can go wrong."""
    extents, inner = shape(kind)
    inside = _elements(inner.members[0]) if isinstance(inner, Tuple) else 1
    return inside * prod(extent.const for extent in extents)
