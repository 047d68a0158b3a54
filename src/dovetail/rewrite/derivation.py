"""A derivation: a definition and the chain of rules that led from it to another.

map(exp, map(neg, x))
= map-map (bit-exact)
  map(exp, map(neg, x))
  -> map(\\v -> exp(-v), x)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dovetail.base.errors import RewriteError
from dovetail.ir.functional.show import show, show_definition
from dovetail.ir.functional.term import Definition, Term
from dovetail.rewrite.rule import KINDS

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Step:
    """A rule that fired at a place: the part before and after, and the whole body after."""

    rule: str
    kind: str
    at: tuple[int, ...]
    before: Term
    after: Term
    whole: Term
    chosen: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Derivation:
    """``stopped`` names the limit that ended it too early; empty where it came to its end."""

    start: Definition
    steps: tuple[Step, ...] = ()
    stopped: str = ""

    @property
    def end(self) -> Definition:
        """The definition after the last step."""
        return replace(self.start, body=self.steps[-1].whole) if self.steps else self.start

    @property
    def kind(self) -> str:
        """The loosest kind of its steps."""
        return max((step.kind for step in self.steps), key=KINDS.index, default=KINDS[0])

    def __add__(self, later: Derivation) -> Derivation:
        """This derivation and one that starts where it ends."""
        return Derivation(self.start, (*self.steps, *later.steps), self.stopped or later.stopped)

    def finished(self) -> Derivation:
        """Itself; a RewriteError where a limit stopped it."""
        if not self.stopped:
            return self
        limit, _, why = self.stopped.partition("; ")
        raise RewriteError(
            f"rewriting '{self.start.name}' was stopped by {limit}",
            where=f"after {len(self.steps)} steps, the last at {place(self.steps[-1].at)}" if self.steps else None,
            why=why,
            hint="a condition ('when') that is false after the rule has fired, or a higher limit",
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield show_definition(self.start)
        for number, step in enumerate(self.steps, 1):
            sizes = "".join(f", {name} = {value}" for name, value in step.chosen)
            yield ""
            yield f"{number}. {step.rule} ({step.kind}{sizes}) at {place(step.at)}"
            yield from _indented("     ", show(step.before))
            yield from _indented("  -> ", show(step.after))
        if self.steps:
            yield ""
            yield f"after {len(self.steps)} steps ({self.kind}):"
            yield show_definition(self.end)
        if self.stopped:
            yield f"stopped by {self.stopped}"

    def to_json(self) -> Json:
        """Plain data; terms are text."""
        return {
            "start": show_definition(self.start),
            "steps": [_step_json(step) for step in self.steps],
            "end": show_definition(self.end),
            "kind": self.kind,
            "stopped": self.stopped,
        }


def place(path: tuple[int, ...]) -> str:
    """A place in words."""
    return "the top" if not path else ".".join(map(str, path))


def _step_json(step: Step) -> Json:
    return {
        "rule": step.rule,
        "kind": step.kind,
        "at": list(step.at),
        "before": str(step.before),
        "after": str(step.after),
        "term": str(step.whole),
        "chosen": dict(step.chosen),
    }


def _indented(lead: str, text: str) -> Iterator[str]:
    first, *rest = text.splitlines()
    yield lead + first
    for line in rest:
        yield " " * len(lead) + line
