"""``dovetail verify``: tile classes, run-time sizes, inexact functions, doubt."""

from tests.unit.cli.command import MATMUL, ROWS, dovetail

QUICK = ("--threads", "1")
EXP = "in x: f32[3,40] temp s: f32[3] out y: f32[3] for i<3, j<40: s[i] += exp(x[i,j]) for i<3: y[i] = s[i] / 2"


def test_elements_are_told_apart_by_tile() -> None:
    found = dovetail("verify", "--text", MATMUL, "--target", "x86-64-v3", "--json", *QUICK).json
    runs = found["runs"]
    assert found["agrees"] is True
    assert isinstance(runs, list)
    classes = runs[0]["classes"]
    assert sum(c["elements"] for c in classes) == 13 * 11
    assert {c["output"] for c in classes} == {"c"}
    assert len({c["tiles"] for c in classes}) == len(classes) > 1


def test_a_size_is_tried_at_both_ends_and_in_the_middle() -> None:
    runs = dovetail("verify", "--text", ROWS, "--json", *QUICK).json["runs"]
    assert isinstance(runs, list)
    assert [run["sizes"] for run in runs] == [{"m": 1}, {"m": 20}, {"m": 40}]
    assert all(run["exact"] for run in runs)


def test_a_size_that_is_given_is_tried_alone() -> None:
    runs = dovetail("verify", "--text", ROWS, "--json", "--size", "m=3", *QUICK).json["runs"]
    assert isinstance(runs, list)
    assert [run["sizes"] for run in runs] == [{"m": 3}]


def test_the_error_allowed_for_an_inexact_function_is_shown() -> None:
    done = dovetail("verify", "--text", EXP, *QUICK)
    assert done.code == 0
    assert "allowed because of exp" in done.out or "exact:" in done.out


def test_a_result_of_mostly_zeros_is_mistrusted() -> None:
    done = dovetail("verify", "--text", "in x: f32[64] out y: f32[64] for i<64: y[i] = x[i] * 0", *QUICK)
    assert done.code == 0
    assert "mistrusted: 100% of the expected values are zero" in done.out
