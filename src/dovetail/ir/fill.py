"""Inputs made of small whole numbers, so that every sum a program forms is exact and results compare bit for bit.

The numbers are as large as the longest contraction allows: contributions times their largest size stay below 2 to the
accumulator's exact bits. Index tensors get indices that are in range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import Kind
from dovetail.ir.bind import bind_sizes, extents
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Position, reads, statement_type, walk
from dovetail.ir.index import Access, Index, Quotient
from dovetail.ir.interval import interval
from dovetail.ir.program import Combine, Program, Role, Statement, Tensor

Array = npt.NDArray[np.generic]
Interval = tuple[int, int]
MAGNITUDES = (9, 7, 5, 3, 2, 1)
_POSITIVE_ONLY = ("log", "sqrt", "rsqrt", "pow", "div")
UNBOUNDED = float("inf")
_MAX_STEPS = 256
"""Steps of a recurrence after which its numbers have grown as far as they will, or never will."""


def fill(program: Program, seed: int, sizes: Mapping[str, int] | None = None, period: int = 0) -> dict[str, Array]:
    """An array for each input of ``program``, the same ones for the same ``seed``. Few elements are zero.

    Floats are positive when the program takes roots, logarithms or quotients. With ``period`` numbers repeat after
    that many: large arrays are then filled as fast as memory allows.
    """
    bound = bind_sizes(program, {}, sizes)
    size = next((m for m in MAGNITUDES if sums_are_exact(program, bound, m)), 1)
    functions = {n.function for s in program.statements for n in walk(s.value) if isinstance(n, Apply)}
    positive = not functions.isdisjoint(_POSITIVE_ONLY)
    indices = dict(_index_ranges(program, bound))
    filled: dict[str, Array] = {}
    for number, tensor in enumerate(program.inputs):
        rng = np.random.default_rng([seed, number])
        shape = extents(tensor, bound)
        if tensor.name in indices:
            filled[tensor.name] = _indices(rng, shape, indices[tensor.name]).astype(tensor.dtype.numpy)
        else:
            count = math.prod(shape)
            some = _numbers(rng, tensor, (min(count, period),) if period else shape, size, positive)
            filled[tensor.name] = _repeated(some, shape) if period else some
    return filled


def sums_are_exact(program: Program, sizes: Mapping[str, int], magnitude: int) -> bool:
    """Whether inputs up to ``magnitude`` keep every float sum below the accumulator's exact range.

    Statements after a function that leaves the whole numbers (exp, division) are not counted.
    """
    largest: dict[str, float] = {t.name: magnitude for t in program.inputs}
    for group in program.groups():
        seq = program.statements[group[0]].seq
        for _ in range(min(_MAX_STEPS, math.prod(loop.extent.evaluate(sizes) for loop in seq))):
            for number in group:
                if not _stays_exact(program, program.statements[number], sizes, largest):
                    return False
    return True


def _stays_exact(program: Program, statement: Statement, sizes: Mapping[str, int], largest: dict[str, float]) -> bool:
    """Whether the statement's sums fit; ``largest`` learns how large its output gets."""
    name, dtypes = statement.out.tensor, program.dtypes
    value = _largest(statement.value, largest, _ranges(statement, sizes))
    fresh = not statement.out.names().isdisjoint(loop.name for loop in statement.seq)
    alone = program.tensor(name).role is not Role.INOUT and [s.out.tensor for s in program.statements].count(name) == 1
    before = 0 if fresh and alone else largest.get(name, 0)
    total = _combined(statement, value, before, contributions(statement, sizes))
    own = statement_type(statement.value, dtypes, dtypes[name])
    largest[name] = max(total, largest.get(name, 0))
    return not own.is_float or total == UNBOUNDED or total < 1 << own.exact_bits


def contributions(statement: Statement, sizes: Mapping[str, int]) -> int:
    """At most how many points of a step meet in one element: those of loops that are not an index of the output."""
    plain = {i.terms[0][0] for i in statement.out.indices if len(i.terms) == 1 and isinstance(i.terms[0][0], str)}
    return math.prod(loop.extent.evaluate(sizes) for loop in statement.loops if loop.name not in plain)


def _combined(statement: Statement, value: float, before: float, count: int) -> float:
    if statement.combine is Combine.ADD:
        return before + value * count if count else before
    if statement.combine is Combine.MUL:
        return max(before, 1) * _power(value, count)
    return max(value, before)


def _power(value: float, count: int) -> float:
    if value <= 1:
        return 1
    return float(value**count) if count * math.log2(value) < 1000 else 2.0**1000


def _largest(e: Expr, largest: Mapping[str, float], ranges: Mapping[str, Interval]) -> float:
    """The largest size ``e`` can have; infinite when it is not a whole number."""
    if isinstance(e, Literal):
        whole = float(e.value).is_integer()
        return abs(float(e.value)) if whole else UNBOUNDED
    if isinstance(e, Position):
        found = interval(e.index, ranges)
        return UNBOUNDED if found is None else max(map(abs, found))
    if isinstance(e, Cast):
        return _largest(e.arg, largest, ranges)
    if isinstance(e, Bitcast):
        return UNBOUNDED
    if not isinstance(e, Apply):
        return largest.get(e.access.tensor, 0)
    args = [_largest(arg, largest, ranges) for arg in e.args]
    if e.function in ("add", "sub"):
        return args[0] + args[1]
    if e.function == "mul":
        return args[0] * args[1] if 0 not in args else 0
    if e.function in ("max", "min", "neg", "abs", "floor", "ceil", "trunc", "round"):
        return max(args)
    if e.function == "select":
        return max(args[1:])
    return 1 if e.function in ("eq", "ne", "lt", "le", "gt", "ge", "isnan") else UNBOUNDED


def _ranges(statement: Statement, sizes: Mapping[str, int]) -> dict[str, Interval]:
    loops = {loop.name: (0, max(0, loop.extent.evaluate(sizes) - 1)) for loop in statement.all_loops}
    return {**{name: (value, value) for name, value in sizes.items()}, **loops}


def _numbers(rng: np.random.Generator, tensor: Tensor, shape: tuple[int, ...], size: int, positive: bool) -> Array:
    """Whole numbers up to ``size``, one in ten of them zero where zero is allowed."""
    if tensor.dtype.kind is Kind.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    values = rng.integers(1, size + 1, shape)
    if not (tensor.dtype.is_float and positive):
        values = np.where(rng.integers(0, 10, shape) == 0, 0, values)
        if tensor.dtype.kind is not Kind.UNSIGNED:
            values = values * (2 * rng.integers(0, 2, shape) - 1)
    return np.asarray(values).astype(tensor.dtype.numpy)


def _repeated(block: Array, shape: tuple[int, ...]) -> Array:
    """An array of ``shape`` that holds ``block`` again and again."""
    count, length = math.prod(shape), block.size
    if count <= length:
        return block[:count].reshape(shape)
    rounds = count // length
    flat = np.empty(count, block.dtype)
    flat[: rounds * length].reshape(rounds, length)[...] = block
    flat[rounds * length :] = block[: count - rounds * length]
    return flat.reshape(shape)


def _indices(rng: np.random.Generator, shape: tuple[int, ...], allowed: Interval) -> Array:
    """Indices in range, all different where there are enough."""
    low, high = allowed
    if high < low:
        return np.zeros(shape, np.int64)
    count = math.prod(shape)
    if count <= high - low + 1 <= 1 << 24:
        return (low + rng.permutation(high - low + 1)[:count]).reshape(shape)
    return rng.integers(low, high + 1, shape)


def _index_ranges(program: Program, sizes: Mapping[str, int]) -> Iterator[tuple[str, Interval]]:
    """For each tensor read in an index, the values that keep every such index inside its dimension.

    What a place is computed from gets the same values: places are counted from the end, or clamped, where they are not
    in range already.
    """
    found: dict[str, Interval] = {}
    for statement in program.statements:
        ranges = _ranges(statement, sizes)
        for access in (statement.out, *statement.reads(), *reads(statement.value)):
            shape = extents(program.tensor(access.tensor), sizes)
            for index, extent in zip(access.indices, shape, strict=True):
                for name, allowed in _allowed(index, (0, extent - 1), ranges):
                    _narrow(found, name, allowed)
    for statement in reversed(program.statements):
        if statement.out.tensor in found:
            for access in reads(statement.value):
                if program.tensor(access.tensor).dtype.is_integer:
                    _narrow(found, access.tensor, found[statement.out.tensor])
    yield from found.items()


def _narrow(found: dict[str, Interval], name: str, allowed: Interval) -> None:
    low, high = found.get(name, allowed)
    found[name] = max(low, allowed[0]), min(high, allowed[1])


def _allowed(index: Index, wanted: Interval, ranges: Mapping[str, Interval]) -> Iterator[tuple[str, Interval]]:
    """Values for the tensors read in ``index`` that put it inside ``wanted``, when only one is read."""
    for atom, factor in index.terms:
        if not isinstance(atom, Access | Quotient) or not any(True for _ in Index(((atom, 1),)).reads()):
            continue
        rest = interval(Index(tuple(t for t in index.terms if t[0] != atom), index.const), ranges)
        if rest is None:
            continue
        low, high = wanted[0] - rest[0], wanted[1] - rest[1]
        if factor < 0:
            low, high = -high, -low
        low, high = -(-low // abs(factor)), high // abs(factor)
        if isinstance(atom, Access):
            yield atom.tensor, (low, high)
        else:
            yield from _allowed(atom.index, (low * atom.divisor, high * atom.divisor + atom.divisor - 1), ranges)
