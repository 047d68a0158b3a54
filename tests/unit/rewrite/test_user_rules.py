"""Rules from files, and collections of rules. What is wrong with a file is tested in tests/errors."""

from pathlib import Path

import pytest

from dovetail.base.errors import RuleError
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.rules import Rules
from dovetail.rewrite.user_rules import read_rules

FILE = r"""
[[rule]]
name   = "part-sums"
before = 'reduce(?f, ?z, ?x)'
after  = 'reduce(?f, ?z, map(reduce(?f, ?z), split(?n, ?x)))'
when   = ["associative(?f)", "neutral(?f, ?z)"]
types  = "x: ?t[?m]"
choose = "n: divisors(?m)"
kind   = "reassociating"
doc    = "Sums of parts."

[[rule]]
name   = "reciprocal"
before = '?x / ?y'
after  = '?x * (1 / ?y)'
kind   = "relaxed"
error  = "3 * eps * the value"
"""


def test_a_file_gives_its_rules_in_order(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FILE)
    rules = read_rules(tmp_path / "mine.toml")
    assert [rule.name for rule in rules] == ["part-sums", "reciprocal"]
    assert rules["part-sums"].when == ("associative(?f)", "neutral(?f, ?z)")
    assert rules["part-sums"].types == ("x: ?t[?m]",)
    assert rules["part-sums"].level == "algorithmic"
    assert rules["reciprocal"].error == "3 * eps * the value"


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(RuleError, match="cannot be read") as caught:
        read_rules("nowhere.toml")
    assert caught.value.where == "nowhere.toml"


def test_rules_are_found_by_name_level_and_kind() -> None:
    first, second = Rule("a", "?x + 0", "?x"), Rule("b", "?x * 1", "?x", level="hardware", kind="reassociating")
    rules = Rules((first,)) + Rules((second,))
    assert rules["b"] is second
    assert list(rules.of_level("hardware")) == [second]
    assert list(rules.of_kinds("bit-exact")) == [first]
    assert list(rules.named(("b", "a"))) == [second, first]
    assert len(rules) == 2


def test_an_unknown_rule_is_answered_with_the_closest_name() -> None:
    with pytest.raises(RuleError, match="did you mean 'map-map'"):
        Rules((Rule("map-map", "?x", "?x"),))["map-mop"]


def test_names_of_rules_are_unique() -> None:
    with pytest.raises(RuleError, match="two rules are called 'a'"):
        Rules((Rule("a", "?x", "?x"), Rule("a", "?y", "?y")))
