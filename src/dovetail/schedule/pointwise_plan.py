"""Plans for statements that are not sums of products: copies, functions of every point, rows, parts of a tensor.

For an estimate, each plan adds what it costs to ``cycles``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from dovetail.ir.fit import Fit
from dovetail.ir.plan import Hold, Leaf, PlanNode, Tile
from dovetail.ir.program import Combine, Program, Role
from dovetail.schedule.bundles import Bundle, BundleRun, bundle_run
from dovetail.schedule.facts import Facts, facts_of
from dovetail.schedule.machine import Machine
from dovetail.schedule.pointwise import Vectors, pointwise_cycles
from dovetail.schedule.rows import row_run
from dovetail.targets.model import Target

ROWS = 4
"""Rows side by side: as many sums as an addition takes cycles."""


@dataclass
class PointwisePlanner:
    program: Program
    target: Target
    machine: Machine
    threads: int
    tile_fits: tuple[Fit, ...] = ()
    most: int = 0
    """Tilings of each reduction that an estimate looks at; 0: this is for a plan, and nobody asks what it costs."""

    def __post_init__(self) -> None:
        self.cycles = 0.0
        """Of all that has been planned so far, where this is for an estimate."""
        self.likely = {s.name: s.likely for s in self.program.sizes}
        self.known: dict[int, Facts] = {}
        self.done: set[int] = set()
        self.holds: list[Hold] = []
        self.unit = self.target.units[0].name
        self.registers = self.target.registers.name if self.target.registers is not None else ""
        self.count = 0

    def facts(self, number: int) -> Facts:
        if number not in self.known:
            self.known[number] = facts_of(self.program, number)
        return self.known[number]

    def spend(self, parts: list[Vectors], unit: str, scratch: tuple[str, ...] = ()) -> None:
        """Note what some work costs: spread over all units where ``unit`` says so, which then have to meet."""
        if not self.most:
            return
        units = self.threads if unit else 1
        meeting = self.machine.barrier_cycles if self.threads > 1 else 0.0
        self.cycles += pointwise_cycles(self.machine, parts, frozenset(scratch)) / units + meeting

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # -- statements that share their rows

    def rows(self, number: int) -> list[PlanNode]:
        """Softmax and its like: every statement of a row before the next row."""
        run = row_run(self.program, number, self.done)
        found = [] if run is None else [self.row_lanes(self.facts(n), row) for n, row in run.rows]
        if run is None or (not any(lanes for lanes, _ in found) and self.is_along_memory(run.rows)):
            return []
        body: list[PlanNode] = []
        parts: list[Vectors] = []
        held = [Hold(t, self.registers) for t in run.scalars]
        held += [Hold(t, self.target.main.name) for t in run.scratch]
        step = self.rows_at_once(run.rows, [lanes for lanes, _ in found])
        for (n, _), (lanes, width) in zip(run.rows, found, strict=True):
            facts = self.facts(n)
            self.done.add(n)
            leaf = Leaf(n, lanes, width)
            out = facts.out.access.tensor
            if facts.reduced and out not in run.scalars:
                held.append(Hold(out, self.registers))
            body.append(Tile(self.name(lanes), ((n, lanes),), width, (leaf,)) if lanes and step > 1 else leaf)
            parts.append(Vectors((facts,), (lanes,), width))
        points = sum(self.facts(n).points for n, _ in run.rows)
        self.spend(parts, self.unit_for(points), (*run.scalars, *run.scratch))
        return [Tile(self.name("row"), run.rows, step, tuple(body), self.unit_for(points), holds=tuple(held))]

    def rows_at_once(self, rows: tuple[tuple[int, str], ...], lanes: list[str]) -> int:
        """How many rows are taken vector by vector side by side, so that the sum of one does not wait for itself.

        As many as stay in a cache nearby, and as leave every unit some; one where a row has more loops than its lanes.
        """
        bytes_per_row: dict[str, int] = {}
        for (n, row), lane in zip(rows, lanes, strict=True):
            facts = self.facts(n)
            if facts.dynamic or set(facts.extents) != {row, lane} - {""}:
                return 1
            for use in (facts.out, *facts.reads):
                bytes_per_row[use.access.tensor] = use.bytes * facts.extents.get(lane, 1)
        extent = self.facts(rows[0][0]).extents[rows[0][1]]
        room = self.machine.caches[:2][-1] // 4 if self.machine.caches else 0
        fits = (
            r for r in (ROWS, ROWS // 2) if r * sum(bytes_per_row.values()) <= room and extent >= 2 * r * self.threads
        )
        return next(fits, 1)

    def is_along_memory(self, rows: tuple[tuple[int, str], ...]) -> bool:
        """Whether what lies side by side in memory is one element of each row: rows are better taken as lanes."""
        uses = [(use, row) for n, row in rows for use in (self.facts(n).out, *self.facts(n).reads)]
        return all(use.stride(row) in (0, 1) for use, row in uses)

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
        run = bundle_run(self.program, number, self.done, self.facts)
        if run is None:
            return []
        lanes = [self.bundle_lanes(bundle) for bundle in run.bundles]
        shared = [names for names in run.shared if all(n != lane for n, (lane, _) in zip(names, lanes, strict=True))]
        if not shared:
            return []
        body: list[PlanNode] = []
        parts: list[Vectors] = []
        points = 0
        for position, (bundle, (lane, width)) in enumerate(zip(run.bundles, lanes, strict=True)):
            facts = self.facts(bundle.numbers[0])
            points += facts.points * len(bundle.numbers)
            self.done |= set(bundle.numbers)
            own = tuple(names.get(lane, "") for names in bundle.names)
            parts.append(Vectors(tuple(map(self.facts, bundle.numbers)), own, width))
            body += self.bundle(bundle, facts, lane, width, {names[position] for names in shared})
        self.spend(parts, self.unit_for(points), run.scratch)
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
        extents = self.facts(run.bundles[0].numbers[0]).extents
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
        every = [self.facts(n) for n in bundle.numbers]
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
        self.spend([Vectors((facts,), (lanes,), width)], self.unit_for(facts.points) if kept and parallel else "")
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

    # -- values where conditions hold, and the neutral element elsewhere

    def is_padded(self, facts: Facts) -> bool:
        """Whether an ``op=`` has one contribution to each element, or none."""
        others = [s for s in self.program.statements if s.out.tensor == facts.out.access.tensor]
        return not facts.reduced and bool(facts.kept) and len(others) == 1 and facts.out.role is not Role.INOUT

    def padded(self, facts: Facts) -> PlanNode:
        """One by one along the result, in vectors; units share the outermost loop that has a part for each of them.

        Vectors start at the neutral element in registers. Where conditions cut them, all of the result is set up first:
        what is left of such a vector is done element by element."""
        lanes, width = self.padded_lanes(facts)
        order = [n for i in facts.statement.out.indices for n in sorted(i.names(), key=i.coefficient, reverse=True)]
        order = [*(n for n in order if n != lanes), *([lanes] if lanes else [])]
        first = next((n for n in order if facts.extents[n] >= self.threads), order[0])
        guarded = lanes in facts.guarded
        steps = {lanes: width}
        node: PlanNode = Leaf(facts.number, lanes, width)
        self.spend([Vectors((facts,), (lanes,), width)], self.unit_for(facts.points))
        held: tuple[Hold, ...] = () if guarded else (Hold(facts.out.access.tensor, self.registers),)
        for loop in reversed([first, *(n for n in order if n != first)]):
            unit = self.unit_for(facts.points) if loop == first else ""
            node = Tile(self.name(loop), ((facts.number, loop),), steps.get(loop, 1), (node,), unit, holds=held)
            held = ()
        return node

    def padded_lanes(self, facts: Facts) -> tuple[str, int]:
        """Lanes along the result: best where what is read lies along them too; a condition leaves whole vectors."""
        width = self.machine.lane_counts(facts)[0]
        choices: list[tuple[int, str]] = []
        for name in facts.kept:
            strides = {use.stride(name) for use in facts.reads}
            bent = name in facts.uncountable or any(c.equal or not c.index.is_affine for c in facts.statement.where)
            if facts.out.stride(name) != 1 or bent or facts.extents[name] < width or width == 1:
                continue
            if name not in facts.guarded:
                choices.append((3 if strides <= {0, 1} else 1, name))
            elif strides <= {0, 1} and facts.extents[name] >= 3 * width:
                choices.append((2, name))
        return (max(choices)[1], width) if choices else ("", 1)
