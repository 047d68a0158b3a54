"""Plans around an instruction that does a whole tile in memory: which fit, in which order, from which layouts.

    gemm6x16 on c[i, j] += a[i, k] * b[k, j]   ->   tile i by 6: tile j by 16: do 0 by gemm6x16 with i = i, ...

A call costs the cycles of the target file; edges, laying out operands, traffic between memories and setting up the
output are added, so that these plans compete with those of single vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from math import ceil, prod

from dovetail.ir.fit import Fit
from dovetail.ir.index import Index, constant
from dovetail.ir.plan import Hold, Leaf, PlanNode, Tile
from dovetail.ir.program import Combine, Program, Role
from dovetail.schedule.facts import Facts
from dovetail.schedule.fusion import Followers
from dovetail.schedule.machine import Machine
from dovetail.schedule.tile_layout import Layouts, OuterTile, Placed, TileFit
from dovetail.schedule.tile_shape import TileShape, operand_accesses, tile_shape
from dovetail.schedule.traffic import TiledAccess, TiledLoop, traffic
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.model import Target

MOST_FITS = 4
"""Fits whose orders are looked at, cheapest calls first."""
CALL_CYCLES = 6.0
"""Working out the addresses of a tile and passing them on."""
DEPTHS = (512, 256, 128)
"""Parts of a long reduction that are tried, where a call can do so many."""


@dataclass(frozen=True, slots=True)
class TilePlan:
    """A plan for one statement by calls of one instruction."""

    leaf: Leaf
    outer: tuple[OuterTile, ...]
    holds: tuple[Placed, ...]
    kept: tuple[str, ...]
    cycles: float

    def node(self, name: Callable[[str], str], unit: str, followers: Followers) -> PlanNode:
        """The tiles around the call; pointwise followers run on a tile once it is complete."""
        body: tuple[PlanNode, ...] = (self.leaf,)
        number = self.leaf.statement
        last = max((n for n, (loop, _, _) in enumerate(self.outer) if loop in self.kept), default=-1)
        for position in reversed(range(len(self.outer))):
            loop, step, parallel = self.outer[position]
            if position == last:
                body += tuple(_follower(n, followers, self.leaf) for n in followers.statements)
            pairs = followers.pairs(number, loop) if loop in self.kept else ((number, loop),)
            holds = tuple(hold for at, hold in self.holds if at == position)
            body = (Tile(name(loop), pairs, step, body, unit if parallel else "", holds=holds),)
        return body[0]

    @property
    def whole_kernel(self) -> list[Hold]:
        return [hold for at, hold in self.holds if at < 0]

    def completes_tiles(self) -> bool:
        """Whether the reduction ends inside the tiles over the output, so that others may go on from there."""
        reduced = [n for n, (loop, _, _) in enumerate(self.outer) if loop not in self.kept]
        kept = [n for n, (loop, _, _) in enumerate(self.outer) if loop in self.kept]
        return not reduced or min(reduced) > max(kept)


def best_tile_plan(
    program: Program, facts: Facts, fits: Iterable[Fit], target: Target, machine: Machine, threads: int
) -> TilePlan | None:
    """The cheapest plan by one of ``fits``; None when none of them can be used."""
    known = [found for fit in fits if (found := _tile_fit(program, facts, fit, target)) is not None]
    choices = [_Choice(program, facts, fit, target, machine, threads) for fit in known]
    choices = sorted((c for c in choices if c.can_write()), key=lambda c: c.call_cycles(c.fit.steps))[:MOST_FITS]
    plans = [plan for choice in choices for plan in choice.plans()]
    return min(plans, key=lambda plan: plan.cycles, default=None)


def _tile_fit(program: Program, facts: Facts, fit: Fit, target: Target) -> TileFit | None:
    """A fit that plans can use: plain operands, and at least one whole tile."""
    shape = tile_shape(target.instruction(fit.instruction))
    if shape is None or fit.statement != facts.number or fit.node is not None:
        return None
    bound = {loop.needle: loop.loops for loop in fit.loops}
    steps: dict[str, int] = {}
    extents: dict[str, Index] = {}
    given = {loop.name: loop.extent for loop in facts.statement.loops}
    for loop in shape.loops:
        group = bound[loop.name]
        inner = prod(facts.extents[n] for n in group[1:])
        most = loop.largest(prod(facts.extents[n] for n in group))
        if most < inner or not most or any(n in facts.dynamic for n in group[1:]):
            return None
        steps |= {n: facts.extents[n] for n in group[1:]}
        extents[loop.name] = constant(most // inner * inner)
        if group:
            steps[group[0]] = most // inner
            whole = most // inner == facts.extents[group[0]] and group[0] in facts.dynamic
            extents[loop.name] = given[group[0]] * inner if whole else extents[loop.name]
    accesses = operand_accesses(shape, facts.statement, bound, program.dtypes)
    return TileFit(shape, bound, steps, extents, accesses) if accesses is not None else None


@dataclass(frozen=True, slots=True)
class _Choice:
    """One fit, and all plans with it."""

    program: Program
    facts: Facts
    fit: TileFit
    target: Target
    machine: Machine
    threads: int

    def can_write(self) -> bool:
        """The instruction can write the output where it lies."""
        memory = self.target.main.name
        layouts = Layouts(self.program, self.facts, self.fit, self.machine, memory, (), 1)
        written = self.fit.shape.statement.out.tensor
        return layouts.direct_cycles(self.fit.shape.instruction.operand(written)) is not None

    def plans(self) -> Iterator[TilePlan]:
        for steps in self.depths():
            fit = TileFit(self.fit.shape, self.fit.bound, steps, self.extents(steps), self.fit.accesses)
            calls = self.call_cycles(steps)
            for outer in self.orders(steps):
                plan = self.plan(fit, outer, calls)
                if plan is not None:
                    yield plan

    def depths(self) -> Iterator[dict[str, int]]:
        """Steps with the reduction whole, as far as a call goes, or in parts that a cache holds."""
        yield self.fit.steps
        for loop in self.fit.shape.loops:
            group = self.fit.bound[loop.name]
            if loop.size is None or len(group) != 1 or group[0] not in self.facts.reduced:
                continue
            for depth in DEPTHS:
                if self.fit.steps[group[0]] >= 1.5 * depth and loop.largest(depth) == depth:
                    yield {**self.fit.steps, group[0]: depth}

    def extents(self, steps: dict[str, int]) -> dict[str, Index]:
        """Of the instruction's loops; those that are cut further have the new step."""
        changed = {n for n, step in steps.items() if step != self.fit.steps[n]}
        return {
            needle: constant(steps[group[0]]) if changed & set(group) else self.fit.extents[needle]
            for needle, group in self.fit.bound.items()
        }

    def orders(self, steps: dict[str, int]) -> Iterator[tuple[OuterTile, ...]]:
        """Tiles around the call, outermost first; units share the first tile over the output."""
        facts = self.facts
        exact = {n for loop in self.fit.shape.loops if loop.is_exact for n in self.fit.bound[loop.name][:1]}
        left = {
            n for n, e in facts.extents.items() if n not in steps or e > steps[n] or n in facts.dynamic or n in exact
        }
        whole = {n for n in facts.dynamic if steps.get(n) == facts.extents[n] and n in facts.reduced}
        kept = [(n, steps.get(n, 1)) for n in facts.kept if n in left] or [(n, steps[n]) for n in facts.kept[:1]]
        parts = [(n, steps[n], False) for n in facts.reduced if n in left and n in steps and n not in whole]
        taps = [(n, 1, False) for n in facts.reduced if n not in steps]
        orders = list(permutations(kept)) if len(kept) <= 3 else [tuple(kept), (*kept[:-2], kept[-1], kept[-2])]
        for order in orders:
            tiles: list[OuterTile] = [(n, step, position == 0) for position, (n, step) in enumerate(order)]
            if not tiles:
                yield (*parts, *taps)
                continue
            for around in [(tuple(parts), ()), ((), tuple(parts))] if parts else [((), ())]:
                yield (*around[0], *tiles, *around[1], *taps)
                if taps and len(tiles) > 1:
                    yield (*around[0], *tiles[:-1], *taps, tiles[-1], *around[1])
                yield from self.blocked(tiles, around[0], (*around[1], *taps))

    def blocked(
        self, tiles: list[OuterTile], before: tuple[OuterTile, ...], after: tuple[OuterTile, ...]
    ) -> Iterator[tuple[OuterTile, ...]]:
        """The innermost tile's loop in blocks around all others, shared by the units."""
        loop, step, _ = tiles[-1]
        if len(tiles) < 2:
            return
        extent = self.facts.extents[loop]
        inside = tuple((n, s, False) for n, s, _ in tiles)
        for wanted in (self.threads, 4 * self.threads, 16 * self.threads):
            size = ceil(ceil(extent / step) / wanted) * step
            if size < extent:
                yield (*before, (loop, size, True), *inside, *after)

    # -- cycles

    def plan(self, fit: TileFit, outer: tuple[OuterTile, ...], calls: float) -> TilePlan | None:
        trips = self.trips(outer)
        spread = next((t for (_, _, parallel), t in zip(outer, trips, strict=True) if parallel), 1)
        share = min(self.threads, max(1, spread))
        memory = self.target.main.name
        layouts = Layouts(self.program, self.facts, fit, self.machine, memory, outer, share).choose()
        if layouts is None:
            return None
        holds, packing = layouts
        compute = calls / self.threads * self.machine.balance(spread, self.threads)
        near, far = self.moved(outer, trips, share, compute)
        rounds = prod(t for (loop, _, _), t in zip(outer, trips, strict=True) if loop in self.facts.reduced)
        barriers = self.machine.barrier_cycles * (1 + rounds if self.threads > 1 else 0)
        cycles = max(compute + near, far) + packing + barriers + self.start_cycles() / share
        return TilePlan(self.leaf(fit), outer, holds, self.facts.kept, cycles)

    def leaf(self, fit: TileFit) -> Leaf:
        """The call, with lanes for its edges: a loop along which the output lies in a row."""
        bound = tuple(fit.bound.items())
        widths = self.machine.lane_counts(self.facts)
        for name in reversed(self.facts.kept):
            free = name not in self.facts.guarded and name not in self.facts.uncountable
            if free and self.facts.out.stride(name) == 1:
                width = next((w for w in widths if w <= max(fit.steps.get(name, 1), self.facts.extents[name])), 1)
                if width > 1:
                    return Leaf(self.facts.number, name, width, fit.shape.instruction.name, bound)
        return Leaf(self.facts.number, "", 1, fit.shape.instruction.name, bound)

    def call_cycles(self, steps: dict[str, int]) -> float:
        """All calls, and the points of tiles that no call can do."""
        shape = self.fit.shape
        around = prod(e for n, e in self.facts.extents.items() if n not in steps)
        classes = [tuple(self.classes(shape, number, steps)) for number in range(len(shape.loops))]
        total = 0.0
        cut = self.cut(steps)
        for tile in product(*classes):
            count = around * prod(n for n, _, _ in tile)
            points = count * prod(extent for _, extent, _ in tile)
            if all(fits for _, _, fits in tile):
                sizes = {
                    loop.size.name: extent for loop, (_, extent, _) in zip(shape.loops, tile, strict=True) if loop.size
                }
                calls = count * (evaluate_cost(shape.instruction.cycles, sizes) + CALL_CYCLES)
                total += (1 - cut) * calls + cut * points * self.point_cycles()
            else:
                total += points * self.point_cycles()
        return total

    def cut(self, steps: dict[str, int]) -> float:
        """The share of tiles that conditions cut: the first or last one along a loop, for one of the taps."""
        share = 0.0
        for condition in self.facts.statement.where:
            bound = [n for n in condition.names() if n in steps]
            others = [n for n in condition.names() if n in self.facts.extents and n not in steps]
            if bound:
                tiles = prod(ceil(self.facts.extents[n] / steps[n]) for n in bound)
                share += 1 / (tiles * prod(self.facts.extents[n] for n in others))
        return min(1.0, share)

    def classes(self, shape: TileShape, number: int, steps: dict[str, int]) -> Iterator[tuple[int, int, bool]]:
        """(how many, extent, whether a call can do it) of the tiles along one loop of the instruction."""
        loop = shape.loops[number]
        group = self.fit.bound[loop.name]
        extent = prod(self.facts.extents[n] for n in group)
        step = prod(steps[n] for n in group)
        whole, rest = divmod(extent, step)
        if whole:
            yield whole, step, True
        if rest:
            yield 1, rest, loop.largest(rest) == rest

    def point_cycles(self) -> float:
        """One point of an edge, in lanes and with much of every vector wasted."""
        width = self.leaf(self.fit).width
        return 1.5 * (self.machine.operation_cycles(self.facts, width) + 0.25) / width

    def start_cycles(self) -> float:
        """Setting the output to the neutral element beforehand, since calls add to what is there."""
        facts = self.facts
        if facts.statement.combine is Combine.SET or facts.out.role is Role.INOUT:
            return 0.0
        size = prod(facts.extents[n] for n in facts.kept) * facts.out.bytes
        return size / self.machine.line_bytes * self.machine.line_cycles(size)

    def trips(self, outer: tuple[OuterTile, ...]) -> tuple[int, ...]:
        left = dict(self.facts.extents)
        found = []
        for loop, step, _ in outer:
            found.append(ceil(left[loop] / step))
            left[loop] = min(step, left[loop])
        return tuple(found)

    def moved(
        self, outer: tuple[OuterTile, ...], trips: tuple[int, ...], share: int, computing: float
    ) -> tuple[float, float]:
        """Cycles of moving data between caches, as far as it shows, and from main memory."""
        loops: list[TiledLoop] = []
        left = dict(self.facts.extents)
        for (loop, step, parallel), count in zip(outer, trips, strict=True):
            loops.append((loop, max(1, count // self.threads) if parallel else count, step))
            left[loop] = min(step, left[loop])
        loops += [(n, e, 1) for n, e in left.items() if e > 1]
        accesses = tuple(
            TiledAccess(
                tuple(tuple((n, i.coefficient(n)) for n in i.names() if i.coefficient(n)) for i in use.access.indices),
                use.bytes,
                passes,
            )
            for use, passes in (*((u, 1) for u in self.facts.reads), (self.facts.out, 2))
        )
        machine = self.machine
        moved = traffic(tuple(loops), accesses, machine.caches, machine.line_bytes)
        if not moved:
            return 0.0, 0.0
        rates = machine.cache_bytes_per_cycle
        near = machine.seen([b / rates[n] for n, b in enumerate(moved[:-1])], computing)
        return near, moved[-1] * share / rates[-1]


def _follower(number: int, followers: Followers, leaf: Leaf) -> Leaf:
    lanes = (followers.loops or {})[number].get(leaf.lanes, "")
    return Leaf(number, lanes, leaf.width if lanes else 1)
