"""A program and its plan in a person's words: what runs in lanes, in registers, in caches and on cores, and why.

for i<256, j<256, k<256: c[i, j] += a[i, k] * b[k, j]
  lanes      j, 8 at a time; 256 in all
  registers  4x24 of c (i x j) in 12 registers while k runs; with operands 16 of 16
  layout     b as [j/24, k, j%24], once, ahead of all calls: one tile after the other without gaps
  blocks     48 of j: the work inside touches 200 KiB, within L2 (512 KiB)
  cores      j in 6 parts of 48, spread over 2 threads
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from dovetail.ir.certificate import Certificate
from dovetail.ir.index import Access, Index
from dovetail.ir.plan import Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program
from dovetail.schedule.facts import Facts, facts_of
from dovetail.schedule.tiling import registers_used
from dovetail.targets.model import Target

PAD = 11


def explain(program: Program, plan: Plan, target: Target, threads: int, certificate: Certificate) -> str:
    """``program`` is the one the plan was made for, after neighbouring dimensions were joined."""
    where = f"{target.name}" + (f" ({target.parents[0]})" if target.parents else "")
    noun = "thread" if threads == 1 else "threads"
    origin = f"; plan from the {plan.note}" if plan.note else ""
    parts = [f"for {where} with {threads} {noun}{origin}"]
    spots = tuple(_spots(plan.body, ()))
    for spot in spots:
        view = _View(program, plan, target, threads, spot, spots)
        rows = [f"  {label:<{PAD}}{text}" for label, text in view.rows()]
        parts.append("\n".join([str(view.facts.statement), *rows]))
    if certificate.checks:
        parts.append("\n".join(["certificate", *(f"  {line}" for line in str(certificate).splitlines())]))
    return "\n\n".join(parts)


def summary(program: Program, plan: Plan, target: Target) -> str:
    """The mapping of the costliest statement in a few words: "8 lanes of j, 4x24 in registers, 2 fused"."""
    spots = tuple(_spots(plan.body, ()))
    views = [_View(program, plan, target, 1, spot, spots) for spot in spots]
    return max(views, key=lambda view: view.facts.points).in_words() if views else "nothing to do"


@dataclass(frozen=True, slots=True)
class _Spot:
    """A leaf of a plan and the tiles around it, outermost first."""

    leaf: Leaf
    around: tuple[Tile, ...]


def _spots(nodes: tuple[PlanNode, ...], around: tuple[Tile, ...]) -> Iterator[_Spot]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield _Spot(node, around)
        else:
            yield from _spots(node.body, (*around, node))


class _View:
    """One statement of the plan."""

    def __init__(
        self, program: Program, plan: Plan, target: Target, threads: int, spot: _Spot, spots: tuple[_Spot, ...]
    ) -> None:
        self.program, self.plan, self.target, self.threads = program, plan, target, threads
        self.spot, self.spots, self.leaf = spot, spots, spot.leaf
        self.facts: Facts = facts_of(program, spot.leaf.statement)
        self.tiles = [(tile, self._loop(tile)) for tile in spot.around]
        self.holder = next((n for n, tile in enumerate(spot.around) if self._held(tile)), None)
        self.inside = self._inside(len(self.tiles))
        """What is left of every loop at the leaf: the register tile."""

    def rows(self) -> Iterator[tuple[str, str]]:
        if self.leaf.instruction:
            yield "calls", self._calls()
        else:
            yield "lanes", self._lanes()
        if self.holder is not None:
            yield "registers", self._registers()
        yield from (("layout", self._layout(hold)) for hold in self._layouts())
        host = self._host()
        if host is not None:
            yield "fused", f"runs on the tile of {host} while that is in registers"
        else:
            yield from self._blocks()
            yield "cores", self._cores()
        order = self.facts.statement.seq
        if order:
            yield "order", f"{', '.join(loop.name for loop in order)} one step after the other, as the program says"

    def in_words(self) -> str:
        text = f"{self.leaf.width} lanes of {self.leaf.lanes}" if self.leaf.width > 1 else "scalar"
        text = f"{self.leaf.instruction} on {self._call_text()}" if self.leaf.instruction else text
        if self.holder is not None:
            text += f", {self._tile_text()} in registers"
        fused = sum(self._shares_tile(other) for other in self.spots) if self.holder is not None else 0
        text += f", {fused} fused" if fused else ""
        packed = [hold.tensor for hold in self._layouts()]
        return text + (f", {' and '.join(packed)} packed" if packed else "")

    # -- lanes and registers

    def _calls(self) -> str:
        names = [loop for _, group in self.leaf.bound for loop in group]
        tiles = f"tiles of {self._call_text()} ({' x '.join(names)})"
        return f"{self.leaf.instruction} on {tiles}; what does not fill one, in {self.leaf.width} lanes"

    def _call_text(self) -> str:
        return "x".join(str(self.inside[loop]) for _, group in self.leaf.bound for loop in group)

    def _lanes(self) -> str:
        if self.leaf.width == 1:
            return "none: " + ("one element at a time" if self.facts.extents else "a single element")
        name, extent = self.leaf.lanes, self._extent(self.leaf.lanes)
        how = "combined lane by lane, joined at the end" if name in self.facts.reduced else f"{extent} in all"
        ragged = isinstance(extent, int) and extent % self.leaf.width != 0
        return f"{name}, {self.leaf.width} at a time; {how}" + (", the rest masked or cut" if ragged else "")

    def _registers(self) -> str:
        accumulators = self._accumulators()
        runs = ", ".join(n for n in self.facts.reduced) or "its conditions are asked"
        text = f"{self._tile_text()} of {self.facts.out.access.tensor} ({self._tile_names()}) in {accumulators}"
        text += f" register{'s' if accumulators != 1 else ''} while {runs}"
        text += f" {'run' if ',' in runs else 'runs'}" if self.facts.reduced else ""
        bank = self.target.registers
        used = self._registers_used()
        return text + (f"; with operands {used} of {bank.count}" if bank and bank.count and used else "")

    def _accumulators(self) -> int:
        return prod(ceil(e / (self.leaf.width if n == self.leaf.lanes else 1)) for n, e in self._kept())

    def _registers_used(self) -> int:
        """What the register model counts; 0 for tiles it has no model of."""
        lanes = self.leaf.lanes
        others = [n for n, e in self._kept() if n != lanes and e > 1]
        across = max(others, key=lambda n: self.inside[n], default="")
        vectors = ceil(self.inside.get(lanes, 1) / self.leaf.width) if lanes and lanes not in self.facts.reduced else 1
        rest = tuple(n for n in others if n != across)
        if any(self.inside[n] != self.facts.extents[n] for n in rest):
            return 0
        return registers_used(self.facts, lanes, vectors, across, self.inside.get(across, 1), rest)

    def _kept(self) -> list[tuple[str, int]]:
        return [(n, self.inside[n]) for n in self.facts.kept]

    def _tile_text(self) -> str:
        return "x".join(str(e) for _, e in self._kept() if e > 1) or "1"

    def _tile_names(self) -> str:
        return " x ".join(n for n, e in self._kept() if e > 1) or "one element"

    # -- memory

    def _layouts(self) -> list[Hold]:
        read = {use.access.tensor for use in self.facts.reads} | {self.facts.out.access.tensor}
        around = [h for tile in self.spot.around for h in tile.holds]
        return [h for h in (*self.plan.holds, *around) if h.digits and h.tensor in read]

    def _layout(self, hold: Hold) -> str:
        accesses = [a for a in (*self.facts.statement.reads(), self.facts.statement.out) if a.tensor == hold.tensor]
        digits = ", ".join(_digit(accesses[0], d.dimension, d.divisor, d.modulus) for d in hold.digits)
        when = "once, ahead of all calls" if hold.ahead else self._filled(hold)
        return f"{hold.tensor} as [{digits}], {when}: {self._why_packed(hold)}"

    def _filled(self, hold: Hold) -> str:
        if hold in self.plan.holds:
            return "once per call" + (", by all cores together" if hold.shared else "")
        tile = next(t for t in self.spot.around if hold in t.holds)
        loop = self._loop(tile)
        each = f"for every {tile.step} of {loop}" if loop else f"in every step of {tile.name}"
        return each + (", by all cores together" if hold.shared else "")

    def _why_packed(self, hold: Hold) -> str:
        use = next((u for u in self.facts.reads if u.access.tensor == hold.tensor), self.facts.out)
        stride = use.stride(self.leaf.lanes) if self.leaf.lanes else 0
        if stride == 1:
            return "one tile after the other without gaps, so that it streams through the caches"
        if stride:
            return f"neighbouring lanes lie {stride} elements apart in memory, here side by side"
        return "the elements of one tile lie together"

    def _blocks(self) -> Iterator[tuple[str, str]]:
        """Tiles around the register tile that are walked in parts again, with what they touch."""
        end = self.holder if self.holder is not None else len(self.tiles)
        for position, (tile, loop) in enumerate(self.tiles[:end]):
            inner = [t.step for t, name in self.tiles[position + 1 :] if name == loop]
            if not loop or loop not in self.facts.extents or not inner or tile.step <= min(inner):
                continue
            bytes_touched = self._touched(position + 1)
            home = self._home(bytes_touched)
            yield "blocks", f"{tile.step} of {loop}: the work inside touches {_kib(bytes_touched)}{home}"

    def _touched(self, position: int) -> int:
        left = self._inside(position)
        uses = {use.access.tensor: use for use in (*self.facts.reads, self.facts.out)}
        return sum(use.bytes * prod(_span(i, left) for i in use.access.indices) for use in uses.values())

    def _home(self, size: int) -> str:
        home = next((cache for cache in self.target.caches if size <= cache.bytes), None)
        return f", within {home.name} ({_kib(home.bytes)})" if home else ""

    # -- cores and neighbours

    def _cores(self) -> str:
        for tile, loop in self.tiles:
            if tile.unit and loop:
                extent = self._extent(loop)
                parts = f"{ceil(extent / tile.step)} parts" if isinstance(extent, int) else "parts"
                noun = "thread" if self.threads == 1 else "threads"
                return f"{loop} in {parts} of {tile.step}, spread over {self.threads} {noun}"
        return "one core does it all"

    def _host(self) -> str | None:
        """The tensor on whose register tile this statement runs, when it is fused."""
        for other in self.spots:
            if other is not self.spot and other.leaf.statement < self.leaf.statement:
                view = _View(self.program, self.plan, self.target, self.threads, other, ())
                if view.holder is not None and view._shares_tile(self.spot):
                    return view.facts.out.access.tensor
        return None

    def _shares_tile(self, other: _Spot) -> bool:
        """Whether ``other``, a later statement, runs inside the tile that holds this statement's sums."""
        if self.holder is None or other.leaf.statement <= self.leaf.statement:
            return False
        return any(tile is self.spot.around[self.holder] for tile in other.around)

    # -- the plan's numbers

    def _loop(self, tile: Tile) -> str:
        return next((name for number, name in tile.loops if number == self.leaf.statement), "")

    def _held(self, tile: Tile) -> bool:
        bank = self.target.registers
        out = self.facts.out.access.tensor
        return any(h.tensor == out and bank is not None and h.memory == bank.name for h in tile.holds)

    def _inside(self, position: int) -> dict[str, int]:
        """What is left of every loop inside the first ``position`` tiles."""
        left = dict(self.facts.extents)
        for tile, loop in self.tiles[:position]:
            if loop in left:
                left[loop] = min(left[loop], tile.step)
        return left

    def _extent(self, loop: str) -> int | str:
        found = next(x for x in self.facts.statement.all_loops if x.name == loop)
        return found.extent.const if found.extent.is_constant else str(found.extent)


def _span(index: Index, left: dict[str, int]) -> int:
    """How many places along one dimension an index reaches."""
    return 1 + sum(abs(index.coefficient(name)) * (max(1, left[name]) - 1) for name in index.names() if name in left)


def _digit(access: Access, dimension: int, divisor: int, modulus: int) -> str:
    text = str(access.indices[dimension])
    if divisor == 1 and not modulus:
        return text
    text = f"({text})" if " " in text else text
    return text + (f"/{divisor}" if divisor != 1 else "") + (f"%{modulus}" if modulus else "")


def _kib(size: int) -> str:
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"
