"""Recurrences of as many steps that need nothing of each other become one region: both directions of a layer.

there = lstm(x, w, r, ...)                     one program, whose steps are walked together (``ir/abreast``):
back = lstm(x, u, s, ...) {reverse = 1}   ->   the units meet once in a step, not once for each of them

Only while the caches next to the units keep all weights until the next step: one after the other reads fewer from afar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from dovetail.graph.grow import Sketch
from dovetail.graph.roles import Work
from dovetail.ir.graph.graph import SCAN, Node, Type
from dovetail.ir.graph.operator import find, meaning
from dovetail.ir.graph.scan import repetition
from dovetail.ir.graph.verify import Operators
from dovetail.ir.index import Index
from dovetail.ir.program import Role, Tensor

MOST_ABREAST = 4
"""Recurrences of one region: what is compiled as one piece stays within seconds."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """How many steps a recurrence has, and how many bytes each of them reads again."""

    steps: Index
    kept_bytes: int


def steps_abreast(sketch: Sketch, operators: Operators, near_bytes: int) -> None:
    """Regions of one recurrence each become one region, where none of them needs what another makes, as long as what
    their steps read again is no more than ``near_bytes``."""
    walks: dict[int, _Walk] = {}
    for number, (nodes, _) in sketch.regions.items():
        if len(nodes) == 1 and sketch.work_of(nodes[0]) is Work.STEPS:
            walk = _walk(sketch, nodes[0], operators)
            walks |= {} if walk is None else {number: walk}
    open_ = sorted(walks, key=lambda n: _place(sketch, n))
    while len(open_) > 1:
        first, *rest = open_
        together, kept = [first], walks[first].kept_bytes
        for number in rest:
            walk = walks[number]
            fits = kept + walk.kept_bytes <= near_bytes and len(together) < MOST_ABREAST
            if walk.steps == walks[first].steps and fits and _are_free(sketch, together, number):
                together.append(number)
                kept += walk.kept_bytes
        open_ = [number for number in rest if number not in together]
        if len(together) > 1:
            sketch.merge(tuple(together), "steps that need nothing of each other, walked together")


def _place(sketch: Sketch, number: int) -> int:
    return sketch.places[sketch.regions[number][0][0].results[0]]


def _walk(sketch: Sketch, node: Node, operators: Operators) -> _Walk | None:
    """None where loops of steps are nested, or nobody knows how much they read again."""
    operands = tuple(sketch.types[name] for name in node.operands)
    if node.op == SCAN:
        found = repetition(node, operands)
        return _walk_of(found.steps, operands[found.carried + found.scanned :])
    sizes = {size.name: size for size in sketch.graph.sizes}
    program = meaning(find(node, operators), node, operands, sizes).program
    steps = [s for s in program.statements if s.seq]
    extents = {tuple(loop.extent for loop in s.seq) for s in steps}
    if len(extents) != 1 or len(steps[0].seq) != 1:
        return None
    inputs = {tensor.name for tensor in program.tensors if tensor.role is not Role.TEMP} - {
        s.out.tensor for s in program.statements
    }
    again = {
        access.tensor
        for s in steps
        for access in s.reads()
        if access.tensor in inputs and not any(s.seq[0].name in index.names() for index in access.indices)
    }
    return _walk_of(steps[0].seq[0].extent, [program.tensor(name) for name in again])


def _walk_of(steps: Index, again: Sequence[Type | Tensor]) -> _Walk | None:
    if not all(extent.is_constant for read in again for extent in read.shape):
        return None
    return _Walk(steps, sum(read.dtype.bytes * prod(extent.const for extent in read.shape) for read in again))


def _are_free(sketch: Sketch, together: list[int], number: int) -> bool:
    """Whether a region needs nothing of those ``together``, nor they of it, by way of whatever regions."""
    return not any(_needs(sketch, one, {number}) for one in together) and not _needs(sketch, number, set(together))


def _needs(sketch: Sketch, number: int, others: set[int]) -> bool:
    """Whether a way leads from one of ``others`` down to the region ``number``."""
    waiting, seen = [number], {number}
    while waiting:
        for node in sketch.regions[waiting.pop()][0]:
            for value in node.operands:
                made = sketch.graph.producer(value)
                maker = None if made is None else sketch.home[made.results[0]]
                if maker in others and maker != number:
                    return True
                if maker is not None and maker not in seen:
                    seen.add(maker)
                    waiting.append(maker)
    return False
