"""Bytes that cross each memory boundary when a tiled box nest runs: integers only, tens of microseconds.

The model. A nest is a list of loops, outermost first; a tiled loop is there several times, with its step. The
*footprint* of an array inside a loop is the data that it touches while that loop and all loops inside it run once in
full. For a memory of some capacity:

1. Find the outermost loop from which on the footprints of all arrays together fit. That part of the nest runs
   without moving anything twice; call it the resident block.
2. Going out from the resident block, a loop that does not index an array brings the same block of it again, which is
   still there: no traffic. The first loop that does index the array brings new data, less what neighbouring blocks
   share (the halo of a sliding window): the array moves its footprint inside that loop once.
3. Each loop further out repeats that, since more than a memory-full has gone by in between.

So traffic = footprint inside the innermost loop outside the resident block that indexes the array, times the trips of
all loops around it; and the plain footprint when the whole nest fits.

Worked example: i<64, j<64, k<64 of C[i,j] += A[i,k] * B[k,j], 4 bytes, capacity 1,024 bytes. The k loop touches
4 + 256 + 256 bytes, which fits; j and k touch 256 + 256 + 16,384, which does not. The resident block is the k loop.
C: j indexes it, 256 bytes inside j, times 64 (i)                = 16,384
A: j does not index it, i does, 16,384 bytes inside i            = 16,384
B: j indexes it, 16,384 bytes inside j, times 64 (i)             = 1,048,576
"""

from dataclasses import dataclass
from math import gcd, prod

TiledLoop = tuple[str, int, int]
"""(name of the loop, trips, step in units of that loop), so that ``i<64`` by 16 is ("i", 4, 16), ("i", 16, 1)."""

Run = tuple[int, int]
Runs = tuple[Run, ...]
"""(stride, trips): the numbers 0, stride, ..., stride * (trips - 1)."""

EXACT_SPAN = 1 << 16  # irregular strides are counted exactly up to this span; beyond it their hull bounds them


@dataclass(frozen=True, slots=True)
class TiledAccess:
    """One array: per dimension, slowest first, the (loop name, coefficient) pairs of its subscript.

    ``passes`` is how often each byte crosses when it is brought in: 2 for an accumulator, which comes back as well.
    ``packed``: what is read one after the other lies so, and lines are never brought in for a part of them.
    """

    dims: tuple[tuple[tuple[str, int], ...], ...]
    element_bytes: int
    passes: int = 1
    packed: bool = False


def traffic(
    loops: tuple[TiledLoop, ...],
    accesses: tuple[TiledAccess, ...],
    capacities: tuple[int, ...],
    line_bytes: int = 1,
) -> tuple[int, ...]:
    """Bytes that cross the outer boundary of a memory, for each of ``capacities`` (bytes, in any order).

    ``line_bytes`` rounds the contiguous (last) dimension of every array up to whole lines; data counts as aligned.
    A capacity that does not even hold one point of the nest still holds that point here. Two accesses to one array
    count as two arrays.
    """
    if any(trips == 0 for _, trips, _ in loops):
        return (0,) * len(capacities)
    prints = [footprints(loops, access, 1 if access.packed else line_bytes) for access in accesses]
    together = [sum(column) for column in zip(*prints, strict=True)]
    around = [1]
    for _, trips, _ in loops:
        around.append(around[-1] * trips)
    moved = []
    for capacity in capacities:
        resident = next((depth for depth, size in enumerate(together) if size <= capacity), len(loops))
        moved.append(
            sum(_moved(own, around, resident) * access.passes for own, access in zip(prints, accesses, strict=True))
        )
    return tuple(moved)


def footprints(loops: tuple[TiledLoop, ...], access: TiledAccess, line_bytes: int = 1) -> tuple[int, ...]:
    """Bytes that ``access`` touches inside each loop, outermost first; the last entry is a single point of the nest.

    Exact for boxes: ``p + r`` over p < 56, r < 3 is 58 elements, ``2*p`` over p < 28 is 28.
    """
    uses: dict[str, list[tuple[int, int]]] = {}
    for dim, terms in enumerate(access.dims):
        for name, coefficient in terms:
            uses.setdefault(name, []).append((dim, abs(coefficient)))
    size, last = access.element_bytes, len(access.dims) - 1
    runs: list[Runs] = [()] * len(access.dims)
    counts = [1] * len(access.dims)
    total = _line_bytes((), size, line_bytes)
    if counts:
        counts[last] = total
    found = [total]
    for name, trips, step in reversed(loops):
        if trips != 1 and name in uses:
            for dim, coefficient in uses[name]:
                runs[dim] = touched = _with_run(runs[dim], coefficient * step, trips)
                count = _line_bytes(touched, size, line_bytes) if dim == last else _distinct(touched)
                total = total // counts[dim] * count
                counts[dim] = count
        found.append(total)
    found.reverse()
    return tuple(found)


def _moved(own: tuple[int, ...], around: list[int], resident: int) -> int:
    """Traffic of one array whose footprints per loop are ``own``; ``around[d]`` is the trips of the loops outside d."""
    depth = resident
    while depth > 0 and own[depth - 1] == own[depth]:
        depth -= 1
    depth = max(depth - 1, 0)
    return own[depth] * around[depth]


def _with_run(runs: Runs, stride: int, trips: int) -> Runs:
    """All sums of a number of ``runs`` and one of ``stride * (0 .. trips - 1)``, as runs again, few where possible.

    (1, 14) with (14, 4) -> (1, 56): a tile and the loop over tiles. (1, 56) with (1, 3) -> (1, 58): a window.
    (1, 3) with (8, 7) -> both: seven blocks of three.
    """
    if len(runs) == 1:
        gap, count = runs[0]
        if stride % gap == 0 and stride <= gap * count:
            return ((gap, count + (trips - 1) * (stride // gap)),)
    in_order = tuple(sorted((*runs, (stride, trips)))) if stride else runs
    return _blocks(in_order) or in_order


def _distinct(runs: Runs) -> int:
    """How many different sums ``stride_1 * a_1 + stride_2 * a_2 + ...`` there are with ``a_n < trips_n``."""
    if len(runs) == 1:
        return runs[0][1]
    blocks = _blocks(runs)
    if blocks is not None:
        return prod(count for _, count in blocks)
    span = sum(stride * (trips - 1) for stride, trips in runs)
    if span > EXACT_SPAN:
        return min(prod(trips for _, trips in runs), span // gcd(*(stride for stride, _ in runs)) + 1)
    sums = 1
    for stride, trips in runs:
        done = 1
        while done < trips:
            more = min(done, trips - done)
            sums |= sums << stride * more
            done += more
    return sums.bit_count()


def _line_bytes(runs: Runs, element_bytes: int, line_bytes: int) -> int:
    """Bytes of the lines that the elements at ``runs`` of the contiguous dimension lie in."""
    if line_bytes == 1:
        return _distinct(runs) * element_bytes
    span = element_bytes
    covered = -(-span // line_bytes) * line_bytes
    for gap, count in runs:
        span += gap * element_bytes * (count - 1)
        apart = gap * element_bytes >= covered
        covered = covered * count if apart else -(-span // line_bytes) * line_bytes
    return covered


def _blocks(runs: Runs) -> Runs | None:
    """The same sums as ``runs`` (sorted by stride), as runs of disjoint blocks; None when they are not so regular."""
    blocks: list[Run] = []
    reach = gap = count = 0
    for stride, trips in runs:
        if stride > reach:
            blocks.append((stride, trips))
            gap, count = stride, trips
        elif stride % gap == 0 and stride <= gap * count:
            count += (trips - 1) * (stride // gap)
            blocks[-1] = (gap, count)
        else:
            return None
        reach += stride * (trips - 1)
    return tuple(blocks)
