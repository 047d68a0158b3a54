"""Mistakes put into the tables are found by the checks that the tables themselves pass."""

from __future__ import annotations

from dovetail.rewrite.check.rules import Effort, check_rule
from tests.property.rule_mutants import MUTANTS

EFFORT = Effort(terms=10, examples=250)
LEAST = 40
LEAST_CAUGHT = 38


def test_the_checks_find_mistakes_put_into_the_tables() -> None:
    reports = {str(mutant): check_rule(mutant.made(), EFFORT) for mutant in MUTANTS}
    assert len(reports) >= LEAST
    missed = [name for name, report in reports.items() if report.ok]
    assert len(reports) - len(missed) >= LEAST_CAUGHT, missed
    idle = [name for name, report in reports.items() if report.failure == "it never fires"]
    assert not idle, "a rule that is not used is not known to be wrong"
