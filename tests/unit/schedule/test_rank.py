"""The rankers by themselves, and judged on the published measurements against the best fixed order."""

from collections.abc import Callable, Mapping
from itertools import groupby

import pytest

from dovetail.schedule.rank import Measured, Ranker, compare, judge, rank_by_cost, rank_by_tree
from dovetail.schedule.reuse import bytes_per_level, working_sets
from dovetail.schedule.traffic import traffic
from tests.unit.schedule.published_rows import CAPACITIES, WEIGHTS, Row, load_rows

RANKERS: Mapping[str, Ranker] = {"cost": lambda variants: rank_by_cost(variants, WEIGHTS), "tree": rank_by_tree}
FIXED_ORDER = "KT kj ki CT oj oi k c"
FIXED_SHARE = 0.98236
SHARES = {"cost": 0.984419, "tree": 0.970634}
TRAFFIC_SHARE = 0.994002


def test_both_published_rankers_reach_their_recorded_share_on_the_published_bytes() -> None:
    verdict = judge(_cases(lambda row: row.level_bytes), RANKERS)
    assert {name: round(share, 6) for name, share in verdict.shares.items()} == SHARES
    assert (verdict.fixed_order, round(verdict.fixed_share, 6)) == (FIXED_ORDER, FIXED_SHARE)


def test_our_own_working_sets_lead_the_rankers_to_the_same_choices() -> None:
    verdict = judge(_cases(lambda row: bytes_per_level(working_sets(row.extents, row.accesses()), CAPACITIES)), RANKERS)
    assert {name: round(share, 6) for name, share in verdict.shares.items()} == SHARES


def test_the_weighted_cost_beats_the_best_fixed_order_and_the_traffic_model_beats_both() -> None:
    cases = _cases(_traffic)
    verdict = judge(cases, {"traffic": lambda variants: rank_by_cost(variants, WEIGHTS[1:])})
    assert round(verdict.shares["traffic"], 6) == TRAFFIC_SHARE
    assert TRAFFIC_SHARE > SHARES["cost"] > FIXED_SHARE


def test_the_fixed_order_is_one_that_every_case_offers() -> None:
    cases = [
        [Measured("a", (1,), 10.0), Measured("b", (2,), 8.0)],
        [Measured("b", (1,), 4.0), Measured("c", (2,), 5.0)],
    ]
    verdict = judge(cases, {"cost": lambda variants: rank_by_cost(variants, (1,))})
    assert verdict.fixed_order == "b"
    assert verdict.fixed_share == pytest.approx(0.8)
    assert verdict.shares["cost"] == pytest.approx(0.9)


def test_the_cost_ranker_weighs_levels_and_keeps_ties_in_order() -> None:
    assert rank_by_cost([(0, 10), (60, 0), (10, 5), (0, 10)], (1, 4)) == (2, 0, 3, 1)


def test_the_tree_asks_the_slowest_level_first_and_ignores_small_differences() -> None:
    assert compare((900, 100), (100, 200)) == -1
    assert compare((900, 100), (100, 105)) == 1
    assert compare((100, 100), (100, 105)) == -1
    assert compare((100, 100), (100, 100)) == 0


def test_a_tournament_ranks_variants_that_beat_each_other_in_a_circle() -> None:
    a, b, c = (300, 100), (200, 108), (100, 116)
    assert (compare(a, b), compare(b, c), compare(a, c)) == (1, 1, -1)
    assert rank_by_tree([a, b, c]) == (0, 1, 2)
    assert rank_by_tree([a, b, c, (50, 90)])[0] == 3


def _cases(measure: Callable[[Row], tuple[int, ...]]) -> list[list[Measured]]:
    layers = groupby(load_rows(), key=lambda row: row.layer)
    return [[_measured(row, measure(row)) for row in rows] for _, rows in layers]


def _traffic(row: Row) -> tuple[int, ...]:
    loops, accesses = row.tiled()
    return traffic(loops, accesses, CAPACITIES)


def _measured(row: Row, level_bytes: tuple[int, ...]) -> Measured:
    return Measured(" ".join(row.order), level_bytes, row.gflops)
