"""Every rule keeps types and values: on random terms and graphs, and for all sizes where it only moves elements."""

from __future__ import annotations

import pytest

from dovetail.rewrite.check.proof import prove
from dovetail.rewrite.check.rules import Effort, check_rule
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.algorithmic import ALGORITHMIC
from dovetail.rewrite.tables.dsl import DSL
from dovetail.rewrite.tables.maps import MAPS
from dovetail.rewrite.tables.moves import MOVES
from dovetail.rewrite.tables.reductions import REDUCTIONS
from tests.property.rule_mutants import MUTANTS

EFFORT = Effort(terms=6, examples=1000)
FOR_MISTAKES = Effort(terms=10, examples=250)
LEAST_CAUGHT = 38
UNPROVEN = frozenset({"reduce-of-sums", "reduce-scale", "reduce-pad"})
"""Rules that do more than move elements: arithmetic, and loops over elements that are not there."""


def _names(rules: tuple[Rule, ...]) -> list[str]:
    return [rule.name for rule in rules]


@pytest.mark.parametrize("rule", ALGORITHMIC, ids=_names(ALGORITHMIC))
def test_a_rule_about_terms_keeps_what_they_compute(rule: Rule) -> None:
    report = check_rule(rule, EFFORT)
    assert report.ok, str(report)
    assert report.examples >= EFFORT.examples


@pytest.mark.parametrize("rule", DSL, ids=_names(DSL))
def test_a_rule_about_operators_keeps_what_they_compute(rule: Rule) -> None:
    report = check_rule(rule, EFFORT)
    assert report.ok, str(report)
    assert report.examples >= EFFORT.examples


PROVABLE = tuple(rule for rule in (*MAPS, *MOVES, *REDUCTIONS) if rule.name not in UNPROVEN)


@pytest.mark.parametrize("rule", PROVABLE, ids=_names(PROVABLE))
def test_a_rule_that_moves_elements_is_proven_for_all_sizes(rule: Rule) -> None:
    proof = prove(rule)
    assert proof.refuted is None
    assert proof.cases >= 1
    assert proof.symbols >= 1


def test_the_checks_find_mistakes_put_into_the_tables() -> None:
    assert len(MUTANTS) >= 40
    missed = [str(mutant) for mutant in MUTANTS if check_rule(mutant.made(), FOR_MISTAKES).ok]
    assert len(MUTANTS) - len(missed) >= LEAST_CAUGHT, missed
    assert not missed
