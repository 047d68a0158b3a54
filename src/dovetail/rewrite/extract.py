"""Terms out of classes: the smallest of each, those that differ from it in one place, and the cheapest of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from dovetail.ir.functional.term import Term
from dovetail.rewrite.trees import Names

if TYPE_CHECKING:
    from dovetail.rewrite.egraph import Classes, Node

Choice = Mapping[int, "Node"]
"""For some classes, the node to take."""


class Extractor:
    """The terms of the classes below ``root``."""

    def __init__(self, classes: Classes, names: Names, root: Term) -> None:
        self.classes, self.names, self.given = classes, names, root
        self.root = classes.find(names.tree(root))
        self.sizes, self.best = _smallest(classes)
        self._terms: dict[int, Term] = {}

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

    def cheapest(self, cost: Callable[[Term], float], most: int, seconds: float) -> tuple[Term, float, float, int]:
        """The cheapest found by changing one class at a time, its cost, the first one's, and how many were tried."""
        until = time.monotonic() + seconds
        choice: dict[int, Node] = {}
        tried = {self.given: cost(self.given)}
        term, first, best = self.given, tried[self.given], tried[self.given]
        smallest = self.chosen(choice)
        if smallest not in tried:
            tried[smallest] = cost(smallest)
            if tried[smallest] < best:
                term, best = smallest, tried[smallest]
        improved = True
        while improved:
            improved = False
            for number, node in self.alternatives():
                if len(tried) >= most or time.monotonic() > until:
                    return term, best, first, len(tried)
                other = self.chosen({**choice, number: node})
                if other not in tried:
                    tried[other] = cost(other)
                    if tried[other] < best:
                        term, best, choice, improved = other, tried[other], {**choice, number: node}, True
        return term, best, first, len(tried)

    def alternatives(self) -> Iterator[tuple[int, Node]]:
        """Every node that is not part of the smallest terms, nearest to the root first."""
        for number in self.reachable():
            for node in self.others(number):
                yield number, node

    def chosen(self, choice: Choice) -> Term:
        """The smallest term of the root, with other nodes for some classes, each once on the way down."""
        return self._chosen(self.root, choice)

    def _chosen(self, number: int, choice: Choice) -> Term:
        if not choice:
            return self.smallest(number)
        label, operands = choice.get(number, self.best[number])
        inner = {key: node for key, node in choice.items() if key != number}
        return self.names.term(label, tuple(self._chosen(operand, inner) for operand in operands))


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
