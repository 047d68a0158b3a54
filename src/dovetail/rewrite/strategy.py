"""Strategies: in which order rules are tried, as plain data.

    strategy = Fire(rule, sizes)        the rule, here
             | FirstOf(strategy, ...)   the first that fires
             | InOrder(strategy, ...)   one after the other; all must fire
             | Try(strategy)            also where it does not fire
             | Repeat(strategy)         until it does not fire
             | Once(strategy)           at the first place where it fires, outermost first
             | TopDown(strategy)        wherever it fires, outermost first
             | BottomUp(strategy)       wherever it fires, innermost first

A strategy works on one place and what is inside it. ``derive`` runs one on the body of a definition and gives the
derivation; a limit that stops it is named there, with the rule that kept firing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from dovetail.base.errors import RewriteError, RuleError, TermError
from dovetail.base.limits import DEFAULT_REWRITE_LIMITS, RewriteLimits
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import Definition, Term, children, walk
from dovetail.rewrite.apply import Context, Rewrite, context_of, replaced, rewrites
from dovetail.rewrite.derivation import Derivation, Step
from dovetail.rewrite.match import match
from dovetail.rewrite.rule import Rule, compiled
from dovetail.rewrite.shape import Node, label_of
from dovetail.rewrite.typed import Path, Typed

ANY = ""
"""The label of rules that may fire at any operation."""
RECENT = 50
"""Of so many last steps, the rule that fired most is the one that kept firing."""


@dataclass(frozen=True, slots=True)
class Fire:
    """A rule, with some of the sizes it may choose fixed."""

    rule: Rule
    sizes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FirstOf:
    strategies: tuple[Strategy, ...]


@dataclass(frozen=True, slots=True)
class InOrder:
    strategies: tuple[Strategy, ...]


@dataclass(frozen=True, slots=True)
class Try:
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class Repeat:
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class Once:
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class TopDown:
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class BottomUp:
    strategy: Strategy


Strategy = Fire | FirstOf | InOrder | Try | Repeat | Once | TopDown | BottomUp


def any_of(rules: Iterable[Rule]) -> FirstOf:
    """The first rule that fires, in the order of a table."""
    return FirstOf(tuple(Fire(rule) for rule in rules))


def exhaust(rules: Iterable[Rule]) -> Repeat:
    """Rules wherever they fire, outermost first, until none does."""
    return Repeat(Once(any_of(rules)))


def derive(
    definition: Definition,
    strategy: Strategy,
    limits: RewriteLimits = DEFAULT_REWRITE_LIMITS,
    allowed: frozenset[str] = frozenset(),
) -> Derivation:
    """What the strategy makes of a definition: itself, and every step. ``allowed`` is what the user vouches for."""
    start = replace(definition, body=simplify(definition.body))
    run = _Run(Typed.of(start), replace(context_of(start, allowed), choices=limits.choices), limits)
    try:
        run.at(strategy, ())
        run.whole.types  # noqa: B018  the types of what came out are asked for, once
    except TermError as problem:
        raise run.blame(problem) from None
    return Derivation(start, tuple(run.steps), run.stopped)


class _Run:
    """The term as it is now, the steps so far, and what stopped them."""

    def __init__(self, whole: Typed, context: Context, limits: RewriteLimits) -> None:
        self.whole, self.context, self.limits = whole, context, limits
        self.start = whole
        self.steps: list[Step] = []
        self.rules: list[Rule] = []
        self.stopped = ""
        self.until = time.monotonic() + limits.seconds
        self.tables: dict[int, dict[str, tuple[Strategy, ...]]] = {}
        self.likely: dict[tuple[int, int], tuple[Term, tuple[Strategy, ...]]] = {}

    def at(self, strategy: Strategy, path: Path) -> bool:
        """Run a strategy at a place; whether it fired."""
        if self.stopped:
            return False
        match strategy:
            case Fire(rule, sizes):
                return self._fire(rule, path, dict(sizes))
            case FirstOf(strategies):
                return any(self.at(one, path) for one in self._likely(strategies, path))
            case InOrder(strategies):
                return self._in_order(strategies, path)
            case Try(inner):
                return self.at(inner, path) or not self.stopped
            case Repeat(inner):
                return self._repeat(inner, path)
            case Once(inner):
                return self._tidied(path, self._once(inner, path))
            case TopDown(inner):
                return self._tidied(path, self._top_down(inner, path))
            case BottomUp(inner):
                return self._tidied(path, self._bottom_up(inner, path))

    def blame(self, problem: TermError) -> RewriteError:
        """The error that names the rule whose step broke the types."""
        whole = self.start
        for step, rule in zip(self.steps, self.rules, strict=True):
            try:
                replaced(whole, step.at, step.after, rule)
            except RuleError as found:
                return found
            whole = Typed(step.whole, None, whole.names, whole.sizes, whole.kind)
        return problem

    def _fire(self, rule: Rule, path: Path, sizes: dict[str, int]) -> bool:
        found = next(rewrites(self.whole, rule, path, self.context, sizes, checked=False), None)
        if found is None or self._over(rule):
            return False
        self._accept(found)
        return True

    def _accept(self, found: Rewrite) -> None:
        self.whole = found.whole
        self.rules.append(found.rule)
        self.steps.append(
            Step(found.rule.name, found.rule.kind, found.at, found.before, found.after, found.whole.term, found.chosen)
        )

    def _over(self, rule: Rule) -> bool:
        """Whether a limit forbids one more step."""
        limits = self.limits
        if len(self.steps) >= limits.steps:
            self.stopped = f"the limit of {limits.steps} steps"
        elif time.monotonic() > self.until:
            self.stopped = f"the limit of {limits.seconds} seconds"
        elif self.steps and sum(1 for _ in walk(self.whole.term)) > limits.nodes:
            self.stopped = f"the limit of {limits.nodes} nodes"
        if self.stopped:
            fired = Counter([step.rule for step in self.steps[-RECENT:]] + [rule.name])
            self.stopped += f"; rule '{fired.most_common(1)[0][0]}' kept firing"
        return bool(self.stopped)

    def _in_order(self, strategies: tuple[Strategy, ...], path: Path) -> bool:
        """All or nothing: steps are taken back where a later one does not fire."""
        whole, count = self.whole, len(self.steps)
        if all(self.at(one, path) for one in strategies):
            return True
        if not self.stopped:
            self.whole = whole
            del self.steps[count:], self.rules[count:]
        return False

    def _repeat(self, strategy: Strategy, path: Path) -> bool:
        count = len(self.steps)
        while self._progress(strategy, path):
            pass
        return len(self.steps) > count

    def _progress(self, strategy: Strategy, path: Path) -> bool:
        count = len(self.steps)
        return self.at(strategy, path) and len(self.steps) > count

    def _once(self, strategy: Strategy, path: Path) -> bool:
        if self._progress(strategy, path):
            return True
        return any(self._once(strategy, (*path, k)) for k in range(len(children(self.whole.at(path)))))

    def _top_down(self, strategy: Strategy, path: Path) -> bool:
        fired = self._progress(strategy, path)
        for k in range(len(children(self.whole.at(path)))):
            fired |= self._top_down(strategy, (*path, k))
        return fired

    def _bottom_up(self, strategy: Strategy, path: Path) -> bool:
        fired = False
        for k in range(len(children(self.whole.at(path)))):
            fired |= self._bottom_up(strategy, (*path, k))
        return self._progress(strategy, path) or fired

    def _tidied(self, path: Path, fired: bool) -> bool:
        """After a traversal, what became longer than need be is written short again."""
        if fired:
            old = self.whole.at(path)
            new = simplify(old)
            if new != old:
                self.whole = self.whole.supposed(path, new)
                self.steps[-1] = replace(self.steps[-1], whole=self.whole.term)
        return fired

    def _likely(self, strategies: tuple[Strategy, ...], path: Path) -> tuple[Strategy, ...]:
        """Those of the strategies whose rule has the form of the part at this place; a part is looked at once."""
        term = self.whole.at(path)
        known = self.likely.get((id(strategies), id(term)))
        if known is None:
            table = self.tables.get(id(strategies))
            if table is None:
                table = self.tables[id(strategies)] = _by_label(strategies)  # the strategy outlives the run
            found = tuple(one for one in table.get(label_of(term), table[ANY]) if self._has_form(one, term))
            known = self.likely[id(strategies), id(term)] = term, found  # the term is kept: its id stays its own
        return known[1]

    def _has_form(self, strategy: Strategy, term: Term) -> bool:
        if not isinstance(strategy, Fire):
            return True
        return next(match(compiled(strategy.rule).shape, term, self.context.host), None) is not None


@cache
def _by_label(strategies: tuple[Strategy, ...]) -> dict[str, tuple[Strategy, ...]]:
    """For each label the strategies that may fire there, in order; under ``ANY`` those that may fire anywhere."""
    labels = [_label(one) for one in strategies]
    return {
        label: tuple(one for one, own in zip(strategies, labels, strict=True) if own in (label, ANY))
        for label in {ANY, *labels}
    }


def _label(strategy: Strategy) -> str:
    if not isinstance(strategy, Fire):
        return ANY
    shape = compiled(strategy.rule).shape
    return shape.label if isinstance(shape, Node) else ANY
