"""Why two terms of a class are equal: the chain of rules from the one to the other.

Rules gave links between terms, in the order in which they fired. A forest is built of them in that order: an edge is a
link, or two terms of one operation whose operands are already equal. Between two terms there is then one way, and the
operands on it are explained by edges that were there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dovetail.base.errors import RewriteError
from dovetail.ir.functional.term import Term, children
from dovetail.rewrite.derivation import Step
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.run import at_path
from dovetail.rewrite.trees import label_of_tree, readable
from dovetail.rewrite.typed import Path, with_part


@dataclass(frozen=True, slots=True)
class Link:
    """``before`` and ``after`` are equal by a rule, which fired from the one to the other or, else, backwards."""

    before: Term
    after: Term
    rule: Rule
    chosen: tuple[tuple[str, int], ...]
    forwards: bool = True

    @property
    def reversed(self) -> Link:
        return Link(self.after, self.before, self.rule, self.chosen, not self.forwards)


@dataclass(frozen=True, slots=True)
class Explained:
    """One link at a place, and the whole term before and after it."""

    link: Link
    at: Path
    before: Term
    after: Term

    def renamed(self, prefix: str) -> Step:
        """The step of a derivation, under readable names."""
        link = self.link
        name = link.rule.name if link.forwards else f"{link.rule.name}, backwards"
        before, after = (readable(term, prefix) for term in (self.before, self.after))
        parts = at_path(before, self.at), at_path(after, self.at)
        return Step(name, link.rule.kind, self.at, *parts, after, link.chosen)


def explanation(start: Term, end: Term, links: Iterable[Link]) -> list[Explained]:
    """The steps from ``start`` to ``end``, which are equal by ``links``."""
    forest = _Forest()
    first, last = forest.number(start), forest.number(end)
    for link in links:
        forest.join(forest.number(link.before), forest.number(link.after), link)
    whole, steps = start, []
    for at, link in forest.way(first, last, ()):
        before, whole = whole, with_part(whole, at, link.after)
        steps.append(Explained(link, at, before, whole))
    assert whole == end
    return steps


@dataclass(slots=True)
class _Forest:
    """Terms by number; the class of each, and the edge by which it came to be in it."""

    terms: list[Term] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    members: list[list[int]] = field(default_factory=list)
    users: list[list[int]] = field(default_factory=list)
    """For each class, the terms that have an operand in it."""
    edges: list[tuple[int, Link | None] | None] = field(default_factory=list)
    """The next term on the way to the root of the tree, and why they are equal: None for equal operands."""
    numbers: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    alike: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    """For an operation over classes, a term that has it."""

    def number(self, term: Term) -> int:
        """The term with all terms in it."""
        operands = tuple(self.number(child) for child in children(term))
        key = label_of_tree(term), operands
        known = self.numbers.get(key)
        if known is None:
            known = self.numbers[key] = len(self.terms)
            self.terms.append(term)
            self.operands.append(operands)
            self.classes.append(known)
            self.members.append([known])
            self.users.append([])
            self.edges.append(None)
            for operand in {self.classes[operand] for operand in operands}:
                self.users[operand].append(known)
            self._congruent(known)
        return known

    def join(self, first: int, second: int, why: Link | None) -> None:
        """Two terms are equal, and with them all that are made of them."""
        if self.classes[first] == self.classes[second]:
            return
        self._root(first)
        self.edges[first] = second, why
        old, new = self.classes[first], self.classes[second]
        if len(self.members[old]) > len(self.members[new]):
            old, new = new, old
        for member in self.members[old]:
            self.classes[member] = new
        self.members[new] += self.members[old]
        users, self.users[old] = self.users[old], []
        self.users[new] += users
        for user in users:
            self._congruent(user)

    def way(self, first: int, second: int, at: Path) -> Iterator[tuple[Path, Link]]:
        """The links on the way between two terms of one tree."""
        up, down = self._upwards(first), self._upwards(second)
        while up and down and up[-1] == down[-1]:
            del up[-1], down[-1]
        for number in up:
            yield from self._edge(number, at, forwards=True)
        for number in reversed(down):
            yield from self._edge(number, at, forwards=False)

    def _edge(self, number: int, at: Path, forwards: bool) -> Iterator[tuple[Path, Link]]:
        edge = self.edges[number]
        if edge is None:
            raise RewriteError("two terms, and no chain of rules between them", where=str(self.terms[number]))
        other, why = edge
        if why is not None:
            yield at, why if (why.before == self.terms[number]) == forwards else why.reversed
            return
        pairs = zip(self.operands[number], self.operands[other], strict=True)
        for k, (mine, its) in enumerate(pairs):
            yield from self.way(*((mine, its) if forwards else (its, mine)), (*at, k))

    def _upwards(self, number: int) -> list[int]:
        """The term and those above it in its tree."""
        found = [number]
        while (edge := self.edges[found[-1]]) is not None:
            found.append(edge[0])
        return found

    def _root(self, number: int) -> None:
        """Turn the edges above a term around, so that it is the root of its tree."""
        edge, self.edges[number] = self.edges[number], None
        below = number
        while edge is not None:
            above, why = edge
            edge, self.edges[above] = self.edges[above], (below, why)
            below = above

    def _congruent(self, number: int) -> None:
        """Join a term with one that has the same operation over equal operands."""
        key = label_of_tree(self.terms[number]), tuple(self.classes[operand] for operand in self.operands[number])
        other = self.alike.setdefault(key, number)
        if other != number:
            self.join(number, other, None)
