"""The order of the tiles around a register tile, cache blocks, what is packed where, and which loop the units share.

All orders are costed by the bytes they move between memories (``traffic``); the cheapest wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from math import ceil, prod

from dovetail.ir.plan import Digit
from dovetail.ir.program import Role
from dovetail.schedule.facts import Facts, Use
from dovetail.schedule.inner import inner_order, met_by_guard, unrolled_loop
from dovetail.schedule.machine import Machine
from dovetail.schedule.tiling import Tiling, across_cycles, pack_cycles, tiling_cycles
from dovetail.schedule.traffic import TiledAccess, TiledLoop, traffic

OuterTile = tuple[str, int, bool]
"""(loop, step, spread over the units)"""
Pack = tuple[int, tuple[Digit, ...], int]
"""(number of the read, its layout, position of the outer tile that fills it; -1: the whole kernel)"""
MOST_CODE = 700
"""Most arithmetic instructions a kernel's register tiles may come to; more takes LLVM too long."""


@dataclass(frozen=True, slots=True)
class Order:
    """Everything about a reduction's plan but its register tile."""

    tiling: Tiling
    outer: tuple[OuterTile, ...]
    inner: tuple[str, ...]
    packs: tuple[Pack, ...]
    cycles: float
    fetched: bool = False
    """The result's lines are brought near while a tile accumulates."""


def best_order(facts: Facts, tiling: Tiling, machine: Machine, threads: int, few: bool = False) -> Order:
    """The cheapest order for one register tile; with ``few``, of those without blocks of the loops of the result."""
    inner = inner_order(facts, tiling.lanes, tiling.loops)
    orders = list(_outer_orders(facts, tiling, machine, threads, few))
    short = [o for o in orders if bodies(facts, tiling, o, inner) <= MOST_CODE] or orders[:1]
    return min((_costed(facts, tiling, machine, threads, o, inner) for o in short), key=lambda o: o.cycles)


def expected_cycles(facts: Facts, order: Order, machine: Machine, threads: int) -> float:
    """How long an order takes beside other programs rather than beside other orders of the same loops.

    Orders are told apart by what might happen: the start of an inner loop is never hidden, and little of the last
    cache is left by others. Here it is what does happen in a program that is called again and again.
    """
    machine = machine.in_the_long_run()
    tiling = replace(order.tiling, cycles=tiling_cycles(facts, machine, order.tiling))
    return _costed(facts, tiling, machine, threads, order.outer, order.inner).cycles


def bodies(facts: Facts, tiling: Tiling, outer: tuple[OuterTile, ...], inner: tuple[str, ...]) -> int:
    """How many copies of the register tile's instructions the code will hold: edges, guards and spread-out taps."""
    copies = 1
    left = dict(facts.extents)
    for loop, step, _ in outer:
        if left[loop] > step and left[loop] % step and step > 1:
            copies *= 2
        left[loop] = min(left[loop], step)
    met = met_by_guard(facts, tiling.loops)
    if tiling.across in met:
        copies *= 3
    taps = unrolled_loop(facts, tiling.lanes, inner)
    if taps:
        copies *= facts.extents[taps]
    return copies * tiling.rows * tiling.vectors


def _outer_orders(
    facts: Facts, tiling: Tiling, machine: Machine, threads: int, few: bool = False
) -> Iterator[tuple[OuterTile, ...]]:
    tiles: list[tuple[str, int]] = [
        (n, 1) for n in facts.kept if n not in (tiling.lanes, tiling.across, *tiling.inside)
    ]
    if tiling.lanes in facts.kept:
        tiles.append((tiling.lanes, tiling.span))
    if tiling.across:
        tiles.append((tiling.across, tiling.rows))
    if not tiles:
        yield ()
        return
    blocks = list(dict.fromkeys(_depth_blocks(facts, tiling, machine)))
    near = bool(machine.caches) and _touched_bytes(facts) <= machine.usable[0]
    orders = list(permutations(tiles)) if len(tiles) <= 4 else [tuple(tiles), (*tiles[:-2], tiles[-1], tiles[-2])]
    for order in orders:
        for depth in blocks:
            first = order[0]
            yield (*depth, (*first, True), *((n, s, False) for n, s in order[1:]))
            if few or (threads == 1 and near):
                continue
            for size in _block_sizes(facts, tiling, machine, threads, order, depth):
                inside = tuple((n, s, False) for n, s in order)
                block = (order[-1][0], size, True)
                yield (*depth, block, *inside)
                if depth:
                    yield (block, *depth, *inside)
                for wide in _wide_blocks(facts, machine, order, depth):
                    yield (wide, *depth, block, *inside)


def _depth_blocks(facts: Facts, tiling: Tiling, machine: Machine) -> Iterator[tuple[OuterTile, ...]]:
    """No split of the reduction, or one that keeps a panel in the innermost cache."""
    yield ()
    if tiling.lanes in facts.reduced or not facts.is_contraction:
        return
    plain = [n for n in facts.reduced if n not in facts.guarded and n not in facts.dynamic]
    if not plain:
        return
    longest = max(plain, key=lambda n: facts.extents[n])
    rest = prod(facts.extents[n] for n in facts.reduced if n != longest)
    for share in (0.5, 0.75, 1.0, 1.5, 2.0, 4.0):
        most = int(machine.caches[0] * share) // (tiling.span * facts.out.bytes * rest)
        if most >= 32 and facts.extents[longest] > most * 1.2:
            parts = ceil(facts.extents[longest] / most)
            step = ceil(ceil(facts.extents[longest] / parts) / 8) * 8
            yield ((longest, step, False),)


def _wide_blocks(
    facts: Facts, machine: Machine, order: tuple[tuple[str, int], ...], depth: tuple[OuterTile, ...]
) -> Iterator[OuterTile]:
    """A part of the outermost tile's loop whose panel stays in the last cache while blocks sweep over it."""
    loop, step = order[0]
    if loop == order[-1][0] or len(machine.caches) < 3 or loop in facts.dynamic:
        return
    wide = machine.usable[-1] // 2 // (_depth(facts, depth) * facts.out.bytes) // step * step
    if wide and facts.extents[loop] > 1.5 * wide:
        parts = ceil(facts.extents[loop] / wide)
        yield loop, ceil(facts.extents[loop] / parts / step) * step, False


def _depth(facts: Facts, depth: tuple[OuterTile, ...]) -> int:
    """Steps of the reduction in one round."""
    return prod(next((s for n, s, _ in depth if n == r), facts.extents[r]) for r in facts.reduced)


def _block_sizes(
    facts: Facts,
    tiling: Tiling,
    machine: Machine,
    threads: int,
    order: tuple[tuple[str, int], ...],
    depth: tuple[OuterTile, ...],
) -> Iterator[int]:
    """Blocks of the innermost tile's loop around all others, small enough for the second cache."""
    if len(order) < 2 or len(machine.caches) < 2:
        return
    loop, step = order[-1]
    extent = facts.extents[loop]
    steps = ceil(extent / step)
    row = _depth(facts, depth) * facts.out.bytes * step
    fitting = [int(machine.caches[1] * share) // row for share in (0.08, 0.15)]
    even = (ceil(steps / wanted) for wanted in (threads, 4 * threads, 16 * threads))
    for per in sorted({2, 4, *even, *fitting}):
        if 0 < per * step < extent:
            yield per * step


def _costed(
    facts: Facts,
    tiling: Tiling,
    machine: Machine,
    threads: int,
    outer: tuple[OuterTile, ...],
    inner: tuple[str, ...],
) -> Order:
    trips = _trips(facts, outer)
    spread = next((t for (_, _, parallel), t in zip(outer, trips, strict=True) if parallel), 1)
    share = min(threads, max(1, spread))
    balance = machine.balance(_parts(facts, outer), threads)
    packs, packing = _packs(facts, tiling, machine, outer, inner, share)
    rounds = prod(t for (loop, _, _), t in zip(outer, trips, strict=True) if loop in facts.reduced)
    outputs = prod(facts.extents[n] for n in facts.kept)
    dtype, width = facts.out.dtype, tiling.width
    again = (machine.load_cycles(dtype, width) + machine.store_cycles(dtype, width)) / width
    if facts.out.stride(tiling.lanes) != 1:
        loops = tiling.lanes, tiling.across
        stored = across_cycles(facts, machine, loops, width, tiling.vectors, tiling.rows)
        again = machine.scatter_cycles + stored / (tiling.rows * tiling.span)
    again += (machine.tile_cycles + machine.enter_cycles) / (tiling.rows * tiling.span)
    fetched = _is_fetched(facts, tiling, machine, outer)
    lines = _output_cycles(facts, tiling, machine, outer) * (machine.fetched_lines if fetched else 1.0)
    resumed = (rounds - 1) * outputs * again + rounds * lines
    compute = (tiling.cycles + resumed) / threads * balance
    accesses = _accesses(facts, inner, packs, machine)
    moved = traffic(_tiled(facts, tiling, outer, trips, inner, threads), accesses, machine.usable, machine.line_bytes)
    near = [b / machine.cache_bytes_per_cycle[n] for n, b in enumerate(moved[:-1])]
    seen = machine.seen(near, compute)
    far = 0.0
    if _is_far(facts, machine):
        far = moved[-1] * share / machine.cache_bytes_per_cycle[-1]
        far += _far_runs(facts, tiling, machine, {number for number, _, _ in packs}, inner) / share
    barriers = 0.0
    if threads > 1:
        before = next((n for n, (_, _, parallel) in enumerate(outer) if parallel), 0)
        barriers = machine.barrier_cycles * prod(trips[:before]) * (1 + bool(packs))
        barriers += rounds * _shared_lines(facts, outer) * machine.shared_line_cycles
    longest = max(compute + seen, *(cycles / machine.sustained for cycles in near), far)
    longest += machine.waiting * min(compute + seen, far)
    return Order(tiling, outer, inner, packs, longest + packing + barriers, fetched)


def _far_runs(facts: Facts, tiling: Tiling, machine: Machine, packed: set[int], inner: tuple[str, ...]) -> float:
    """What it costs to begin another stretch of main memory in every step of a read as it lies."""
    cycles = 0.0
    for number, use in enumerate(facts.reads):
        stride = abs(use.stride(inner[-1]) or 0) * use.bytes if inner else 0
        if number not in packed and use.stride(tiling.lanes) == 1 and stride > machine.line_bytes:
            pages = min(1.0, stride / machine.page_bytes)
            cycles += machine.far_run_cycles * pages * facts.elements(use) / tiling.span
    return cycles


def _is_far(facts: Facts, machine: Machine) -> bool:
    """Whether data must come from main memory in every call: it is more than the last cache keeps."""
    return not machine.caches or _touched_bytes(facts) > machine.usable[-1]


def _touched_bytes(facts: Facts) -> int:
    """All that a statement reads and writes."""
    return sum(facts.elements(use) * use.bytes for use in (facts.out, *facts.reads))


def _is_fetched(facts: Facts, tiling: Tiling, machine: Machine, outer: tuple[OuterTile, ...]) -> bool:
    """Whether the result is too large to be near already, and a tile takes long enough to bring it there."""
    footprint = prod(facts.extents[n] for n in facts.kept) * facts.out.bytes
    left = dict(facts.extents)
    for loop, step, _ in outer:
        left[loop] = min(step, left[loop])
    depth = prod(left[n] for n in facts.reduced)
    near = machine.caches[0] if machine.caches else 0
    return footprint > near > 0 and depth * tiling.rows * tiling.vectors > machine.fetch_vectors


def _shared_lines(facts: Facts, outer: tuple[OuterTile, ...]) -> int:
    """Lines of the output on the border between two units' parts."""
    loop = next((n for n, _, parallel in outer if parallel), "")
    own = facts.out.stride(loop) or 0
    return prod(e for n, e in facts.extents.items() if n in facts.kept and abs(facts.out.stride(n) or 0) > abs(own))


def _output_cycles(facts: Facts, tiling: Tiling, machine: Machine, outer: tuple[OuterTile, ...]) -> float:
    """Bringing in the lines of the output once, tile by tile; cheap where tiles follow each other along memory."""
    outputs = prod(facts.extents[n] for n in facts.kept)
    rows = tiling.rows * prod(facts.extents[n] for n in tiling.inside)
    along = facts.out.stride(tiling.lanes) == 1
    short = (tiling.span if tiling.lanes in facts.kept else 1) if along else rows
    lines = ceil(short * facts.out.bytes / machine.line_bytes) / short * outputs
    last = outer[-1][0] if outer else ""
    follows = last == tiling.lanes if along else facts.out.stride(last) == 1
    return lines * machine.line_cycles(outputs * facts.out.bytes) * (1.0 if follows else machine.scattered_lines)


def _trips(facts: Facts, outer: tuple[OuterTile, ...]) -> tuple[int, ...]:
    left = dict(facts.extents)
    found = []
    for loop, step, _ in outer:
        found.append(ceil(left[loop] / step))
        left[loop] = min(step, left[loop])
    return tuple(found)


def _parts(facts: Facts, outer: tuple[OuterTile, ...]) -> float:
    """Into how many parts the units' loop falls, the last one as large as it is."""
    left = dict(facts.extents)
    for loop, step, parallel in outer:
        if parallel:
            return max(1.0, left[loop] / step)
        left[loop] = min(left[loop], step)
    return 1.0


def _tiled(
    facts: Facts,
    tiling: Tiling,
    outer: tuple[OuterTile, ...],
    trips: tuple[int, ...],
    inner: tuple[str, ...],
    threads: int,
) -> tuple[TiledLoop, ...]:
    """The nest one unit runs, for the traffic model."""
    loops: list[TiledLoop] = []
    left = dict(facts.extents)
    for (loop, step, parallel), count in zip(outer, trips, strict=True):
        loops.append((loop, ceil(count / threads) if parallel else count, step))
        left[loop] = min(step, left[loop])
    loops += [(n, left[n], 1) for n in inner if left[n] > 1]
    loops += [(n, e, 1) for n, e in left.items() if n not in inner and e > 1]
    return tuple(loops)


def _accesses(
    facts: Facts, inner: tuple[str, ...], packs: tuple[Pack, ...], machine: Machine
) -> tuple[TiledAccess, ...]:
    """What the traffic model sees: packed reads with their panels last, others as they lie.

    Lines that do not follow each other are not fetched ahead, so they count more than once."""
    packed = {number: digits for number, digits, _ in packs}
    found = []
    for number, use in enumerate((*facts.reads, facts.out)):
        dims = use.dims
        passes = 2 if use is facts.out else 1
        if number in packed:
            dims = tuple(dims[d.dimension] for d in packed[number] if d.divisor == 1)
        elif use is not facts.out and inner and abs(use.stride(inner[-1]) or 0) * use.bytes > machine.line_bytes:
            passes = 1 if machine.asks(machine.line_bytes) else machine.strided_passes
        rows = [abs(stride) for stride in use.strides.values() if stride and abs(stride) > 1]
        short = bool(rows) and min(rows) * use.bytes * 4 <= machine.line_bytes  # many rows share a line
        found.append(TiledAccess(dims, use.bytes, passes, short or number in packed))
    return tuple(found)


# -- packing


def _packs(
    facts: Facts,
    tiling: Tiling,
    machine: Machine,
    outer: tuple[OuterTile, ...],
    inner: tuple[str, ...],
    units: int,
) -> tuple[tuple[Pack, ...], float]:
    """Reads that need, or gain from, another layout, and what all reads cost beside the arithmetic."""
    packs: list[Pack] = []
    cycles = 0.0
    for number, use in enumerate(facts.reads):
        loop, span = tiling.lanes, tiling.span
        if not use.stride(loop):
            loop, span = tiling.across, tiling.rows
        direct = direct_cycles(facts, number, tiling, machine, loop, inner, outer)
        if not loop or not use.stride(loop) or (number, loop) not in facts.panels:
            cycles += direct / units
            continue
        position = _position(facts, number, outer, machine)
        trips = _trips(facts, outer[: position + 1])
        again = prod(t for (n, _, _), t in zip(outer, trips, strict=False) if not use.stride(n))
        cost = pack_cycles(facts, number, loop, machine, span) * again
        if cost:
            cost += _run_cycles(facts, number, outer[: position + 1], machine) * again
            if units > 1 and not any(spread for _, _, spread in outer[: position + 1]):
                cost += facts.elements(use) * use.bytes / machine.line_bytes * again * machine.passed_line_cycles
        if number in tiling.packed or cost < direct or use.role is Role.CONST:
            digits = _panel(facts, number, loop, span, inner, loop in facts.reduced)
            packs.append((number, digits, position))
            cycles += cost / units
        else:
            cycles += direct / units
    return tuple(packs), cycles


def _run_cycles(facts: Facts, number: int, around: tuple[OuterTile, ...], machine: Machine) -> float:
    """Starting each stretch of memory that a copy reads: short ones come late from far caches."""
    use = facts.reads[number]
    nearest = next((n for n, stride in use.strides.items() if stride == 1), "")
    elements = facts.elements(use)
    run = facts.extents.get(nearest, 1)
    for loop, step, _ in around:
        run = min(run, step) if loop == nearest else run
    return elements / max(1, run) * machine.run_cycles


def direct_cycles(
    facts: Facts,
    number: int,
    tiling: Tiling,
    machine: Machine,
    loop: str,
    inner: tuple[str, ...],
    outer: tuple[OuterTile, ...],
) -> float:
    """What reading a tensor as it lies costs more than reading it side by side, in all.

    Vectors that straddle lines, a new page each step, rows that fall into the same cache set, and lines that are gone
    when they are read again, by the next sweep or by the neighbour that has the rest of them.
    """
    use = facts.reads[number]
    if not loop or not use.stride(loop) or not inner:
        return 0.0
    steps = prod(facts.extents.values()) / (tiling.width * tiling.vectors * max(1, tiling.rows))
    stride = abs(use.stride(inner[-1]) or 0) * use.bytes
    rows = abs(use.stride(loop) or 0) * use.bytes
    reach = rows * (tiling.span if loop == tiling.lanes else tiling.rows)
    again = _is_swept_again(facts, use, outer) or reach % machine.line_bytes > 0
    gone = machine.gone_cycles if again and machine.loses(stride, facts.extents[inner[-1]]) else 0.0
    if loop == tiling.lanes:
        if stride in (0, use.bytes):
            return 0.0
        straddle = 0.3 * tiling.vectors if stride % machine.line_bytes else 0.0
        depth = facts.extents[inner[-1]]
        asked = tiling.span * use.bytes / machine.line_bytes * machine.ask_cycles if machine.asks(stride) else 0.0
        page = machine.paging_cycles(stride, depth) + asked
        conflict = 3.0 if depth > machine.ways(stride) / 2 and not machine.asks(stride) else 0.0
        return steps * (straddle + page + conflict + gone)
    page = machine.paging_cycles(stride, facts.extents[inner[-1]])
    crossing = tiling.rows > machine.ways(rows) or _swept(facts, use, loop, outer) > machine.ways(rows, 1)
    apart = machine.row_cycles if rows > use.bytes else 0.0
    conflict = machine.set_cycles if rows and crossing else apart
    lines = reach / machine.line_bytes + 1 if machine.asks(stride) else 0.0
    asked = lines * machine.load_cycles(use.dtype, tiling.width) * machine.crowding
    return steps * (page + gone + asked + tiling.rows * conflict)


def _is_swept_again(facts: Facts, use: Use, outer: tuple[OuterTile, ...]) -> bool:
    """Whether a tile's part of a read is passed over more than once."""
    trips = _trips(facts, outer)
    return any(count > 1 and not use.stride(loop) for (loop, _, _), count in zip(outer, trips, strict=True))


def _swept(facts: Facts, use: Use, loop: str, outer: tuple[OuterTile, ...]) -> int:
    """Iterations of ``loop`` that are passed over again for each iteration of some tile that the read stays with."""
    left = facts.extents[loop]
    for name, step, _ in outer:
        if not use.stride(name):
            break
        left = min(left, step) if name == loop else left
    return left


def _panel(facts: Facts, number: int, loop: str, span: int, inner: tuple[str, ...], whole: bool) -> tuple[Digit, ...]:
    """``span`` neighbours along ``loop`` side by side: d1/16, d0, d1%16; or the loop's dimension last."""
    indices = facts.reads[number].access.indices
    dimension = next(d for d, i in enumerate(indices) if loop in i.names())
    span *= indices[dimension].coefficient(loop)
    rest = sorted(
        (d for d in range(len(indices)) if d != dimension),
        key=lambda d: max((inner.index(n) for n in indices[d].names() if n in inner), default=-1),
    )
    if whole:
        return (*(Digit(d) for d in rest), Digit(dimension))
    return (Digit(dimension, span), *(Digit(d) for d in rest), Digit(dimension, 1, span))


def _position(facts: Facts, number: int, outer: tuple[OuterTile, ...], machine: Machine) -> int:
    """The outermost tile inside which the packed part is used more than once and made only once.

    Where all of that is more than the last cache holds, the innermost one inside which it is used more than once."""
    use = facts.reads[number]
    moves = [bool(use.stride(loop)) for loop, _, _ in outer]
    early = next((at for at, moved in enumerate(moves) if not moved), len(moves)) - 1
    left = dict(facts.extents)
    for loop, step, _ in outer[: early + 1]:
        left[loop] = min(left[loop], step)
    part = prod(left[n] for n in use.strides if n in left) * use.bytes
    if use.role is Role.CONST or part <= (machine.usable[-1] if machine.caches else 0):
        return early
    reused = (at for at, moved in enumerate(moves) if moved and not all(moves[at:]))
    return max(reused, default=early)
