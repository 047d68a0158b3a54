"""A search within a budget: candidates in some order, each measured, the best kept.

It knows neither plans nor machines: a strategy is any iterable of candidates, a measure any function from a candidate
to a cost (None: it does not work out), and whoever wants to watch is told after each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may take; it ends with whichever is spent first."""

    seconds: float = 60.0
    candidates: int = 1000


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands: how many were measured, the best cost so far, the share of the budget that is spent."""

    measured: int
    best: float | None
    spent: float


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """The best candidate, and why the search ended: "all seen", "time" or "candidates"."""

    best: T
    cost: float
    first_cost: float
    """Of the first candidate that worked out."""
    measured: int
    failed: int
    stopped_by: str


def search(
    candidates: Iterable[T],
    measure: Callable[[T], float | None],
    budget: Budget,
    seen: Callable[[Progress], None] = lambda progress: None,
) -> Found[T] | None:
    """The cheapest of ``candidates`` that the budget reaches; None where none works out. The first is always tried."""
    begun = time.perf_counter()
    found: Found[T] | None = None
    measured = failed = 0
    stopped_by = "all seen"
    for candidate in candidates:
        cost = measure(candidate)
        measured += 1
        if cost is None:
            failed += 1
        elif found is None:
            found = Found(candidate, cost, cost, 0, 0, "")
        elif cost < found.cost:
            found = Found(candidate, cost, found.first_cost, 0, 0, "")
        spent = max((time.perf_counter() - begun) / budget.seconds, measured / budget.candidates)
        seen(Progress(measured, found.cost if found is not None else None, min(1.0, spent)))
        if spent >= 1:
            stopped_by = "candidates" if measured >= budget.candidates else "time"
            break
    if found is None:
        return None
    return Found(found.best, found.cost, found.first_cost, measured, failed, stopped_by)
