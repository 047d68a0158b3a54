"""The rules that come with the package, and those that follow from a machine's own instructions."""

from __future__ import annotations

from dovetail.rewrite.rule import Rule
from dovetail.rewrite.rules import Rules
from dovetail.rewrite.tables.algorithmic import ALGORITHMIC
from dovetail.rewrite.tables.arithmetic import ARITHMETIC
from dovetail.rewrite.tables.dsl import DSL
from dovetail.rewrite.tables.hardware import hardware_rules
from dovetail.targets.model import Target


def built_in_rules(target: Target | None = None) -> Rules:
    """All tables, of each name the first rule; with a target, the rules of its instructions as well."""
    machine = () if target is None else hardware_rules(target)
    found: dict[str, Rule] = {}
    for rule in (*DSL, *ALGORITHMIC, *ARITHMETIC, *machine):
        found.setdefault(rule.name, rule)
    return Rules(tuple(found.values()))
