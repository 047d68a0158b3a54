"""One spelling of a statement's value among those that compute the same: casts that the statement implies are left out.

    acc: i32 += i32(a) * i32(b)          ->  acc += a * b            the statement computes in i32 anyway
    y: f16 = f16(a * b)                  ->  y = a * b               storing rounds
    y: i8 = a + i8(1)                    ->  y = a + 1               a number takes the type it meets
    y: f32 = f32(i32(c) * a)   (c: bool) ->  y = f32(c * a)          a is i32 itself

Values are cut into *regions*, parts computed in one type: a region ends at a comparison, a cast that changes its
argument, a bitcast and the condition of a select. In a region either no operand needs a cast to reach the type, or
all that do not have it get one. A cast that rounds, or that ends arithmetic that wraps earlier, stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from dovetail.base.dtypes import DTYPES, DType, Kind, compute_type, join
from dovetail.base.errors import ProgramError
from dovetail.base.limits import MAX_EXTENT
from dovetail.ir.expr import (
    Apply,
    Bitcast,
    Cast,
    Expr,
    Literal,
    Position,
    argument_types,
    natural_type,
    value_type,
    walk,
)
from dovetail.ir.index import Index, constant
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Statement

DTypes = Mapping[str, DType]


def plain_value(s: Statement, dtypes: DTypes) -> Statement:
    """``s`` without the casts that it implies, and with arithmetic on positions as one position."""
    value = fold_positions(s.value)
    if any(isinstance(node, Cast) for node in walk(value)):
        out = dtypes[s.out.tensor]
        around = None if out.kind is Kind.BOOL else out
        if s.combine is Combine.SET:
            value = _without_last_cast(value, dtypes, out)
        value = _region(value, compute_type(value_type(value, dtypes, around)), around, dtypes)
    return s if value == s.value else replace(s, value=value)


def exact(source: DType, target: DType) -> bool:
    """Whether every value of ``source`` is one of ``target``."""
    if source == target or source.kind is Kind.BOOL:
        return True
    if source.is_float or target.kind is Kind.BOOL:
        return source.is_float and target.is_float and join(source, target) == target
    if target.is_float:
        return max(-source.low, source.high) <= 1 << target.exact_bits
    return target.low <= source.low and source.high <= target.high


def fits(value: int | float | bool, dtype: DType) -> bool:
    """Whether the number is a value of ``dtype``."""
    if dtype.is_float:
        return float(np.asarray(value).astype(dtype.numpy)) == value
    return not isinstance(value, float) and dtype.low <= value <= dtype.high


# -- regions


def _without_last_cast(e: Expr, dtypes: DTypes, out: DType) -> Expr:
    """The argument of a cast to the dtype that is stored anyway, where it is computed alike without the cast."""
    while isinstance(e, Cast) and e.dtype == out:
        inner = e.arg
        if isinstance(inner, Literal):
            return inner if fits(inner.value, out) else e
        if not _is_arithmetic(inner):
            e = inner
            continue
        around = None if out.kind is Kind.BOOL else out
        if compute_type(value_type(inner, dtypes, around)) != compute_type(value_type(inner, dtypes, None)):
            return e
        e = inner
    return e


def _region(e: Expr, own: DType, around: DType | None, dtypes: DTypes) -> Expr:
    """``e`` computed in ``own`` where the surroundings bring ``around``, with no more casts than that takes."""
    bare = _bare(e, own, dtypes)
    if _reached(bare, around, dtypes) == own:
        return bare
    full = _converted(bare, own, dtypes)
    return full if _reached(full, around, dtypes) == own else e


def _reached(e: Expr, around: DType | None, dtypes: DTypes) -> DType | None:
    try:
        return compute_type(value_type(e, dtypes, around))
    except ProgramError:
        return None


def _bare(e: Expr, own: DType, dtypes: DTypes) -> Expr:
    """``e`` with casts of operands that keep their values left out, and what lies inside other regions settled."""
    if isinstance(e, Apply):
        if PRIMITIVES[e.function].result == "bool":
            return _comparison(e, dtypes)
        args = list(e.args)
        if PRIMITIVES[e.function].result == "select":
            args[0] = _truth(args[0], dtypes)
            return Apply(e.function, (args[0], *(_bare(a, own, dtypes) for a in args[1:])))
        return Apply(e.function, tuple(_bare(a, own, dtypes) for a in args))
    if isinstance(e, Bitcast):
        return _bare_bits(e, dtypes)
    return _bare_cast(e, own, dtypes) if isinstance(e, Cast) else e


def _bare_bits(e: Bitcast, dtypes: DTypes) -> Expr:
    """The bits of a value of the same width and kind."""
    kind = value_type(e.arg, dtypes, None)
    arg = e.arg
    while isinstance(arg, Cast) and arg.dtype == kind and natural_type(arg.arg, dtypes) == kind:
        arg = arg.arg
    arg = _fresh(arg, dtypes)
    return Bitcast(e.dtype, arg) if value_type(arg, dtypes, None) == kind else e


def _truth(e: Expr, dtypes: DTypes) -> Expr:
    """The condition of a select, which is true where it is not zero."""
    while isinstance(e, Cast) and e.dtype.kind is Kind.BOOL and not isinstance(e.arg, Literal):
        e = e.arg
    return _fresh(e, dtypes)


def _bare_cast(e: Cast, own: DType, dtypes: DTypes) -> Expr:
    if isinstance(e.arg, Literal):
        return e.arg if fits(e.arg.value, e.dtype) and fits(e.arg.value, own) else e
    inner = _bare(e.arg, e.dtype, dtypes) if isinstance(e.arg, Cast) else _fresh(e.arg, dtypes)
    if isinstance(inner, Literal):
        return Cast(e.dtype, inner)
    if not _is_arithmetic(inner):
        natural = natural_type(inner, dtypes)
        return inner if natural is not None and exact(natural, e.dtype) else Cast(e.dtype, inner)
    computed = compute_type(value_type(inner, dtypes, None))
    if computed.is_float and computed.name != "f64":
        return Cast(e.dtype, inner)
    if not exact(computed, e.dtype):
        return Cast(e.dtype, inner)
    return inner if computed == own else Cast(computed, inner)


def _fresh(e: Expr, dtypes: DTypes) -> Expr:
    """A value whose type no surroundings decide."""
    return _region(e, compute_type(value_type(e, dtypes, None)), None, dtypes)


def _comparison(e: Apply, dtypes: DTypes) -> Expr:
    """The two sides are one region."""
    kinds = argument_types(e, dtypes, DTYPES["bool"])
    own = compute_type(kinds[0])
    bare = Apply(e.function, tuple(_bare(a, own, dtypes) for a in e.args))
    for new in (bare, Apply(e.function, tuple(_converted(a, own, dtypes) for a in bare.args))):
        if compute_type(argument_types(new, dtypes, DTYPES["bool"])[0]) == own:
            return new
    return e


def _converted(e: Expr, own: DType, dtypes: DTypes) -> Expr:
    """``e`` with a cast to ``own`` around every operand that has another type and keeps its value in it."""
    if _is_arithmetic(e):
        assert isinstance(e, Apply)
        skip = 1 if PRIMITIVES[e.function].result == "select" else 0
        return Apply(e.function, (*e.args[:skip], *(_converted(a, own, dtypes) for a in e.args[skip:])))
    if isinstance(e, Literal):
        return e
    inner = e.arg if isinstance(e, Cast) and _is_arithmetic(e.arg) and e.dtype.is_integer else e
    natural = natural_type(e, dtypes)
    return Cast(own, inner) if natural != own and natural is not None and exact(natural, own) else e


def _is_arithmetic(e: Expr) -> bool:
    """Whether ``e`` goes on in the region it is met in."""
    return isinstance(e, Apply) and PRIMITIVES[e.function].result != "bool"


# -- arithmetic on positions


def fold_positions(e: Expr) -> Expr:
    """``e`` with sums, multiples and quotients of positions and whole numbers as one position."""
    if isinstance(e, Apply):
        args = tuple(fold_positions(a) for a in e.args)
        folded = folded_position(e.function, args)
        if folded is not None:
            return folded
        return e if all(a is b for a, b in zip(args, e.args, strict=True)) else Apply(e.function, args)
    if isinstance(e, Cast | Bitcast):
        arg = fold_positions(e.arg)
        return e if arg is e.arg else replace(e, arg=arg)
    return e


def folded_position(function: str, args: tuple[Expr, ...]) -> Expr | None:
    """The position that an operation on positions gives; None where it gives none."""
    indices = [_as_index(a) for a in args]
    known = [i for i in indices if i is not None]
    if len(known) < len(args) or not any(isinstance(a, Position) for a in args):
        return None
    found = next(_index_results(function, known), None)
    return None if found is None or found.is_constant else Position(found)


def _index_results(function: str, args: list[Index]) -> Iterator[Index]:
    if function == "neg":
        yield -args[0]
    if len(args) != 2:
        return
    a, b = args
    if function == "add":
        yield a + b
    elif function == "sub":
        yield a - b
    elif function == "mul" and (a.is_constant or b.is_constant):
        yield a * b.const if b.is_constant else b * a.const
    elif function in ("floordiv", "mod") and b.is_constant and b.const > 0:
        yield a // b.const if function == "floordiv" else a % b.const


def _as_index(e: Expr) -> Index | None:
    if isinstance(e, Position):
        return e.index
    whole = isinstance(e, Literal) and isinstance(e.value, int) and not isinstance(e.value, bool)
    return constant(int(e.value)) if isinstance(e, Literal) and whole and abs(e.value) <= MAX_EXTENT else None
