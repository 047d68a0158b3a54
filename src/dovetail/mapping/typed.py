"""Values with the type each node is computed in, so that equal text in two places means equal arithmetic.

``a[i] * b[i]`` summed into an i32 is another operation than the same text summed into an f32: both sides of a match
are compared as ``Typed`` trees. Casts that keep every value (i8 to i32 of an element) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dovetail.base.dtypes import DTYPES, DType, Kind, compute_type, join
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Read, argument_types, statement_type, value_type
from dovetail.ir.primitives import PRIMITIVES


@dataclass(frozen=True, slots=True)
class Typed:
    """``expr`` computed in ``dtype``; ``root`` is what an index of patterns looks it up by."""

    expr: Expr
    dtype: DType
    root: str
    args: tuple[Typed, ...] = ()
    path: tuple[int, ...] = ()

    def walk(self) -> Iterator[Typed]:
        """This node and everything in it, outermost first."""
        yield self
        for arg in self.args:
            yield from arg.walk()


def typed(value: Expr, dtypes: Mapping[str, DType], out: DType) -> Typed:
    """``value`` of a statement that writes an ``out``, node by node."""
    return _node(value, dtypes, statement_type(value, dtypes, out), ())


def preserves(a: DType, b: DType) -> bool:
    """Whether ``b`` holds every value of ``a`` exactly."""
    if a == b or a.kind is Kind.BOOL:
        return True
    if b.kind is Kind.BOOL:
        return False
    if a.is_float:
        return b.is_float and join(a, b) == b
    if b.is_float:
        return max(-a.low, a.high) <= 1 << b.exact_bits
    return b.low <= a.low and a.high <= b.high


def _node(e: Expr, dtypes: Mapping[str, DType], own: DType, path: tuple[int, ...]) -> Typed:
    if isinstance(e, Apply):
        kinds = argument_types(e, dtypes, own)
        args = tuple(
            _node(arg, dtypes, compute_type(value_type(arg, dtypes, kind)), (*path, n))
            for n, (arg, kind) in enumerate(zip(e.args, kinds, strict=True))
        )
        dtype = DTYPES["bool"] if PRIMITIVES[e.function].result == "bool" else own
        return Typed(e, dtype, e.function, args, path)
    if isinstance(e, Cast | Bitcast):
        return _converted(e, dtypes, own, path)
    return Typed(
        e, own, "read" if isinstance(e, Read) else "literal" if isinstance(e, Literal) else "position", (), path
    )


def _converted(e: Cast | Bitcast, dtypes: Mapping[str, DType], own: DType, path: tuple[int, ...]) -> Typed:
    inner = value_type(e.arg, dtypes, None)
    if isinstance(e, Cast) and isinstance(e.arg, Read) and preserves(inner, e.dtype):
        return _node(e.arg, dtypes, own, (*path, 0))
    kind = inner if isinstance(e, Bitcast) else compute_type(inner)
    arg = _node(e.arg, dtypes, kind, (*path, 0))
    return Typed(e, e.dtype, f"{'cast' if isinstance(e, Cast) else 'bitcast'} {e.dtype}", (arg,), path)
