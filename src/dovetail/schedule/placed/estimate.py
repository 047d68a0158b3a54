"""What a cut would cost, in whole numbers: no nest is built.

Fills are counted by the loops around each hold, each fill costs what its copy instruction says; calls cost what theirs
say, smaller ones at edges too. What runs on different units overlaps where buffers come twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import inf, prod

from dovetail.base.errors import PlanError
from dovetail.ir.index import constant
from dovetail.schedule.placed.alignment import bytes_of
from dovetail.schedule.placed.copy_leaf import seen_from
from dovetail.schedule.placed.moves import Line, Side, best_move
from dovetail.schedule.placed.paths import lies_in
from dovetail.schedule.placed.shape import accesses_of
from dovetail.schedule.placed.space import Cut, Work, orders, unit_count
from dovetail.schedule.placed.standing import Spot, Standing
from dovetail.schedule.placed.storage import Store, Wanted, store_for, wanted_operands
from dovetail.targets.cost import evaluate_cost

Blocks = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """One operand's share: bytes of its buffer in its memory, cycles of one fill or drain, and who is busy with it."""

    memory: str
    bytes: int
    cycles: float
    engine: str
    loops: frozenset[str]
    engines: int
    """How many of the unit there are."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A cut and its estimated cycles; of two that take as long, the one with fewer fills, then calls, is cheaper."""

    cycles: float
    fills: int
    calls: int
    cut: Cut

    @property
    def price(self) -> tuple[float, int, int]:
        return self.cycles, self.fills, self.calls


class Estimator:
    """Costs of cuts of one work; ``room`` is what its buffers may take of each memory."""

    def __init__(self, work: Work, room: Mapping[str, int]) -> None:
        self.work, self.room = work, room
        statement = work.program.statements[work.number]
        self.written = statement.out.tensor
        self.steps = prod(x.extent.const for x in statement.seq)
        accesses = {o: accesses_of(statement, t)[0] for o, t in work.operands}
        self.wanted = wanted_operands(work.shape.instruction, work.target, dict(work.bound), accesses)
        self._parts: dict[tuple[str, tuple[int, ...]], Part | None] = {}

    def best(self, blocks: Blocks, twice: frozenset[str]) -> Priced | None:
        """The cheapest order of the outer loops; None where the buffers do not fit or cannot be filled."""
        parts: dict[str, Part] = {}
        taken: dict[str, int] = {}
        for wanted in self.wanted:
            tensor = wanted.access.tensor
            if not self.is_held(tensor):
                continue
            part = self.part(wanted, blocks)
            if part is None:
                return None
            parts[tensor] = part
            copies = 2 if tensor in twice and not self.is_whole(part, blocks) else 1
            taken[part.memory] = taken.get(part.memory, 0) + part.bytes * copies
        if any(taken[memory] > self.room.get(memory, 0) for memory in taken):
            return None
        compute, calls = self.compute(blocks), self.calls(blocks)
        found = []
        for order in self.orders(blocks):
            cycles, fills = self.cycles(parts, order, blocks, twice, compute)
            found.append(Priced(cycles, fills, calls, Cut(tuple(blocks.items()), order, twice)))
        return min(found, key=lambda priced: priced.price)

    def is_held(self, tensor: str) -> bool:
        """Whether a tensor is copied somewhere; what a statement only moves is, as a part of its result."""
        routes, moved = self.work.routes, self.work.moved
        return bool(routes and routes[tensor]) or (moved is not None and tensor == moved.tensor)

    def is_whole(self, part: Part, blocks: Blocks) -> bool:
        """Whether a part holds all that the statement touches of its tensor in a step."""
        return all(blocks[x] >= self.work.extents[x] for x in part.loops if x in self.work.extents)

    def stays(self, part: Part, blocks: Blocks) -> bool:
        """Whether a part is the same in all steps of a sequence, so that it is filled once before them."""
        return self.steps > 1 and self.is_whole(part, blocks) and part.loops <= self.work.extents.keys()

    def resident(self, blocks: Blocks) -> dict[str, int]:
        """Bytes of each memory that are taken during all steps of a sequence."""
        found: dict[str, int] = {}
        for wanted in self.wanted:
            if self.is_held(wanted.access.tensor) and not wanted.is_written:
                part = self.part(wanted, blocks)
                if part is not None and self.stays(part, blocks):
                    found[part.memory] = found.get(part.memory, 0) + part.bytes
        return found

    def least(self, blocks: Blocks) -> float:
        """No fewer cycles than a work takes, about: all its calls, or every element moved once as blocks move them."""
        moved = 0.0
        for wanted in self.wanted:
            if self.is_held(wanted.access.tensor):
                part = self.part(wanted, blocks)
                if part is None:
                    return inf
                loops = part.loops & self.work.extents.keys()
                moved += part.cycles * prod(max(1.0, self.work.extents[x] / blocks[x]) for x in loops)
        return max(self.compute(blocks), moved)

    def orders(self, blocks: Blocks) -> Iterator[tuple[str, ...]]:
        work = self.work
        kept = tuple(x for x in work.kept if blocks[x] < work.extents[x])
        reduced = tuple(x for x in work.reduced if blocks[x] < work.extents[x])
        for outside, inside in product(orders(kept), orders(reduced)):
            yield outside + inside

    def cycles(
        self, parts: Mapping[str, Part], order: tuple[str, ...], blocks: Blocks, twice: frozenset[str], compute: float
    ) -> tuple[float, int]:
        """Of a whole statement, and how many fills and drains there are."""
        counts = {loop: -(-self.work.extents[loop] // blocks[loop]) for loop in order}
        share = self.share(order, counts)
        busy: dict[str, float] = {}
        waited, once, total = 0.0, 0.0, 0
        for tensor, part in parts.items():
            depth = max((n + 1 for n, loop in enumerate(order) if loop in part.loops), default=0)
            fills = prod(counts[loop] for loop in order[:depth])
            total += fills
            mine = fills * part.cycles * (share if part.engines > 1 else 1.0)
            busy[part.engine] = busy.get(part.engine, 0.0) + mine
            if self.stays(part, blocks):
                busy[part.engine] -= part.cycles * (1 - 1 / self.steps)
            elif tensor in twice and fills > 1:
                once += part.cycles
            else:
                waited += mine
        return max(compute * share + waited, once + max(busy.values(), default=0.0)), total

    def share(self, order: tuple[str, ...], counts: Mapping[str, int]) -> float:
        """What one unit does of the work when the outermost loop is spread over all of them."""
        if not self.work.unit or not order or order[0] not in self.work.kept:
            return 1.0
        count = counts[order[0]]
        return -(-count // unit_count(self.work.target, self.work.unit)) / count

    def calls(self, blocks: Blocks) -> int:
        """Calls of the instruction in all."""
        steps = ((extent, self.work.call_step(loop, blocks[loop])) for loop, extent in self.work.extents.items())
        return prod(-(-extent // max(1, step)) for extent, step in steps)

    def compute(self, blocks: Blocks) -> float:
        """Cycles of all calls, edges as they are."""
        work = self.work
        if work.moved is not None:
            return 0.0
        pieces: list[list[tuple[str, int, int]]] = []
        others = 1
        for loop, extent in work.extents.items():
            step = work.call_step(loop, blocks[loop])
            needle = work.needle.get(loop)
            if needle is None or needle.size is None:
                others *= -(-extent // max(1, step))
                continue
            full, rest = divmod(extent, step)
            some = [(needle.size.name, step * work.inner[loop], full)] if full else []
            if rest:
                some.append((needle.size.name, (step if needle.is_exact else rest) * work.inner[loop], 1))
            pieces.append(some)
        fixed = {x.size.name: 1 for x in work.shape.loops if x.size is not None}
        total = 0.0
        for chosen in product(*pieces):
            values = {**fixed, **{name: value for name, value, _ in chosen}}
            total += prod(n for _, _, n in chosen) * evaluate_cost(work.shape.instruction.cycles, values)
        return total * others

    def part(self, wanted: Wanted, blocks: Blocks) -> Part | None:
        tensor = wanted.access.tensor
        loops = wanted.access.names() | set(wanted.walked)
        key = (tensor, tuple(blocks[x] for x in self.work.extents if x in loops))
        if key not in self._parts:
            self._parts[key] = self.measured(wanted, blocks)
        return self._parts[key]

    def measured(self, wanted: Wanted, blocks: Blocks) -> Part | None:
        """A part of blocks of this size; what is only moved takes no room beside the result that it becomes."""
        work = self.work
        statement = work.program.statements[work.number]
        here = self.spot({x: max(block, work.call_step(x, block)) for x, block in blocks.items()})
        is_moved = work.moved is not None and not wanted.is_written
        held = next(w for w in self.wanted if w.is_written) if is_moved else wanted
        store = self.store(held, blocks, here)
        if store is None:
            return None
        bytes_ = 0 if is_moved else bytes_of(store.buffer, work.target, store.grid)
        store = seen_from(store, statement.out, wanted.access) if is_moved else store
        sizes = tuple(e.const for e in work.program.tensor(wanted.access.tensor).shape)
        if self.is_padded_twice(store, wanted, here, sizes):
            return None
        counts = self.counts(store, wanted, here)
        full, engine = self.moved(store, sizes, wanted.is_written, counts, {})
        edges, share = self.edges(store, wanted, blocks, sizes)
        edge, _ = self.moved(store, sizes, wanted.is_written, counts, edges) if edges else (full, "")
        cycles = full + share * (edge - full) if full < inf and edge < inf else inf
        if cycles == inf:
            return None
        engines = unit_count(work.target, engine)
        return Part(store.buffer.memory, bytes_, cycles, engine, frozenset(held.access.names()), engines)

    def store(self, wanted: Wanted, blocks: Blocks, here: Spot) -> Store | None:
        """The buffer for a block of an operand; None where there is none."""
        work = self.work
        assert work.routes is not None
        memory = work.routes[wanted.access.tensor][0]
        there = wanted if memory == wanted.memory else lies_in(work.target, memory, wanted)
        steps = {x: work.call_step(x, blocks[x]) for x in work.extents}
        if there is None or any(step < 1 for step in steps.values()):
            return None
        sizes = tuple(e.const for e in work.program.tensor(wanted.access.tensor).shape)
        try:
            return store_for("", there, here, self.spot(steps), sizes, work.target, 1, {})
        except PlanError:
            return None

    def spot(self, lefts: Mapping[str, int]) -> Spot:
        """The loops of the statement with so many iterations left; one of each step."""
        work = self.work
        seq = {x.name: Standing(constant(0), 1, x.extent.const) for x in work.program.statements[work.number].seq}
        return {**seq, **{x: Standing(constant(0), lefts[x], work.extents[x]) for x in work.extents}}

    def counts(self, store: Store, wanted: Wanted, here: Spot) -> tuple[int, ...]:
        """What there is along each axis: blocks that go beyond the end of a loop are not moved as a whole."""
        there = {x: min(standing.left, standing.extent) for x, standing in here.items()}
        found = []
        for axis in store.axes:
            if axis.loop:
                found.append(min(axis.extent, -(-there[axis.loop] // axis.part)) if any(axis.steps) else axis.extent)
                continue
            index = wanted.access.indices[axis.dimension]
            found.append(min(axis.extent, 1 + sum(c * (there[str(x)] - 1) for x, c in index.terms)))
        return tuple(found)

    def edges(
        self, store: Store, wanted: Wanted, blocks: Blocks, sizes: tuple[int, ...]
    ) -> tuple[dict[int, bool], float]:
        """Axes that are cut short at an edge (and whether from the front), and in what share of the fills."""
        found: dict[int, bool] = {}
        share = 0.0
        for number, axis in enumerate(store.axes):
            dimensions = [d for d, step in enumerate(axis.steps) if step]
            loops = {axis.loop} if axis.loop else set(wanted.access.indices[axis.dimension].names())
            loops &= self.work.extents.keys()
            counts = {x: -(-self.work.extents[x] // blocks[x]) for x in loops}
            short = [1 / counts[x] for x in loops if self.work.extents[x] % blocks[x]]
            before, behind = (any(self.leaves(wanted, d, sizes)[side] for d in dimensions) for side in (0, 1))
            some = min(1.0, sum(short) + (before + behind) / max(1, prod(counts.values())))
            if some:
                found[number] = before
                share = max(share, some)
        return found, share

    def is_padded_twice(self, store: Store, wanted: Wanted, here: Spot, sizes: tuple[int, ...]) -> bool:
        """Whether a packed axis is one of several along which a dimension is padded, which no fill can do."""
        for axis in store.axes:
            for dimension in (d for d, step in enumerate(axis.steps) if step and axis.loop):
                several = sum(here[x].left > 1 for x in wanted.access.indices[dimension].names()) > 1
                if several and any(self.leaves(wanted, dimension, sizes)):
                    return True
        return False

    def leaves(self, wanted: Wanted, dimension: int, sizes: tuple[int, ...]) -> tuple[bool, bool]:
        """Whether an index leaves its dimension at the front, and at the end (where guards leave points out)."""
        index, extents = wanted.access.indices[dimension], self.work.all_extents
        most = index.const + sum(c * (extents[str(x)] - 1) for x, c in index.terms)
        return index.const < 0, most >= sizes[dimension]

    def moved(
        self,
        store: Store,
        sizes: tuple[int, ...],
        is_written: bool,
        counts: tuple[int, ...],
        edges: Mapping[int, bool],
    ) -> tuple[float, str]:
        """Cycles of a fill or a drain that is cut short along ``edges``, and the unit that is busy with it."""
        target = self.work.target
        dense = [prod(sizes[n + 1 :]) for n in range(len(sizes))]
        lines = tuple(
            Line(
                n,
                counts[n],
                n not in edges and counts[n] == axis.extent,
                store.strides[n],
                sum(a * b for a, b in zip(axis.steps, dense, strict=True)),
                axis.needle if store.layout is not None else -1,
                edges.get(n, False),
            )
            for n, axis in enumerate(store.axes)
        )
        near = Side(store.buffer.memory, store.buffer.dtype, store.layout)
        far = Side(target.main.name, self.work.program.tensor(store.tensor).dtype)
        move = best_move(lines, near, far, target, not is_written)
        return (inf, "") if move is None else (move.cycles, move.instruction.unit)
