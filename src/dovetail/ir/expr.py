"""Values computed at a point: six kinds, with arithmetic as rows of ``primitives.PRIMITIVES``.

    expr = number | access | index            -- a literal, an element, a loop's or size's own value
         | primitive(expr, ...)               -- a + b, max(a, b), exp(a), select(c, a, b)
         | dtype(expr) | bitcast_dtype(expr)  -- convert, reinterpret

Types. Arithmetic is done in the *statement's* type: the join of the type of the tensor written and of everything
read, so ``acc[i] += a[i] * b[i]`` with i8 operands and an i32 accumulator multiplies in i32. A comparison, a cast
and the condition of a select start afresh with the join of their own arguments. Literals take the type around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from dovetail.base.dtypes import DTYPES, DType, Kind, compute_type, join
from dovetail.base.errors import VerifyError
from dovetail.ir.index import Access, Index, Quotient, Remainder
from dovetail.ir.primitives import PRIMITIVES


@dataclass(frozen=True, slots=True)
class Literal:
    """A number; it takes the type of its surroundings."""

    value: int | float | bool

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, float):
            return repr(self.value)  # inf, nan and 1e-05 are read back by the parser
        return str(self.value)

    def __eq__(self, other: object) -> bool:
        """Equal as written: 1 and 1.0 differ, nan equals nan."""
        return isinstance(other, Literal) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True, slots=True)
class Read:
    """An element of a tensor."""

    access: Access

    def __str__(self) -> str:
        return str(self.access)


@dataclass(frozen=True, slots=True)
class Position:
    """The value of loops and sizes, as an i64: ``i``, ``2 * i + n``, ``i // 4``. Never constant."""

    index: Index

    def __str__(self) -> str:
        return str(self.index)


@dataclass(frozen=True, slots=True)
class Apply:
    """A primitive of its arguments."""

    function: str
    args: tuple[Expr, ...]

    def __str__(self) -> str:
        row = PRIMITIVES[self.function]
        if row.symbol is None:
            return f"{self.function}({', '.join(map(str, self.args))})"
        if row.arity == 1:
            return f"{row.symbol}{_nested(self.args[0], row.binding + 1)}"
        left, right = self.args
        return f"{_nested(left, row.binding)} {row.symbol} {_nested(right, row.binding + 1)}"


@dataclass(frozen=True, slots=True)
class Cast:
    """Its value in another dtype: integers wrap, float to integer truncates and saturates, NaN gives 0."""

    dtype: DType
    arg: Expr

    def __str__(self) -> str:
        return f"{self.dtype}({self.arg})"


@dataclass(frozen=True, slots=True)
class Bitcast:
    """The same bits read as another dtype of the same width."""

    dtype: DType
    arg: Expr

    def __str__(self) -> str:
        return f"bitcast_{self.dtype}({self.arg})"


Expr = Literal | Read | Position | Apply | Cast | Bitcast


def children(e: Expr) -> tuple[Expr, ...]:
    if isinstance(e, Apply):
        return e.args
    return (e.arg,) if isinstance(e, Cast | Bitcast) else ()


def walk(e: Expr) -> Iterator[Expr]:
    """``e`` and everything in it, outermost first."""
    yield e
    for child in children(e):
        yield from walk(child)


def shallow(e: Expr, depth: int) -> bool:
    """Whether ``e`` nests at most ``depth`` operations."""
    level: tuple[Expr, ...] = (e,)
    while level and depth >= 0:
        level = tuple(child for node in level for child in children(node))
        depth -= 1
    return not level


def reads(e: Expr) -> Iterator[Access]:
    """Every access ``e`` reads, in order, indirect indices included (before the access they index)."""
    for node in walk(e):
        if isinstance(node, Read):
            yield from node.access.reads()
            yield node.access
        elif isinstance(node, Position):
            yield from node.index.reads()


def names(e: Expr) -> frozenset[str]:
    """Loops and sizes that occur in ``e``."""
    found: set[str] = set()
    for node in walk(e):
        if isinstance(node, Read):
            found |= node.access.names()
        elif isinstance(node, Position):
            found |= node.index.names()
    return frozenset(found)


def rebuild(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """``change`` applied to every node, innermost first."""
    if isinstance(e, Apply):
        return change(Apply(e.function, tuple(rebuild(a, change) for a in e.args)))
    if isinstance(e, Cast):
        return change(Cast(e.dtype, rebuild(e.arg, change)))
    if isinstance(e, Bitcast):
        return change(Bitcast(e.dtype, rebuild(e.arg, change)))
    return change(e)


def substitute(e: Expr, values: Mapping[str, Index]) -> Expr:
    """Loops and sizes replaced by indices."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Read):
            return Read(node.access.substitute(values))
        return _position(node.index.substitute(values)) if isinstance(node, Position) else node

    return rebuild(e, change)


def rename(e: Expr, tensors: Mapping[str, str]) -> Expr:
    """Tensors renamed."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Read):
            return Read(node.access.rename(tensors))
        return Position(node.index.rename(tensors)) if isinstance(node, Position) else node

    return rebuild(e, change)


def natural_type(e: Expr, dtypes: Mapping[str, DType]) -> DType | None:
    """The type of ``e`` by itself; None for a literal, which has none of its own."""
    if isinstance(e, Literal):
        return DTYPES["bool"] if isinstance(e.value, bool) else None
    if isinstance(e, Read):
        return dtypes[e.access.tensor]
    if isinstance(e, Position):
        return DTYPES["i64"]
    if isinstance(e, Cast | Bitcast):
        return e.dtype
    result = PRIMITIVES[e.function].result
    if result == "bool":
        return DTYPES["bool"]
    return joined(natural_type(a, dtypes) for a in (e.args[1:] if result == "select" else e.args))


def value_type(e: Expr, dtypes: Mapping[str, DType], around: DType | None) -> DType:
    """The type ``e`` is computed in when the surroundings want ``around``."""
    own = joined((natural_type(e, dtypes), around))
    if own is not None:
        return own
    return DTYPES["f32" if any(isinstance(n, Literal) and isinstance(n.value, float) for n in walk(e)) else "i64"]


def argument_types(e: Apply, dtypes: Mapping[str, DType], own: DType) -> tuple[DType, ...]:
    """The types the arguments of ``e`` are computed in when ``e`` itself is computed in ``own``."""
    result = PRIMITIVES[e.function].result
    if result == "bool":
        inner = joined(natural_type(a, dtypes) for a in e.args)
        common = max((value_type(a, dtypes, inner) for a in e.args), key=lambda d: (d.is_float, d.bits))
        return (common,) * len(e.args)
    if result == "select":
        return (DTYPES["bool"], own, own)
    return (own,) * len(e.args)


def statement_type(value: Expr, dtypes: Mapping[str, DType], out: DType) -> DType:
    """The type a statement's arithmetic is done in; small floats compute as f32."""
    return compute_type(value_type(value, dtypes, out if out.name != "bool" else None))


def joined(types: Iterator[DType | None] | tuple[DType | None, ...]) -> DType | None:
    known = [t for t in types if t is not None]
    return reduce(join, known) if known else None


def check_types(e: Expr, dtypes: Mapping[str, DType], own: DType) -> None:
    """Raise a VerifyError where a primitive or a literal meets a type it has no meaning for."""
    if isinstance(e, Apply):
        _check_primitive(e, own)
        for arg, kind in zip(e.args, argument_types(e, dtypes, own), strict=True):
            check_types(arg, dtypes, compute_type(value_type(arg, dtypes, kind)))
    elif isinstance(e, Literal):
        _check_literal(e, own)
    elif isinstance(e, Cast | Bitcast):
        inner = value_type(e.arg, dtypes, None)
        if isinstance(e, Bitcast) and inner.bits != e.dtype.bits:
            raise VerifyError(f"bitcast from {inner} to {e.dtype} in '{e}'", why="the widths differ")
        if isinstance(e, Bitcast) and e.dtype.kind is Kind.BOOL:
            raise VerifyError(f"bitcast to bool in '{e}'", why="a bool is 0 or 1", hint="compare with 0 instead")
        check_types(e.arg, dtypes, inner if isinstance(e, Bitcast) else compute_type(inner))


def _check_primitive(e: Apply, own: DType) -> None:
    result = PRIMITIVES[e.function].result
    if result == "float" and not own.is_float:
        raise VerifyError(f"{e.function} of {own} in '{e}'", hint="cast the argument, e.g. f32(x[i])")
    if result == "integer" and own.is_float:
        raise VerifyError(f"{e.function} of {own} in '{e}'", hint="cast the arguments to an integer dtype")
    if own.kind is Kind.BOOL and e.function in _NOT_OF_BOOL:
        raise VerifyError(f"{e.function} of bool in '{e}'", hint="cast the arguments, e.g. i32(x[i])")


def _check_literal(e: Literal, own: DType) -> None:
    if own.is_float or isinstance(e.value, bool):
        return
    if isinstance(e.value, float):
        raise VerifyError(f"{e} in arithmetic on {own}", hint="cast the others to a float dtype, e.g. f32(x[i])")
    if own.kind is Kind.BOOL and e.value not in (0, 1):
        raise VerifyError(f"{e} in arithmetic on bool", hint="true or false")
    if own.is_integer and not own.low <= e.value <= own.high:
        raise VerifyError(f"{e} does not fit {own}", why=f"{own} holds {own.low} to {own.high}")


_NOT_OF_BOOL = ("sub", "neg", "floordiv", "mod", "shl", "shr")


def _position(index: Index) -> Expr:
    """The value of ``index``; a constant keeps its type, which a literal would not."""
    return Cast(DTYPES["i64"], Literal(index.const)) if index.is_constant else Position(index)


def _nested(e: Expr, binding: int) -> str:
    if isinstance(e, Position):
        simple = len(e.index.terms) == 1 and not e.index.const and e.index.terms[0][1] == 1
        return str(e) if simple and not isinstance(e.index.terms[0][0], Quotient | Remainder) else f"({e})"
    if isinstance(e, Apply):
        row = PRIMITIVES[e.function]
        if row.symbol is not None and row.binding < binding:
            return f"({e})"
    if isinstance(e, Literal) and not isinstance(e.value, bool) and (e.value < 0 or repr(e.value)[0] == "-"):
        return f"({e})"
    return str(e)
