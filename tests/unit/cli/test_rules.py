"""``dovetail rules``: the tables, and a check of a user's own file."""

import json
from pathlib import Path

from tests.unit.cli.command import dovetail

RIGHT = """
[[rule]]
name   = "neg-twice"
before = 'map(neg, map(neg, ?x))'
after  = '?x'
"""
WRONG = """
[[rule]]
name   = "exchanged"
before = '?x - ?y'
after  = '?y - ?x'
"""


def test_the_list_has_every_level_with_class_and_both_sides() -> None:
    done = dovetail("rules")
    assert done.code == 0
    lines = done.out.splitlines()
    assert {"dsl", "algorithmic"} <= {line.strip() for line in lines}
    first = next(number for number, line in enumerate(lines) if line.startswith("map-fusion"))
    assert "bit-exact" in lines[first]
    assert "map(?f, map(?g, ?x))" in lines[first]
    assert "-> map(?f . ?g, ?x)" in lines[first + 1]


def test_one_level_as_json() -> None:
    found = json.loads(dovetail("rules", "--level", "algorithmic", "--json").out)
    assert {rule["level"] for rule in found} == {"algorithmic"}
    split = next(rule for rule in found if rule["name"] == "map-split")
    assert split["choose"] == ["n: divisors(?m)"]


def test_the_instructions_of_a_machine_are_rules() -> None:
    done = dovetail("rules", "--target", "npu-mv", "--level", "hardware")
    assert "MVMul64" in done.out


def test_one_rule_in_full() -> None:
    done = dovetail("rules", "show", "map-split")
    assert "after   join(map(map(?f), split(?n, ?x)))" in done.out
    assert "choose  n: divisors(?m)" in done.out


def test_an_unknown_rule_is_answered_with_the_closest() -> None:
    done = dovetail("rules", "show", "map-fusoin")
    assert done.code == 2
    assert "did you mean 'map-fusion'?" in done.err


def test_a_right_rule_passes_the_check(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(RIGHT)
    done = dovetail("rules", "check", tmp_path / "mine.toml", "--examples", "50")
    assert done.code == 0
    assert "neg-twice: right on" in done.out


def test_a_rule_that_changes_values_fails_the_check(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(RIGHT + WRONG)
    done = dovetail("rules", "check", tmp_path / "mine.toml", "--examples", "50", "--json")
    assert done.code == 1
    reports = {report["rule"]: report for report in json.loads(done.out)}
    assert reports["neg-twice"]["failure"] is None
    assert "before" in reports["exchanged"]["failure"]


def test_a_faulty_file_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(RIGHT.replace("'?x'", "'?y'"))
    done = dovetail("rules", "check", tmp_path / "mine.toml")
    assert done.code == 2
    assert "'?y' is not bound" in done.err
