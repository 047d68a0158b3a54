"""Working sets -> bytes per memory level -> cost of a loop order.

A memory level is its capacity in bytes and a weight; the list of levels is data that comes from the target. The level
behind the last capacity (main memory) holds whatever fits nowhere else, so there is one weight more than capacities.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from dovetail.poly.reuse import Access, WorkingSet, box_working_sets, has_closed_form
from dovetail.poly.reuse_isl import isl_working_sets


def working_sets(extents: tuple[int, ...], accesses: tuple[Access, ...], where: str = "") -> tuple[WorkingSet, ...]:
    """Working sets of a nest: in closed form where there is one, by isl otherwise.

    ``extents`` are in execution order, outermost first; ``where`` is isl text over i0, i1, ... A run-time extent
    enters as the value that the plan is made for.
    """
    if not where and has_closed_form(extents, accesses):
        return box_working_sets(extents, accesses)
    return isl_working_sets(extents, accesses, where)


def bytes_per_level(sets: Iterable[WorkingSet], capacities: Sequence[int], *, greedy: bool = False) -> tuple[int, ...]:
    """Bytes of the working sets that live in each level, innermost first; the last entry is main memory.

    Each nearest and each farthest distance goes by itself into the smallest level that holds it; a set whose two
    distances are equal counts twice (the published rows follow this rule). With ``greedy`` what is placed takes its
    room away: distances are placed in rising order, each into the innermost level with enough room left.
    """
    distances = chain.from_iterable((found.nearest, found.farthest) for found in sets)
    room = list(capacities)
    totals = [0] * (len(room) + 1)
    for distance in sorted(distances):
        level = next((n for n, free in enumerate(room) if distance <= free), len(room))
        totals[level] += distance
        if greedy and level < len(room):
            room[level] -= distance
    return tuple(totals)


def cost(level_bytes: Sequence[int], weights: Sequence[int]) -> int:
    """Weighted sum of the bytes per level: with weights of (4, 14, 60, 84) the published cost."""
    return sum(amount * weight for amount, weight in zip(level_bytes, weights, strict=True))
