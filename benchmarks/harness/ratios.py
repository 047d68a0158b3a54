"""The figures of merit: ratios taken round by round, their spread, and the summary of many shapes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median, quantiles

LEAST_ROUNDS, MOST_ROUNDS = 7, 30
STEADY_SPREAD = 0.04
WIN = 1.0


def per_round(ours: Sequence[float], peer: Sequence[float]) -> list[float]:
    """How many times as fast as the peer we were, in each round both took part in."""
    return [theirs / mine for mine, theirs in zip(ours, peer, strict=True)]


def best_of(seconds: Mapping[str, Sequence[float]]) -> str | None:
    """The name with the best median; None where there is none."""
    return min(seconds, key=lambda name: median(seconds[name]), default=None)


def spread(ratios: Sequence[float]) -> float:
    """Interquartile range, as a part of the median."""
    if len(ratios) < 2:
        return math.inf
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    return (high - low) / middle


def enough(ratios: Sequence[float], most_rounds: int = MOST_ROUNDS) -> bool:
    """Whether to stop: steady after LEAST_ROUNDS, or out of rounds."""
    if len(ratios) >= most_rounds:
        return True
    return len(ratios) >= LEAST_ROUNDS and spread(ratios) < STEADY_SPREAD


@dataclass(frozen=True, slots=True)
class Summary:
    """All shapes of a table, or of several: the bars are stated in these terms."""

    geomean: float
    wins: float
    worst: float
    n: int

    def __str__(self) -> str:
        return f"geomean_vs_best={self.geomean:.3f} wins={100 * self.wins:.1f}% worst={self.worst:.3f} n={self.n}"


def summarise(ratios: Sequence[float]) -> Summary:
    """A wrong or failed result is a ratio of 0, and makes the geometric mean 0."""
    if not ratios:
        return Summary(math.nan, math.nan, math.nan, 0)
    wins = sum(ratio >= WIN for ratio in ratios) / len(ratios)
    geomean = geometric_mean(ratios) if min(ratios) > 0 else 0.0
    return Summary(geomean, wins, min(ratios), len(ratios))
