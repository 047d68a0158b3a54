"""Which iterations are decided alike, found from bounds and conditions without going through the iterations.

A decision is an index of which only a range matters: ``i - 3 >= 0`` is the same for all values below 0 and for all
from 0 on; ``min(16, 100 - 16 * i)`` for all from 16 on. What loops further in add to it widens the range. The key of an
iteration is what its loops and those around make of every decision inside, kept within the range that matters:
iterations with the same key take the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from dovetail.ir.index import Access, Atom, Condition, Index
from dovetail.ir.interval import interval

Env = dict[str, int]
Key = tuple[float, ...]
Ranges = Mapping[str, tuple[int, int]]

_MOST_PIECES = 8
"""Into which iterations are divided that are all different; each piece is taken to be like its middle."""
_MOST_DIFFERENT = 64
"""Iterations that are looked at one by one where a quotient or remainder decides."""


@dataclass(frozen=True, slots=True)
class Decision:
    """``index``, of which values below ``low`` are as good as ``low`` and those above ``high`` as good as that."""

    index: Index
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Item:
    """One number of a key: the loops outside in a decision."""

    terms: tuple[tuple[str, int], ...]
    rest: Index | None
    """Quotients and remainders."""
    low: float
    high: float

    def value(self, env: Env) -> float:
        total = self.whole(env)
        return self.low if total < self.low else self.high if total > self.high else total

    def whole(self, env: Env) -> int:
        """Its number, also beyond the range that matters."""
        total = 0 if self.rest is None else self.rest.evaluate(env)
        for name, c in self.terms:
            total += c * env[name]
        return total


def smallest(indices: tuple[Index, ...], low: float = -inf) -> list[Decision]:
    """The decisions in the smallest of ``indices``."""
    top = min((i.const for i in indices if not i.terms), default=inf)
    return [Decision(i, low, top) for i in indices if i.terms]


def largest(indices: tuple[Index, ...]) -> list[Decision]:
    """The decisions in the largest of ``indices``."""
    bottom = max((i.const for i in indices if not i.terms), default=-inf)
    return [Decision(i, bottom, inf) for i in indices if i.terms]


def within(decision: Decision, conditions: tuple[Condition, ...], ranges: Ranges) -> Decision:
    """The same where ``conditions`` hold: behind ``3 - i >= 0`` no values of ``i`` from 4 on matter."""
    low, high = decision.low, decision.high
    for condition in conditions:
        factor = _factor(decision.index, condition.index)
        ends = interval(decision.index - condition.index * factor, ranges) if factor else None
        if ends is not None and factor > 0:
            low = max(low, ends[0])
        elif ends is not None:
            high = min(high, ends[1])
    return decision if (low, high) == (decision.low, decision.high) else Decision(decision.index, low, max(low, high))


def _factor(index: Index, other: Index) -> int:
    """How many times ``other`` is in the terms of ``index``, by the first that they share; 0 where they share none."""
    terms = dict(other.terms)
    for atom, c in index.terms:
        shared = terms.get(atom, 0)
        if shared and c % shared == 0:
            return c // shared
    return 0


def items(decisions: Iterable[Decision], inner: Ranges) -> tuple[Item, ...]:
    """The key of what is inside loops with the values ``inner``, as a function of the loops outside."""
    found: dict[tuple[object, ...], Item] = {}
    for decision in decisions:
        for item in _split(decision, inner):
            found.setdefault((item.terms, item.rest, item.low, item.high), item)
    return tuple(found.values())


def depends(item: Item, var: str) -> bool:
    """Whether ``var`` is among the loops in an item."""
    return any(name == var for name, _ in item.terms) or (item.rest is not None and var in item.rest.names())


def key(wanted: tuple[Item, ...], env: Env) -> Key:
    """What decides, as a number for each item."""
    return tuple([item.value(env) for item in wanted])


@dataclass(frozen=True, slots=True)
class Piece:
    """Iterations that are decided alike: the value of the loop that stands for them, how many, and their key."""

    value: int
    count: int
    key: Key


def pieces(wanted: tuple[Item, ...], var: str, first: int, step: int, count: int, env: Env) -> list[Piece]:
    """The iterations of a loop in order; all of ``wanted`` depend on ``var``."""
    if not wanted:
        return [Piece(first, count, ())]
    breaks = {0}
    for item in wanted:
        breaks |= _breaks(item, var, first, step, count, env)
    edges = [*sorted(b for b in breaks if 0 <= b < count), count]
    found: list[Piece] = []
    for start, end in pairwise(edges):
        value = first + step * ((start + end - 1) // 2)
        env[var] = value
        now = key(wanted, env)
        if found and now == found[-1].key:
            found[-1] = Piece(found[-1].value, found[-1].count + end - start, now)
        else:
            found.append(Piece(value, end - start, now))
    del env[var]
    return found


def _breaks(item: Item, var: str, first: int, step: int, count: int, env: Env) -> set[int]:
    """Where the item begins to be another."""
    if item.rest is not None and var in item.rest.names():
        return set(_spread(0, count, _MOST_DIFFERENT))
    slope = step * next((c for name, c in item.terms if name == var), 0)
    if not slope:
        return set()
    env[var] = first
    start = item.whole(env)
    low, high = (item.low, item.high) if slope > 0 else (-item.high, -item.low)
    start, slope = (start, slope) if slope > 0 else (-start, -slope)
    leaves = 0 if low == -inf else max(0, int((low - start) // slope) + 1)
    arrives = count if high == inf else max(0, int(-((start - high) // slope)))
    leaves, arrives = min(leaves, count), min(max(arrives, leaves), count)
    return {leaves, arrives, *_spread(leaves, arrives, _MOST_PIECES)}


def _spread(start: int, end: int, most: int) -> Iterable[int]:
    """Every number, or ``most`` of them evenly."""
    if end - start <= most:
        return range(start, end)
    return (start + (end - start) * n // most for n in range(most))


def _split(decision: Decision, inner: Ranges) -> list[Item]:
    """The part of a decision that loops outside of ``inner`` make."""
    own: list[tuple[str, int]] = []
    rest: list[tuple[Atom, int]] = []
    within: list[tuple[Atom, int]] = []
    torn: set[str] = set()
    for atom, c in decision.index.terms:
        if isinstance(atom, str):
            if atom in inner:
                within.append((atom, c))
            else:
                own.append((atom, c))
            continue
        names = atom.names() if isinstance(atom, Access) else atom.index.names()
        outside = {name for name in names if name not in inner}
        if len(outside) == len(names):
            rest.append((atom, c))
        elif outside:
            torn |= outside
        else:
            within.append((atom, c))
    if torn:
        torn |= {name for name, _ in own}
        return [Item(((name, 1),), None, -inf, inf) for name in sorted(torn)] + _rest(rest)
    if not own and not rest:
        return []
    ends = interval(Index(tuple(within), decision.index.const), inner)
    low, high = (decision.low - ends[1], decision.high - ends[0]) if ends else (-inf, inf)
    return [Item(tuple(own), Index(tuple(rest)) if rest else None, low, high)]


def _rest(rest: list[tuple[Atom, int]]) -> list[Item]:
    return [Item((), Index(tuple(rest)), -inf, inf)] if rest else []
