"""Instructions of many points, run by the reference evaluator: a matrix unit's whole tile is one matrix product.

Operands are gathered element by element into arrays of the instruction's own shapes, layouts undone; the result goes
back the same way. Memory grows with the operands, not with the points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.ir.evaluate import run_statement
from dovetail.ir.index import Access, variable
from dovetail.ir.instruction_function import Run, Storage, dense_strides
from dovetail.ir.points import box_points
from dovetail.sim.operands import Region
from dovetail.sim.storage import Span, distinct, span_over
from dovetail.targets.model import Instruction, Layout

Array = npt.NDArray[np.generic]
IntArray = npt.NDArray[np.int64]
LEAST_POINTS = 1 << 14
"""Where the evaluator's matrix products begin to win over one array operation per step."""


def is_large(instruction: Instruction, values: Mapping[str, int]) -> bool:
    """Whether the instruction is one for this module: many points, all of them there."""
    statement = instruction.program.statements[0]
    points = prod(loop.extent.evaluate(values) for loop in statement.loops)
    return points >= LEAST_POINTS and not statement.where


def large_function(
    instruction: Instruction, layouts: Mapping[str, Layout], boxes: Sequence[Region], values: Mapping[str, int]
) -> tuple[Run, tuple[tuple[int, Span], ...], Span]:
    """The instruction as a function on storage, the elements of each operand it reads, and those it writes."""
    program = instruction.program
    statement, dtypes = program.statements[0], program.dtypes
    sizes = {s.name: values[s.name] for s in program.sizes}
    shapes = {t.name: tuple(e.evaluate(values) for e in t.shape) for t in program.tensors}
    places = {
        box.name: _places(shapes[box.name], box, layouts.get(operand.layout))
        for box, operand in zip(boxes, instruction.operands, strict=True)
    }
    order = {box.name: number for number, box in enumerate(boxes)}
    extents = {loop.name: loop.extent.evaluate(values) for loop in statement.loops}
    chosen = _elements(statement.out, extents, sizes, shapes[statement.out.tensor])
    result = places[statement.out.tensor].ravel()[chosen]

    def run(storage: Sequence[Storage]) -> None:
        memory: dict[str, Array] = {}
        for name, where in places.items():
            flat, first = storage[order[name]]
            memory[name] = flat.take(where + first, mode="clip")
        run_statement(statement, dtypes, memory, sizes)
        flat, first = storage[order[statement.out.tensor]]
        flat[result + first] = memory[statement.out.tensor].ravel()[chosen]

    reads = [
        (order[a.tensor], span_over(distinct(places[a.tensor].ravel()[_elements(a, extents, sizes, shapes[a.tensor])])))
        for a in statement.reads()
    ]
    written = span_over(distinct(result))
    if statement.combine.function is not None:
        reads.append((order[statement.out.tensor], written))
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


def _elements(access: Access, extents: Mapping[str, int], sizes: Mapping[str, int], shape: tuple[int, ...]) -> IntArray:
    """The elements that an access reaches, numbered row by row."""
    used = access.names()
    box = {name: range(extent) for name, extent in extents.items() if name in used}
    points = box_points({}, sizes, box, False)
    total = np.zeros((1,) * len(box), np.int64)
    for index, stride in zip(access.indices, dense_strides(shape), strict=True):
        total = total + points.index(index) * stride
    return distinct(total)
