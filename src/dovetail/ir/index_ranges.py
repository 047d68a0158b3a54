"""What the bounds of loops and sizes say about an index: its range, a shorter spelling, whether a condition matters.

    i % 8            ->  i                  where i < 8
    (4*i + j) // 8   ->  i // 2             where j < 4
    4*(i//4) + i%4   ->  i
    where i < 8      ->  always true        where i < 8

Sizes may cancel (``N - 1 - i`` with i < N is never negative); indirect reads have no range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from dovetail.ir.index import ZERO, Access, Atom, Condition, Index, Quotient, Remainder, affine


@dataclass(frozen=True, slots=True)
class Ranges:
    """Loops lie in ``0 .. extent - 1``, sizes in ``low .. high``."""

    extents: Mapping[str, Index]
    sizes: Mapping[str, tuple[int, int]]


def lowest(index: Index, ranges: Ranges) -> int | None:
    """A number ``index`` never falls below; None where an indirect read leaves it open.

    Loops go to the end that makes the index small, as extents, so that sizes cancel: ``N - 1 - i`` with i < N is
    at least 0. The claim is about points that exist, so an empty loop proves anything.
    """
    rest = Index((), index.const)
    for atom, c in index.terms:
        extent = ranges.extents.get(atom) if isinstance(atom, str) else None
        if extent is None:
            rest += affine(((atom, c),))
        elif c < 0:
            rest += (extent - 1) * c
    total = rest.const
    for atom, c in rest.terms:
        found = _atom_range(atom, ranges)
        if found is None:
            return None
        total += c * found[0 if c > 0 else 1]
    return total


def highest(index: Index, ranges: Ranges) -> int | None:
    """A number ``index`` never exceeds."""
    found = lowest(-index, ranges)
    return None if found is None else -found


def _atom_range(atom: Atom, ranges: Ranges) -> tuple[int, int] | None:
    if isinstance(atom, str):
        return ranges.sizes[atom]
    if isinstance(atom, Access):
        return None
    low, high = lowest(atom.index, ranges), highest(atom.index, ranges)
    if isinstance(atom, Quotient):
        return None if low is None or high is None else (low // atom.divisor, high // atom.divisor)
    return (0, atom.divisor - 1 if low is None or high is None or low < 0 else min(high, atom.divisor - 1))


def simplify(index: Index, ranges: Ranges) -> Index:
    """The shortest spelling of ``index`` found; equal to it at every point inside ``ranges``."""
    if index.is_affine:
        return index
    total = ZERO + index.const
    for atom, c in index.terms:
        if isinstance(atom, Quotient):
            total += _quotient(simplify(atom.index, ranges), atom.divisor, ranges) * c
        elif isinstance(atom, Remainder):
            total += _remainder(simplify(atom.index, ranges), atom.divisor, ranges) * c
        elif isinstance(atom, Access):
            inner = Access(atom.tensor, tuple(simplify(i, ranges) for i in atom.indices))
            total += affine(((inner, c),))
        else:
            total += affine(((atom, c),))
    return _join_remainders(_find_remainders(total))


def _quotient(index: Index, divisor: int, ranges: Ranges) -> Index:
    """``index // divisor``: ``(x//a + c) // b`` is ``(x + a*c) // (a*b)``; a part below a factor of it goes."""
    if len(index.terms) == 1 and index.terms[0][1] == 1 and isinstance(index.terms[0][0], Quotient):
        inner = index.terms[0][0]
        return _quotient(inner.index + inner.divisor * index.const, inner.divisor * divisor, ranges)
    factor, whole, _ = _coarse(index, divisor, ranges)
    divisor //= factor
    turns = Index(tuple((a, c // divisor if c > 0 else -(-c // divisor)) for a, c in whole.terms if abs(c) > divisor))
    return turns + (whole - turns * divisor) // divisor


def _remainder(index: Index, divisor: int, ranges: Ranges) -> Index:
    """``index % divisor``: ``c*(x%m)`` is ``c*x`` where divisor divides c*m; a part below a factor stays outside."""
    terms, const = ZERO, index.const
    for atom, c in index.terms:
        if isinstance(atom, Remainder) and c * atom.divisor % divisor == 0:
            terms += atom.index * c
        else:
            terms += affine(((atom, c),))
    index = Index(tuple((a, c % divisor) for a, c in terms.terms if c % divisor), (terms.const + const) % divisor)
    factor, whole, fine = _coarse(index, divisor, ranges)
    return (whole % (divisor // factor)) * factor + fine


def _coarse(index: Index, divisor: int, ranges: Ranges) -> tuple[int, Index, Index]:
    """``index == factor * whole + fine`` with ``0 <= fine < factor``, for the largest such factor of ``divisor``."""
    for factor in _factors(index, divisor):
        coarse = tuple((a, c // factor) for a, c in index.terms if c % factor == 0)
        fine = Index(tuple((a, c) for a, c in index.terms if c % factor), index.const % factor)
        low, high = lowest(fine, ranges), highest(fine, ranges)
        if low is not None and high is not None and low // factor == high // factor:
            block = low // factor
            return factor, Index(coarse, index.const // factor + block), fine - block * factor
    return 1, index, ZERO


def _factors(index: Index, divisor: int) -> list[int]:
    """Factors of ``divisor`` worth trying, largest first: itself and what it shares with a coefficient."""
    shared = {divisor, *(gcd(divisor, c) for _, c in index.terms)}
    return sorted((f for f in shared if f > 1), reverse=True)


def _join_remainders(index: Index) -> Index:
    """``c*d*(x//d) + c*(x%d)`` -> ``c*x``."""
    for atom, c in index.terms:
        if isinstance(atom, Remainder):
            quotient = Quotient(atom.index, atom.divisor)
            if index.coefficient(quotient) == c * atom.divisor:
                used = affine(((quotient, c * atom.divisor), (atom, c)))
                return _join_remainders(index - used + atom.index * c)
    return index


def _find_remainders(index: Index) -> Index:
    """``x - d*(x//d)`` -> ``x % d``."""
    for atom, c in index.terms:
        if isinstance(atom, Quotient) and c % atom.divisor == 0:
            factor = -c // atom.divisor
            rest = index - affine(((atom, c),)) - atom.index * factor
            if len(rest.terms) == len(index.terms) - 1 - len(atom.index.terms):
                return _find_remainders(rest + (atom.index % atom.divisor) * factor)
    return index


NEVER = Condition(Index((), -1))
"""A condition that no point meets: ``0 >= 1``."""


def needed_conditions(where: tuple[Condition, ...], ranges: Ranges) -> tuple[Condition, ...]:
    """The conditions that the ranges do not imply, each once and divided by its common factor; NEVER alone if false."""
    strongest: dict[tuple[tuple[Atom, int], ...], int] = {}
    equal: dict[Index, None] = {}
    for condition in where:
        reduced = _reduce(Condition(simplify(condition.index, ranges), condition.equal), ranges)
        if reduced == NEVER:
            return (NEVER,)
        if reduced is not None and reduced.equal:
            if -reduced.index not in equal:
                equal[reduced.index] = None
        elif reduced is not None:
            terms, const = reduced.index.terms, reduced.index.const
            strongest[terms] = min(const, strongest.get(terms, const))
    return (
        *(Condition(index, equal=True) for index in equal),
        *(Condition(Index(terms, const)) for terms, const in strongest.items()),
    )


def _reduce(condition: Condition, ranges: Ranges) -> Condition | None:
    """The condition in lowest terms; None when it always holds."""
    index, equal = condition.index, condition.equal
    if not index.terms:
        return None if (index.const == 0 if equal else index.const >= 0) else NEVER
    factor = gcd(*(c for _, c in index.terms))
    if equal and index.const % factor:
        return NEVER
    index = Index(tuple((a, c // factor) for a, c in index.terms), index.const // factor)
    low, high = lowest(index, ranges), highest(index, ranges)
    if (high is not None and high < 0) or (equal and low is not None and low > 0):
        return NEVER
    if low is not None and low >= 0 and (not equal or high == 0):
        return None
    return Condition(index, equal)
