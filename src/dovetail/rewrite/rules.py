"""Collections of rules: those that come with the package and those of a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dovetail.base.errors import RuleError
from dovetail.base.suggest import closest
from dovetail.rewrite.rule import LEVELS, Rule


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules in the order in which they are tried; names are unique."""

    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        names: set[str] = set()
        for rule in self.rules:
            if rule.name in names:
                raise RuleError(f"two rules are called '{rule.name}'", hint="another name for one of them")
            names.add(rule.name)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __add__(self, other: Iterable[Rule]) -> Rules:
        """These rules, then the others."""
        return Rules((*self.rules, *other))

    def __getitem__(self, name: str) -> Rule:
        """The rule of this name."""
        for rule in self.rules:
            if rule.name == name:
                return rule
        raise RuleError(f"unknown rule '{name}'", hint=closest(name, (rule.name for rule in self.rules)))

    def of_level(self, level: str) -> Rules:
        """The rules of one level: dsl, algorithmic or hardware."""
        if level not in LEVELS:
            raise RuleError(f"unknown level '{level}' of rules", hint=closest(level, LEVELS))
        return Rules(tuple(rule for rule in self.rules if rule.level == level))

    def of_kinds(self, *kinds: str) -> Rules:
        """The rules of some kinds: bit-exact, reassociating, relaxed."""
        return Rules(tuple(rule for rule in self.rules if rule.kind in kinds))

    def named(self, names: Iterable[str]) -> Rules:
        """The rules of these names, in their order."""
        return Rules(tuple(self[name] for name in names))
