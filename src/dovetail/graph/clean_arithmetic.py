"""Rules about numbers that change nothing, powers that are products, and casts that say nothing new."""

from __future__ import annotations

from math import frexp

import numpy as np

from dovetail.base.dtypes import DType, Kind
from dovetail.graph.clean_rule import CleanRule, number
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Node

_EXPONENT_BITS = {"f64": 11, "f32": 8, "f16": 5, "bf16": 8}


def _neutral(sheet: Sheet, node: Node) -> str | None:
    """``x + 0``, ``x * 1`` and their like."""
    wanted = 0.0 if node.op in ("add", "sub") else 1.0
    first, second = node.operands
    for x, c in ((first, second), (second, first)) if node.op in ("add", "mul") else ((first, second),):
        if number(sheet, c) == wanted and sheet.types[x] == sheet.types[node.results[0]]:
            return x
    return None


def _power(sheet: Sheet, node: Node) -> str | None:
    """Squares and cubes are products."""
    x, exponent = node.operands
    times = number(sheet, exponent)
    if times not in (2.0, 3.0) or sheet.types[x] != sheet.types[node.results[0]]:
        return None
    square = sheet.add("mul", x, x)
    return square if times == 2.0 else sheet.add("mul", square, x)


def _divided(sheet: Sheet, node: Node) -> str | None:
    """A power of two divides as its reciprocal multiplies, bit for bit."""
    x, divisor = node.operands
    value, t = number(sheet, divisor), sheet.types[divisor]
    if (
        value is None
        or not t.dtype.is_float
        or value == 0
        or abs(frexp(value)[0]) != 0.5
        or not 1e-4 < abs(value) < 1e4
    ):
        return None
    return sheet.add("mul", x, sheet.constant(np.full(sheet.shape(divisor) or (), 1.0 / value), t))


def _cast(sheet: Sheet, node: Node) -> str | None:
    """The same dtype again; or through one that holds every number of the first."""
    (x,), (y,) = node.operands, node.results
    if sheet.types[x] == sheet.types[y]:
        return x
    inner = sheet.made_by(x, "cast")
    if inner is None:
        return None
    (source,) = inner.operands
    if not holds(sheet.types[x].dtype, sheet.types[source].dtype):
        return None
    if sheet.types[source] == sheet.types[y]:
        return source
    return sheet.add("cast", source, dtype=sheet.types[y].dtype.name)


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every number of ``narrow`` is one of ``wide``."""
    if narrow == wide or narrow.kind is Kind.BOOL:
        return True
    if wide.kind is Kind.BOOL:
        return False
    if wide.is_float and narrow.is_float:
        known = wide.name in _EXPONENT_BITS and narrow.name in _EXPONENT_BITS
        return (
            known and narrow.exact_bits <= wide.exact_bits and _EXPONENT_BITS[narrow.name] <= _EXPONENT_BITS[wide.name]
        )
    if wide.is_float:
        return narrow.exact_bits <= wide.exact_bits
    return not narrow.is_float and wide.low <= narrow.low and narrow.high <= wide.high


ARITHMETIC = (
    CleanRule("neutral", ("add", "sub", "mul", "div", "pow"), _neutral, "adding 0 or multiplying by 1 changes nothing"),
    CleanRule("power", ("pow", "power"), _power, "a square and a cube are products", exact=False),
    CleanRule("divided", ("div",), _divided, "a power of two divides as its reciprocal multiplies"),
    CleanRule("cast", ("cast",), _cast, "the dtype between holds every number"),
)
