"""Exploration: all that rules make of a definition, kept as classes of equal terms, and the cheapest of it.

One definition at a time, within limits on nodes, iterations and seconds; what stopped it is part of the answer.
Matching is the one matcher's, on representatives of each class; equality and congruence are egglog's; the cost is
whatever estimate is handed in, which is the scheduler's own for the target at hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING

from dovetail.base.errors import RewriteError, RuleError
from dovetail.base.limits import DEFAULT_EXPLORE_LIMITS, ExploreLimits
from dovetail.ir.functional.patterns import missing
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import Definition, Lambda, Term
from dovetail.ir.functional.types import Array, Function, Tuple, Type
from dovetail.rewrite.apply import Context, Rewrite, context_of, rewrites
from dovetail.rewrite.derivation import Derivation
from dovetail.rewrite.explanation import Link, explanation
from dovetail.rewrite.extract import Extractor
from dovetail.rewrite.rule import Rule, compiled
from dovetail.rewrite.shape import Node as Operation
from dovetail.rewrite.shape import label_of
from dovetail.rewrite.trees import Names, readable
from dovetail.rewrite.typed import Typed

if TYPE_CHECKING:
    from dovetail.rewrite.egraph import Classes, EGraph

Estimate = Callable[[Definition], float]
"""What a definition costs on the machine at hand; infinite where it cannot be run there."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """The cheapest definition that was found, how it follows from the first, and what ended the search."""

    start: Definition
    best: Definition
    cost: float
    start_cost: float
    derivation: Derivation
    stopped: str
    nodes: int
    iterations: int
    estimates: int

    def __str__(self) -> str:
        gain = f", {self.start_cost / self.cost:.2f} times as fast" if self.cost < self.start_cost < inf else ""
        return (
            f"from {self.start_cost:,.0f} to {self.cost:,.0f} cycles estimated{gain}\n"
            f"stopped by {self.stopped}, after {self.iterations} iterations with {self.nodes} nodes; "
            f"{self.estimates} terms estimated\n\n{self.derivation}"
        )


def explore(
    definition: Definition,
    rules: tuple[Rule, ...],
    estimate: Estimate,
    limits: ExploreLimits = DEFAULT_EXPLORE_LIMITS,
    allowed: frozenset[str] = frozenset(),
) -> Exploration:
    """The cheapest that ``rules`` make of a definition, within ``limits``; ``allowed`` is what the user vouches for."""
    end = time.monotonic() + limits.seconds
    start = replace(definition, body=simplify(definition.body))
    search = _Search(start, rules, limits, _egraph(), allowed, end)
    stopped = search.run()
    classes = search.graph.classes()
    extractor = Extractor(classes, search.names, search.root)
    best, cost, first, count = extractor.cheapest(
        lambda term: estimate(replace(start, body=readable(term, search.prefix))),
        [link.after for link in search.links],
        limits.estimates,
        end,
    )
    steps = explanation(search.root, best, search.links)
    derivation = Derivation(start, tuple(step.renamed(search.prefix) for step in steps))
    found = replace(start, body=readable(best, search.prefix))
    return Exploration(start, found, cost, first, derivation, stopped, classes.size, search.iterations, count)


ESTIMATE_SHARE = 0.4
"""Of the seconds, what is kept for estimates when the search has used all of them."""


def _egraph() -> EGraph:
    try:
        graph: EGraph = import_module("dovetail.rewrite.egraph").EGraph()
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.split(".")[0] != "egglog":
            raise
        raise RewriteError(
            "exploration needs the package 'egglog', which is not installed",
            why="equality saturation is an extra: it takes 200 MB",
            hint="pip install 'dovetail[explore]'",
        ) from None
    return graph


class _Search:
    """The classes so far, what was already tried, and every equality that a rule gave."""

    def __init__(
        self,
        start: Definition,
        rules: tuple[Rule, ...],
        limits: ExploreLimits,
        graph: EGraph,
        allowed: frozenset[str],
        end: float,
    ) -> None:
        self.start, self.rules, self.limits, self.graph = start, rules, limits, graph
        self.context: Context = replace(context_of(start, allowed), choices=limits.choices)
        self.names = Names()
        self.prefix = _prefix(start)
        self.root = self.names.closed(Typed.of(start))
        self.graph.add(self.names.tree(self.root))
        self.seen: set[Term] = set()
        self.links: list[Link] = []
        self.iterations = 0
        self.until = end - limits.seconds * ESTIMATE_SHARE

    def run(self) -> str:
        """Fire every rule at every class until nothing is new; what stopped it."""
        for _ in range(self.limits.iterations):
            classes = self.graph.classes()
            if classes.size > self.limits.nodes:
                return f"the limit of {self.limits.nodes} nodes"
            new = list(dict.fromkeys(t for t in self._representatives(classes) if t not in self.seen))
            if not new:
                return "nothing new"
            self.iterations += 1
            for count, term in enumerate(new):
                self.seen.add(term)
                if not self._fire(term):
                    return f"the limit of {self.limits.seconds} seconds"
                if count % 64 == 63 and self.graph.classes().size > self.limits.nodes:
                    return f"the limit of {self.limits.nodes} nodes"
        return f"the limit of {self.limits.iterations} iterations"

    def _representatives(self, classes: Classes) -> Iterator[Term]:
        extractor = Extractor(classes, self.names, self.root)
        for number in extractor.reachable():
            for term in extractor.variants(number, self.limits.variants):
                if not isinstance(term, Lambda) and not missing(term):
                    yield term

    def _fire(self, term: Term) -> bool:
        """Every rule at the outermost operation of a term; what it gives is equal to the term. False: time is up."""
        typed = self.names.typed(term, self.start)
        for rule in _likely(self.rules, label_of(term)):
            for found in _fired(typed, rule, self.context):
                new = self.names.closed(found.whole)
                if new != term:
                    self.graph.union(self.names.tree(term), self.names.tree(new))
                    self.links.append(Link(term, new, rule, found.chosen))
                if time.monotonic() > self.until:
                    return False
        return time.monotonic() <= self.until


def _fired(typed: Typed, rule: Rule, context: Context) -> Iterator[Rewrite]:
    """Every way in which a rule fires at a term, but for those that make arrays of functions, which no machine stores.

    By itself a term may not say of which type a number in it is: the sides of a rule then seem to differ, and it is not
    fired there.
    """
    try:
        for found in rewrites(typed, rule, (), context):
            if not any(isinstance(kind, Array) and _holds_functions(kind) for kind in found.whole.types.values()):
                yield found
    except RuleError:
        return


def _holds_functions(kind: Type) -> bool:
    match kind:
        case Array(_, element):
            return _holds_functions(element)
        case Tuple(members):
            return any(map(_holds_functions, members))
    return isinstance(kind, Function)


@cache
def _likely(rules: tuple[Rule, ...], label: str) -> tuple[Rule, ...]:
    """The rules whose sink is this operation, or may be any."""
    shapes = ((rule, compiled(rule).shape) for rule in rules)
    return tuple(rule for rule, shape in shapes if not isinstance(shape, Operation) or shape.label == label)


def _prefix(definition: Definition) -> str:
    """How numbered names begin: like no parameter."""
    taken = {param.name for param in definition.params} | {size.name for size in definition.sizes}
    prefix = "v"
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "_"
    return prefix
