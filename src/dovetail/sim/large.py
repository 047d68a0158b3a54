"""Instructions of many points, run by the reference evaluator: a matrix unit's whole tile is one matrix product.

Operands are gathered element by element into arrays of the instruction's own shapes, layouts undone; the result goes
back the same way. Memory grows with the operands, not with the points. Where data decides which elements are touched,
all of the operand must be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.ir.evaluate import BLOCK_POINTS, blocks, run_statement
from dovetail.ir.index import Access, Condition, variable
from dovetail.ir.instruction_function import Run, Storage, dense_strides
from dovetail.ir.points import box_points
from dovetail.ir.program import Statement
from dovetail.sim.operands import Region
from dovetail.sim.product import product_of
from dovetail.sim.storage import Span, distinct, span_over
from dovetail.targets.model import Instruction, Layout

Array = npt.NDArray[np.generic]
IntArray = npt.NDArray[np.int64]
LEAST_POINTS = 1 << 14
"""Where the evaluator's matrix products begin to win over one array operation per step."""


def is_large(instruction: Instruction, values: Mapping[str, int]) -> bool:
    """Whether the instruction has many points."""
    statement = instruction.program.statements[0]
    return prod(loop.extent.evaluate(values) for loop in statement.loops) >= LEAST_POINTS


def large_function(
    instruction: Instruction,
    layouts: Mapping[str, Layout],
    boxes: Sequence[Region],
    values: Mapping[str, int],
    to_the_bit: bool = False,
) -> tuple[Run, tuple[tuple[int, Span], ...], Span]:
    """The instruction as a function on storage, the elements of each operand it reads, and those it writes.

    ``to_the_bit``: sums of floats in the very order in which the reference evaluator adds."""
    program = instruction.program
    statement, dtypes = program.statements[0], program.dtypes
    sizes = {s.name: values[s.name] for s in program.sizes}
    shapes = {t.name: tuple(e.evaluate(values) for e in t.shape) for t in program.tensors}
    places = {
        box.name: _places(shapes[box.name], box, layouts.get(operand.layout))
        for box, operand in zip(boxes, instruction.operands, strict=True)
    }
    order = {box.name: number for number, box in enumerate(boxes)}
    out = statement.out.tensor
    chosen = _elements(statement, statement.out, sizes, shapes[out])
    result = places[out].ravel()[chosen]
    extents = {loop.name: loop.extent.evaluate(values) for loop in statement.loops}
    product = None if to_the_bit else product_of(statement, dtypes, extents, shapes)

    def run(storage: Sequence[Storage]) -> None:
        memory: dict[str, Array] = {}
        for name, where in places.items():
            flat, first = storage[order[name]]
            memory[name] = flat.take(where + first, mode="clip")
        if product is not None:
            product.run(memory)
        else:
            run_statement(statement, dtypes, memory, sizes)
        flat, first = storage[order[out]]
        flat[result + first] = memory[out].ravel()[chosen]

    reads = []
    for access in statement.reads():
        read = places[access.tensor].ravel()[_elements(statement, access, sizes, shapes[access.tensor])]
        reads += [(order[access.tensor], span_over(distinct(read)))] if read.size else []
    written = span_over(distinct(result)) if result.size else Span(0, -1)
    if result.size and (statement.combine.function is not None or _is_indirect(statement.out)):
        reads.append((order[out], written))
    return run, tuple(reads), written


def _places(shape: tuple[int, ...], box: Region, layout: Layout | None) -> IntArray:
    """For every element of an operand its place, relative to the first."""
    names = layout.elements if layout is not None else tuple(f"d{n}" for n in range(len(shape)))
    indices = (*layout.units, *layout.places) if layout is not None else tuple(map(variable, names))
    points = box_points({}, {}, {name: range(extent) for name, extent in zip(names, shape, strict=True)}, False)
    total = np.zeros((1,) * len(shape), np.int64)
    for index, stride in zip(indices, box.strides, strict=True):
        total = total + points.index(index) * stride
    return np.ascontiguousarray(np.broadcast_to(total, shape))


def _elements(statement: Statement, access: Access, sizes: Mapping[str, int], shape: tuple[int, ...]) -> IntArray:
    """The elements that an access reaches, numbered row by row; all of them where data decides which."""
    if _is_indirect(access):
        return np.arange(prod(shape))
    conditions, used = _conditions(statement, access)
    extents = {loop.name: loop.extent.evaluate(sizes) for loop in statement.loops}
    if 0 in extents.values():
        return np.zeros(0, np.int64)
    extents = {name: extent for name, extent in extents.items() if name in used}
    reached = np.zeros(prod(shape), np.bool_)
    for box in blocks(extents, [frozenset(extents)], BLOCK_POINTS, frozenset()):
        points = box_points({}, sizes, box, False)
        there = np.ones((1,) * len(box), np.bool_)
        for condition in conditions:
            there = there & points.holds(condition)
        total = np.zeros((1,) * len(box), np.int64)
        for index, stride, extent in zip(access.indices, dense_strides(shape), shape, strict=True):
            value = points.index(index)
            there = there & (value >= 0) & (value < extent)
            total = total + value * stride
        total, there = np.broadcast_arrays(total, there)
        reached[total[there]] = True
    return np.flatnonzero(reached)


def _conditions(statement: Statement, access: Access) -> tuple[list[Condition], frozenset[str]]:
    """The conditions that decide, directly or through others, where an access is made, and the loops of all of them.

    Those that read data are left out: they may only take elements away."""
    loops = {loop.name for loop in statement.loops}
    decided = [c for c in statement.where if not any(True for _ in c.index.reads())]
    used, found = access.names(), [c for c in decided if not c.names() & loops]
    left = [c for c in decided if c not in found]
    while near := [c for c in left if c.names() & used]:
        found += near
        used = used.union(*(c.names() for c in near))
        left = [c for c in left if c not in near]
    return found, used


def _is_indirect(access: Access) -> bool:
    return any(True for _ in access.reads())
