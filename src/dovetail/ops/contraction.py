"""Products of matrices. ``dtype`` names the result's, where sums are kept wider than the operands."""

from __future__ import annotations

from math import isfinite

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ir.index import Index
from dovetail.ops.text import Grid, broadcast, grid, named_dtype, need_rank, need_shape, same_dtype, summed


def matmul(a: Type, b: Type, *, transpose_a: int = 0, transpose_b: int = 0, dtype: str = "") -> str:
    """Products of the last two axes; the axes before them are broadcast. A tensor of one axis is a vector."""
    need_rank("a", a, 1)
    need_rank("b", b, 1)
    kind = named_dtype(dtype, same_dtype(a, b))
    rows, inner = _last_two(a, transpose_a) if a.rank > 1 else (None, a.shape[0])
    other, columns = _last_two(b, transpose_b) if b.rank > 1 else (b.shape[0], None)
    _need_equal(a, b, inner, other)
    outer = _outer(a, b)
    batch = grid(outer)
    names = (*batch.names, *("i" if rows is not None else ()), *("j" if columns is not None else ()))
    out = Grid(names, (*outer, *(extent for extent in (rows, columns) if extent is not None)))
    left = _read(batch, "a", a, "li" if transpose_a else "il")
    right = _read(batch, "b", b, "jl" if transpose_b else "lj")
    return summed(kind, out, f"l<{inner}", f"{left} * {right}")


def dense(x: Type, w: Type, b: Type | None = None, *, dtype: str = "") -> str:
    """A fully connected layer: ``x[..., i] * w[o, i] + b[o]``."""
    need_rank("x", x, 1)
    need_shape("w", w, (*w.shape[:1], x.shape[-1]))
    if b is not None:
        need_shape("b", b, w.shape[:1])
    kind = named_dtype(dtype, same_dtype(x, w))
    rows = grid(x.shape[:-1])
    out = Grid((*rows.names, "o"), (*rows.extents, w.shape[0]))
    left = ", ".join((*rows.names, "i"))
    return summed(kind, out, f"i<{x.shape[-1]}", f"x[{left}] * w[o, i]", "{t}" if b is None else "{t} + b[o]")


def gemm(
    a: Type,
    b: Type,
    c: Type | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: int = 0,
    transpose_b: int = 0,
) -> str:
    """``alpha * a @ b + beta * c``; c is broadcast."""
    need_rank("a", a, 2, 2)
    need_rank("b", b, 2, 2)
    dtype = same_dtype(a, b, *(() if c is None else (c,)))
    (m, k), (other, n) = _last_two(a, transpose_a), _last_two(b, transpose_b)
    _need_equal(a, b, k, other)
    out = Grid(("i", "j"), (m, n))
    after = "{t}" if alpha == 1 else f"{_literal(alpha, a)} * {{t}}"
    if c is not None:
        need_rank("c", c, 0, 2)
        if broadcast(c, Type(dtype, (m, n))) != (m, n):
            raise OperatorError(f"c is {c}, which does not fit {dtype}[{m}, {n}]")
        after += " + " + ("" if beta == 1 else f"{_literal(beta, a)} * ") + out.read("c", c)
    value = f"a[{'l, i' if transpose_a else 'i, l'}] * b[{'j, l' if transpose_b else 'l, j'}]"
    return summed(dtype, out, f"l<{k}", value, after)


def _last_two(t: Type, transposed: int) -> tuple[Index, Index]:
    first, last = t.shape[-2:]
    return (last, first) if transposed else (first, last)


def _need_equal(a: Type, b: Type, inner: Index, other: Index) -> None:
    if inner != other:
        raise OperatorError(f"the inner extents of {a} and {b} differ", why=f"{inner} and {other} are summed over")


def _outer(a: Type, b: Type) -> tuple[Index, ...]:
    parts = [Type(t.dtype, t.shape[:-2]) for t in (a, b)]
    return broadcast(*parts)


def _read(batch: Grid, name: str, t: Type, axes: str) -> str:
    """An element: broadcast outer axes, then the last two; a vector has the summed one only."""
    outer = batch.read(name, Type(t.dtype, t.shape[:-2])).removeprefix(f"{name}[").removesuffix("]")
    return f"{name}[{', '.join([*filter(None, [outer]), *(axes if t.rank > 1 else 'l')])}]"


def _literal(value: float, t: Type) -> str:
    if t.dtype.is_float:
        return repr(value)
    if not isfinite(value) or value != int(value):
        raise OperatorError(f"{value} times {t.dtype} values", hint="a whole number, or floats")
    return str(int(value))


OPERATORS = operators(matmul, dense, gemm)
