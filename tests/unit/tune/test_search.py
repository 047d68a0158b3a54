"""Searches within a budget."""

from __future__ import annotations

import time

from dovetail.tune.search import Budget, Progress, search


def test_the_cheapest_candidate_is_found() -> None:
    found = search([5, 3, 9, 2, 4], float, Budget(candidates=10))
    assert found is not None
    assert (found.best, found.cost, found.first_cost, found.measured) == (2, 2.0, 5.0, 5)
    assert found.stopped_by == "all seen"


def test_a_search_stops_when_its_candidates_are_spent() -> None:
    found = search(iter(range(10, 0, -1)), float, Budget(candidates=3))
    assert found is not None
    assert (found.best, found.measured, found.stopped_by) == (8, 3, "candidates")


def test_a_search_stops_when_its_time_is_spent() -> None:
    def slow(candidate: int) -> float:
        time.sleep(0.02)
        return float(candidate)

    found = search(range(1000), slow, Budget(seconds=0.05))
    assert found is not None
    assert found.stopped_by == "time"
    assert found.measured < 20


def test_the_first_candidate_is_tried_whatever_the_budget() -> None:
    found = search([7], float, Budget(seconds=1e-9))
    assert found is not None
    assert found.best == 7


def test_candidates_that_do_not_work_out_are_counted() -> None:
    found = search([1, 2, 3], lambda c: None if c < 3 else float(c), Budget())
    assert found is not None
    assert (found.best, found.failed) == (3, 2)


def test_a_search_that_finds_nothing_says_so() -> None:
    assert search([1, 2], lambda c: None, Budget()) is None


def test_whoever_watches_is_told_after_each() -> None:
    told: list[Progress] = []
    search([4, 2, 3], float, Budget(candidates=4), told.append)
    assert [(p.measured, p.best, p.spent) for p in told] == [(1, 4.0, 0.25), (2, 2.0, 0.5), (3, 2.0, 0.75)]
