import math

import pytest

from benchmarks.harness.ratios import best_of, enough, per_round, spread, summarise


def test_a_ratio_is_how_many_times_as_fast_as_the_peer_we_were_in_that_round() -> None:
    assert per_round([1.0, 2.0], [2.0, 1.0]) == [2.0, 0.5]


def test_the_best_peer_is_the_one_with_the_best_median_not_the_best_round() -> None:
    assert best_of({"lucky": [0.1, 5.0, 5.0], "steady": [1.0, 1.0, 1.0]}) == "steady"
    assert best_of({}) is None


def test_the_spread_is_the_interquartile_range_as_a_part_of_the_median() -> None:
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2.0 / 3.0)
    assert spread([1.0]) == math.inf


def test_seven_steady_rounds_are_enough_and_six_are_not() -> None:
    assert not enough([1.0] * 6)
    assert enough([1.0] * 7)


def test_unsteady_rounds_go_on_until_there_are_thirty() -> None:
    unsteady = [0.8, 1.2] * 15
    assert not enough(unsteady[:29])
    assert enough(unsteady)


def test_fewer_rounds_may_be_asked_for() -> None:
    assert enough([0.8, 1.2], most_rounds=2)


def test_the_last_line_is_written_exactly_so() -> None:
    assert str(summarise([2.0, 0.5])) == "geomean_vs_best=1.000 wins=50.0% worst=0.500 n=2"
    assert str(summarise([1.0, 1.0, 1.0])) == "geomean_vs_best=1.000 wins=100.0% worst=1.000 n=3"


def test_a_failed_shape_makes_the_geometric_mean_zero_instead_of_being_left_out() -> None:
    assert str(summarise([2.0, 0.0])) == "geomean_vs_best=0.000 wins=50.0% worst=0.000 n=2"


def test_no_shapes_at_all_give_no_figures() -> None:
    assert str(summarise([])) == "geomean_vs_best=nan wins=nan% worst=nan n=0"
