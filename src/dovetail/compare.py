"""Compiled results against the reference evaluator, element by element, told apart by where in a tile they were made.

Small whole numbers make every sum exact, so nothing may differ. A program with functions that leave the whole numbers
(exp, division) may differ by what rounding in another order explains, one computed in a relaxed form by what the rule
states, and the result says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.ir.bind import extents
from dovetail.ir.evaluate import evaluate
from dovetail.ir.expr import Apply, Expr, Literal, rebuild, walk
from dovetail.ir.plan import Leaf, Plan, PlanNode
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Program, Tensor
from dovetail.schedule.ahead import flat_part

Array = npt.NDArray[np.generic]
Region = tuple[slice, ...]
_WHOLE = frozenset({"floor", "ceil", "trunc", "round"})
INEXACT = frozenset(p.name for p in PRIMITIVES.values() if p.result == "float") - _WHOLE
"""Functions that do not keep whole numbers whole."""
ROUNDINGS = 16
"""Roundings of one element beside those of its sum: a handful of functions, each within a few units."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A relaxed rule, the error it states, and for each output the largest sum of magnitudes, which errors are of."""

    rule: str
    error: str
    sums: Mapping[str, float]

    def allowed(self, output: str, rounding: float) -> float:
        """The largest error; ``rounding`` is the ``eps`` of the stated one."""
        found = _NUMBER.match(self.error)
        return (float(found.group()) if found else 0.0) * rounding * self.sums.get(output, 0.0)


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
    stated: str = ""
    """The error that a relaxed rule states."""

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
        ) + (f"\n{self.stated}" if self.stated else "")


def compare(
    program: Program,
    plan: Plan,
    sizes: Mapping[str, int],
    found: Mapping[str, Array],
    wanted: Mapping[str, Array],
    whole: bool = True,
    planned: Program | None = None,
    relaxation: Relaxation | None = None,
    allowed: float = 0.0,
) -> Comparison:
    """``found`` against ``wanted``, outputs by name; without ``whole`` the inputs may be any numbers.

    ``planned`` is the form of the program that the plan is of, and ``relaxation`` what its rule allows. Results that
    are not exact anyway may be off by ``allowed``, too.
    """
    flat = flat_part(planned or program, plan)
    inexact = inexact_function(program) or ("" if whole else "inputs that are not whole numbers")
    rounded = max(allowed, _bound(program, sizes)) if inexact else 0.0
    bounds: dict[str, float] = {}
    classes: list[TileClass] = []
    for tensor in flat.outputs:
        shape = extents(tensor, sizes)
        mine, reference = found[tensor.name].reshape(shape), wanted[tensor.name].reshape(shape)
        error = _errors(mine, reference, tensor.dtype)
        more = relaxation.allowed(tensor.name, _rounding(program)) / _scale(reference) if relaxation else 0.0
        bounds[tensor.name] = bound = rounded + more
        for name, region in tile_classes(flat, plan, tensor, sizes):
            classes.append(_compared(tensor.name, name, region, error, bound, mine, reference))
    values = [wanted[t.name] for t in flat.outputs]
    total = sum(v.size for v in values)
    zeros = sum(int(np.count_nonzero(v == 0)) for v in values) / total if total else 0.0
    reasons = " and ".join(filter(None, (inexact, relaxation.rule if relaxation else "")))
    stated = f"{relaxation.rule} is relaxed: error at most {relaxation.error}" if relaxation else ""
    return Comparison(tuple(classes), reasons, max(bounds.values(), default=rounded), zeros, stated)


def relaxation_of(
    rule: str, error: str, program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> Relaxation:
    """What a relaxed rule allows where ``program`` is computed from ``arrays``."""
    given = {name: np.abs(a) if program.tensor(name).dtype.is_float else a for name, a in arrays.items()}
    found = evaluate(magnitudes(program), given, sizes)
    return Relaxation(rule, error, {name: _largest(values) for name, values in found.items()})


def magnitudes(program: Program) -> Program:
    """``program`` with sums instead of differences and no signs: for inputs without signs, how much is summed up."""
    return replace(program, statements=tuple(replace(s, value=rebuild(s.value, _unsigned)) for s in program.statements))


def _unsigned(node: Expr) -> Expr:
    match node:
        case Apply("sub", args):
            return Apply("add", args)
        case Apply("neg", (arg,)):
            return arg
        case Literal(value) if value < 0:
            return Literal(-value)
    return node


def compare_elements(
    program: Program,
    sizes: Mapping[str, int],
    values: Sequence[tuple[str, tuple[int, ...], np.generic, np.generic]],
    whole: bool = True,
    allowed: float = 0.0,
) -> str:
    """Single elements (output, place, found, wanted): the first wrong one in words, "" when there is none."""
    inexact = inexact_function(program) or not whole
    bound = max(allowed, _bound(program, sizes)) if inexact else 0.0
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
    with np.errstate(invalid="ignore"):
        error = np.abs(mine - reference) / _scale(wanted)
    return np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))


def _scale(wanted: Array) -> float:
    """What errors are measured by."""
    return _largest(wanted) or 1.0


def _largest(values: Array) -> float:
    """The largest finite magnitude."""
    wide = np.abs(values.astype(np.float64))
    return float(wide.max(initial=0.0, where=np.isfinite(wide)))


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
    return float((longest + ROUNDINGS) * _rounding(program))


def _rounding(program: Program) -> float:
    """One rounding of the coarsest type."""
    return float(2.0 ** -min((t.dtype.exact_bits for t in program.tensors if t.dtype.is_float), default=53))
