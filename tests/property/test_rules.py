"""Every rule about terms keeps types and values: on random terms and 1,000 random inputs."""

from __future__ import annotations

import pytest

from dovetail.rewrite.check.rules import Effort, check_rule
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.algorithmic import ALGORITHMIC

EFFORT = Effort(terms=60, examples=1000)


@pytest.mark.parametrize("rule", ALGORITHMIC, ids=[rule.name for rule in ALGORITHMIC])
def test_a_rule_about_terms_keeps_what_they_compute(rule: Rule) -> None:
    report = check_rule(rule, EFFORT)
    assert report.ok, str(report)
    assert report.examples >= EFFORT.examples
