"""Text of terms that rules are made of: moves of axes, members of arrays, sums with coefficients.

Everything here takes and gives text of the functional language.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def mapped(depth: int, function: str, data: str) -> str:
    """``function`` applied ``depth`` arrays deep: ``map(map(f), x)`` for 2."""
    if depth == 0:
        return f"{function}({data})"
    for _ in range(depth - 1):
        function = f"map({function})"
    return f"map({function}, {data})"


def permuted(data: str, order: Sequence[int]) -> str:
    """Axis k of the result is axis ``order[k]`` of ``data``, by swaps of neighbours."""
    axes = sorted(order)
    for place, wanted in enumerate(order):
        for k in range(axes.index(wanted), place, -1):
            axes[k - 1], axes[k] = axes[k], axes[k - 1]
            data = mapped(k - 1, "transpose", data)
    return data


def member(number: int, data: str) -> str:
    """One element of an array of arrays."""
    return f"join(slice({number}, 1, 1, {data}))"


def combination(row: Sequence[Fraction], members: Sequence[str], depth: int) -> str:
    """``sum(row[k] * members[k])`` over arrays ``depth`` deep, terms without a share left out."""
    shares = [(share, data) for share, data in zip(row, members, strict=True) if share]
    if depth == 0:
        return _sum(shares)
    if len(shares) == 1:
        ((share, data),) = shares
        return data if share == 1 else mapped(depth, rf"(\v -> {_sum([(share, 'v')])})", data)
    names = [f"{'abcdef'[depth]}{k}" for k in range(len(shares))]
    inner = combination([share for share, _ in shares], names, depth - 1)
    return rf"map(\{' '.join(names)} -> {inner}, zip({', '.join(data for _, data in shares)}))"


def number(value: Fraction) -> str:
    """A literal: whole, or the nearest double."""
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


def _sum(shares: Sequence[tuple[Fraction, str]]) -> str:
    text = ""
    for share, data in shares:
        term = data if abs(share) == 1 else f"{number(abs(share))} * {data}"
        sign = "-" if share < 0 else "+"
        text = f"{text} {sign} {term}" if text else term if share > 0 else f"-{term}"
    return text
