"""Every rule about operators keeps types and values: on random graphs and 1,000 random inputs."""

from __future__ import annotations

import pytest

from dovetail.rewrite.check.rules import Effort, check_rule
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.dsl import DSL

EFFORT = Effort(terms=6, examples=1000)


@pytest.mark.parametrize("rule", DSL, ids=[rule.name for rule in DSL])
def test_a_rule_about_operators_keeps_what_they_compute(rule: Rule) -> None:
    report = check_rule(rule, EFFORT)
    assert report.ok, str(report)
    assert report.examples >= EFFORT.examples
