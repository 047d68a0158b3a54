"""Plans for the steps of a sequence that keep everything where it is used: weights, states and temporaries.

    seq t<8: for i<64, k<64: y[t, i] += w[i, k] * h[t, k]      tile t of 0.t, 1.t by 1:
    seq t<8: for i<64: h[t + 1, i] = tanh(y[t, i])        ->     hold y in vector as d0%1, d1
                                                                 hold h in vector as d0%2, d1
                                                                 hold w in matrix as d0, d1
                                                                 tile i of 0.i by 64: do 0 by MVMul64
                                                                 tile i of 1.i by 64: do 1 by VVTanh

Every statement of a step is done whole, by the instruction that computes it in the fewest cycles. Tensors that go along
with the steps are kept; weights are held around all steps, as many of them as fit. Nothing of this is chosen where the
memories are too small for anything else, or an instruction wants an operand that lies otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from dovetail.base.errors import PlanError
from dovetail.ir.fit import Fit
from dovetail.ir.index import Access
from dovetail.ir.plan import Digit, Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program
from dovetail.schedule.placed.alignment import bytes_of
from dovetail.schedule.placed.estimate import Estimator, Part
from dovetail.schedule.placed.lower import steps_kept
from dovetail.schedule.placed.shape import accesses_of
from dovetail.schedule.placed.space import Cut, Work, block_choices, plan_node, works
from dovetail.schedule.placed.streamed import Chosen, shared_room
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.model import Target


@dataclass(frozen=True, slots=True)
class Resident:
    """The steps of a group of statements as one tile."""

    group: tuple[int, ...]
    node: Tile
    cost: float
    """About the cycles of a step, and the calls of sums, which hold up others while they are issued."""
    part: tuple[int, str, int] | None = None
    """Where weights do not fit: how much of a loop of a statement would, if it was a statement by itself."""


@lru_cache(maxsize=16)
def resident_groups(program: Program, target: Target, fits: tuple[Fit, ...]) -> tuple[Resident, ...]:
    """Of every sequence of a program that can be done so."""
    several = (resident(program, target, fits, group) for group in program.groups())
    return tuple(found for found in several if found is not None)


def resident(program: Program, target: Target, fits: tuple[Fit, ...], group: tuple[int, ...]) -> Resident | None:
    """The steps of ``group``, of which nothing but what they are given and what they give passes main memory.

    None where its statements have no steps, one of them has no instruction, or memories are too small."""
    if len(program.statements[group[0]].seq) != 1:
        return None
    chosen: dict[int, tuple[Work, Cut]] = {}
    for number in group:
        best = _least(program, target, fits, number)
        if best is None:
            return None
        chosen[number] = best
    seq = program.statements[group[0]].seq[0].name
    bare = tuple(_without(plan_node(work, cut, f"s{n}"), ()) for n, (work, cut) in chosen.items())
    tile = Tile(f"s{group[0]}{seq}", tuple((n, seq) for n in group), 1, bare)
    moving = {a.tensor for n in group for a in _accesses(program, n) if seq in a.names()}
    part: tuple[int, str, int] | None = None
    found = _taken(program, target, chosen, replace(tile, holds=tuple(_candidates(program, chosen, group))))
    full = [memory for memory, bytes_ in (found[1] if found else {}).items() if bytes_ > target.memory(memory).bytes]
    if found is not None and full:
        weights = frozenset(h.tensor for h in found[0].holds if h.memory in full and h.tensor not in moving)
        fewer = tuple(h for h in found[0].holds if h.tensor not in weights)
        others = _taken(program, target, chosen, replace(tile, holds=fewer), weights)
        room = {m: target.memory(m).bytes - (others[1].get(m, 0) if others else 0) for m in full}
        shared = shared_room(chosen, weights, room[full[0]]) if len(full) == 1 and weights and others else None
        if shared is None or others is None or room[full[0]] < 0:
            return None
        found, chosen, part = others, dict(shared.chosen), shared.part
    if found is None or not moving <= {hold.tensor for hold in found[0].holds}:
        return None
    kept = {hold.tensor for hold in found[0].holds}
    body = tuple(_without(plan_node(work, cut, f"s{n}"), kept) for n, (work, cut) in chosen.items())
    found = (
        _taken(program, target, chosen, replace(found[0], body=body)) if full else (replace(found[0], body=body), {})
    )
    return Resident(group, found[0], _cost(chosen), part) if found and len(found[0].holds) == len(kept) else None


def _cost(chosen: Chosen) -> float:
    total = 0.0
    for work, cut in chosen.values():
        estimator, blocks = Estimator(work, {}), dict(cut.blocks)
        fills = sum(part.cycles for part in _constant_parts(estimator, blocks) if part is not None)
        total += estimator.compute(blocks) + fills / estimator.steps
        total += estimator.calls(blocks) if work.reduced else 0
    return total


def _least(program: Program, target: Target, fits: tuple[Fit, ...], number: int) -> tuple[Work, Cut] | None:
    """The work of a statement that computes it in the fewest cycles, as it is and without padding if it can be.

    What is the same in all steps is copied once. Sums in blocks as large as can be, since calls of other units are
    issued between them; others in calls whose result is there first. None where there is none."""
    best: tuple[tuple[float, ...], Work, Cut] | None = None
    for work in works(program, target, fits, number):
        if work.moved is not None or work.unit or any(len(route) != 1 for route in (work.routes or {}).values()):
            continue
        estimator = Estimator(work, {})
        for blocks in _blocks(work):
            parts = [part.cycles if part else inf for part in _constant_parts(estimator, blocks)]
            latency = 0.0 if work.reduced else _latency(work, blocks)
            cycles = estimator.compute(blocks) + sum(parts) / estimator.steps
            price = (_converts(estimator), _pads(work, blocks), cycles, latency, estimator.calls(blocks))
            if cycles == inf:
                continue
            if best is None or price < best[0]:
                short = tuple(x for x in (*work.kept, *work.reduced) if blocks[x] < work.extents[x])
                best = (price, work, Cut(tuple(blocks.items()), short, frozenset()))
    return None if best is None else best[1:]


def _blocks(work: Work) -> Iterator[dict[str, int]]:
    """The largest of every loop; and smaller ones of a loop of which a call may do any part."""
    options = {loop: block_choices(work, loop) for loop in work.extents}
    if not all(options.values()):
        return
    largest = {loop: several[-1] for loop, several in options.items()}
    yield largest
    for loop, needle in work.needle.items() if not work.reduced else ():
        if needle.size is not None:
            yield from ({**largest, loop: block} for block in options[loop][:-1])


def _latency(work: Work, blocks: Mapping[str, int]) -> float:
    """Cycles until the result of a call is there."""
    values = {x.size.name: 1 for x in work.shape.loops if x.size is not None}
    for loop, needle in work.needle.items():
        if needle.size is not None:
            values[needle.size.name] = work.call_step(loop, blocks[loop]) * work.inner[loop]
    return evaluate_cost(work.shape.instruction.latency, values)


def _constant_parts(estimator: Estimator, blocks: Mapping[str, int]) -> Iterator[Part | None]:
    """What is held of the operands that are the same in all steps; None for one that no copy brings."""
    for wanted in estimator.wanted:
        if estimator.is_held(wanted.access.tensor) and wanted.access.names() <= estimator.work.extents.keys():
            yield estimator.part(wanted, blocks)


def _converts(estimator: Estimator) -> bool:
    """Whether an operand is of another dtype than its tensor, so that what one statement leaves another cannot take."""
    program = estimator.work.program
    return any(wanted.dtype != program.tensor(wanted.access.tensor).dtype for wanted in estimator.wanted)


def _pads(work: Work, blocks: Mapping[str, int]) -> bool:
    """Whether a call does more of a loop than there is."""
    exact = (x for x, needle in work.needle.items() if needle.is_exact)
    return any(work.extents[x] % work.call_step(x, blocks[x]) for x in exact)


def _candidates(program: Program, chosen: Mapping[int, tuple[Work, Cut]], group: tuple[int, ...]) -> Iterator[Hold]:
    """A hold for every tensor along one dimension of which the steps go, or none, in the memory that its uses want."""
    seq = program.statements[group[0]].seq[0].name
    for name in dict.fromkeys(a.tensor for n in group for a in _accesses(program, n)):
        users = [n for n in group if accesses_of(program.statements[n], name)]
        accesses = [a for n in users for a in accesses_of(program.statements[n], name)]
        dimensions = {d for a in accesses for d, index in enumerate(a.indices) if seq in index.names()}
        memories = {(chosen[n][0].routes or {}).get(name, ()) for n in users}
        written = [program.statements[n].out for n in users if program.statements[n].out.tensor == name]
        if len(dimensions) > 1 or len(memories) != 1 or not next(iter(memories)) or (written and not dimensions):
            continue
        along = next(iter(dimensions), -1)
        if along >= 0 and any(a.indices[along].names() != {seq} for a in accesses):
            continue
        places = {a.indices[along] for a in accesses}
        size = 1 if written and places == {a.indices[along] for a in written} else 2
        digits = tuple(Digit(d, modulus=size if d == along else 0) for d in range(len(accesses[0].indices)))
        yield Hold(name, next(iter(memories))[0], digits)


def _taken(
    program: Program, target: Target, chosen: Chosen, tile: Tile, apart: frozenset[str] = frozenset()
) -> tuple[Tile, dict[str, int]] | None:
    """``tile`` with those of its holds that can be, and the bytes that all it needs takes of each memory.

    Tensors ``apart`` are not counted. None where something cannot be."""
    others = tuple(Leaf(n) for n in range(len(program.statements)) if n not in chosen)
    try:
        tile, steps = steps_kept(program, Plan((tile, *others)), target, tile)
    except PlanError:
        return None
    taken: dict[str, int] = {}
    for buffer in steps.buffers:
        taken[buffer.memory] = taken.get(buffer.memory, 0) + bytes_of(buffer, target)
    kept = {hold.tensor for hold in tile.holds} | apart
    for work, cut in chosen.values():
        estimator = Estimator(work, {})
        for wanted in estimator.wanted:
            if wanted.access.tensor in kept or not estimator.is_held(wanted.access.tensor):
                continue
            part = estimator.part(wanted, dict(cut.blocks))
            if part is None:
                return None
            taken[part.memory] = taken.get(part.memory, 0) + part.bytes
    return tile, taken


def _without(node: PlanNode, kept: set[str] | tuple[()]) -> PlanNode:
    """A statement's tree without the holds of what is kept around it; of none at all where nothing is given."""
    if isinstance(node, Leaf):
        return node
    holds = tuple(h for h in node.holds if kept and h.tensor not in kept)
    return replace(node, body=tuple(_without(inner, kept) for inner in node.body), holds=holds)


def _accesses(program: Program, number: int) -> Iterator[Access]:
    statement = program.statements[number]
    yield statement.out
    yield from statement.reads()
