"""The reference evaluator: what a program means, in NumPy.

Integers are exact and wrap at each operation; floats are float64, and each statement rounds what it stores to the
tensor's dtype once, when it ends (at each step, under ``seq``). Statements run in order over blocks of bounded
memory; ``contract`` takes sums of products out of the general path. The program must have passed ``verify``; indirect
indices, which no proof covers, are checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.ir.accumulate import Accumulator, open_accumulator
from dovetail.ir.bind import bind_arrays, extents
from dovetail.ir.compute import compute
from dovetail.ir.contract import contraction
from dovetail.ir.expr import Position, Read, statement_type, walk
from dovetail.ir.points import Points, box_points
from dovetail.ir.program import Combine, Loop, Program, Role, Statement

Array = npt.NDArray[np.generic]
BLOCK_POINTS = 1 << 20
"""Points evaluated at once in general; a float64 of each is 8 MB, and an expression holds a handful."""
OPERAND_ELEMENTS = 1 << 22
"""Elements of one operand of a contraction at once (32 MB)."""


def evaluate(program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None) -> dict[str, Array]:
    """All ``out`` and ``inout`` tensors of ``program``; ``arrays`` are its inputs and are not changed.

    Sizes that are not given are read off the arrays' shapes.
    """
    bound = bind_arrays(program, arrays, sizes)
    memory = _memory(program, arrays, bound)
    dtypes = program.dtypes
    with np.errstate(all="ignore"):
        for group in program.groups():
            statements = [program.statements[number] for number in group]
            for fixed in _steps(statements[0].seq, bound):
                for statement in statements:
                    run_statement(statement, dtypes, memory, fixed)
    return {tensor.name: memory[tensor.name] for tensor in program.outputs}


def run_statement(
    statement: Statement, dtypes: Mapping[str, DType], memory: Mapping[str, Array], fixed: Mapping[str, int]
) -> None:
    """Run one statement on ``memory``; sizes and ``seq`` loops have the values ``fixed``."""
    bounds = {loop.name: loop.extent.evaluate(fixed) for loop in statement.loops}
    if 0 in bounds.values():
        return
    name = statement.out.tensor
    own = statement_type(statement.value, dtypes, dtypes[name])
    target = open_accumulator(statement, own, dtypes[name], memory[name], fixed, bounds)
    short = None if target.scattered else contraction(statement, own, memory)
    if short is not None:
        parts = [short.left.loops, short.right.loops, statement.out.names()]
        for box in blocks(bounds, parts, OPERAND_ELEMENTS, target.singles):
            points = box_points(memory, fixed, box, lenient=bool(statement.where))
            short.combine(points, target.view(points), dtypes)
    else:
        for box in blocks(bounds, [frozenset(bounds)], BLOCK_POINTS, target.singles):
            _run_block(statement, own, dtypes, box_points(memory, fixed, box, bool(statement.where)), target)
    target.close()


def _run_block(
    statement: Statement, own: DType, dtypes: Mapping[str, DType], points: Points, target: Accumulator
) -> None:
    """Conditions, value, combine. Points that are not there are masked, or left out where reads are indirect."""
    mask = None
    if statement.where and _is_indirect(statement):
        for condition in sorted(statement.where, key=lambda c: any(True for _ in c.index.reads())):
            points = points.select(points.holds(condition))
    elif statement.where:
        mask = np.asarray(True)
        for condition in statement.where:
            mask = np.logical_and(mask, points.holds(condition))
        if not mask.any():
            return
    if prod(points.shape):
        target.put(points, compute(statement.value, own, dtypes, points), mask)


def _memory(program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """Every tensor: inputs as they are, ``inout`` copied, the others at the neutral element of their ``op=``."""
    memory: dict[str, Array] = {}
    for tensor in program.tensors:
        if tensor.role in (Role.IN, Role.CONST):
            memory[tensor.name] = arrays[tensor.name]
        elif tensor.role is Role.INOUT:
            memory[tensor.name] = arrays[tensor.name].copy()
        else:
            writers = [s.combine for s in program.statements if s.out.tensor == tensor.name]
            combine = next((c for c in writers if c is not Combine.SET), Combine.ADD)
            start = combine.neutral(tensor.dtype)
            memory[tensor.name] = np.full(extents(tensor, sizes), np.asarray(start).astype(tensor.dtype.numpy))
    return memory


def _steps(seq: tuple[Loop, ...], sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    for step in product(*(range(loop.extent.evaluate(sizes)) for loop in seq)):
        yield {**sizes, **{loop.name: value for loop, value in zip(seq, step, strict=True)}}


def blocks(
    bounds: Mapping[str, int], parts: list[frozenset[str]], budget: int, singles: frozenset[str]
) -> Iterator[dict[str, range]]:
    """Boxes that tile ``bounds`` so that each of ``parts``, a set of loops, has at most ``budget`` points in a box."""
    block = {name: 1 if name in singles else extent for name, extent in bounds.items()}
    for part in parts:
        inside = [name for name in block if name in part]
        while prod(block[name] for name in inside) > budget:
            largest = max(inside, key=lambda name: block[name])
            block[largest] = (block[largest] + 1) // 2
    cuts = [[range(s, min(s + block[name], n)) for s in range(0, n, block[name])] for name, n in bounds.items()]
    for ranges in product(*cuts):
        yield dict(zip(bounds, ranges, strict=True))


def _is_indirect(statement: Statement) -> bool:
    """Whether data decides which elements are touched or which points are there."""
    if any(True for _ in statement.out.reads()) or any(True for c in statement.where for _ in c.index.reads()):
        return True
    indexed = (
        n.access if isinstance(n, Read) else n.index for n in walk(statement.value) if isinstance(n, Read | Position)
    )
    return any(True for part in indexed for _ in part.reads())
