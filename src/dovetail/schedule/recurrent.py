"""Plans for the segments of a step: one tile of some rows, all parts of an element, and lanes; sums in registers, then
everything that follows of them, and only then the next tile. Units share the tiles and meet once.

    tile j by 16 on core:                       -- units of a state
      tile b by 2:                              -- rows of a batch
        hold u, fresh in registers
        tile k by 1: do 3 lanes j x 8           -- all parts of 2 x 16 elements
        do 4 lanes j x 8                        -- what becomes of them
        do 5 lanes j x 8

Weights lie in the order in which they are swept: a tile of units, the reduction, the parts, the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from dovetail.ir.index import Access
from dovetail.ir.plan import Digit, Hold, Leaf, PlanNode, Tile
from dovetail.ir.program import Role
from dovetail.schedule.facts import Facts, Use
from dovetail.schedule.inner import inner_order
from dovetail.schedule.pointwise import Vectors, pointwise_cycles
from dovetail.schedule.pointwise_plan import PointwisePlanner
from dovetail.schedule.segments import Segment
from dovetail.schedule.tiling import MOST_POINTS, MOST_ROWS

MOST_VECTORS = 4
MOST_OPEN_ROWS = 4
"""Rows of a tile whose number is known at run time only: each number that may be left over has code of its own."""
MEETING_CYCLES = 800.0
"""What meeting at the end of a step costs; less than waking units that sleep."""


@dataclass(frozen=True, slots=True)
class StepTile:
    """``vectors`` of ``width`` lanes along ``lanes``, ``rows`` of ``across``; ``parts``: for each sum, how many parts
    of an element one sweep over its reduction makes."""

    lanes: str
    width: int
    vectors: int
    across: str
    rows: int
    parts: dict[int, int]
    cycles: float

    @property
    def span(self) -> int:
        return self.width * self.vectors


class RecurrentPlanner(PointwisePlanner):
    """What a step of a sequence does on one tile."""

    def segment(self, segment: Segment, is_far: bool) -> list[PlanNode]:
        """The plan of a segment; nothing where its statements are better planned one by one. ``is_far``: weights of a
        step come from beyond the units' own caches."""
        weights = {n: self.weights(segment, n) for n in segment.sums}
        tile = min(self.step_tiles(segment), key=lambda t: t.cycles, default=None)
        if tile is None or any(w is None for w in weights.values()):
            return []
        layouts = self.layouts(segment, tile)
        if layouts is None:
            return []
        self.holds += layouts
        self.done |= set(segment.numbers)
        points = [Vectors((self.facts(n),), (segment.names[n][tile.lanes],), tile.width) for n in segment.points]
        following = pointwise_cycles(self.machine, points, frozenset(self.between(segment)))
        cycles = tile.cycles + following
        shared = self.threads == 1 or cycles * (self.threads - 1) > MEETING_CYCLES * self.threads
        self.cycles += cycles / self.threads + MEETING_CYCLES if shared else cycles
        node = self.step_node(segment, tile, self.unit if shared else "")
        return [replace(node, alternating=shared and is_far)]

    # -- register tiles

    def step_tiles(self, segment: Segment) -> Iterator[StepTile]:
        """Every register tile of a segment that registers can hold."""
        lanes = self.lane_loop(segment)
        if not lanes:
            return
        extent = self.extent(segment, lanes)
        across = self.row_loop(segment, lanes)
        most = MOST_OPEN_ROWS if across and self.is_open(segment, across) else MOST_ROWS
        rows = range(1, min(most, self.extent(segment, across)) + 1) if across and segment.sums else (1,)
        for width in self.widths(segment, lanes):
            for vectors in range(1, min(MOST_VECTORS, ceil(extent / width)) + 1) if segment.sums else (1,):
                for r in rows:
                    parts = {n: self.parts(segment, n, vectors, r) for n in segment.sums}
                    held = sum(self.all_parts(segment, n) for n in segment.sums) * vectors * r
                    if all(parts.values()) and held <= MOST_POINTS:
                        cycles = sum(self.sum_cycles(segment, n, lanes, width, vectors, r, parts[n]) for n in parts)
                        yield StepTile(lanes, width, vectors, across, r, parts, cycles)

    def lane_loop(self, segment: Segment) -> str:
        """The loop along which results lie in memory, if all statements can go along it in vectors."""
        free = [
            loop for loop in segment.loops if all(self.goes_along(n, segment.names[n][loop]) for n in segment.numbers)
        ]
        return next((loop for loop in reversed(free) if self.facts(segment.points[0]).out.stride(loop) == 1), "")

    def goes_along(self, number: int, loop: str) -> bool:
        facts = self.facts(number)
        if loop in facts.guarded | facts.uncountable | facts.dynamic or facts.out.stride(loop) in (None, 0):
            return False
        return facts.is_contraction or all(use.stride(loop) in (0, 1) for use in facts.reads)

    def row_loop(self, segment: Segment, lanes: str) -> str:
        """The longest other loop."""
        others = [loop for loop in segment.loops if loop != lanes]
        return max(others, key=lambda loop: self.extent(segment, loop), default="")

    def is_open(self, segment: Segment, loop: str) -> bool:
        """Whether the extent of a loop is known at run time only."""
        first = segment.points[0]
        return segment.names[first][loop] in self.facts(first).dynamic

    def extent(self, segment: Segment, loop: str) -> int:
        first = segment.points[0]
        return self.facts(first).extents[segment.names[first][loop]]

    def widths(self, segment: Segment, lanes: str) -> list[int]:
        """Lanes in which everything can run, no more of them than are filled by half."""
        extent = self.extent(segment, lanes)
        counts = [self.machine.lane_counts(self.facts(n)) for n in segment.numbers]
        return [w for w in counts[0] if 1 < w < 2 * extent and all(w in found for found in counts)]

    def all_parts(self, segment: Segment, number: int) -> int:
        return prod(self.facts(number).extents[loop] for loop in segment.inside[number])

    def parts(self, segment: Segment, number: int, vectors: int, rows: int) -> int:
        """As many parts at once as leave registers for weights and a state in all lanes; 0 where not one does."""
        total = self.all_parts(segment, number)
        for count in range(total, 0, -1):
            weights = vectors * count if rows > 1 else 2
            if total % count == 0 and rows * vectors * count + weights + 1 <= self.machine.registers:
                return count if count == total or len(segment.inside[number]) == 1 else 0
        return 0

    def sum_cycles(
        self, segment: Segment, number: int, lanes: str, width: int, vectors: int, rows: int, parts: int
    ) -> float:
        """Of one unit for a whole step: arithmetic or loads or the latency of a sum, and weights from their cache."""
        facts, machine = self.facts(number), self.machine
        depth = prod(facts.extents[n] for n in facts.reduced)
        tiles = ceil(self.extent(segment, lanes) / (width * vectors))
        batch = prod(self.extent(segment, loop) for loop in segment.loops if loop != lanes)
        sweeps = self.all_parts(segment, number) // parts
        passes, total = 0, 0.0
        for count, r in ((batch // rows, rows), (1 if batch % rows else 0, batch % rows)):
            arithmetic = r * vectors * parts * machine.operation_cycles(facts, width)
            loads = vectors * parts * machine.load_cycles(facts.out.dtype, width)
            loads += r * machine.broadcast_cycles(facts.out.dtype, width)
            step = max(arithmetic, loads, machine.latency(facts, width)) + machine.crowding * min(arithmetic, loads)
            total += count * (
                sweeps * (depth * (step + machine.loop_cycles) + machine.enter_cycles) + machine.tile_cycles
            )
            passes += count
        panel = depth * vectors * width * parts * facts.out.bytes
        weights = panel * sweeps * tiles
        again = 1 if panel <= machine.usable[0] else passes
        computing = total * tiles
        moving = weights * again / (machine.cache_bytes_per_cycle[0] * machine.sustained)
        return max(computing, moving) + machine.waiting * min(computing, moving)

    # -- weights

    def weights(self, segment: Segment, number: int) -> Use | None:
        """The operand of a sum that goes along with the lanes; None where there is not one such."""
        lanes = self.lane_loop(segment)
        own = segment.names[number].get(lanes, "")
        found = [use for use in self.facts(number).reads if use.stride(own)]
        return found[0] if len(found) == 1 else None

    def layouts(self, segment: Segment, tile: StepTile) -> list[Hold] | None:
        """How the weights of the sums lie; None where they can neither be read as they are nor laid out."""
        found: list[Hold] = []
        for number in segment.sums:
            use = self.weights(segment, number)
            assert use is not None
            readers = [n for n, s in enumerate(self.program.statements) if _reads(s.reads(), use.access.tensor)]
            hold = self.layout(segment, number, use, tile, readers)
            if hold is None:
                if use.stride(segment.names[number][tile.lanes]) != 1:
                    return None
            elif hold not in self.holds and hold not in found:
                found.append(hold)
        return found

    def layout(self, segment: Segment, number: int, use: Use, tile: StepTile, readers: list[int]) -> Hold | None:
        """A tile of lanes after the other, in each the reduction, in that the parts of an element."""
        facts = self.facts(number)
        indices = use.access.indices
        own = segment.names[number][tile.lanes]
        plain = all(i.is_affine and len(i.terms) <= 1 and all(c == 1 for _, c in i.terms) for i in indices)
        lane = [d for d, i in enumerate(indices) if own in i.names()]
        constant = use.role is Role.CONST
        if not plain or len(lane) != 1 or indices[lane[0]].const or (not constant and readers != [number]):
            return None
        if self.is_made_by_steps(facts, use.access.tensor):
            return None
        if any(self.program.statements[n].seq != facts.statement.seq for n in readers):
            return None
        if len(readers) > 1 and any(h.tensor == use.access.tensor for h in self.holds):
            return next(h for h in self.holds if h.tensor == use.access.tensor)
        order = inner_order(facts, "", frozenset((own,)))
        depth = [d for name in order for d, i in enumerate(indices) if name in i.names()]
        inside = [d for d, i in enumerate(indices) if i.names() & set(segment.inside[number])]
        rest = [d for d in range(len(indices)) if d not in (*lane, *depth, *inside)]
        digits = [Digit(d) for d in rest]
        if len(readers) > 1:  # each reads a part of its own
            digits += [*(Digit(d) for d in inside), Digit(lane[0], tile.span), *(Digit(d) for d in depth)]
        elif tile.parts[number] < self.all_parts(segment, number):
            several = tile.parts[number]
            digits += [Digit(lane[0], tile.span), Digit(inside[0], several), *(Digit(d) for d in depth)]
            digits += [Digit(inside[0], 1, several)] if several > 1 else []
        else:
            digits += [Digit(lane[0], tile.span), *(Digit(d) for d in (*depth, *inside))]
        digits.append(Digit(lane[0], 1, tile.span))
        fetched = constant and tile.rows > 1 and self.is_far(number, use)  # one row does nothing but read anyway
        return Hold(use.access.tensor, self.target.main.name, tuple(digits), constant, not constant, fetched)

    def is_made_by_steps(self, facts: Facts, tensor: str) -> bool:
        """Whether a sequence writes what one of its own steps reads: before the first step nothing of it is there."""
        return bool(facts.statement.seq) and any(s.seq and s.out.tensor == tensor for s in self.program.statements)

    def is_far(self, number: int, use: Use) -> bool:
        """Whether a unit's share of the weights does not stay in the caches that it has for itself."""
        facts = self.facts(number)
        return facts.elements(use) * use.bytes > self.threads * sum(self.machine.usable[:2])

    def is_beyond_caches(self, step: Sequence[Segment]) -> bool:
        """Whether the weights of a step are more than the units keep until the next step in caches of their own."""
        bytes_read = 0
        for segment in step:
            for number in segment.sums:
                use, extents = self.weights(segment, number), self.facts(number).extents
                bytes_read += (
                    use.bytes * prod(extents[n] for n in use.strides if n in extents) if use is not None else 0
                )
        return bytes_read > self.threads * sum(self.machine.usable[:2])

    # -- nodes

    def between(self, segment: Segment) -> list[str]:
        """Temporaries that points make and other points of the segment read there."""
        made = [self.program.statements[n].out.tensor for n in segment.points]
        read = {a.tensor for n in segment.points for a in self.program.statements[n].reads()}
        everywhere = {a.tensor for n in segment.sums for a in self.program.statements[n].reads()}
        found = [t for t in made if t in read - everywhere and self.program.tensor(t).role is Role.TEMP]
        return [t for t in found if self.is_value(segment, t)]

    def is_value(self, segment: Segment, tensor: str) -> bool:
        """Whether all of the segment's accesses to a temporary are to what this step makes of it, once."""
        writers = [n for n in segment.points if self.program.statements[n].out.tensor == tensor]
        step = {loop.name for loop in self.program.statements[writers[0]].seq}
        out = self.program.statements[writers[0]].out
        steps = [(d, i) for d, i in enumerate(out.indices) if i.names() & step]
        accesses = [a for n in segment.points for a in self.program.statements[n].reads() if a.tensor == tensor]
        return len(writers) == 1 and all(a.indices[d] == i for a in accesses for d, i in steps)

    def step_node(self, segment: Segment, tile: StepTile, unit: str) -> Tile:
        body: tuple[PlanNode, ...] = ()
        for number in segment.sums:
            body += (self.sweep(segment, tile, number),)
        body += tuple(Leaf(n, segment.names[n][tile.lanes], tile.width) for n in segment.points)
        holds = tuple(self.sum_holds(segment, tile))
        holds += tuple(Hold(t, self.registers) for t in self.between(segment))
        tiles = [(tile.lanes, tile.span)]
        tiles += [(loop, 1) for loop in segment.loops if loop not in (tile.lanes, tile.across)]
        tiles += [(tile.across, tile.rows)] if tile.across else []
        for position, (loop, step) in reversed(list(enumerate(tiles))):
            last = position == len(tiles) - 1
            pairs = segment.pairs(loop)
            node = Tile(self.name("s"), pairs, step, body, "" if position else unit, holds=holds if last else ())
            body = (node,)
        return node

    def sweep(self, segment: Segment, tile: StepTile, number: int) -> PlanNode:
        """The reduction of a sum, for some of the parts of its elements after the other."""
        facts = self.facts(number)
        node: PlanNode = Leaf(number, segment.names[number][tile.lanes], tile.width)
        for loop in reversed(inner_order(facts, "", frozenset(segment.names[number].values()))):
            node = Tile(self.name("k"), ((number, loop),), 1, (node,))
        if tile.parts[number] < self.all_parts(segment, number):
            (loop,) = segment.inside[number]
            held = (Hold(facts.out.access.tensor, self.registers),)
            node = Tile(self.name("g"), ((number, loop),), tile.parts[number], (node,), holds=held)
        return node

    def sum_holds(self, segment: Segment, tile: StepTile) -> Iterator[Hold]:
        """In registers until all is done; in the nearest memory where only some of the parts are made at once, unless
        others read them later."""
        for number in segment.sums:
            tensor = self.facts(number).out.access.tensor
            others = [s for n, s in enumerate(self.program.statements) if n not in segment.numbers]
            if tile.parts[number] == self.all_parts(segment, number):
                yield Hold(tensor, self.registers)
            elif not any(_reads(s.reads(), tensor) for s in others):
                yield Hold(tensor, self.target.main.name)


def _reads(accesses: Iterator[Access], tensor: str) -> bool:
    return any(access.tensor == tensor for access in accesses)
