"""Compiled results against the reference evaluator, element by element, told apart by where in a tile they were made.

Small whole numbers make every sum exact, so nothing may differ. A program with functions that leave the whole numbers
(exp, division) may differ by what rounding in another order explains, and the result says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.ir.bind import extents
from dovetail.ir.expr import Apply, Literal, walk
from dovetail.ir.plan import Leaf, Plan, PlanNode
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Program, Tensor
from dovetail.schedule.ahead import planned_part
from dovetail.schedule.collapse import collapse

Array = npt.NDArray[np.generic]
Region = tuple[slice, ...]
_WHOLE = frozenset({"floor", "ceil", "trunc", "round"})
INEXACT = frozenset(p.name for p in PRIMITIVES.values() if p.result == "float") - _WHOLE
"""Functions that do not keep whole numbers whole."""
ROUNDINGS = 16
"""Roundings of one element beside those of its sum: a handful of functions, each within a few units."""


@dataclass(frozen=True, slots=True)
class TileClass:
    """The elements of one output that came from the same kind of tile: interior, an edge, a corner."""

    tensor: str
    name: str
    elements: int
    wrong: int
    largest_error: float
    first: str = ""
    """The first wrong element: place, value found, value expected."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All tile classes. ``inexact`` names the function because of which ``bound`` is not zero."""

    classes: tuple[TileClass, ...]
    inexact: str
    bound: float
    """Largest error allowed, in parts of the largest value of an output."""
    zeros: float
    """Share of zeros among the expected values; a result of mostly zeros proves little."""

    @property
    def agrees(self) -> bool:
        return all(c.wrong == 0 for c in self.classes)

    @property
    def is_exact(self) -> bool:
        return all(c.largest_error == 0 for c in self.classes)

    @property
    def largest_error(self) -> float:
        return max((c.largest_error for c in self.classes), default=0.0)

    @property
    def verdict(self) -> str:
        """One line for a person."""
        elements = sum(c.elements for c in self.classes)
        if not self.agrees:
            return f"WRONG: {sum(c.wrong for c in self.classes)} of {elements} elements differ from the reference"
        if self.is_exact:
            return f"exact: all {elements} elements equal the reference"
        return (
            f"close: all {elements} elements within {self.largest_error:.1e} of the reference "
            f"({self.bound:.1e} allowed because of {self.inexact}; parts of the largest value)"
        )


def compare(
    program: Program,
    plan: Plan,
    sizes: Mapping[str, int],
    found: Mapping[str, Array],
    wanted: Mapping[str, Array],
    whole: bool = True,
) -> Comparison:
    """``found`` against ``wanted``, outputs by name; without ``whole`` the inputs may be any numbers."""
    flat = collapse(planned_part(program, plan))
    inexact = inexact_function(program) or ("" if whole else "inputs that are not whole numbers")
    bound = _bound(program, sizes) if inexact else 0.0
    classes: list[TileClass] = []
    for tensor in flat.outputs:
        shape = extents(tensor, sizes)
        mine, reference = found[tensor.name].reshape(shape), wanted[tensor.name].reshape(shape)
        error = _errors(mine, reference, tensor.dtype)
        for name, region in tile_classes(flat, plan, tensor, sizes):
            classes.append(_compared(tensor.name, name, region, error, bound, mine, reference))
    values = [wanted[t.name] for t in flat.outputs]
    total = sum(v.size for v in values)
    zeros = sum(int(np.count_nonzero(v == 0)) for v in values) / total if total else 0.0
    return Comparison(tuple(classes), inexact, bound, zeros)


def compare_elements(
    program: Program,
    sizes: Mapping[str, int],
    values: Sequence[tuple[str, tuple[int, ...], np.generic, np.generic]],
    whole: bool = True,
) -> str:
    """Single elements (output, place, found, wanted): the first wrong one in words, "" when there is none."""
    inexact = inexact_function(program) or not whole
    bound = _bound(program, sizes) if inexact else 0.0
    for name in dict.fromkeys(tensor for tensor, _, _, _ in values):
        rows = [row for row in values if row[0] == name]
        found, wanted = (np.asarray([row[n] for row in rows]) for n in (2, 3))
        error = _errors(found, wanted, program.tensor(name).dtype)
        for (_, place, one, other), size in zip(rows, error, strict=True):
            if size > bound:
                return f"{name}[{', '.join(map(str, place))}] is {one}, {other} expected"
    return ""


def inexact_function(program: Program) -> str:
    """The first function of ``program`` that does not keep whole numbers whole; "" when there is none."""
    for statement in program.statements:
        for node in walk(statement.value):
            if isinstance(node, Apply) and node.function in INEXACT:
                return node.function
            if isinstance(node, Literal) and np.isfinite(node.value) and not float(node.value).is_integer():
                return str(node.value)
    return ""


def tile_classes(
    program: Program, plan: Plan, tensor: Tensor, sizes: Mapping[str, int]
) -> Iterator[tuple[str, Region]]:
    """Names and places of the parts of an output that whole tiles and cut tiles of ``plan`` make."""
    shape = extents(tensor, sizes)
    cuts = [_cut(program, plan, tensor.name, d, extent) for d, extent in enumerate(shape)]
    names = [_loop_name(program, tensor.name, d) for d in range(len(shape))]
    for choice in product((False, True), repeat=len(shape)):
        region = tuple(
            slice(cut, extent) if edge else slice(0, cut) for edge, cut, extent in zip(choice, cuts, shape, strict=True)
        )
        if prod(s.stop - s.start for s in region):
            edges = [name for edge, name in zip(choice, names, strict=True) if edge]
            kind = "interior" if not edges else "edge" if len(edges) == 1 else "corner"
            yield " ".join([kind, *([", ".join(edges)] if edges else [])]), region


def _cut(program: Program, plan: Plan, tensor: str, dimension: int, extent: int) -> int:
    """Where along a dimension the first cut tile begins."""
    steps: set[int] = set()
    for number, statement in enumerate(program.statements):
        if statement.out.tensor == tensor:
            names = statement.out.indices[dimension].names()
            steps |= {s for n, loop, s in _steps(plan.body) if n == number and loop in names}
    return extent - max((extent % step for step in steps), default=0)


def _steps(nodes: tuple[PlanNode, ...]) -> Iterator[tuple[int, str, int]]:
    """(statement, loop, step) of every tile and every vector."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node.statement, node.lanes, node.width
        else:
            yield from ((n, loop, node.step) for n, loop in node.loops)
            yield from _steps(node.body)


def _loop_name(program: Program, tensor: str, dimension: int) -> str:
    writer = next((s for s in program.statements if s.out.tensor == tensor), None)
    return f"dimension {dimension}" if writer is None else str(writer.out.indices[dimension])


def _errors(found: Array, wanted: Array, dtype: DType) -> npt.NDArray[np.float64]:
    """Difference of every element, 0 where both are the same or both NaN, in parts of the largest finite value."""
    if not dtype.is_float:
        return np.asarray(np.not_equal(found, wanted), np.float64)
    mine, reference = found.astype(np.float64), wanted.astype(np.float64)
    same = (mine == reference) | (np.isnan(mine) & np.isnan(reference))
    finite = np.abs(reference[np.isfinite(reference)])
    scale = float(finite.max()) if finite.size else 1.0
    with np.errstate(invalid="ignore"):
        error = np.abs(mine - reference) / (scale or 1.0)
    return np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))


def _compared(
    tensor: str,
    name: str,
    region: Region,
    error: npt.NDArray[np.float64],
    bound: float,
    found: Array,
    wanted: Array,
) -> TileClass:
    part = error[region]
    wrong = np.argwhere(part > bound)
    first = ""
    if len(wrong):
        place = tuple(int(at) + s.start for at, s in zip(wrong[0], region, strict=True))
        first = f"[{', '.join(map(str, place))}] is {found[place]}, {wanted[place]} expected"
    return TileClass(tensor, name, part.size, len(wrong), float(part.max(initial=0.0)), first)


def _bound(program: Program, sizes: Mapping[str, int]) -> float:
    """Every rounding counted once at its worst: those of the longest sum and a few more."""
    longest = max(
        (prod(loop.extent.evaluate(sizes) for loop in s.reduced) for s in program.statements if s.reduced), default=0
    )
    coarsest = min((t.dtype.exact_bits for t in program.tensors if t.dtype.is_float), default=53)
    return float((longest + ROUNDINGS) * 2.0**-coarsest)
