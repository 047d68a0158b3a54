"""Text of terms that rules are made of: axes in another order, members of arrays, matrices times arrays.

Everything here takes and gives text of the functional language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction


def mapped(depth: int, function: str, data: str) -> str:
    """``function`` applied ``depth`` arrays deep: ``map(map(f), x)`` for 2."""
    if depth == 0:
        return f"{function}({data})"
    for _ in range(depth - 1):
        function = f"map({function})"
    return f"map({function}, {data})"


def view(loops: Mapping[str, str], indices: str, data: str) -> str:
    """``data`` at ``indices``, names of loops in words, for each of ``loops``, which are named with their extents."""
    bounds = ", ".join(f"{name}<{extent}" for name, extent in loops.items())
    return f"view([{bounds}: {', '.join(indices.split())}], {data})"


def member(number: int, data: str) -> str:
    """One element of an array of arrays."""
    return f"join(slice({number}, 1, 1, {data}))"


def transformed(matrix: Sequence[Sequence[Fraction]], members: Sequence[str], depth: int) -> str:
    """A matrix times ``members``, which are arrays ``depth`` deep: one sum for each row, side by side, innermost."""
    if depth == 0:
        return f"array({', '.join(_sum(row, members) for row in matrix)})"
    names = [f"{'defgh'[depth]}{k}" for k in range(len(members))]
    return rf"map(\{' '.join(names)} -> {transformed(matrix, names, depth - 1)}, zip({', '.join(members)}))"


def number(value: Fraction) -> str:
    """A literal: whole, or the nearest double."""
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


def _sum(row: Sequence[Fraction], members: Sequence[str]) -> str:
    """``row[0] * members[0] + ...``, terms without a share left out."""
    text = ""
    for share, data in zip(row, members, strict=True):
        term = data if abs(share) == 1 else f"{number(abs(share))} * {data}"
        sign = "-" if share < 0 else "+"
        if share:
            text = f"{text} {sign} {term}" if text else term if share > 0 else f"-{term}"
    return text
