"""The default plan: chosen by the analytic model, without measuring anything."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod

from dovetail.ir.fit import Fit
from dovetail.ir.plan import Case, Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Combine, Program, Role
from dovetail.schedule.asked import asked_ahead
from dovetail.schedule.chain_plan import around, inside, wrapped
from dovetail.schedule.chains import chain_from
from dovetail.schedule.facts import Facts
from dovetail.schedule.fusion import Followers, followers_of
from dovetail.schedule.inner import unrolled_loop
from dovetail.schedule.machine import machine_of
from dovetail.schedule.order import Order, best_order, expected_cycles
from dovetail.schedule.pointwise import Vectors, pointwise_cycles
from dovetail.schedule.recurrent import RecurrentPlanner
from dovetail.schedule.segments import segments
from dovetail.schedule.tile_plan import TilePlan, best_tile_plan
from dovetail.schedule.tiling import SMALL, Tiling, tilings
from dovetail.targets.model import Target

SMALL_SIZES = (1, 4, 16)
"""Run-time sizes up to which another plan may be better than the one for the whole range: vectors, one register tile
of rows, a few."""

LEAST_ROUNDS = 4
"""Rounds over a copy in which the next one is asked for; in fewer of them it would be too much in each."""
NEAR_COPIES = 4
"""Second caches that a tensor must be larger than for that; what is smaller is seldom far away."""
MANY_TILINGS, FEW_TILINGS = 16, 2
"""Register tiles of a reduction that are looked at closely: of large ones, and where time is short."""


def default_plan(program: Program, target: Target, threads: int, tile_fits: tuple[Fit, ...] = ()) -> Plan:
    """How to run ``program`` on ``threads`` units of ``target``; ``tile_fits`` compete with plans of single vectors.

    Small run-time sizes get plans of their own, each for the largest of them: a register tile of all its rows does
    fewer rows in one go as well, while one of fewer rows would have to pass over the other operand again.
    """
    whole = _plan(program, target, threads, tile_fits)
    ahead = _laid_out(whole)
    cases: list[Case] = []
    for size in program.sizes[:1]:
        for most in SMALL_SIZES:
            if size.low <= most and most * 8 <= size.high:
                sizes = tuple(replace(s, low=most, high=most) if s is size else s for s in program.sizes)
                plan = _plan(replace(program, sizes=sizes), target, threads, tile_fits)
                if _laid_out(plan) == ahead and plan != whole:
                    cases = [case for case in cases if case.plan != plan]
                    cases.append(Case(size.name, most, plan))
    return replace(whole, cases=tuple(cases))


def _laid_out(plan: Plan) -> list[Hold]:
    """What constants are brought into another layout, once for all plans of a kernel."""
    return [replace(hold, fetched=False) for hold in plan.holds if hold.ahead]


def estimated_cycles(
    program: Program, target: Target, threads: int, tile_fits: tuple[Fit, ...] = (), most: int = FEW_TILINGS
) -> float:
    """About how long ``program`` takes with its default plan; fewer plans are looked at than for the plan itself, of
    ``most`` register tiles."""
    planner = _Planner(program, target, machine_of(target), threads, tile_fits, most=most)
    planner.nodes()
    return planner.cycles


def _plan(program: Program, target: Target, threads: int, tile_fits: tuple[Fit, ...]) -> Plan:
    """The plan for the likely values of the run-time sizes."""
    planner = _Planner(program, target, machine_of(target), threads, tile_fits)
    nodes = planner.nodes()
    return Plan(tuple(nodes), tuple(planner.holds), note="analytic model")


class _Planner(RecurrentPlanner):
    """Every statement of a program, in order; reductions by the orders and calls that cost least."""

    def nodes(self) -> list[PlanNode]:
        nodes: list[PlanNode] = []
        for group in self.program.groups():
            if self.program.statements[group[0]].seq:
                nodes.append(self.sequence(group))
            elif group[0] not in self.done:
                nodes += self.chain(group[0]) or self.simple(group[0])
        return nodes

    def simple(self, number: int) -> list[PlanNode]:
        """A statement, and those that go with it under the same loops."""
        return self.bundles(number) or self.rows(number) or self.statement(number)

    def chain(self, number: int) -> list[PlanNode]:
        """Products that go on from each other, block by block, each block as one unit alone would do it."""
        chain = chain_from(self.program, number, self.done, self.facts)
        if chain is None or any(fit.statement in chain.numbers for fit in self.tile_fits):
            return []
        tiles = around(chain, self.facts, self.machine, self.threads)
        if tiles is None:
            return []
        alone = replace(self.machine, share_alone=self.machine.shares[1])
        inner = _Planner(inside(self.program, chain, tiles), self.target, alone, 1, most=self.most)
        inner.done = set(range(len(self.program.statements))) - set(chain.numbers)
        inner.count = self.count
        nodes = [node for n in chain.numbers if n not in inner.done for node in inner.simple(n)]
        self.count = inner.count
        self.done |= set(chain.numbers)
        self.cycles += inner.cycles * tiles.trips / self.threads
        self.holds += [hold for hold in inner.holds if hold.ahead]
        unit = self.unit_for(sum(self.facts(n).points for n in chain.numbers))
        laid_out = [hold for hold in inner.holds if not hold.ahead]
        return [wrapped(nodes, laid_out, chain, tiles, (self.program, self.target.main.name, unit, self.name))]

    def sequence(self, group: tuple[int, ...]) -> PlanNode:
        """Steps in order; inside a step every segment spreads over the units."""
        body: list[PlanNode] = []
        before = self.cycles
        parts = segments(self.program, group, self.facts)
        is_far = self.is_beyond_caches([part for part in parts if not isinstance(part, int)])
        for part in parts:
            whole = [] if isinstance(part, int) else self.segment(part, is_far)
            for number in () if whole else (part,) if isinstance(part, int) else sorted(part.numbers):
                whole += [] if number in self.done else self.statement(number)
            body += whole
        steps = prod(max(1, loop.extent.evaluate(self.likely)) for loop in self.program.statements[group[0]].seq)
        self.cycles = before + steps * (self.cycles - before)
        node: tuple[PlanNode, ...] = tuple(body)
        for depth in reversed(range(len(self.program.statements[group[0]].seq))):
            loops = tuple((n, self.program.statements[n].seq[depth].name) for n in group)
            node = (Tile(self.name("step"), loops, 1, node),)
        return node[0]

    def statement(self, number: int) -> list[PlanNode]:
        facts = self.facts(number)
        self.done.add(number)
        if facts.statement.combine is Combine.SET or not facts.is_plain or not facts.extents:
            tiles = self.tiles(facts, self.threads)
            if tiles is not None:
                self.cycles += tiles.cycles
            return [self.plain(facts)] if tiles is None else [self.by_tiles(tiles, Followers(), self.threads)]
        if self.is_padded(facts):
            return [self.padded(facts)]
        followers = followers_of(self.program, facts, self.done)
        most = (self.most or MANY_TILINGS) if facts.points > SMALL else FEW_TILINGS
        choices = tilings(facts, self.machine, most)
        order, threads = self.order(facts, choices)
        tiles = self.tiles(facts, threads)
        called = tiles is not None and tiles.cycles < order.cycles
        self.cycles += tiles.cycles if tiles is not None and called else self.expected(facts, order, threads)
        if tiles is not None and called:
            return [self.by_tiles(tiles, followers, threads)]
        along = [self.machine.lane_counts(self.facts(n)) for n in followers.statements]
        single = not order.outer and not facts.kept and bool(facts.dynamic)
        if single or not all(order.tiling.width in widths for widths in along):
            followers = Followers()
        self.done |= set(followers.statements)
        self.follow(facts, order, followers, threads)
        return [self.reduction(facts, order, followers)]

    def follow(self, facts: Facts, order: Order, followers: Followers, threads: int) -> None:
        """Note what statements on a register tile cost beside it: what they read elsewhere, and their results."""
        near = frozenset({facts.out.access.tensor, *followers.between})
        for number in followers.statements if self.most else ():
            leaf = followers.leaf(number, order.tiling)
            part = Vectors((self.facts(number),), (leaf.lanes,), leaf.width)
            self.cycles += pointwise_cycles(self.machine, [part], near) / threads

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
        few = bool(self.most)
        return min((best_order(facts, t, machine, threads, few) for t in choices), key=lambda o: o.cycles)

    def expected(self, facts: Facts, order: Order, threads: int) -> float:
        """Cycles of the order that was chosen; nothing where nobody asks."""
        return expected_cycles(facts, order, self.machine.for_units(threads), threads) if self.most else 0.0

    def tiles(self, facts: Facts, threads: int) -> TilePlan | None:
        """The best plan by an instruction that does whole tiles, where one fits."""
        fits = [fit for fit in self.tile_fits if fit.statement == facts.number]
        return best_tile_plan(self.program, facts, fits, self.target, self.machine, threads) if fits else None

    def by_tiles(self, tiles: TilePlan, followers: Followers, threads: int) -> PlanNode:
        """Calls of an instruction that does whole tiles, and what follows on each tile."""
        widths = [self.machine.lane_counts(self.facts(n)) for n in followers.statements]
        if not tiles.completes_tiles() or not all(tiles.leaf.width in found for found in widths):
            followers = Followers()
        self.done |= set(followers.statements)
        self.holds += tiles.whole_kernel
        return tiles.node(self.name, self.unit if threads == self.threads else "", followers)

    # -- reductions

    def reduction(self, facts: Facts, order: Order, followers: Followers) -> PlanNode:
        tiling = order.tiling
        number = facts.number
        fetched = asked_ahead(facts, order, self.machine)
        node: tuple[PlanNode, ...] = (Leaf(number, tiling.lanes, tiling.width, fetched=fetched),)
        taps = unrolled_loop(facts, tiling.lanes, order.inner)
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
        outside = [h for at, h in packs if at < 0]
        here = tuple(h for h in outside if self.is_made_by_steps(facts, h.tensor))
        self.holds += [h for h in outside if h not in here]
        if not here:
            return node[0]
        loop = order.outer[0][0]
        return Tile(self.name(loop), followers.pairs(facts.number, loop), facts.extents[loop], node, holds=here)

    def is_followed(self, facts: Facts, read: int, order: Order, at: int) -> bool:
        """Whether what the next round of an outer tile copies of a read is worth asking for: it is passed over while
        both it and the copy of this round stay near, and it may be far away before."""
        use, caches = facts.reads[read], self.machine.caches
        if len(caches) < 2 or not use.stride(order.outer[at][0]):
            return False
        if facts.elements(use) * use.bytes <= NEAR_COPIES * caches[1]:
            return False
        left = dict(facts.extents)
        for loop, step, _ in order.outer[: at + 1]:
            left[loop] = min(left[loop], step)
        rounds = prod(ceil(left[loop] / step) for loop, step, _ in order.outer[at + 1 :] if not use.stride(loop))
        part = prod(left[n] for n in use.strides if n in left) * use.bytes
        return rounds >= LEAST_ROUNDS and part <= caches[1]

    def is_stream(self, facts: Facts, read: int, order: Order) -> bool:
        """Whether a read passes once, or almost, or block by block, and is too much for the caches of one unit."""
        use = facts.reads[read]
        if facts.elements(use) * use.bytes <= sum(self.machine.caches[:2]):
            return False
        fixed = [not use.stride(loop) for loop, _, _ in order.outer]
        if any(fixed) and fixed.index(True) > 0:
            return True
        steps = {loop: step for loop, step, _ in order.outer if not use.stride(loop)}
        return prod(ceil(facts.extents[loop] / step) for loop, step in steps.items()) <= 2

    def is_read_elsewhere(self, facts: Facts, tensor: str) -> bool:
        """Whether another statement reads the tensor: a copy for the whole kernel would have to serve both."""
        others = (s for n, s in enumerate(self.program.statements) if n != facts.number)
        return any(access.tensor == tensor for s in others for access in s.reads())

    def packs(self, facts: Facts, order: Order) -> list[tuple[int, Hold]]:
        """(position of the outer tile that fills it, or -1 for the whole kernel; the hold)."""
        found: list[tuple[int, Hold]] = []
        for read, digits, position in order.packs:
            use = facts.reads[read]
            ahead = use.role is Role.CONST and not self.is_read_elsewhere(facts, use.access.tensor)
            at = -1 if ahead else position
            if at < 0 and not ahead and order.outer and self.is_read_elsewhere(facts, use.access.tensor):
                at = 0
            shared = not any(parallel for _, _, parallel in order.outer[: at + 1])
            if ahead:
                fetched = self.is_stream(facts, read, order)
            else:
                fetched = at >= 0 and self.is_followed(facts, read, order, at)
            hold = Hold(use.access.tensor, self.target.main.name, digits, ahead, shared and not ahead, fetched)
            found.append((at, hold))
        return found
