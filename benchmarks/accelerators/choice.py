"""How often the estimate takes the form of a convolution that the simulator finds fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.accelerators.cases import Case
from benchmarks.accelerators.subject import Row, measured
from dovetail.base.errors import DovetailError
from dovetail.ir.parse import parse
from dovetail.simulated.estimate import Estimates
from dovetail.targets.load import load_target


@dataclass(frozen=True, slots=True)
class Chosen:
    """One convolution: its forms as they were simulated, and what each was estimated to take before that."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    estimates: tuple[float, ...]

    @property
    def name(self) -> str:
        """The form that the estimate takes."""
        return self.names[min(range(len(self.names)), key=lambda n: self.estimates[n])]

    @property
    def fastest(self) -> str:
        """The form that takes the fewest simulated cycles."""
        return min((row.cycles, name) for row, name in zip(self.rows, self.names, strict=True) if row.works)[1]

    @property
    def is_right(self) -> bool:
        return self.name == self.fastest

    def cycles(self, name: str) -> float:
        """The fewest that a form takes, of all its variants; 0 where it has none."""
        return min((r.cycles for r, n in zip(self.rows, self.names, strict=True) if n == name and r.works), default=0.0)

    def __str__(self) -> str:
        each = ", ".join(f"{name} {self.cycles(name):.0f}" for name in dict.fromkeys(self.names))
        return f"{self.rows[0].case.label}: takes {self.name}, fastest is {self.fastest} ({each})"


def chosen(forms: Sequence[tuple[str, Case]], budget: float) -> Chosen:
    """Estimates of all forms, then each with the plan that ``budget`` seconds of search find (0: the default plan)."""
    compare = Estimates(load_target(forms[0][1].target))
    estimates = tuple(_estimate(case, compare) for _, case in forms)
    rows = tuple(measured(case, budget) for _, case in forms)
    return Chosen(tuple(name for name, _ in forms), rows, estimates)


def _estimate(case: Case, compare: Estimates) -> float:
    try:
        return compare(parse(case.text))
    except DovetailError:
        return float("inf")
