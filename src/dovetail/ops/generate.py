"""Tensors that follow from where an element is: filled ones, diagonals, steps, and parts of a matrix."""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import SmallTensor, Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import constant
from dovetail.ops.text import axis_of, grid, named_dtype, need_rank, need_shape, text


def full(*, shape: Ints, value: SmallTensor) -> str:
    """One value everywhere."""
    if len(value.values) != 1:
        raise OperatorError(f"full takes one value, not {len(value.values)}")
    g = grid(tuple(map(constant, shape)))
    return text(f"out y: {value.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = {_literal(value)}")


def eye(*, shape: Ints, k: int = 0, dtype: str = "f32") -> str:
    """1 on the diagonal that starts ``k`` columns behind the first, 0 elsewhere."""
    if len(shape) != 2:
        raise OperatorError(f"eye makes two axes, not {len(shape)}")
    kind = named_dtype(dtype, DTYPES["f32"])
    one, zero = ("true", "false") if kind.name == "bool" else ("1", "0")
    rows, columns = shape
    value = f"select(i + {k} == j, {one}, {zero})"
    return text(f"out y: {kind}[{rows}, {columns}]", f"for i<{rows}, j<{columns}: y[i, j] = {value}")


def arange(*, count: int, start: SmallTensor, step: SmallTensor) -> str:
    """``start + i * step``, in the dtype of both."""
    kind = start.dtype
    if len(start.values) != 1 or len(step.values) != 1 or step.dtype != kind:
        raise OperatorError("start and step of arange must be one number each, of one dtype")
    first, by = _literal(start), _literal(step)
    return text(f"out y: {kind}[{count}]", f"for i<{count}: y[i] = {first} + {kind}(i) * {by}")


def triangle(x: Type, *, upper: int = 1, k: int = 0) -> str:
    """The last two axes on and above (or below) the diagonal that starts ``k`` columns behind the first; else 0."""
    need_rank("x", x, 2)
    g = grid(x.shape)
    row, column = g.names[-2:]
    kept = f"{column} - {row} >= {k}" if upper else f"{column} - {row} <= {k}"
    zero = "false" if x.dtype.name == "bool" else "0"
    return text(f"out y: {x.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = select({kept}, x[{g.index}], {zero})")


def tile(x: Type, *, repeats: Ints) -> str:
    """x again and again, ``repeats`` times along each axis."""
    if len(repeats) != x.rank or min(repeats, default=0) < 0:
        raise OperatorError(f"repeats {repeats} must be {x.rank} numbers that are not negative")
    g = grid(x.shape)
    many = [dim for dim, times in enumerate(repeats) if times != 1]
    loops = ", ".join((*(f"r{dim}<{repeats[dim]}" for dim in many), *filter(None, [g.loops])))
    parts = []
    for dim, name in enumerate(g.names):
        if dim in many and not x.shape[dim].is_constant:
            raise OperatorError(f"an axis of {x.shape[dim]}, known at run time only, cannot be repeated")
        parts.append(f"r{dim} * {x.shape[dim]} + {name}" if dim in many else name)
    shape = ", ".join(str(extent * times) for extent, times in zip(x.shape, repeats, strict=True))
    return text(f"out y: {x.dtype}[{shape}]", f"for {loops}: y[{', '.join(parts)}] = x[{g.index}]")


def one_hot(indices: Type, values: Type, *, depth: int, axis: int = -1) -> str:
    """A new axis of ``depth`` places: ``values[1]`` at the index, else ``values[0]``; a negative one counts back."""
    need_shape("values", values, (constant(2),))
    at = axis_of(axis, indices.rank + 1)
    i = grid(indices.shape)
    names = (*i.names[:at], "place", *i.names[at:])
    shape = ", ".join(map(str, (*i.extents[:at], depth, *i.extents[at:])))
    loops = ", ".join((*filter(None, [i.loops]), f"place<{depth}"))
    index = f"indices[{i.index}]"
    found = f"({index} == place) | ({index} == place - {depth})"
    if not (indices.dtype.is_float or indices.dtype.is_integer):
        raise OperatorError(f"indices are {indices}, not numbers")
    if indices.dtype.low == 0 and not indices.dtype.is_float:
        found = f"i64({index}) == place"
    return text(
        f"out y: {values.dtype}[{shape}]", f"for {loops}: y[{', '.join(names)}] = select({found}, values[1], values[0])"
    )


def _literal(value: SmallTensor) -> str:
    (number,) = value.values
    return _number(number, value.dtype)


def _number(number: int | float, dtype: DType) -> str:
    if dtype.is_float:
        return repr(float(number))
    return ("true" if number else "false") if dtype.name == "bool" else str(int(number))


OPERATORS = operators(full, eye, arange, triangle, tile, one_hot)
