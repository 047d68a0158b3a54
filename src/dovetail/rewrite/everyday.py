"""The strategy for everyday compilation: rules that only make a term shorter or bring moves together, until none fires.

Every rule here takes an operation away or moves one past another in one direction, so that they come to an end; rules
of a user are tried first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from dovetail.base.limits import DEFAULT_REWRITE_LIMITS, RewriteLimits
from dovetail.ir.functional.term import Definition
from dovetail.rewrite.derivation import Derivation
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.rules import Rules
from dovetail.rewrite.strategy import Strategy, derive, exhaust
from dovetail.rewrite.tables.algorithmic import ALGORITHMIC

EVERYDAY = (
    "join-split", "split-join", "transpose-twice", "pad-nothing", "slice-all", "slice-pad", "map-identity", "to-twice",
    "pad-pad", "slice-slice", "transpose-repeat", "join-repeat", "split-repeat", "slide-repeat",
    "zip-first", "zip-second", "zip-same", "zip-repeat-first", "zip-repeat-second", "map-constant", "map-repeat",
    "transpose-map", "split-map", "join-map", "slice-map",
    "map-fusion", "zip-map-first", "zip-map-second",
)  # fmt: skip
"""In the order in which they are tried: first what takes moves away, then what moves maps outwards, then fusion."""


@cache
def everyday(rules: tuple[Rule, ...] = ()) -> Strategy:
    """A user's ``rules``, then those of every day, wherever they fire, until none does."""
    return exhaust((*rules, *Rules(ALGORITHMIC).named(EVERYDAY)))


def tidied(
    definition: Definition, rules: Iterable[Rule] = (), limits: RewriteLimits = DEFAULT_REWRITE_LIMITS
) -> Derivation:
    """What everyday compilation makes of a definition; a RewriteError where rules do not come to an end."""
    return derive(definition, everyday(tuple(rules)), limits).finished()
