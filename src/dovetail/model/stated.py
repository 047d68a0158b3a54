"""A graph as it is compiled: what the model states, or what patterns have made of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.verify import Operators
from dovetail.model.report import Note
from dovetail.ops.table import OPERATORS


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """``operators`` are all there are, and those that patterns brought along; ``notes`` say what they did."""

    bound: BoundGraph
    operators: Operators = field(default_factory=lambda: OPERATORS)
    notes: tuple[Note, ...] = ()
    calls: Mapping[str, str] = field(default_factory=dict)
    """By operator: the symbol of the target file that a pattern asks for."""
