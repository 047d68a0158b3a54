"""How many lanes a statement can run in: every load, conversion and operation of it needs an instruction that wide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

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
    statement_type,
    value_type,
    walk,
)
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Statement
from dovetail.schedule.repertoire import Key, Repertoire

DTypes = Mapping[str, DType]
COUNTED = DTYPES["i64"]
"""The type of positions."""


def lane_counts(statement: Statement, dtypes: DTypes, instructions: Repertoire) -> tuple[int, ...]:
    """Widths, widest first, at which all of ``statement`` has instructions; always ends in 1.

    A statement that looks at its loops counts along its lanes, where they are evenly apart.
    """
    if any(isinstance(n, Position) and not n.index.is_affine for n in walk(statement.value)):
        return (1,)
    out = dtypes[statement.out.tensor]
    own = moved_type(statement, dtypes)
    needs = frozenset(_statement(statement, dtypes, own, out))
    return tuple(w for w in instructions.widths(own.name) if w == 1 or _available(instructions, needs, w))


def moved_type(statement: Statement, dtypes: DTypes) -> DType:
    """The type a statement's values pass through: its arithmetic's, or for a plain copy the elements' own."""
    out, value = dtypes[statement.out.tensor], statement.value
    if statement.combine is Combine.SET and isinstance(value, Read) and dtypes[value.access.tensor] == out:
        return out
    return statement_type(value, dtypes, out)


@lru_cache(maxsize=4096)
def _available(instructions: Repertoire, needs: frozenset[Key], width: int) -> bool:
    return all(instructions.find(*(width if type(part) is int else part for part in key)) is not None for key in needs)


def _statement(statement: Statement, dtypes: DTypes, own: DType, out: DType) -> Iterator[Key]:
    """What it takes, as keys of the repertoire with 0 for the number of lanes."""
    yield from _memory("store", out)
    yield ("move", own.name, 0)
    yield from _value(statement.value, own, dtypes)
    yield from _cast(own, out)
    if statement.combine is not Combine.SET:
        function = statement.combine.function or ""
        yield from _memory("load", out)
        yield from _cast(out, own)
        yield ("apply", function, own.name, 0)
        yield ("reduce", statement.combine.value, own.name, 0)
        yield ("keep", own.name, 0)


def _value(e: Expr, want: DType, dtypes: DTypes) -> Iterator[Key]:
    yield ("broadcast", "registers", want.name, 0)
    if isinstance(e, Literal):
        return
    if isinstance(e, Position):
        yield ("count", COUNTED.name, 0)
        yield ("broadcast", "registers", COUNTED.name, 0)
        yield from (("apply", function, COUNTED.name, 0) for function in ("add", "mul"))
        yield from _cast(COUNTED, want)
        return
    if isinstance(e, Read):
        dtype = dtypes[e.access.tensor]
        yield from _memory("load", dtype)
        yield from _cast(dtype, want)
        yield from _cast(compute_type(dtype), want)
        return
    if isinstance(e, Cast | Bitcast):
        natural = value_type(e.arg, dtypes, None)
        inner = compute_type(natural)
        yield from _value(e.arg, inner, dtypes)
        if isinstance(e, Bitcast):
            yield from _cast(inner, natural)
            yield ("bitcast", natural.name, e.dtype.name, 0)
        else:
            yield from _cast(inner, e.dtype)
        yield from _cast(e.dtype, want)
        return
    own = compute_type(value_type(e, dtypes, want))
    kinds = tuple(map(compute_type, argument_types(e, dtypes, own)))
    for arg, kind in zip(e.args, kinds, strict=True):
        yield from _value(arg, kind, dtypes)
    yield from _apply(e, kinds[-1], own, want)


def _apply(e: Apply, argument: DType, own: DType, want: DType) -> Iterator[Key]:
    yield ("apply", e.function, argument.name, 0)
    result = DTYPES["bool"] if PRIMITIVES[e.function].result == "bool" else own
    yield from _cast(result, want)


def _memory(kind: str, dtype: DType) -> Iterator[Key]:
    for masked in (False, True):
        for strided in (False, True):
            yield (kind, dtype.name, 0, masked, strided)


def _cast(source: DType, to: DType) -> Iterator[Key]:
    if source != to:
        yield ("cast", source.name, to.name, 0)
