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
from typing import TYPE_CHECKING

from dovetail.base.errors import RewriteError
from dovetail.base.limits import DEFAULT_EXPLORE_LIMITS, ExploreLimits
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import Definition, Lambda, Term
from dovetail.rewrite.apply import Context, context_of, rewrites
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


def explore(
    definition: Definition,
    rules: tuple[Rule, ...],
    estimate: Estimate,
    limits: ExploreLimits = DEFAULT_EXPLORE_LIMITS,
    allowed: frozenset[str] = frozenset(),
) -> Exploration:
    """The cheapest that ``rules`` make of a definition, within ``limits``; ``allowed`` is what the user vouches for."""
    start = replace(definition, body=simplify(definition.body))
    search = _Search(start, rules, limits, _egraph(), allowed)
    stopped = search.run()
    classes = search.graph.classes()
    extractor = Extractor(classes, search.names, search.root)
    seconds = max(search.until - time.monotonic(), limits.seconds * ESTIMATE_SHARE)
    best, cost, first, count = extractor.cheapest(
        lambda term: estimate(replace(start, body=readable(term, search.prefix))), limits.estimates, seconds
    )
    steps = explanation(search.root, best, search.links)
    derivation = Derivation(start, tuple(step.renamed(search.prefix) for step in steps))
    end = replace(start, body=readable(best, search.prefix))
    return Exploration(start, end, cost, first, derivation, stopped, classes.size, search.iterations, count)


ESTIMATE_SHARE = 0.2
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
        self, start: Definition, rules: tuple[Rule, ...], limits: ExploreLimits, graph: EGraph, allowed: frozenset[str]
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
        self.until = time.monotonic() + limits.seconds * (1 - ESTIMATE_SHARE)

    def run(self) -> str:
        """Fire every rule at every class until nothing is new; what stopped it."""
        for _ in range(self.limits.iterations):
            classes = self.graph.classes()
            if classes.size > self.limits.nodes:
                return f"the limit of {self.limits.nodes} nodes"
            new = [term for term in self._representatives(classes) if term not in self.seen]
            if not new:
                return "nothing new"
            self.iterations += 1
            for count, term in enumerate(new):
                self.seen.add(term)
                self._fire(term)
                if time.monotonic() > self.until:
                    return f"the limit of {self.limits.seconds} seconds"
                if count % 64 == 63 and self.graph.classes().size > self.limits.nodes:
                    return f"the limit of {self.limits.nodes} nodes"
        return f"the limit of {self.limits.iterations} iterations"

    def _representatives(self, classes: Classes) -> Iterator[Term]:
        extractor = Extractor(classes, self.names, self.root)
        for number in extractor.reachable():
            for term in extractor.variants(number, self.limits.variants):
                if not isinstance(term, Lambda):
                    yield term

    def _fire(self, term: Term) -> None:
        """Every rule at the outermost operation of a term; what it gives is equal to the term."""
        typed = self.names.typed(term, self.start)
        for rule in _likely(self.rules, label_of(term)):
            for found in rewrites(typed, rule, (), self.context):
                new = self.names.closed(found.whole)
                if new != term:
                    self.graph.union(self.names.tree(term), self.names.tree(new))
                    self.links.append(Link(term, new, rule, found.chosen))


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
