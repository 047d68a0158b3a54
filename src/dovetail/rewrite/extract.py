"""Terms out of classes: the smallest of each, those that differ from it in one place, and the cheapest of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dovetail.ir.functional.term import Term, children, walk
from dovetail.rewrite.trees import Names, label_of_tree

if TYPE_CHECKING:
    from dovetail.rewrite.egraph import Classes, Node

Choice = Mapping[int, "Node"]
"""For some classes, the node to take."""


class Extractor:
    """The terms of the classes below ``root``."""

    def __init__(self, classes: Classes, names: Names, root: Term) -> None:
        self.classes, self.names, self.given = classes, names, root
        self._terms: dict[int, Term] = {}
        self._numbers: dict[Term, int] = {}
        self.sizes, self.best = _smallest(classes)
        self.root = self.number(root)

    def smallest(self, number: int) -> Term:
        """The smallest term of a class."""
        known = self._terms.get(number)
        if known is None:
            known = self._terms[number] = self.over(self.best[number])
        return known

    def over(self, node: Node) -> Term:
        """A node over the smallest terms of its operands."""
        label, operands = node
        return self.names.term(label, tuple(self.smallest(operand) for operand in operands))

    def reachable(self) -> list[int]:
        """The classes that a term of the root may have parts in, nearest first."""
        found = [self.root]
        seen = set(found)
        for number in found:
            for _, operands in self.classes.nodes[number]:
                for operand in operands:
                    if operand not in seen:
                        seen.add(operand)
                        found.append(operand)
        return found

    def variants(self, number: int, most: int) -> Iterator[Term]:
        """Terms of a class: each of its nodes over smallest operands, and over ``most`` others of each operand."""
        for node in self.classes.nodes[number]:
            label, operands = node
            base = tuple(self.smallest(operand) for operand in operands)
            yield self.names.term(label, base)
            for k, operand in enumerate(operands):
                for other in self.others(operand)[:most]:
                    yield self.names.term(label, (*base[:k], self.over(other), *base[k + 1 :]))

    def others(self, number: int) -> list[Node]:
        """The nodes of a class but the one of its smallest term, smallest first."""
        nodes = [node for node in self.classes.nodes[number] if node != self.best[number]]
        return sorted(nodes, key=lambda node: (sum(self.sizes[operand] for operand in node[1]), node[0]))

    def cheapest(
        self, cost: Callable[[Term], float], found: Sequence[Term], most: int, until: float
    ) -> tuple[Term, float, float, int]:
        """The cheapest term that was met, its cost, that of the given one, and how many were asked for.

        From the given term, a class at a time is computed otherwise: first as in the terms that rules have ``found``,
        in their order. It ends when none helps, after ``most`` costs, or when the next one may not be done in time.
        """
        trial = _Trial(cost, most, until)
        base: Choice = self.parts(self.given)
        term, best = self.given, trial.cost(self.given)
        first = best
        if (smallest := self.smallest(self.root)) != term and trial.cost(smallest) < best:
            term, best, base = smallest, trial.cost(smallest), {}
        improved = True
        while improved:
            improved = False
            for choice in self.alternatives(found):
                if trial.is_over():
                    return term, best, first, len(trial.costs)
                other = self.chosen({**base, **choice})
                if trial.cost(other) < best:
                    term, best, base, improved = other, trial.cost(other), {**base, **choice}, True
        return term, best, first, len(trial.costs)

    def alternatives(self, found: Sequence[Term]) -> Iterator[Choice]:
        """What a term of the root may have in it: terms that were found, then single nodes, nearest first."""
        reachable = self.reachable()
        wanted = set(reachable)
        for term in found:
            if self.number(term) in wanted:
                yield self.parts(term)
        for number in reachable:
            for node in self.others(number):
                yield {number: node}

    def chosen(self, choice: Choice) -> Term:
        """The term of the root with these nodes; a class inside itself is the smallest term there."""
        return self._chosen(self.root, choice, frozenset())

    def _chosen(self, number: int, choice: Choice, above: frozenset[int]) -> Term:
        if number in above:
            return self.smallest(number)
        label, operands = choice.get(number) or self.best[number]
        around = above | {number}
        return self.names.term(label, tuple(self._chosen(operand, choice, around) for operand in operands))

    def parts(self, term: Term) -> Choice:
        """For each class that a term has parts in, the node of one of them; of parts inside one another, the inner."""
        return {self.number(part): self.node(part) for part in walk(term)}

    def node(self, term: Term) -> Node:
        """The node of a term that was added."""
        return label_of_tree(term), tuple(self.number(child) for child in children(term))

    def number(self, term: Term) -> int:
        """The class of a term that was added."""
        known = self._numbers.get(term)
        if known is None:
            known = self._numbers[term] = self.classes.of[self.node(term)]
        return known


class _Trial:
    """Costs that were asked for, as long as there is time."""

    def __init__(self, cost: Callable[[Term], float], most: int, until: float) -> None:
        self.ask, self.most, self.until = cost, most, until
        self.costs: dict[Term, float] = {}
        self.longest = 0.0

    def cost(self, term: Term) -> float:
        known = self.costs.get(term)
        if known is None:
            begun = time.monotonic()
            known = self.costs[term] = self.ask(term)
            self.longest = max(self.longest, time.monotonic() - begun)
        return known

    def is_over(self) -> bool:
        """Whether there were enough, or one as long as the longest would be late."""
        return len(self.costs) >= self.most or time.monotonic() + self.longest > self.until


def _smallest(classes: Classes) -> tuple[dict[int, int], dict[int, Node]]:
    """The size of the smallest term of each class, and the node at its root."""
    sizes: dict[int, int] = {}
    best: dict[int, Node] = {}
    changed = True
    while changed:
        changed = False
        for node, number in classes.of.items():
            if all(operand in sizes for operand in node[1]):
                size = 1 + sum(sizes[operand] for operand in node[1])
                if size < sizes.get(number, size + 1):
                    sizes[number], best[number], changed = size, node, True
    return sizes, best
