"""Which lanes and which register tile a statement gets: every choice costed in cycles, without measuring.

The register model counts accumulators, operand vectors and the broadcast, and leaves none over; the cycle model takes
the slowest of arithmetic, loads and the latency of the accumulator chain, over whole tiles and edges alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, gcd, inf, prod

from dovetail.ir.program import Role
from dovetail.schedule.facts import Facts
from dovetail.schedule.inner import turns
from dovetail.schedule.machine import Machine

SMALL = 100_000
"""Points below which planning must cost next to nothing."""
MOST_ROWS = 24
MOST_POINTS = 64
"""Vectors of a register tile; more would become a loop, and registers have no index."""
FEW_ROWS = (2, 3, 4, 6, 8, 12)
"""The numbers of rows that a small program is tried with."""
SAME_LOOPS = 8
"""Tilings along the same loops that are looked at: what they move between caches is not known yet."""
COPIED_TOGETHER = 4
"""How much faster a copy by vectors is than one element by element."""
SUMMED_VECTORS = 4
"""Vectors taken at once along lanes that are summed up: whole lines of memory, whatever the number of rows."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """``vectors`` vectors of ``width`` along ``lanes``, times ``rows`` iterations of ``across``.

    Where lanes are summed up the vectors go to the same accumulators."""

    lanes: str
    width: int
    vectors: int
    across: str
    rows: int
    inside: tuple[str, ...]
    """Short kept loops that are part of the register tile too."""
    packed: tuple[int, ...]
    """Numbers of reads that need another layout, lanes side by side."""
    cycles: float

    @property
    def span(self) -> int:
        return self.width * self.vectors

    @property
    def loops(self) -> frozenset[str]:
        """Loops that are walked inside the tile, where there are any."""
        return frozenset((self.lanes, self.across, *self.inside))


def tilings(facts: Facts, machine: Machine, most: int) -> list[Tiling]:
    """The ``most`` tilings worth looking at, best first; at most SAME_LOOPS with the same loops."""
    rates = [_rates(facts, machine, width) for width in machine.lane_counts(facts)]
    found = [t for lanes in lane_choices(facts) for t in _for_lanes(facts, machine, lanes, rates)]
    alone = _block(facts, machine, rates[-1], "", "", ())
    found.append(Tiling("", 1, 1, "", 1, (), (), _cycles(facts, machine, alone, 1, 1)))
    kept: list[Tiling] = []
    seen: dict[tuple[str, str], int] = {}
    least = float("inf")
    laid_out = {n: pack_cycles(facts, n, t.lanes, machine) for t in found for n in t.packed}
    costs = [t.cycles + sum(laid_out[n] for n in t.packed) for t in found]
    for cost, tiling in sorted(zip(costs, found, strict=True), key=lambda pair: pair[0]):
        least = min(least, cost)
        loops = (tiling.lanes, tiling.across)
        seen[loops] = seen.get(loops, 0) + 1
        if seen[loops] <= SAME_LOOPS and cost < 1.5 * least:
            kept.append(tiling)
        if len(kept) == most:
            break
    return kept


def tiling_cycles(facts: Facts, machine: Machine, tiling: Tiling) -> float:
    """What one core takes for the whole statement with this register tile, data in the nearest cache."""
    rates = _rates(facts, machine, tiling.width)
    block = _block(facts, machine, rates, tiling.lanes, tiling.across, tiling.inside)
    return _cycles(facts, machine, block, tiling.vectors, tiling.rows)


def lane_choices(facts: Facts) -> Iterator[str]:
    """Loops that can be lanes: evenly spaced in memory everywhere, free of guards."""
    for name in facts.extents:
        if name in facts.guarded or name in facts.uncountable:
            continue
        if name in facts.kept and facts.out.stride(name) in (None, 0):
            continue
        yield name


@dataclass(frozen=True, slots=True)
class _Rates:
    """What the instructions of a statement cost at one width: its arithmetic, a load or a broadcast of each read."""

    width: int
    arithmetic: float
    latency: float
    store: float
    loads: tuple[float, ...]
    broadcasts: tuple[float, ...]


def _rates(facts: Facts, machine: Machine, width: int) -> _Rates:
    return _Rates(
        width,
        machine.operation_cycles(facts, width),
        machine.latency(facts, width) if facts.reduced else 0.0,
        machine.store_cycles(facts.out.dtype, width),
        tuple(machine.load_cycles(use.dtype, width) for use in facts.reads),
        tuple(machine.broadcast_cycles(use.dtype, width) for use in facts.reads),
    )


def _for_lanes(facts: Facts, machine: Machine, lanes: str, rates: list[_Rates]) -> Iterator[Tiling]:
    extent = facts.extents[lanes]
    moving = [n for n, use in enumerate(facts.reads) if use.stride(lanes) != 0]
    if not moving:
        return
    packed = tuple(n for n in moving if facts.reads[n].stride(lanes) != 1 and (n, lanes) in facts.panels)
    reduced = lanes in facts.reduced
    inside = short_loops(facts, lanes) if reduced else ()
    for rate in rates:
        width = rate.width
        if width == 1 or (width > extent and width // 2 >= extent):
            continue
        choices = ("", *_across_choices(facts, lanes, moving))
        blocks = {n: _block(facts, machine, rate, lanes, n, inside) for n in choices if n not in inside}
        whole = extent // width
        summed = (1, SUMMED_VECTORS) if whole >= 2 * SUMMED_VECTORS else (1,)
        for vectors in summed if reduced else range(1, min(6, max(1, ceil(extent / width))) + 1):
            for across, block in blocks.items():
                yield from _rows(facts, machine, block, vectors, across, inside, packed)


def short_loops(facts: Facts, lanes: str) -> tuple[str, ...]:
    """Kept loops of a few iterations, which a register tile can take whole."""
    found: list[str] = []
    total = 1
    for name in facts.kept:
        if name != lanes and name not in facts.dynamic and facts.extents[name] * total <= 4:
            found.append(name)
            total *= facts.extents[name]
    return tuple(found)


def _across_choices(facts: Facts, lanes: str, moving: list[int]) -> Iterator[str]:
    """Kept loops along which a loaded vector is used again, innermost first; any when lanes are summed over."""
    for name in reversed(facts.kept):
        if name == lanes or facts.extents[name] < 2:
            continue
        if lanes in facts.reduced or all(facts.reads[n].stride(name) == 0 for n in moving):
            yield name


def _rows(
    facts: Facts,
    machine: Machine,
    block: _Block,
    vectors: int,
    across: str,
    inside: tuple[str, ...],
    packed: tuple[int, ...],
) -> Iterator[Tiling]:
    extent = facts.extents[across] if across else 1
    most = min(extent, MOST_ROWS)
    wanted = {_evened(extent, n) for n in FEW_ROWS} if facts.points <= SMALL else range(2, MOST_ROWS + 1)
    for rows in sorted({*(n for n in wanted if n < most), most}) if across else (1,):
        if registers_used(facts, block.lanes, vectors, across, rows, inside) > machine.registers:
            return
        if rows * vectors * block.cells > MOST_POINTS:
            return
        cycles = _cycles(facts, machine, block, vectors, rows)
        yield Tiling(block.lanes, block.rates.width, vectors, across, rows, inside, packed, cycles)


def _evened(extent: int, rows: int) -> int:
    """As many tiles as of ``rows``, all of one size where that is possible: an edge is code of its own."""
    return ceil(extent / ceil(extent / rows))


def registers_used(facts: Facts, lanes: str, vectors: int, across: str, rows: int, inside: tuple[str, ...] = ()) -> int:
    """Accumulators, the vectors loaded per step, and one for a broadcast or a product in flight."""
    vectors = 1 if lanes in facts.reduced else vectors
    moving = [use for use in facts.reads if use.stride(lanes) != 0]
    fixed = [use for use in facts.reads if use.stride(lanes) == 0]
    again = {id(use): prod(facts.extents[n] for n in inside if use.stride(n) != 0) for use in moving}
    shared = sum(vectors * again[id(use)] for use in moving if use.stride(across) == 0 or not across)
    single = 1 if any(use.stride(across) != 0 for use in moving) and across else 0
    accumulators = rows * vectors * prod(facts.extents[n] for n in inside)
    scratch = (1 if fixed else 0) + (0 if facts.is_contraction else 2)
    return accumulators + shared + single + scratch


@dataclass(frozen=True, slots=True)
class _Read:
    """What one read of a register tile costs: ``cycles`` each time, and more where rows drive each other out."""

    moving: bool
    """Along the lanes."""
    across: bool
    times: int
    """For the loops inside the tile."""
    cycles: float
    ways: float


@dataclass(frozen=True, slots=True)
class _Block:
    """What register tiles of the same loops have in common, however many rows and vectors they are."""

    rates: _Rates
    lanes: str
    across: str
    reduced: bool
    """The lanes are summed up."""
    lane_extent: int
    row_extent: int
    outer: int
    depth: int
    rounds: float
    """Starts of the innermost loop."""
    taps: int
    """Steps in one turn of it."""
    cells: int
    reads: tuple[_Read, ...]


def _block(facts: Facts, machine: Machine, rates: _Rates, lanes: str, across: str, inside: tuple[str, ...]) -> _Block:
    tiled = (lanes, across, *inside)
    depth = prod(e for n, e in facts.extents.items() if n not in (lanes, across) and n in facts.reduced)
    turned, taps = turns(facts, lanes, frozenset(tiled))
    reads: list[_Read] = []
    for number, use in enumerate(facts.reads):
        moving = bool(lanes) and use.stride(lanes) != 0
        each = rates.loads[number] if moving else rates.broadcasts[number]
        if moving and use.stride(lanes) != 1 and (number, lanes) not in facts.panels:
            each = rates.width * machine.scatter_cycles
        times = prod(facts.extents[n] for n in inside if use.stride(n) != 0)
        ways = machine.ways((use.stride(across) or 0) * use.bytes) if moving and across else inf
        reads.append(_Read(moving, bool(across) and use.stride(across) != 0, times, each, ways))
    return _Block(
        rates,
        lanes,
        across,
        lanes in facts.reduced,
        facts.extents.get(lanes, 1),
        facts.extents.get(across, 1),
        prod(e for n, e in facts.extents.items() if n not in tiled and n in facts.kept),
        depth,
        depth / (turned * taps),
        taps,
        prod(facts.extents[n] for n in inside),
        tuple(reads),
    )


def _cycles(facts: Facts, machine: Machine, block: _Block, vectors: int, rows: int) -> float:
    """Cycles of one core for the whole statement, data in the nearest cache."""
    width, depth = block.rates.width, block.depth
    total = 0.0
    for lane_tiles, vecs in _classes(block.lane_extent, width * vectors, width):
        for row_tiles, r in _classes(block.row_extent, rows, 1):
            count = lane_tiles * row_tiles * block.outer
            step = _step(machine, block, vecs, r)
            if block.reduced:
                total += count * depth * step
            else:
                total += count * (depth * step + _edges(facts, machine, block, vecs, r))
                total += count * block.rounds * machine.enter_cycles
    if block.reduced:
        tiles = block.outer * ceil(block.row_extent / rows)
        total += tiles * (rows * block.cells * machine.join_cycles + depth * machine.enter_cycles)
    return total


def _classes(extent: int, tile: int, unit: int) -> Iterator[tuple[int, int]]:
    """(how many tiles, their size in units): whole ones, then the edge."""
    whole, rest = divmod(extent, tile)
    if whole:
        yield whole, tile // unit
    if rest:
        yield 1, ceil(rest / unit)


def _step(machine: Machine, block: _Block, vectors: int, rows: int) -> float:
    """Cycles of one step of the reduction (or of one tile, when nothing is reduced)."""
    arithmetic = rows * vectors * block.cells * block.rates.arithmetic
    loads = 0.0
    for read in block.reads:
        along = (rows if read.across else 1) * read.times
        loads += along * (vectors if read.moving else 1) * read.cycles
        if along > read.ways:
            loads += along * vectors * machine.conflict_cycles
    latency = block.rates.latency * (vectors if block.reduced else 1)
    return (
        max(arithmetic, loads, latency) + machine.crowding * min(arithmetic, loads) + machine.loop_cycles / block.taps
    )


def _edges(facts: Facts, machine: Machine, block: _Block, vectors: int, rows: int) -> float:
    """Start and end of a tile: accumulators set and stored."""
    along = facts.out.stride(block.lanes) == 1 or not block.lanes
    stored = rows * vectors * block.rates.store
    if not along:
        stored = across_cycles(facts, machine, (block.lanes, block.across), block.rates.width, vectors, rows)
    return stored + 0.5 * rows * vectors + machine.tile_cycles


def across_cycles(facts: Facts, machine: Machine, loops: tuple[str, str], width: int, vectors: int, rows: int) -> float:
    """Storing a tile whose lanes are rows of memory, ``loops`` being those of the lanes and of what is across them:
    neighbours together, unless so many rows drive each other out of the innermost cache; else each element."""
    lanes, across = loops
    apart = abs(facts.out.stride(lanes) or 0) * facts.out.bytes
    if across and facts.out.stride(across) == 1 and 3 * width * vectors <= 2 * machine.ways(apart):
        return vectors * machine.rows_cycles(facts.out.dtype, width, rows)
    return rows * vectors * width * machine.scatter_cycles


def pack_cycles(facts: Facts, number: int, loop: str, machine: Machine, span: int = 0) -> float:
    """Laying out a read once, in panels of ``span``: by vectors where a panel runs along its memory and is so many of
    them, else element by element.

    A constant is laid out before any call, which costs nothing here."""
    use = facts.reads[number]
    if use.role is Role.CONST:
        return 0.0
    together = gcd(span, COPIED_TOGETHER) if use.stride(loop) == 1 else 1
    return facts.elements(use) * machine.copy_cycles / together
