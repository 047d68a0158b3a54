"""What a pass has done, and what it has left alone and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.verify import Operators


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the report: the pass, what it did or looked at, and why (or why not)."""

    pass_: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.pass_}: {self.what} ({self.why})" if self.why else f"{self.pass_}: {self.what}"


Passed = tuple[BoundGraph, tuple[Record, ...]]
"""What a pass makes of a graph."""


class Pass(Protocol):
    """A frozen dataclass; its fields are its options."""

    @property
    def name(self) -> str: ...

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed: ...


def counted(number: int, thing: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
