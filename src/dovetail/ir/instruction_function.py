"""An instruction's program as a NumPy function on flat storage, prepared once for given parameters.

An operand is a flat array and the place of its first element in it; its other elements lie at fixed distances. What
the program does not write is left alone, but for a register that is only written: it becomes the neutral element.
Integers are exact; floats are computed in float64 and rounded when stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES, DType, compute_type
from dovetail.base.errors import CodegenError
from dovetail.ir.compute import convert, literal, representation, store
from dovetail.ir.expr import (
    Apply,
    Bitcast,
    Cast,
    Expr,
    Literal,
    Read,
    argument_types,
    statement_type,
    value_type,
)
from dovetail.ir.index import Access, Index, Quotient
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Program, Role, Statement

Array = npt.NDArray[np.generic]
IntArray = npt.NDArray[np.int64]
Storage = tuple[Array, int]
"""A flat array and the place of an operand's first element in it."""
Run = Callable[[Sequence[Storage]], None]
_Value = Callable[[Sequence[Array]], Array]
_Convert = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Touched:
    """Elements of one operand, relative to its first: a range where they follow each other, else an index array."""

    operand: int
    low: int
    high: int
    places: IntArray | None

    def read(self, storage: Sequence[Storage]) -> Array:
        flat, first = storage[self.operand]
        if first + self.low < 0 or first + self.high >= flat.size:
            raise _outside(first + self.low, first + self.high, flat.size)
        if self.places is None:
            return flat[first + self.low : first + self.high + 1]
        return flat[self.places + first]

    def write(self, storage: Sequence[Storage], values: Array) -> None:
        flat, first = storage[self.operand]
        if first + self.low < 0 or first + self.high >= flat.size:
            raise _outside(first + self.low, first + self.high, flat.size)
        if self.places is None:
            flat[first + self.low : first + self.high + 1] = values
        else:
            flat[self.places + first] = values


def instruction_function(
    program: Program,
    names: Sequence[str],
    strides: Mapping[str, tuple[int, ...]],
    parameters: Mapping[str, int],
    cleared: int = 0,
) -> Run:
    """Runs ``program`` on operands ``names``, in that order, each with its element ``strides``.

    ``cleared``: elements of a result's register that are set to the neutral element before.
    """
    if any(t.role is Role.TEMP for t in program.tensors) or any(s.seq for s in program.statements):
        raise CodegenError("an instruction with temporaries or ordered steps", where=str(program))
    order = {name: number for number, name in enumerate(names)}
    parts = [_statement(program, s, order, strides, parameters) for s in program.statements]
    if parts[0].written.places is not None or parts[0].written.high - parts[0].written.low + 1 < cleared:
        parts[0] = replace(parts[0], cleared=cleared)
    if len(parts) == 1:
        return parts[0]

    def run(storage: Sequence[Storage]) -> None:
        for part in parts:
            part(storage)

    return run


def touched(run: Run) -> tuple[tuple[Touched, ...], Touched]:
    """What a prepared instruction of one statement reads, what an ``op=`` adds to as well, and what it writes."""
    assert isinstance(run, _Step)
    joins = run.join is not None and run.neutral is None
    return (*run.gathers, run.written) if joins else run.gathers, run.written


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class _Step:
    """One statement, prepared: reads, computes, joins what meets in one element, writes."""

    value: _Value
    gathers: tuple[Touched, ...]
    ordered: IntArray | None
    """Points sorted by the element they reach; None when they are."""
    starts: IntArray | None
    """Where each element's contributions start; None when each has one."""
    written: Touched
    widen: _Convert
    """From the element in memory to the type computed in."""
    round: _Convert
    """And back."""
    join: np.ufunc | None
    """None for plain assignment."""
    neutral: Array | None
    """What contributions meet, instead of what is there."""
    count: int
    cleared: int = 0

    def __call__(self, storage: Sequence[Storage]) -> None:
        if not self.count:
            self.clear(storage)
            return
        values = self.value([g.read(storage) for g in self.gathers])
        if self.ordered is not None or self.starts is not None:
            values = np.broadcast_to(values, (self.count,))
        if self.ordered is not None:
            values = values[self.ordered]
        if self.join is not None:
            if self.starts is not None:
                values = self.join.reduceat(values, self.starts)
            before = self.neutral
            if before is None:
                before = self.widen(self.written.read(storage))
            values = self.join(before, values)
        elif self.cleared:
            values = values.copy()  # it may be a view of what is cleared
        if self.cleared:
            self.clear(storage)
        self.written.write(storage, self.round(values))

    def clear(self, storage: Sequence[Storage]) -> None:
        flat, first = storage[self.written.operand]
        flat[first : first + self.cleared] = 0 if self.neutral is None else self.neutral


def _statement(
    program: Program,
    statement: Statement,
    order: Mapping[str, int],
    strides: Mapping[str, tuple[int, ...]],
    parameters: Mapping[str, int],
) -> _Step:
    points = _points(statement, parameters)
    dtypes, out = program.dtypes, statement.out.tensor
    own = statement_type(statement.value, dtypes, dtypes[out])
    reads: dict[Access, int] = {}
    moves = isinstance(statement.value, Read) and dtypes[statement.value.access.tensor] == dtypes[out]
    if moves and statement.combine is Combine.SET:
        value, own = _move(statement.value, reads), dtypes[out]
    else:
        value = _value(statement.value, own, dtypes, reads, points)
    gathers = tuple(_touched(access, order, strides, points) for access in reads)
    places = _places(statement.out, strides, points)
    ordered = np.argsort(places, kind="stable")
    distinct, starts = np.unique(places[ordered], return_index=True)
    if statement.combine is Combine.SET and distinct.size < places.size:
        raise CodegenError("an instruction writes an element twice", where=str(statement))
    function = statement.combine.function
    afresh = program.tensor(out).role is Role.OUT and statement is program.statements[0]
    return _Step(
        value,
        gathers,
        None if bool((np.diff(ordered) == 1).all()) else ordered,
        None if starts.size == places.size else starts,
        _run_of(order[out], distinct),
        _converter(dtypes[out], own),
        _rounding(own, dtypes[out]),
        None if function is None else _UFUNCS[function],
        literal(statement.combine.neutral(own), own) if function and afresh else None,
        places.size,
    )


_UFUNCS: Mapping[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _points(statement: Statement, parameters: Mapping[str, int]) -> dict[str, IntArray]:
    """For each loop and parameter its value at every point that is there; at least one entry."""
    extents = [loop.extent.evaluate(parameters) for loop in statement.loops]
    grid = np.indices(extents, dtype=np.int64).reshape(len(extents), -1) if extents else np.zeros((0, 1), np.int64)
    points = {loop.name: grid[number] for number, loop in enumerate(statement.loops)}
    count = grid.shape[1] if extents else 1
    points |= {name: np.full(count, value, np.int64) for name, value in parameters.items()}
    points[""] = np.zeros(count, np.int64)
    for condition in statement.where:
        values = _index(condition.index, points)
        there = values == 0 if condition.equal else values >= 0
        points = {name: value[there] for name, value in points.items()}
    return points


def _index(index: Index, points: Mapping[str, IntArray]) -> IntArray:
    total = points[""] + index.const
    for atom, c in index.terms:
        if isinstance(atom, str):
            total = total + points[atom] * c
        elif isinstance(atom, Access):
            raise CodegenError(f"an instruction reads its index {atom}", hint="read it in the place of the operand")
        elif isinstance(atom, Quotient):
            total = total + _index(atom.index, points) // atom.divisor * c
        else:
            total = total + _index(atom.index, points) % atom.divisor * c
    return total


def _places(access: Access, strides: Mapping[str, tuple[int, ...]], points: Mapping[str, IntArray]) -> IntArray:
    places = points[""]
    for index, stride in zip(access.indices, strides[access.tensor], strict=True):
        places = places + _index(index, points) * stride
    return places


def _touched(
    access: Access, order: Mapping[str, int], strides: Mapping[str, tuple[int, ...]], points: Mapping[str, IntArray]
) -> Touched:
    places = _places(access, strides, points)
    if places.size and (places == places[0]).all():
        places = places[:1]  # one element for all points: NumPy spreads it
    return _run_of(order[access.tensor], places)


def _run_of(operand: int, places: IntArray) -> Touched:
    if not places.size:
        return Touched(operand, 0, -1, None)
    low, high = int(places.min()), int(places.max())
    in_row = places.size == high - low + 1 and bool((np.diff(places) == 1).all())
    return Touched(operand, low, high, None if in_row else places)


def _value(
    e: Expr, own: DType, dtypes: Mapping[str, DType], reads: dict[Access, int], points: Mapping[str, IntArray]
) -> _Value:
    """``e`` as a function of the elements read; mirrors ``compute``, with all decisions taken before."""
    if isinstance(e, Literal):
        number = literal(e.value, own)
        return lambda values: number
    if isinstance(e, Read):
        at, kind = reads.setdefault(e.access, len(reads)), dtypes[e.access.tensor]
        if kind == own and kind.numpy == representation(kind):
            return lambda values: values[at]
        if own.is_float:
            return lambda values: values[at].astype(np.float64)
        return lambda values: convert(values[at], kind, own)
    if isinstance(e, Cast):
        inner = compute_type(value_type(e.arg, dtypes, None))
        arg, to = _value(e.arg, inner, dtypes, reads, points), e.dtype
        return lambda values: convert(store(arg(values), inner, to), to, own)
    if isinstance(e, Bitcast):
        narrow = value_type(e.arg, dtypes, None)
        wide = compute_type(narrow)
        arg, to = _value(e.arg, wide, dtypes, reads, points), e.dtype
        return lambda values: convert(np.asarray(store(arg(values), wide, narrow)).view(to.numpy), to, own)
    if isinstance(e, Apply):
        return _applied(e, own, dtypes, reads, points)
    position = convert(_index(e.index, points), DTYPES["i64"], own)
    return lambda values: position


def _move(e: Expr, reads: dict[Access, int]) -> _Value:
    """Elements as they are, NaN and all."""
    assert isinstance(e, Read)
    at = reads.setdefault(e.access, len(reads))
    return lambda values: values[at]


def _applied(
    e: Apply, own: DType, dtypes: Mapping[str, DType], reads: dict[Access, int], points: Mapping[str, IntArray]
) -> _Value:
    row = PRIMITIVES[e.function]
    kinds = argument_types(e, dtypes, own)
    args = [_argument(a, kind, dtypes, reads, points) for a, kind in zip(e.args, kinds, strict=True)]
    meaning, result = row.meaning, DTYPES["bool"] if row.result == "bool" else own
    if len(args) == 2 and result == own:
        left, right = args
        return lambda values: meaning(left(values), right(values))
    return lambda values: convert(meaning(*(a(values) for a in args)), result, own)


def _argument(
    e: Expr, kind: DType, dtypes: Mapping[str, DType], reads: dict[Access, int], points: Mapping[str, IntArray]
) -> _Value:
    inner = compute_type(value_type(e, dtypes, kind))
    value = _value(e, inner, dtypes, reads, points)
    if inner == kind or (inner.is_float and kind.is_float):
        return value
    return lambda values: convert(value(values), inner, kind)


def _converter(source: DType, target: DType) -> _Convert:
    if source == target and source.numpy == representation(source):
        return _same
    return lambda values: convert(values, source, target)


def _rounding(source: DType, target: DType) -> _Convert:
    """NumPy rounds floats itself as it assigns them."""
    if source == target or (source.is_float and target.is_float):
        return _same
    return lambda values: store(values, source, target)


def _same(values: Array) -> Array:
    return values


def _outside(low: int, high: int, count: int) -> CodegenError:
    return CodegenError(f"an instruction touches elements {low}..{high} of a buffer of {count}")
