"""Every rule that only moves elements is right for all values of its sizes."""

from __future__ import annotations

import pytest

from dovetail.rewrite.check.proof import prove
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.maps import MAPS
from dovetail.rewrite.tables.moves import MOVES
from dovetail.rewrite.tables.reductions import REDUCTIONS

UNPROVEN = frozenset({"reduce-of-sums", "reduce-scale", "reduce-pad"})
"""Rules that do more than move elements: arithmetic, and loops over elements that are not there."""
PROVABLE = tuple(rule for rule in (*MAPS, *MOVES, *REDUCTIONS) if rule.name not in UNPROVEN)


@pytest.mark.parametrize("rule", PROVABLE, ids=[rule.name for rule in PROVABLE])
def test_a_rule_that_moves_elements_is_proven_for_all_sizes(rule: Rule) -> None:
    proof = prove(rule)
    assert proof.refuted is None
    assert proof.cases >= 1
    assert proof.symbols >= 1
