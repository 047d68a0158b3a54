"""What has been proven or checked about a kernel, by which method, on what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about a kernel and how it was established."""

    claim: str
    method: str
    """"isl", "exact evaluation" or "emitted code"."""
    detail: str
    passed: bool
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{'ok    ' if self.passed else 'FAILED'} {self.claim} ({self.method}: {self.detail})"


@dataclass(frozen=True, slots=True)
class Certificate:
    """All checks of one kernel, for the program and target with these digests."""

    program: str
    target: str
    plan: str
    checks: tuple[Check, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))

    @property
    def holds(self) -> bool:
        return all(c.passed for c in self.checks)
