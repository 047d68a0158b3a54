"""Sums of products by matrix multiplication: the evaluator's short cut for convolutions and everything like them.

``out += a * b`` where every loop is in ``a``, in ``b``, or in ``out`` is one (batched) matrix product of the two
operands laid out over their own loops. Conditions become zeros in the operand that has their loops. Integers go
through float64 when no sum can exceed 2**53, and through 64-bit integers, which wrap alike, otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType, Kind
from dovetail.ir.compute import DTypes, compute
from dovetail.ir.expr import Apply, Cast, Expr, Literal, Position, Read, names, reads, walk
from dovetail.ir.index import Condition
from dovetail.ir.points import Memory, Points
from dovetail.ir.program import Combine, Statement

Array = npt.NDArray[np.generic]
_FINITE = ("add", "sub", "mul", "neg", "max", "min", "abs")


@dataclass(frozen=True, slots=True)
class Operand:
    """A product of factors, and the conditions that make it zero."""

    factors: tuple[Expr, ...]
    loops: frozenset[str]
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Contraction:
    """``out += left * right``, where ``where`` concerns loops of the output only."""

    left: Operand
    right: Operand
    where: tuple[Condition, ...]
    own: DType

    def combine(self, points: Points, view: Array, dtypes: DTypes) -> None:
        """Add the contributions of all ``points`` to ``view``."""
        a, b = (self._operand(o, points, dtypes) for o in (self.left, self.right))
        total = _multiply(a, b, points.shape, view.shape, self.own)
        for condition in self.where:
            total = np.where(points.holds(condition), total, np.zeros((), total.dtype))
        np.add(view, total, out=view)

    def _operand(self, operand: Operand, points: Points, dtypes: DTypes) -> Array:
        value = np.ones((1,) * len(points.shape), np.float64 if self.own.is_float else self.own.numpy)
        for factor in operand.factors:
            value = np.multiply(value, compute(factor, self.own, dtypes, points))
        for condition in operand.where:
            value = np.where(points.holds(condition), value, np.zeros((), value.dtype))
        return value


def contraction(statement: Statement, own: DType, memory: Memory) -> Contraction | None:
    """``statement`` as a contraction of two operands, None when it is not one."""
    indirect = any(True for access in (statement.out, *reads(statement.value)) for _ in access.reads())
    if statement.combine is not Combine.ADD or own.kind is Kind.BOOL or indirect:
        return None
    operands = _operands(statement)
    if operands is None:
        return None
    left, right = operands
    whole = statement.out.names()
    outer = []
    for condition in statement.where:
        loops = condition.names() & {loop.name for loop in statement.loops}
        if any(True for _ in condition.index.reads()):
            return None
        if loops <= left.loops:
            left = Operand(left.factors, left.loops, (*left.where, condition))
        elif loops <= right.loops:
            right = Operand(right.factors, right.loops, (*right.where, condition))
        elif loops <= whole:
            outer.append(condition)
        else:
            return None
    if own.is_float and not (_zero_safe(left, right, memory) and _zero_safe(right, left, memory)):
        return None
    return Contraction(left, right, tuple(outer), own)


def _operands(statement: Statement) -> tuple[Operand, Operand] | None:
    """The factors in two groups: each joins the first group that has all its loops."""
    loops = {loop.name for loop in statement.loops}
    groups: list[tuple[set[str], list[Expr]]] = []
    for factor in sorted(_factors(statement.value), key=lambda f: -len(names(f) & loops)):
        used = set(names(factor) & loops)
        home = next((group for group in groups if used <= group[0]), None)
        if home is None:
            groups.append((used, [factor]))
        else:
            home[1].append(factor)
    if len(groups) != 2:
        return None
    a, b = (Operand(tuple(factors), frozenset(used)) for used, factors in groups)
    return a, b


def _factors(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Apply) and e.function == "mul":
        for arg in e.args:
            yield from _factors(arg)
    else:
        yield e


def _zero_safe(zeroed: Operand, other: Operand, memory: Memory) -> bool:
    """Whether a zero put into one operand stays zero in the product: the other one is finite everywhere."""
    if not zeroed.where:
        return True
    for factor in other.factors:
        for node in walk(factor):
            plain = isinstance(node, Read | Literal | Position | Cast) or (
                isinstance(node, Apply) and node.function in _FINITE
            )
            if not plain or (isinstance(node, Literal) and not np.isfinite(node.value)):
                return False
            if isinstance(node, Read) and not bool(np.isfinite(memory[node.access.tensor]).all()):
                return False
    return True


def _multiply(a: Array, b: Array, full: tuple[int, ...], out: tuple[int, ...], own: DType) -> Array:
    """The sum of ``a * b`` over every axis that ``out`` lacks; all arrays have one axis for each loop."""
    batch: list[int] = []
    rows: list[int] = []
    columns: list[int] = []
    summed: list[int] = []
    for axis, extent in enumerate(full):
        in_a, in_b, in_out = (shape[axis] > 1 for shape in (a.shape, b.shape, out))
        if extent == 1 or (in_out and not in_a and not in_b):
            continue
        if in_a and in_b:
            (batch if in_out else summed).append(axis)
        elif in_out:
            (rows if in_a else columns).append(axis)
        elif in_a:
            a = np.add.reduce(a, axis=axis, keepdims=True, dtype=a.dtype)
        elif in_b:
            b = np.add.reduce(b, axis=axis, keepdims=True, dtype=b.dtype)
        else:
            a = np.multiply(a, np.asarray(extent).astype(a.dtype))
    left, right = _matrix(a, batch, rows, summed), _matrix(b, batch, summed, columns)
    product = _product(left, right, own)
    order = [*batch, *rows, *columns]
    product = product.reshape([full[axis] for axis in order]).transpose(np.argsort(order).tolist())
    return product.reshape([n if axis in order else 1 for axis, n in enumerate(full)])


def _matrix(a: Array, batch: list[int], first: list[int], second: list[int]) -> Array:
    shape = [prod(a.shape[axis] for axis in axes) for axes in (batch, first, second)]
    kept = [*batch, *first, *second]
    dropped = tuple(axis for axis in range(a.ndim) if axis not in kept)
    order = np.argsort(np.argsort(kept)).tolist()
    return np.asarray(np.squeeze(a, dropped)).transpose(order).reshape(shape)


def _product(a: Array, b: Array, own: DType) -> Array:
    wide: np.dtype[np.generic] = np.dtype(np.uint64 if own.kind is Kind.UNSIGNED else np.int64)
    if own.is_float or a.shape[-1] * _largest(a) * _largest(b) < 1 << 53:
        wide = np.dtype(np.float64)
    total: Array = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    return total if own.is_float else total.astype(np.int64, copy=False).astype(own.numpy, copy=False)


def _largest(a: Array) -> int:
    return max(abs(int(a.max())), abs(int(a.min()))) if a.size else 0
