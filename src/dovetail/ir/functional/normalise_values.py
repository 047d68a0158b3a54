"""Values of terms while they are normalised: what a term is at a point, as an expression of programs.

    number     Cell: cases that exclude one another, each a program's expression or a reduction, with its conditions;
               where no case holds it is none
    array      Array: its size and what it is at an index
    tuple      Tuple
    function   Closure or a builtin: what it gives for its arguments

An expression computes what the term does wherever it is put: arithmetic that wraps in a smaller type than its
surroundings is cast to that type. Casts that turn out to be implied are left out when the program is canonicalised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from dovetail.base.dtypes import DTYPES, DType, compute_type
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, joined, substitute, walk
from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Loop
from dovetail.ir.value_forms import exact, folded_position

BOOL, I64, F32 = DTYPES["bool"], DTYPES["i64"], DTYPES["f32"]
WIDENED = "widened"
"""Marks an integer that is used as a float without being rounded: ``widened(x, cast)``, resolved when it is stored."""


@dataclass(frozen=True, slots=True)
class Part:
    """Contributions to a reduction: ``value`` at every point of ``loops`` where the conditions hold."""

    loops: tuple[Loop, ...]
    where: tuple[Condition, ...]
    value: Expr
    dtype: DType | None


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """A reduction that is not stored yet: all parts combined, from ``start`` on."""

    combine: Combine
    parts: tuple[Part, ...]
    start: Cell
    own: DType
    """The type it is computed in; the cell says what it is rounded to."""


@dataclass(frozen=True, slots=True)
class Case:
    """One alternative of a number. ``fixed`` loops have one value here: an element of ``array(...)``."""

    where: tuple[Condition, ...]
    body: Expr | Sum
    fixed: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """A number at a point; ``dtype`` is None for one that takes the type of what it meets."""

    cases: tuple[Case, ...]
    dtype: DType | None


@dataclass(slots=True, eq=False)
class Array:
    """``at`` of an index; the size is asked for only where it is needed."""

    find_size: Callable[[], Index]
    at: Callable[[Index], Value]
    _size: Index | None = field(default=None, init=False)

    @property
    def size(self) -> Index:
        if self._size is None:
            self._size = self.find_size()
        return self._size


@dataclass(slots=True, eq=False)
class Stored(Array):
    """A tensor, or the part of it at the first ``indices``; ``version`` counts the changes it has seen."""

    tensor: str = ""
    indices: tuple[Index, ...] = ()
    version: int = 0
    fresh: bool = False
    """Whether nothing else has this tensor: a name may take it over without a copy."""


@dataclass(frozen=True, slots=True)
class Tuple:
    """Several values."""

    members: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function; ``arity`` values are wanted, or the tuple of them."""

    arity: int
    call: Callable[[tuple[Value, ...]], Value]
    combine: tuple[Combine, int] | None = None
    """The ``op=`` that it is, and over how many dimensions it is lifted."""


Value = Cell | Array | Tuple | Closure


def number(value: Expr, dtype: DType | None, where: tuple[Condition, ...] = ()) -> Cell:
    """A cell of one case."""
    return Cell((Case(where, value),), dtype)


def array(size: Index, at: Callable[[Index], Value]) -> Array:
    return Array(lambda: size, at)


# -- cases


def guarded(cell: Cell, where: tuple[Condition, ...]) -> Cell:
    """``cell`` where the conditions hold as well."""
    if not where:
        return cell
    return replace(cell, cases=tuple(replace(c, where=_union(where, c.where)) for c in cell.cases))


def under(value: Value, where: tuple[Condition, ...]) -> Value:
    """Any value where the conditions hold; none elsewhere."""
    if isinstance(value, Cell):
        return guarded(value, where)
    if isinstance(value, Array):
        return Array(lambda: value.size, lambda i: under(value.at(i), where)) if where else value
    return Tuple(tuple(under(m, where) for m in value.members)) if isinstance(value, Tuple) else value


def products(cells: Iterable[Cell]) -> Iterator[tuple[Case, tuple[Case, ...]]]:
    """Every choice of one case each that can hold together: what holds then, and the cases."""
    found: list[tuple[Case, tuple[Case, ...]]] = [(Case((), Literal(0)), ())]
    for cell in cells:
        found = [
            (met, (*chosen, case))
            for common, chosen in found
            for case in cell.cases
            if (met := meet(common, case)) is not None
        ]
    return iter(found)


def meet(one: Case, other: Case) -> Case | None:
    """The conditions of both, with the body of the second; None where their fixed loops differ."""
    if not other.fixed:
        return Case(_union(one.where, other.where), other.body, one.fixed)
    if not one.fixed:
        return Case(_union(one.where, other.where), other.body, other.fixed)
    values = dict(one.fixed)
    if any(values.get(name, value) != value for name, value in other.fixed):
        return None
    fixed = tuple(sorted((values | dict(other.fixed)).items()))
    return Case(_union(one.where, other.where), other.body, fixed)


def _union(one: tuple[Condition, ...], other: tuple[Condition, ...]) -> tuple[Condition, ...]:
    if not one or not other:
        return one or other
    return tuple(dict.fromkeys((*one, *other)))


def opposite(where: tuple[Condition, ...]) -> Iterator[tuple[Condition, ...]]:
    """Conditions that cover, without overlap, all points where not all of ``where`` hold."""
    held: tuple[Condition, ...] = ()
    for condition in where:
        index = condition.index
        if condition.equal:
            yield (*held, Condition(index - 1))
        yield (*held, Condition(-index - 1))
        held = (*held, condition)


def fix(case: Case) -> Case:
    """The case with its fixed loops replaced by their values."""
    if not case.fixed:
        return case
    values = {name: constant(value) for name, value in case.fixed}
    return Case(tuple(c.substitute(values) for c in case.where), fix_body(case.body, values), case.fixed)


def fix_body(body: Expr | Sum, values: dict[str, Index]) -> Expr | Sum:
    if not isinstance(body, Sum):
        return substitute(body, values)
    parts = tuple(
        Part(p.loops, tuple(c.substitute(values) for c in p.where), substitute(p.value, values), p.dtype)
        for p in body.parts
    )
    cases = tuple(replace(c, body=fix_body(c.body, values)) for c in body.start.cases)
    return replace(body, parts=parts, start=replace(body.start, cases=cases))


# -- arithmetic


def operation_type(function: str, dtypes: tuple[DType | None, ...]) -> DType | None:
    """The type of a primitive's result; None where only numbers without a type meet."""
    kind = PRIMITIVES[function].result
    return BOOL if kind == "bool" else _computed(dtypes[1:] if kind == "select" else dtypes)


def operation(function: str, args: tuple[Expr, ...], dtypes: tuple[DType | None, ...]) -> Expr:
    """A primitive of expressions of these types."""
    folded = folded_position(function, args)
    if folded is not None:
        return folded
    skip = 1 if PRIMITIVES[function].result == "select" else 0
    own = _computed(dtypes[skip:])
    pairs = zip(args[skip:], dtypes[skip:], strict=True)
    return Apply(function, (*args[:skip], *(_operand(a, d, own) for a, d in pairs)))


def _computed(dtypes: tuple[DType | None, ...]) -> DType | None:
    found = joined(dtypes)
    return None if found is None else compute_type(found)


def _operand(e: Expr, source: DType | None, own: DType | None) -> Expr:
    """``e`` of type ``source`` in arithmetic of type ``own``: arithmetic that wraps earlier is cast."""
    if source is None or own is None or source == own or (source.is_float and own.is_float):
        return e
    return Cast(source, e) if is_arithmetic(e) else e


def is_arithmetic(e: Expr) -> bool:
    return isinstance(e, Apply) and e.function in PRIMITIVES and PRIMITIVES[e.function].result != "bool"


def widened(e: Expr, source: DType | None, target: DType) -> Expr:
    """``e`` seen as a value of ``target`` without rounding: what joining two types does."""
    if source is None or source == target or (source.is_float and target.is_float):
        return e
    inner = Cast(source, e) if is_arithmetic(e) else e
    return Cast(target, inner) if exact(source, target) else Apply(WIDENED, (inner, Cast(target, inner)))


def converted(function: str, e: Expr, source: DType | None) -> tuple[Expr, DType]:
    """A cast or bitcast of ``e``."""
    target = DTYPES[function.removeprefix("bitcast_")]
    return (Cast(target, e) if function == target.name else Bitcast(target, e)), target


def default_type(cell: Cell) -> DType:
    """The type of a cell that is stored: numbers that met nothing are i64, or f32 where one is a float."""
    if cell.dtype is not None:
        return cell.dtype
    bodies = (node for c in cell.cases if not isinstance(c.body, Sum) for node in walk(c.body))
    floats = any(isinstance(node, Literal) and isinstance(node.value, float) for node in bodies)
    return F32 if floats else I64


def is_neutral(cell: Cell, combine: Combine, dtype: DType) -> bool:
    """Whether ``cell`` is the number that ``combine`` starts from anyway in ``dtype``."""
    if len(cell.cases) != 1 or cell.cases[0].where:
        return False
    body = cell.cases[0].body
    while isinstance(body, Cast):
        body = body.arg
    return isinstance(body, Literal) and body.value == combine.neutral(dtype)


def literal(value: int | float | bool) -> Cell:
    return number(Literal(value), BOOL if isinstance(value, bool) else None)


def none(dtype: DType | None = None) -> Cell:
    return Cell((), dtype)
