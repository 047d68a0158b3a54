"""What the loops and conditions around a place in a nest say about an index there.

    loop i in 0..N:  loop j in i..min(i + 4, N):      j - i >= 0,  N - 1 - j >= 0,  3 + i - j >= 0
    when M - i >= 8:                                  min(8, M - i) is 8

A bound is found by moving each loop variable, innermost first, to the end that makes the index small. Ends are
indices themselves, so sizes cancel. Not finding a bound is no error: the code then tests at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dovetail.base.limits import MAX_EXTENT
from dovetail.ir.index import Access, Condition, Index, Quotient

_MOST_ENDS = 3
"""Alternatives tried per variable; more would make the search exponential in the depth of the nest."""


@dataclass(frozen=True, slots=True)
class Ends:
    """A variable lies between each of ``low`` and each of ``high``, both included."""

    low: tuple[Index, ...]
    high: tuple[Index, ...]


class Bounds:
    """The variables and facts in force at the current place of a nest."""

    def __init__(self) -> None:
        self._ends: dict[str, Ends] = {}
        self._facts: list[Index] = []
        self._known: dict[Index, int | None] = {}

    def copy(self) -> Bounds:
        """The same knowledge, to be extended apart."""
        other = Bounds()
        other._ends, other._facts = dict(self._ends), list(self._facts)
        return other

    @contextmanager
    def variable(self, name: str, low: tuple[Index, ...], high: tuple[Index, ...]) -> Iterator[None]:
        """Inside, ``name`` lies between ``low`` and ``high``."""
        self._ends[name] = Ends(low[:_MOST_ENDS], high[:_MOST_ENDS])
        self._known = {}
        yield
        del self._ends[name]
        self._known = {}

    @contextmanager
    def given(self, conditions: Iterable[Condition]) -> Iterator[None]:
        """Inside, ``conditions`` hold."""
        before = len(self._facts)
        for condition in conditions:
            self._facts.append(condition.index)
            if condition.equal:
                self._facts.append(-condition.index)
        yield
        del self._facts[before:]

    def not_negative(self, index: Index) -> bool:
        """Whether ``index >= 0`` is certain; False when it may or may not be."""
        if not index.terms:
            return index.const >= 0
        if self._at_least_zero(index):
            return True
        return any(self._at_least_zero(index - fact) for fact in self._facts)

    def decide(self, condition: Condition) -> bool | None:
        """True or False where that is certain, else None."""
        index = condition.index
        if condition.equal:
            if self.not_negative(index - 1) or self.not_negative(-index - 1):
                return False
            return True if self.not_negative(index) and self.not_negative(-index) else None
        if self.not_negative(index):
            return True
        return False if self.not_negative(-index - 1) else None

    def smallest(self, values: tuple[Index, ...]) -> tuple[Index, ...]:
        """``values`` without those that are certainly not below another one."""
        kept: list[Index] = []
        for number, value in enumerate(values):
            others = (*kept, *values[number + 1 :])
            if not any(self.not_negative(value - other) for other in others):
                kept.append(value)
        return tuple(kept)

    def largest(self, values: tuple[Index, ...]) -> tuple[Index, ...]:
        """``values`` without those that are certainly not above another one."""
        return tuple(-v for v in self.smallest(tuple(-v for v in values)))

    def lowest(self, index: Index) -> int | None:
        """A number ``index`` is never below, None if none is known."""
        if index not in self._known:
            self._known[index] = self._lowest(index)
        return self._known[index]

    def _at_least_zero(self, index: Index) -> bool:
        low = self.lowest(index)
        return low is not None and low >= 0

    def _lowest(self, index: Index) -> int | None:
        coefficients = {atom: c for atom, c in index.terms if isinstance(atom, str)}
        inner = next((v for v in reversed(self._ends) if v in coefficients), None)
        if inner is None:
            return self._lowest_of_rest(index)
        c, ends = coefficients[inner], self._ends[inner]
        rest = Index(tuple((a, k) for a, k in index.terms if a != inner), index.const)
        found = [self.lowest(rest + end * c) for end in (ends.low if c > 0 else ends.high)]
        known = [f for f in found if f is not None]
        return max(known) if known else None

    def _lowest_of_rest(self, index: Index) -> int | None:
        """No loop variable outside a quotient or remainder is left; names are sizes."""
        total = index.const
        for atom, c in index.terms:
            if isinstance(atom, str):
                total += 0 if c > 0 else c * MAX_EXTENT
            elif isinstance(atom, Access):
                return None
            elif isinstance(atom, Quotient):
                end = self.lowest(atom.index if c > 0 else -atom.index)
                if end is None:
                    return None
                total += c * ((end if c > 0 else -end) // atom.divisor)
            else:
                total += 0 if c > 0 else c * (atom.divisor - 1)
        return total
