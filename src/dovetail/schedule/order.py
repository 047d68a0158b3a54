"""The order of the tiles around a register tile, cache blocks, what is packed where, and which loop the units share.

All orders are costed by the bytes they move between memories (``traffic``); the cheapest wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import ceil, prod

from dovetail.ir.index import variable
from dovetail.ir.plan import Digit
from dovetail.ir.program import Role
from dovetail.schedule.facts import Facts
from dovetail.schedule.machine import Machine
from dovetail.schedule.tiling import Tiling
from dovetail.schedule.traffic import TiledAccess, TiledLoop, traffic

OuterTile = tuple[str, int, bool]
"""(loop, step, spread over the units)"""
Pack = tuple[int, tuple[Digit, ...], int]
"""(number of the read, its layout, position of the outer tile that fills it; -1: the whole kernel)"""


@dataclass(frozen=True, slots=True)
class Order:
    """Everything about a reduction's plan but its register tile."""

    tiling: Tiling
    outer: tuple[OuterTile, ...]
    inner: tuple[str, ...]
    packs: tuple[Pack, ...]
    cycles: float


def best_order(facts: Facts, tiling: Tiling, machine: Machine, threads: int) -> Order:
    """The cheapest order for one register tile."""
    inner = inner_order(facts, tiling)
    found = [
        _costed(facts, tiling, machine, threads, outer, inner)
        for outer in _outer_orders(facts, tiling, machine, threads)
    ]
    return min(found, key=lambda o: o.cycles)


def inner_order(facts: Facts, tiling: Tiling) -> tuple[str, ...]:
    """Reduction loops: those whose guard meets the register tile first, so that they can be spread out; lanes last."""
    tile = {tiling.lanes, tiling.across, *tiling.inside}
    guarded = {n for c in facts.statement.where if tile & c.names() for n in c.names()}
    plain = [n for n in facts.reduced if n not in guarded and n != tiling.lanes]
    last = [tiling.lanes] if tiling.lanes in facts.reduced else []
    return (*[n for n in facts.reduced if n in guarded], *plain, *last)


def _outer_orders(facts: Facts, tiling: Tiling, machine: Machine, threads: int) -> Iterator[tuple[OuterTile, ...]]:
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
    blocks = list(_depth_blocks(facts, tiling, machine))
    orders = list(permutations(tiles)) if len(tiles) <= 4 else [tuple(tiles), (*tiles[:-2], tiles[-1], tiles[-2])]
    for order in orders:
        for depth in blocks:
            first = order[0]
            yield (*depth, (*first, True), *((n, s, False) for n, s in order[1:]))
            for size in _block_sizes(facts, tiling, machine, threads, order, depth):
                yield (*depth, (order[-1][0], size, True), *((n, s, False) for n, s in order))


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
    for share in (0.5, 1.0):
        most = int(machine.caches[0] * share) // (tiling.span * facts.out.bytes * rest)
        if most >= 32 and facts.extents[longest] > most * 1.2:
            parts = ceil(facts.extents[longest] / most)
            step = ceil(ceil(facts.extents[longest] / parts) / 8) * 8
            yield ((longest, step, False),)


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
    for wanted in (threads, 2 * threads, 4 * threads, 8 * threads, 16 * threads):
        per = ceil(steps / wanted)
        if per >= 1 and per * step < extent:
            yield per * step


def _costed(
    facts: Facts,
    tiling: Tiling,
    machine: Machine,
    threads: int,
    outer: tuple[OuterTile, ...],
    inner: tuple[str, ...],
) -> Order:
    packs = tuple(_packs(facts, tiling, outer, inner))
    trips = _trips(facts, outer)
    spread = next((t for (_, _, parallel), t in zip(outer, trips, strict=True) if parallel), 1)
    balance = ceil(spread / threads) * threads / spread if spread else 1.0
    share = min(threads, max(1, spread))
    compute = tiling.cycles / threads * max(1.0, balance)
    loops = _tiled(facts, tiling, outer, trips, inner, threads)
    moved = traffic(loops, _accesses(facts), machine.caches, 64)
    near = sum(b / machine.cache_bytes_per_cycle[n] for n, b in enumerate(moved[:-1]))
    far = moved[-1] * share / machine.cache_bytes_per_cycle[-1]
    packing = sum(_pack_cost(facts, machine, threads, p) for p in packs)
    rounds = prod(t for (loop, _, _), t in zip(outer, trips, strict=True) if loop in facts.reduced)
    barriers = 1500.0 * rounds * (1 + bool(packs))
    cycles = max(compute + 0.3 * near, far) + packing + barriers
    return Order(tiling, outer, inner, packs, cycles)


def _trips(facts: Facts, outer: tuple[OuterTile, ...]) -> tuple[int, ...]:
    left = dict(facts.extents)
    found = []
    for loop, step, _ in outer:
        found.append(ceil(left[loop] / step))
        left[loop] = min(step, left[loop])
    return tuple(found)


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
        loops.append((loop, max(1, count // threads) if parallel else count, step))
        left[loop] = min(step, left[loop])
    loops += [(n, left[n], 1) for n in inner if left[n] > 1]
    loops += [(n, e, 1) for n, e in left.items() if n not in inner and e > 1]
    return tuple(loops)


def _accesses(facts: Facts) -> tuple[TiledAccess, ...]:
    found = []
    for use, passes in (*((u, 1) for u in facts.reads), (facts.out, 2)):
        dims = tuple(
            tuple((n, i.coefficient(n)) for n in i.names() if i.coefficient(n)) for i in use.access.indices
        )
        found.append(TiledAccess(dims, use.bytes, passes))
    return tuple(found)


# -- packing


def _packs(
    facts: Facts, tiling: Tiling, outer: tuple[OuterTile, ...], inner: tuple[str, ...]
) -> Iterator[Pack]:
    """Reads that need, or gain from, another layout."""
    for number, use in enumerate(facts.reads):
        loop, span = tiling.lanes, tiling.span
        if not use.stride(loop):
            loop, span = tiling.across, tiling.rows
        if not loop or not use.stride(loop) or not _panelled(facts, number, loop):
            continue
        required = number in tiling.packed
        constant = use.role is Role.CONST
        again = _uses(facts, number, tiling)
        gains = loop == tiling.lanes and loop in facts.kept and again >= 3
        if required or constant or gains:
            digits = _panel(facts, number, loop, span, inner, loop in facts.reduced)
            yield number, digits, _position(facts, number, outer)


def _uses(facts: Facts, number: int, tiling: Tiling) -> int:
    """How many register tiles read each element again."""
    use = facts.reads[number]
    return prod(
        ceil(facts.extents[n] / (tiling.rows if n == tiling.across else 1))
        for n in facts.kept
        if not use.stride(n) and n != tiling.lanes
    )


def _panelled(facts: Facts, number: int, loop: str) -> bool:
    """The loop alone walks one dimension, and every index is a plain sum."""
    indices = facts.reads[number].access.indices
    tensor = facts.reads[number].access.tensor
    once = sum(u.access.tensor == tensor for u in facts.reads) == 1 and facts.out.access.tensor != tensor
    alone = sum(loop in i.names() for i in indices) == 1 and any(i == variable(loop) for i in indices)
    plain = all(i.is_affine and all(c > 0 for _, c in i.terms) for i in indices)
    guarded = any(facts.guarded & i.names() for i in indices)
    constant = facts.reads[number].role is Role.CONST
    return once and alone and plain and (constant or not guarded)


def _panel(
    facts: Facts, number: int, loop: str, span: int, inner: tuple[str, ...], whole: bool
) -> tuple[Digit, ...]:
    """``span`` neighbours along ``loop`` side by side: d1/16, d0, d1%16; or the loop's dimension last."""
    indices = facts.reads[number].access.indices
    dimension = next(d for d, i in enumerate(indices) if i == variable(loop))
    rest = sorted(
        (d for d in range(len(indices)) if d != dimension),
        key=lambda d: max((inner.index(n) for n in indices[d].names() if n in inner), default=-1),
    )
    if whole:
        return (*(Digit(d) for d in rest), Digit(dimension))
    return (Digit(dimension, span), *(Digit(d) for d in rest), Digit(dimension, 1, span))


def _position(facts: Facts, number: int, outer: tuple[OuterTile, ...]) -> int:
    """The outermost tile inside which the packed part is used more than once and made only once."""
    use = facts.reads[number]
    position = -1
    for at, (loop, _, parallel) in enumerate(outer):
        if not use.stride(loop):
            break
        position = at
    return position


def _pack_cost(facts: Facts, machine: Machine, threads: int, pack: Pack) -> float:
    use = facts.reads[pack[0]]
    if use.role is Role.CONST:
        return 0.0
    elements = prod(facts.extents[n] for n in use.strides if n in facts.extents)
    contiguous = use.access.indices and pack[1][-1].dimension == len(use.access.indices) - 1
    return elements * machine.copy_cycles / (4 if contiguous else 1) / threads
