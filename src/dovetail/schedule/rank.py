"""Rank loop orders by the bytes they keep in each memory level, and judge a ranker against measured speed.

A variant enters as its bytes per level, innermost first (``schedule.reuse.bytes_per_level``). A ranker leaves the
positions of the variants, best first; variants that it cannot tell apart keep the order in which they came.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from dovetail.schedule.reuse import cost

LevelBytes = tuple[int, ...]
Ranker = Callable[[Sequence[LevelBytes]], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Measured:
    """One variant of one case: the name of its loop order, its bytes per level, and its measured speed."""

    order: str
    level_bytes: LevelBytes
    speed: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Mean share of the best speed of each case: for each ranker's first choice, and for the best single order."""

    shares: Mapping[str, float]
    fixed_order: str
    fixed_share: float


def judge(cases: Sequence[Sequence[Measured]], rankers: Mapping[str, Ranker]) -> Verdict:
    """Compare the first choices of ``rankers`` with the one loop order that does best when used for every case."""
    shares = {name: fmean(_share(case, ranker) for case in cases) for name, ranker in rankers.items()}
    common = [v.order for v in cases[0] if all(any(w.order == v.order for w in case) for case in cases)]
    fixed = {
        order: fmean(_share_of(case, next(v for v in case if v.order == order)) for case in cases) for order in common
    }
    best = max(fixed, key=lambda order: fixed[order])
    return Verdict(shares, best, fixed[best])


def rank_by_cost(variants: Sequence[LevelBytes], weights: Sequence[int]) -> tuple[int, ...]:
    """Rank by the weighted sum of bytes, one weight per level, lowest first."""
    costs = [cost(variant, weights) for variant in variants]
    return tuple(sorted(range(len(costs)), key=costs.__getitem__))


def rank_by_tree(variants: Sequence[LevelBytes], margin_percent: int = 10) -> tuple[int, ...]:
    """Rank by a tournament in which every variant meets every other under ``compare``; most points first.

    A win is two points and a draw one. Comparing with a margin is not transitive, so there is no order to sort by,
    and counting wins gives one that does not depend on who meets whom first.
    """
    points = [sum(1 - compare(variant, other, margin_percent) for other in variants) for variant in variants]
    return tuple(sorted(range(len(points)), key=lambda n: -points[n]))


def compare(left: LevelBytes, right: LevelBytes, margin_percent: int = 10) -> int:
    """-1 when ``left`` is better, 1 when ``right`` is, 0 when the tree cannot tell.

    The tree asks one question per level, the slowest level first: does one variant keep fewer bytes there, by more
    than ``margin_percent`` of the larger amount? The first yes decides. After the last no it asks once more, without
    the margin.
    """
    for margin in (margin_percent, 0):
        for a, b in zip(reversed(left), reversed(right), strict=True):
            if 100 * abs(a - b) > margin * max(a, b):
                return -1 if a < b else 1
    return 0


def _share(case: Sequence[Measured], ranker: Ranker) -> float:
    return _share_of(case, case[ranker([variant.level_bytes for variant in case])[0]])


def _share_of(case: Sequence[Measured], chosen: Measured) -> float:
    return chosen.speed / max(variant.speed for variant in case)
