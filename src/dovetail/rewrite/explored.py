"""Exploration of a program: which rules are followed, and what the terms they give cost.

Followed is what changes which values are computed or stored, and what brings such places together. Left out is what
the scheduler decides better than a term can say it, since both sides normalise to one program: tiles, the order of
loops and of sums, and copies into other memories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

from dovetail.base.errors import CodegenError, LimitError, MappingError, PlanError, ProgramError, RewriteError
from dovetail.base.limits import DEFAULT_EXPLORE_LIMITS
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.raise_program import raise_program
from dovetail.ir.functional.term import Definition
from dovetail.ir.program import Program
from dovetail.rewrite.copies import plain_copies
from dovetail.rewrite.everyday import EVERYDAY
from dovetail.rewrite.explore import Exploration, explore
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.rules import Rules
from dovetail.rewrite.tables.algorithmic import ALGORITHMIC
from dovetail.rewrite.tables.convolution import CONVOLUTION
from dovetail.rewrite.usual_order import Order, in_usual_order, restored

EXPLORED = (
    *(rule.name for rule in CONVOLUTION),
    "let-inline", "let-operand", "let-reduced", "map-fission", "zip-of-maps", "map-of-slide",
    "reduce-of-sums", "reduce-scale",
    *EVERYDAY,
)  # fmt: skip
"""In the order in which they are tried: other algorithms, then what is stored, then what is summed, then tidying."""


UNFIT = (RewriteError, ProgramError, MappingError, PlanError, CodegenError, LimitError)
"""What is said of a term that has no program, or a program that has no plan: it costs infinitely much."""


def explored(
    source: Program | Definition,
    estimate: Callable[[Program], float],
    seconds: float,
    relaxed: bool = False,
    rules: tuple[Rule, ...] = (),
) -> Exploration:
    """The cheapest that rules make of a program or a definition within so many seconds, by an estimate of programs."""
    orders: dict[str, Order] = {}
    if isinstance(source, Program):
        source, orders = in_usual_order(source)
        source = raise_program(source)
    limits = replace(DEFAULT_EXPLORE_LIMITS, seconds=seconds)
    allowed = frozenset({"finite"} if relaxed else ())
    return explore(source, explored_rules(relaxed, rules), _Costs(estimate, orders), limits, allowed)


def explored_rules(relaxed: bool = False, rules: tuple[Rule, ...] = ()) -> tuple[Rule, ...]:
    """A user's rules, then those of exploration, each name once; relaxed ones only where they are allowed."""
    own = {rule.name for rule in rules}
    ours = (rule for rule in Rules(ALGORITHMIC).named(EXPLORED) if rule.name not in own)
    return tuple(rule for rule in (*rules, *ours) if relaxed or rule.kind != "relaxed")


class _Costs:
    """What definitions cost: their programs, each estimated once."""

    def __init__(self, estimate: Callable[[Program], float], orders: dict[str, Order]) -> None:
        self.estimate, self.orders = estimate, orders
        self.known: dict[Program, float] = {}

    def __call__(self, definition: Definition) -> float:
        try:
            program = restored(plain_copies(normalise(definition, typed=True)), self.orders)
            if program not in self.known:
                self.known[program] = self.estimate(program)
        except UNFIT:
            return inf
        return self.known[program]
