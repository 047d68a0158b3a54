"""What range an index can take, and indices made simpler by knowing it."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.ir.index import Access, Atom, Index, Quotient, affine, constant

Ranges = Mapping[str, tuple[int, int]]
"""Name -> smallest and largest value."""


def interval(index: Index, ranges: Ranges) -> tuple[int, int] | None:
    """Smallest and largest value ``index`` can take (possibly wider than exact); None when something is unknown."""
    low = high = index.const
    for atom, c in index.terms:
        found = _atom_interval(atom, ranges)
        if found is None:
            return None
        low += c * (found[0] if c > 0 else found[1])
        high += c * (found[1] if c > 0 else found[0])
    return low, high


def simplify(index: Index, ranges: Ranges) -> Index:
    """The same index with quotients and remainders resolved where the ranges allow."""
    if index.is_affine:
        return index
    total = constant(index.const)
    for atom, c in index.terms:
        if isinstance(atom, str | Access):
            total += affine(((atom, c),))
            continue
        inner = simplify(atom.index, ranges)
        resolve = _quotient if isinstance(atom, Quotient) else _remainder
        total += resolve(inner, atom.divisor, ranges) * c
    return total


def floor_divide(index: Index, divisor: int, ranges: Ranges) -> Index:
    """``index // divisor``, resolved where the ranges allow."""
    return simplify(index // divisor, ranges)


def modulo(index: Index, divisor: int, ranges: Ranges) -> Index:
    """``index % divisor``, resolved where the ranges allow."""
    return simplify(index % divisor, ranges)


def _quotient(index: Index, divisor: int, ranges: Ranges) -> Index:
    found = interval(index, ranges)
    if found is not None and found[0] // divisor == found[1] // divisor:
        return constant(found[0] // divisor)
    return index // divisor


def _remainder(index: Index, divisor: int, ranges: Ranges) -> Index:
    found = interval(index, ranges)
    if found is not None and found[0] // divisor == found[1] // divisor:
        return index - found[0] // divisor * divisor
    return index % divisor


def _atom_interval(atom: Atom, ranges: Ranges) -> tuple[int, int] | None:
    if isinstance(atom, str):
        return ranges.get(atom)
    if isinstance(atom, Access):
        return None
    inner = interval(atom.index, ranges)
    if isinstance(atom, Quotient):
        return None if inner is None else (inner[0] // atom.divisor, inner[1] // atom.divisor)
    if inner is not None and inner[0] // atom.divisor == inner[1] // atom.divisor:
        return inner[0] % atom.divisor, inner[1] % atom.divisor
    return 0, atom.divisor - 1
