"""Unifying the value an instruction computes with a value in a program, over commutative permutations.

    acc += a * b   with   y[i] += x[i] * exp(z[i])   ->   a = x[i], b = exp(z[i])  and  a = exp(z[i]), b = x[i]

An operand of the instruction takes an element, a literal, or any value of its dtype (which then goes into a
temporary). Where identities are allowed, ``y[i] += x[i]`` is ``y[i] += x[i] * 1``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Expr, Literal, Read
from dovetail.ir.index import Access
from dovetail.ir.primitives import PRIMITIVES
from dovetail.mapping.typed import Typed, preserves


@dataclass(frozen=True, slots=True)
class Match:
    """What each operand holds, in the order they were met, and what it took to get there."""

    operands: tuple[tuple[str, Expr], ...] = ()
    temporaries: int = 0
    identities: int = 0
    commuted: bool = False

    @property
    def cost(self) -> int:
        """Transformations that count towards the depth of the search."""
        return self.temporaries + self.identities

    def value(self, operand: str) -> Expr | None:
        return next((value for name, value in self.operands if name == operand), None)


@dataclass(frozen=True, slots=True)
class Unifier:
    """``needle`` and ``hay`` are the dtypes of both programs' tensors.

    ``identity``: ones and zeros may be inserted. ``loose``: dtypes do not matter (to tell what else does not fit).
    """

    needle: Mapping[str, DType]
    hay: Mapping[str, DType]
    identity: bool = False
    loose: bool = False

    def matches(self, pattern: Typed, value: Typed) -> tuple[Match, ...]:
        """Every way ``pattern`` is ``value``, without repetition, first operand order first."""
        found: dict[tuple[tuple[str, Expr], ...], Match] = {}
        for match in self._unify(pattern, value, Match()):
            found.setdefault(match.operands, match)
        return tuple(found.values())

    def _unify(self, pattern: Typed, value: Typed, sofar: Match) -> Iterator[Match]:
        if isinstance(pattern.expr, Read):
            yield from self._operand(pattern.expr.access, value, sofar)
        elif pattern.dtype != value.dtype and not self.loose:
            return
        elif isinstance(pattern.expr, Literal):
            if isinstance(value.expr, Literal) and _same_number(pattern.expr, value.expr):
                yield sofar
        elif pattern.root == value.root:
            yield from self._arguments(pattern, value, sofar)
        elif self.identity:
            yield from self._with_identity(pattern, value, sofar)

    def _arguments(self, pattern: Typed, value: Typed, sofar: Match) -> Iterator[Match]:
        row = PRIMITIVES.get(pattern.root)
        orders = permutations(value.args) if row is not None and row.commutative else (value.args,)
        for number, args in enumerate(orders):
            found = [Match(sofar.operands, sofar.temporaries, sofar.identities, sofar.commuted or number > 0)]
            for inner, arg in zip(pattern.args, args, strict=True):
                found = [after for before in found for after in self._unify(inner, arg, before)]
            yield from found

    def _with_identity(self, pattern: Typed, value: Typed, sofar: Match) -> Iterator[Match]:
        """``f(a, b)`` found in ``x`` with one of the operands the neutral element of ``f``."""
        row = PRIMITIVES.get(pattern.root)
        if row is None or row.neutral is None:
            return
        neutral = Literal(float(row.neutral) if pattern.dtype.is_float else int(row.neutral))
        for kept, other in permutations(pattern.args):
            if not isinstance(other.expr, Read):
                continue
            for found in self._unify(kept, value, sofar):
                whole = Match(found.operands, found.temporaries, found.identities + 1, found.commuted)
                yield from self._operand(other.expr.access, Typed(neutral, pattern.dtype, "literal"), whole)

    def _operand(self, access: Access, value: Typed, sofar: Match) -> Iterator[Match]:
        """``value`` put where the instruction reads ``access``."""
        known = sofar.value(access.tensor)
        if known is not None:
            if known == value.expr:
                yield sofar
            return
        if not self.loose and not self.holds(access.tensor, value):
            return
        simple = isinstance(value.expr, Read | Literal)
        operands = (*sofar.operands, (access.tensor, value.expr))
        yield Match(operands, sofar.temporaries + (not simple), sofar.identities, sofar.commuted)

    def holds(self, operand: str, value: Typed) -> bool:
        """Whether ``operand`` can carry ``value`` unchanged."""
        dtype = self.needle[operand]
        if isinstance(value.expr, Read):
            return preserves(self.hay[value.expr.access.tensor], dtype)
        if isinstance(value.expr, Literal) and dtype != value.dtype:
            return _representable(value.expr.value, dtype)
        return preserves(value.dtype, dtype)


def _same_number(a: Literal, b: Literal) -> bool:
    """Equal as values of one type: 0 is 0.0, but 0.0 is not -0.0."""
    return repr(float(a.value)) == repr(float(b.value)) and (isinstance(a.value, float) or int(a.value) == b.value)


def _representable(value: int | float | bool, dtype: DType) -> bool:
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return bool(float(np.asarray(value, np.float64).astype(dtype.numpy)) == value)
    return value == int(value) and dtype.low <= value <= dtype.high if np.isfinite(value) else False
