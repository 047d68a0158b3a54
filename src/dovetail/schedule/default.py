"""The default plan: chosen by the analytic model, without measuring anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, prod

from dovetail.ir.fit import Fit
from dovetail.ir.plan import Case, Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Combine, Program, Role
from dovetail.schedule.bundles import Bundle, BundleRun, bundle_run
from dovetail.schedule.facts import Facts, facts_of
from dovetail.schedule.fusion import Followers, followers_of
from dovetail.schedule.machine import Machine, machine_of
from dovetail.schedule.order import Order, best_order, unrolled_loop
from dovetail.schedule.rows import row_run
from dovetail.schedule.tile_plan import TilePlan, best_tile_plan
from dovetail.schedule.tiling import SMALL, Tiling, tilings
from dovetail.targets.model import Target

SMALL_SIZES = (1, 4, 16)
"""Run-time sizes up to which another plan may be better than the one for the whole range: vectors, one register tile
of rows, a few."""


def default_plan(program: Program, target: Target, threads: int, tile_fits: tuple[Fit, ...] = ()) -> Plan:
    """How to run ``program`` on ``threads`` units of ``target``; ``tile_fits`` compete with plans of single vectors.

    Small run-time sizes get plans of their own, each for the largest of them: a register tile of all its rows does
    fewer rows in one go as well, while one of fewer rows would have to pass over the other operand again.
    """
    whole = _plan(program, target, threads, tile_fits)
    ahead = [h for h in whole.holds if h.ahead]
    cases: list[Case] = []
    for size in program.sizes[:1]:
        for most in SMALL_SIZES:
            if size.low <= most and most * 8 <= size.high:
                sizes = tuple(replace(s, low=most, high=most) if s is size else s for s in program.sizes)
                plan = _plan(replace(program, sizes=sizes), target, threads, tile_fits)
                if [h for h in plan.holds if h.ahead] == ahead and plan != whole:
                    cases = [case for case in cases if case.plan != plan]
                    cases.append(Case(size.name, most, plan))
    return replace(whole, cases=tuple(cases))


def _plan(program: Program, target: Target, threads: int, tile_fits: tuple[Fit, ...]) -> Plan:
    """The plan for the likely values of the run-time sizes."""
    planner = _Planner(program, target, machine_of(target), threads, tile_fits)
    nodes: list[PlanNode] = []
    for group in program.groups():
        if program.statements[group[0]].seq:
            nodes.append(planner.sequence(group))
        elif group[0] not in planner.done:
            nodes += planner.bundles(group[0]) or planner.rows(group[0]) or planner.statement(group[0])
    return Plan(tuple(nodes), tuple(planner.holds), note="analytic model")


@dataclass
class _Planner:
    program: Program
    target: Target
    machine: Machine
    threads: int
    tile_fits: tuple[Fit, ...] = ()

    def __post_init__(self) -> None:
        self.done: set[int] = set()
        self.holds: list[Hold] = []
        self.unit = self.target.units[0].name
        self.registers = self.target.registers.name if self.target.registers is not None else ""
        self.count = 0

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def sequence(self, group: tuple[int, ...]) -> PlanNode:
        """Steps in order; inside a step every statement spreads over the units."""
        body: list[PlanNode] = []
        for number in group:
            if number not in self.done:
                body += self.statement(number)
        node: tuple[PlanNode, ...] = tuple(body)
        for depth in reversed(range(len(self.program.statements[group[0]].seq))):
            loops = tuple((n, self.program.statements[n].seq[depth].name) for n in group)
            node = (Tile(self.name("step"), loops, 1, node),)
        return node[0]

    def statement(self, number: int) -> list[PlanNode]:
        facts = facts_of(self.program, number)
        self.done.add(number)
        if facts.statement.combine is Combine.SET or not facts.is_plain or not facts.extents:
            tiles = self.tiles(facts, self.threads)
            return [self.plain(facts)] if tiles is None else [self.by_tiles(tiles, Followers(), self.threads)]
        followers = followers_of(self.program, facts, self.done)
        choices = tilings(facts, self.machine, 8 if facts.points > SMALL else 2)
        order, threads = self.order(facts, choices)
        tiles = self.tiles(facts, threads)
        if tiles is not None and tiles.cycles < order.cycles:
            return [self.by_tiles(tiles, followers, threads)]
        along = [self.machine.lane_counts(facts_of(self.program, n)) for n in followers.statements]
        single = not order.outer and not facts.kept and bool(facts.dynamic)
        if single or not all(order.tiling.width in widths for widths in along):
            followers = Followers()
        self.done |= set(followers.statements)
        return [self.reduction(facts, order, followers)]

    def order(self, facts: Facts, choices: list[Tiling]) -> tuple[Order, int]:
        """The cheapest order of all choices, and how many units it is for: one where waking others costs more."""
        start = self.machine.start_cycles
        if self.threads == 1 or choices[0].cycles > 4 * start:
            return self.cheapest(facts, choices, self.threads), self.threads
        alone = self.cheapest(facts, choices, 1)
        if alone.cycles * (self.threads - 1) > start * self.threads:
            order = self.cheapest(facts, choices, self.threads)
            if order.cycles + start < alone.cycles:
                return order, self.threads
        return replace(alone, outer=tuple((loop, step, False) for loop, step, _ in alone.outer)), 1

    def cheapest(self, facts: Facts, choices: list[Tiling], threads: int) -> Order:
        machine = self.machine.for_units(threads)
        return min((best_order(facts, t, machine, threads) for t in choices), key=lambda o: o.cycles)

    def tiles(self, facts: Facts, threads: int) -> TilePlan | None:
        """The best plan by an instruction that does whole tiles, where one fits."""
        fits = [fit for fit in self.tile_fits if fit.statement == facts.number]
        return best_tile_plan(self.program, facts, fits, self.target, self.machine, threads) if fits else None

    def by_tiles(self, tiles: TilePlan, followers: Followers, threads: int) -> PlanNode:
        """Calls of an instruction that does whole tiles, and what follows on each tile."""
        widths = [self.machine.lane_counts(facts_of(self.program, n)) for n in followers.statements]
        if not tiles.completes_tiles() or not all(tiles.leaf.width in found for found in widths):
            followers = Followers()
        self.done |= set(followers.statements)
        self.holds += tiles.whole_kernel
        return tiles.node(self.name, self.unit if threads == self.threads else "", followers)

    # -- statements that share their rows

    def rows(self, number: int) -> list[PlanNode]:
        """Softmax and its like: every statement of a row before the next row."""
        run = row_run(self.program, number, self.done)
        if run is None:
            return []
        body: list[PlanNode] = []
        held = [Hold(t, self.registers) for t in run.scalars]
        held += [Hold(t, self.target.main.name) for t in run.scratch]
        for n, row in run.rows:
            facts = facts_of(self.program, n)
            self.done.add(n)
            lanes, width = self.row_lanes(facts, row)
            leaf = Leaf(n, lanes, width)
            out = facts.out.access.tensor
            if facts.reduced and out not in run.scalars:
                held.append(Hold(out, self.registers))
            body.append(leaf)
        points = sum(facts_of(self.program, n).points for n, _ in run.rows)
        return [Tile(self.name("row"), run.rows, 1, tuple(body), self.unit_for(points), holds=tuple(held))]

    def unit_for(self, points: int) -> str:
        """The unit that shares work of this many points; none when waking others costs more."""
        return self.unit if points > 6 * self.machine.start_cycles or self.threads == 1 else ""

    def row_lanes(self, facts: Facts, row: str) -> tuple[str, int]:
        """Lanes inside a row: a loop that every access walks one by one, or not at all."""
        for name in reversed(facts.kept + facts.reduced):
            if name == row or name in facts.guarded or name in facts.uncountable or facts.extents[name] < 2:
                continue
            if all(use.stride(name) in (0, 1) for use in (facts.out, *facts.reads)):
                return name, self.machine.lane_counts(facts)[0]
        return "", 1

    # -- statements that make a tensor part by part

    def bundles(self, number: int) -> list[PlanNode]:
        """Bundles under the loops that they share; what only passes between them stays with the unit that made it."""
        run = bundle_run(self.program, number, self.done)
        if run is None:
            return []
        lanes = [self.bundle_lanes(bundle) for bundle in run.bundles]
        shared = [names for names in run.shared if all(n != lane for n, (lane, _) in zip(names, lanes, strict=True))]
        if not shared:
            return []
        body: list[PlanNode] = []
        points = 0
        for position, (bundle, (lane, width)) in enumerate(zip(run.bundles, lanes, strict=True)):
            facts = facts_of(self.program, bundle.numbers[0])
            points += facts.points * len(bundle.numbers)
            self.done |= set(bundle.numbers)
            body += self.bundle(bundle, facts, lane, width, {names[position] for names in shared})
        return [self.shared_tiles(run, shared, tuple(body), points)]

    def bundle(self, bundle: Bundle, facts: Facts, lane: str, width: int, around: set[str]) -> tuple[PlanNode, ...]:
        """Tiles over the loops that are left, one by one, and vector by vector along the lanes."""
        leaves = zip(bundle.numbers, bundle.names, strict=True)
        node: tuple[PlanNode, ...] = tuple(Leaf(n, names.get(lane, ""), width) for n, names in leaves)
        rest = [loop for loop in facts.extents if loop not in around and loop != lane]
        for loop in reversed([*rest, *([lane] if lane else [])]):
            node = (Tile(self.name(loop), bundle.pairs(loop), width if loop == lane else 1, node),)
        return node

    def shared_tiles(
        self, run: BundleRun, shared: list[tuple[str, ...]], body: tuple[PlanNode, ...], points: int
    ) -> PlanNode:
        """The tiles around all bundles; units share the first that has a part for each of them."""
        extents = facts_of(self.program, run.bundles[0].numbers[0]).extents
        first = next((n for n in shared if extents[n[0]] >= self.threads), max(shared, key=lambda n: extents[n[0]]))
        order = [first, *(names for names in shared if names is not first)]
        held = tuple(Hold(t, self.target.main.name) for t in run.scratch)
        for names in reversed(order):
            pairs = tuple(p for bundle, name in zip(run.bundles, names, strict=True) for p in bundle.pairs(name))
            unit = self.unit_for(points) if names is first else ""
            body = (Tile(self.name(names[0]), pairs, 1, body, unit, holds=held),)
            held = ()
        return body[0]

    def bundle_lanes(self, bundle: Bundle) -> tuple[str, int]:
        """Lanes along memory: of all that is read and written, or else of what is read, or of the result."""
        every = [facts_of(self.program, n) for n in bundle.numbers]
        width = min(self.machine.lane_counts(f)[0] for f in every)
        choices: list[tuple[int, str]] = []
        for name in every[0].kept:
            own = [names[name] for names in bundle.names]
            strides = {use.stride(n) for f, n in zip(every, own, strict=True) for use in f.reads}
            guarded = any(n in f.guarded | f.uncountable for f, n in zip(every, own, strict=True))
            if guarded or None in strides or every[0].extents[name] < width or not every[0].out.stride(name):
                continue
            read, written = strides <= {0, 1}, every[0].out.stride(name) == 1
            if read or written:
                choices.append((2 * read + written, name))
        return (max(choices)[1], width) if choices and width > 1 else ("", 1)

    # -- statements without a reduction, or that scatter

    def plain(self, facts: Facts) -> PlanNode:
        """One by one, along lanes where memory allows; the outermost loop spread over the units."""
        parallel = facts.statement.combine is Combine.SET and facts.is_plain
        lanes, width = self.plain_lanes(facts) if parallel else ("", 1)
        leaf = Leaf(facts.number, lanes, width)
        kept = facts.kept
        if not kept or not parallel:
            return leaf
        first = max(kept[:2], key=lambda n: (facts.extents[n] >= self.threads, n == kept[0]))
        if len(kept) == 1 or facts.extents[first] < self.threads:
            first = max(kept, key=lambda n: facts.extents[n])
        step = 1
        if first == lanes:
            chunk = ceil(facts.extents[first] / (4 * self.threads))
            step = max(width, min(4096, ceil(chunk / width) * width))
        return Tile(self.name("t"), ((facts.number, first),), step, (leaf,), self.unit_for(facts.points))

    def plain_lanes(self, facts: Facts) -> tuple[str, int]:
        for name in reversed(facts.kept):
            if name in facts.guarded or name in facts.uncountable or facts.out.stride(name) != 1:
                continue
            if all(use.stride(name) is not None for use in facts.reads):
                width = self.machine.lane_counts(facts)[0]
                if width > 1 and facts.extents[name] > 1:
                    return name, width
        return "", 1

    # -- reductions

    def reduction(self, facts: Facts, order: Order, followers: Followers) -> PlanNode:
        tiling = order.tiling
        number = facts.number
        node: tuple[PlanNode, ...] = (Leaf(number, tiling.lanes, tiling.width),)
        taps = unrolled_loop(facts, tiling, order.inner)
        for loop in reversed(order.inner):
            step = tiling.span if loop == tiling.lanes else 1
            node = (Tile(self.name(loop), ((number, loop),), step, node, unrolled=loop == taps),)
        node += tuple(followers.leaf(n, tiling) for n in followers.statements)
        held = [Hold(facts.out.access.tensor, self.registers, fetched=order.fetched)]
        held += [Hold(t, self.registers) for t in followers.between]
        return self.outer(facts, order, followers, node, tuple(held))

    def outer(
        self, facts: Facts, order: Order, followers: Followers, node: tuple[PlanNode, ...], held: tuple[Hold, ...]
    ) -> PlanNode:
        packs = self.packs(facts, order)
        if not order.outer:
            # nothing but the register tile: one tile of a single step carries the holds
            loop = facts.kept[0] if facts.kept else facts.reduced[0]
            extent = facts.extents[loop]
            return Tile(self.name(loop), followers.pairs(facts.number, loop), max(1, extent), node, holds=held)
        for position in reversed(range(len(order.outer))):
            loop, step, parallel = order.outer[position]
            here = held if position == len(order.outer) - 1 else ()
            here += tuple(h for at, h in packs if at == position)
            pairs = followers.pairs(facts.number, loop)
            node = (Tile(self.name(loop), pairs, step, node, self.unit if parallel else "", holds=here),)
        self.holds += [h for at, h in packs if at < 0]
        return node[0]

    def is_stream(self, facts: Facts, read: int, order: Order) -> bool:
        """Whether a read passes once, or almost, and is too much for the caches of one unit."""
        use = facts.reads[read]
        elements = prod(facts.extents[n] for n in use.strides if n in facts.extents)
        steps = {loop: step for loop, step, _ in order.outer if not use.stride(loop)}
        again = prod(ceil(facts.extents[loop] / step) for loop, step in steps.items())
        return again <= 2 and elements * use.bytes > sum(self.machine.caches[:2])

    def packs(self, facts: Facts, order: Order) -> list[tuple[int, Hold]]:
        """(position of the outer tile that fills it, or -1 for the whole kernel; the hold)."""
        found: list[tuple[int, Hold]] = []
        for read, digits, position in order.packs:
            use = facts.reads[read]
            ahead = use.role is Role.CONST
            at = -1 if ahead else position
            shared = not any(parallel for _, _, parallel in order.outer[: at + 1])
            fetched = ahead and bool(use.stride(order.tiling.lanes)) and self.is_stream(facts, read, order)
            hold = Hold(use.access.tensor, self.target.main.name, digits, ahead, shared and not ahead, fetched)
            found.append((at, hold))
        return found
