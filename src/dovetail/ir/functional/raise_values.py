"""Expressions of programs -> scalar terms that compute the same.

A statement computes in one type, the join of all that it reads and writes; a term in the type of its own operands.
Where the two differ the operands are cast:

    acc: i32 += a * b   with a, b: i8   ->   mul(i32(a), i32(b))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dovetail.base.dtypes import DTYPES, DType, compute_type
from dovetail.ir.expr import (
    Apply,
    Bitcast,
    Cast,
    Expr,
    Literal,
    Position,
    Read,
    argument_types,
    joined,
    natural_type,
    value_type,
)
from dovetail.ir.functional import term as terms
from dovetail.ir.functional.term import Scalar, Term
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.value_forms import exact

Typed = tuple[Term, DType | None]
"""A term and its type; None for a number, which takes the type of what it meets."""
Operand = Callable[[Read | Position], Term]
BOOL = DTYPES["bool"]


class Values:
    """Raises values; ``operand`` gives the term for what is read and for positions."""

    def __init__(self, dtypes: Mapping[str, DType], operand: Operand) -> None:
        self.dtypes = dtypes
        self.operand = operand

    def stored(self, e: Expr, own: DType, out: DType) -> Term:
        """``e``, computed in ``own``, as a value of ``out``."""
        term, found = self.value(e, own)
        return term if found == out else Scalar(out.name, (term,))

    def contribution(self, e: Expr, own: DType) -> Term:
        """``e`` as what an ``op=`` in type ``own`` combines."""
        term, found = self.value(e, own)
        if found is None:
            return Scalar(own.name, (term,))
        return term if compute_type(found) == own else _seen_as(own, term, found)

    def value(self, e: Expr, own: DType) -> Typed:
        """``e`` computed in ``own``; something read keeps its type."""
        if isinstance(e, Literal):
            return terms.Literal(e.value), BOOL if isinstance(e.value, bool) else None
        if isinstance(e, Read | Position):
            return self.operand(e), natural_type(e, self.dtypes)
        if isinstance(e, Cast):
            return Scalar(e.dtype.name, (self._fresh(e.arg)[0],)), e.dtype
        if isinstance(e, Bitcast):
            kind = value_type(e.arg, self.dtypes, None)
            term, found = self._fresh(e.arg)
            return Scalar(f"bitcast_{e.dtype}", (term if found == kind else Scalar(kind.name, (term,)),)), e.dtype
        return self._operation(e, own)

    def _fresh(self, e: Expr) -> Typed:
        return self.value(e, compute_type(value_type(e, self.dtypes, None)))

    def _operation(self, e: Apply, own: DType) -> Typed:
        kind = PRIMITIVES[e.function].result
        if kind == "bool":
            common = compute_type(argument_types(e, self.dtypes, own)[0])
            return Scalar(e.function, self._operands(e.args, common)), BOOL
        if kind == "select":
            condition, found = self._fresh(e.args[0])
            test = condition if found == BOOL else Scalar("bool", (condition,))
            return Scalar(e.function, (test, *self._operands(e.args[1:], own))), own
        return Scalar(e.function, self._operands(e.args, own)), own

    def _operands(self, args: tuple[Expr, ...], own: DType) -> tuple[Term, ...]:
        """Terms whose joined type is computed in ``own``."""
        found = [self.value(a, own) for a in args]
        joint = joined(tuple(kind for _, kind in found))
        if joint is None:
            return (Scalar(own.name, (found[0][0],)), *(term for term, _ in found[1:]))
        if compute_type(joint) == own:
            return tuple(term for term, _ in found)
        return tuple(term if kind in (None, own) else _seen_as(own, term, kind) for term, kind in found)


def _seen_as(own: DType, term: Term, kind: DType) -> Term:
    """A term of type ``kind`` in arithmetic of type ``own``: cast, or joined with nothing where a cast would round."""
    if exact(kind, own):
        return Scalar(own.name, (term,))
    return Scalar("orelse", (term, Scalar(own.name, (terms.Literal(None),))))
