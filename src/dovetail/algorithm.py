"""Which algorithm a program is compiled with: itself, or what a rule makes of it where that is estimated to be faster.

The choice is kept with the plans, so that rules are loaded and tried once for each program, target and set of rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING

from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.ir.windows import has_windows
from dovetail.stored import Shelf

if TYPE_CHECKING:
    from dovetail.ir.functional.term import Definition
    from dovetail.rewrite.explore import Exploration
    from dovetail.rewrite.forms import Choice
    from dovetail.rewrite.rule import Rule

DIRECT = "direct"
Estimate = Callable[[Program], float]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """The program that is compiled, the rule that gave it and its class; what was compared, and the derivation."""

    program: Program
    name: str = DIRECT
    kind: str = "bit-exact"
    costs: str = ""
    derivation: str = ""
    error: str = ""
    """By how much the rule says that values may differ."""

    @property
    def is_direct(self) -> bool:
        """The program runs as it is."""
        return self.name == DIRECT

    def __str__(self) -> str:
        """A line for each form that was looked at; empty where there was no other."""
        if not self.costs:
            return ""
        error = f"; error at most {self.error}" if self.error else ""
        lines = (f"  {line}" for line in self.costs.splitlines())
        return "\n".join([f"algorithm: {self.name} ({self.kind}{error})", *lines])


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user allows, ``relaxed`` rules and ``rules`` of their own; or the ``algorithm`` that they want.

    ``finite``: data will be refused that is not, so that zeros may stand where a program has no point.
    """

    relaxed: bool = False
    rules: tuple[Rule, ...] = ()
    algorithm: str = ""
    finite: bool = False
    given: Definition | None = None
    """What the user wrote, where that was a definition: their own rules are about that."""

    @property
    def text(self) -> str:
        own = f"{self.rules!r} {self.given if self.rules else ''}"
        return f"{self.relaxed} {self.finite} {self.algorithm} {sha256(own.encode()).hexdigest()}"


def chosen(
    program: Program, shelf: Shelf, threads: int, wishes: Wishes, estimate: Estimate, least: Estimate | None = None
) -> Algorithm:
    """The algorithm for ``program``; ``least`` estimates arithmetic alone, where that is known."""
    if wishes.algorithm == DIRECT or not (wishes.rules or wishes.algorithm or has_windows(program)):
        return Algorithm(program)
    words = shelf.text("form", threads, wishes.text, lambda: _choose(program, wishes, estimate, least))
    own = parse(words["program"]) if words["program"] else program
    return Algorithm(own, words["name"], words["kind"], words["costs"], words["derivation"], words["error"])


def explored(source: Program | Definition, wishes: Wishes, estimate: Estimate, seconds: float) -> Exploration:
    """The cheapest that rules make of ``source``, by equality saturation; the rules are loaded for it."""
    module = import_module("dovetail.rewrite.explored")
    found: Exploration = module.explored(source, estimate, seconds, wishes.relaxed, wishes.rules)
    return found


def _choose(program: Program, wishes: Wishes, estimate: Estimate, least: Estimate | None) -> dict[str, str]:
    """Rules are loaded when a program has something for them."""
    module = import_module("dovetail.rewrite.forms")
    allowed = wishes.relaxed, wishes.rules, wishes.finite, wishes.given
    if wishes.algorithm:
        choice: Choice = module.named(program, wishes.algorithm, *allowed)
    else:
        choice = module.choose(program, estimate, *allowed, least)
    form = choice.form
    lines = [f"{name}: {cost:,.0f} cycles estimated" for name, cost in choice.costs]
    return {
        "name": form.name,
        "kind": form.kind,
        "program": "" if form.name == DIRECT else str(form.program),
        "costs": "as asked for" if wishes.algorithm else "\n".join(lines),
        "derivation": str(form.derivation or ""),
        "error": form.error,
    }
