"""What has been proven or checked about a kernel, by which method, on what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about a kernel and how it was established."""

    claim: str
    method: str
    """"isl", "unification", "equal indices", "exact evaluation" or "emitted code"."""
    detail: str
    passed: bool
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{'ok    ' if self.passed else 'FAILED'} {self.claim} ({self.method}: {self.detail})"


@dataclass(frozen=True, slots=True)
class Certificate:
    """All checks of one kernel, for the program, target and plan with these digests.

    ``kept``: the checks were made by an earlier compilation, and came with its code out of the cache.
    """

    program: str
    target: str
    plan: str
    checks: tuple[Check, ...]
    kept: bool = False

    def __str__(self) -> str:
        origin = ["from the cache: checked when this code was compiled"] if self.kept else []
        return "\n".join([*origin, *map(str, self.checks)])

    @property
    def holds(self) -> bool:
        return all(c.passed for c in self.checks)
