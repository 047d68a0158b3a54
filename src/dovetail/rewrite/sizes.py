"""Sizes in rules: comparing them, and finding the metas in them.

comparison = size ("==" | "!=" | "<" | "<=" | ">" | ">=") size
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from dovetail.base.errors import ParseError, RuleError
from dovetail.ir.functional.sizes import is_solved, parse_size, substitute
from dovetail.ir.functional.term import Places, Setting
from dovetail.ir.index import Index
from dovetail.ir.program import Size
from dovetail.rewrite.shape import Value

_SYMBOL = re.compile(r"(==|!=|<=|>=|<|>)")
_META = re.compile(r"\?([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sizes and how they compare."""

    left: Index
    symbol: str
    right: Index


@cache
def parse_comparison(text: str) -> Comparison:
    """Text -> comparison; a RuleError says what is wrong with it."""
    parts = _SYMBOL.split(text)
    if len(parts) != 3:
        raise RuleError(f"'{text}' is not one comparison of two sizes", hint="?m % ?n == 0, ?n < ?m")
    try:
        return Comparison(parse_size(parts[0]), parts[1], parse_size(parts[2]))
    except ParseError as problem:
        raise RuleError(
            problem.what, where=problem.where, hint="sizes are numbers, ?n, and + - * // % of them"
        ) from None


def holds(compared: Comparison, values: Mapping[str, Value], ranges: Mapping[str, Size]) -> bool:
    """Whether a comparison is true for all values of the run-time sizes, its metas being ``values``."""
    left, right = resolve(compared.left, values), resolve(compared.right, values)
    if left is None or right is None:
        return False
    gap = right - left
    match compared.symbol:
        case "==":
            return gap == Index()
        case "!=":
            return _least(gap, ranges) > 0 or _least(-gap, ranges) > 0
        case "<":
            return _least(gap, ranges) > 0
        case "<=":
            return _least(gap, ranges) >= 0
        case ">":
            return _least(-gap, ranges) > 0
    return _least(-gap, ranges) >= 0


def resolve(index: Index, values: Mapping[str, Value]) -> Index | None:
    """An index of a rule with ``values`` for its metas; None where that is no size that can be written down."""
    if not index.terms:
        return index
    known = {f"?{name}": value for name, value in values.items() if isinstance(value, Index)}
    try:
        found = substitute(index, known)
    except ParseError:  # a divisor that is zero or negative
        return None
    return found if is_solved(found) else None


def index_metas(index: Index) -> frozenset[str]:
    """The metas in an index, also inside products and quotients, without their ``?``."""
    return frozenset(meta for name in index.names() for meta in _META.findall(name))


def setting_metas(setting: Setting) -> frozenset[str]:
    """The metas in a setting, without their ``?``."""
    if isinstance(setting, str):
        return frozenset(_META.findall(setting))
    return frozenset().union(*map(index_metas, indices_of(setting)))


def indices_of(setting: Setting) -> tuple[Index, ...]:
    """Every index in a setting."""
    match setting:
        case Index():
            return (setting,)
        case Places(loops, indices, where):
            return (*(loop.extent for loop in loops), *indices, *(condition.index for condition in where))
    return ()


def _least(index: Index, ranges: Mapping[str, Size]) -> float:
    """A lower bound for all values of the run-time sizes; a size nothing is known of is 0 or more."""
    return index.const + sum(_bounds(index, ranges))


def _bounds(index: Index, ranges: Mapping[str, Size]) -> Iterator[float]:
    for atom, factor in index.terms:
        size = ranges.get(atom) if isinstance(atom, str) else None
        low, high = (size.low, size.high) if size else (0, float("inf"))
        yield factor * (low if factor > 0 else high)
