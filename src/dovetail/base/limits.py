"""Bounds on untrusted or runaway input, in one value that is handed down."""

from __future__ import annotations

from dataclasses import dataclass

MAX_EXTENT = 2**31 - 1
MAX_BYTES = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a program may be and how long a search may take."""

    extent: int = MAX_EXTENT
    """Largest extent of one loop or dimension."""
    tensor_bytes: int = MAX_BYTES
    """Largest tensor."""
    statements: int = 4096
    text_bytes: int = 1 << 24
    mapping_depth: int = 3
    """How many transformations a fit may use besides free reordering."""
    mapping_count: int = 4096
    """How many fits one search may return."""
    mapping_seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class RewriteLimits:
    """How long rules may go on."""

    steps: int = 1000
    """How many rules may fire."""
    nodes: int = 20_000
    """How large a term may grow."""
    seconds: float = 10.0
    choices: int = 64
    """How many values of a size that a rule may choose are tried."""


@dataclass(frozen=True, slots=True)
class ExploreLimits:
    """How far all that rules make of a term is followed."""

    nodes: int = 4000
    """How many operations over classes of equal terms there may be."""
    iterations: int = 8
    seconds: float = 8.0
    choices: int = 3
    """How many values of a size that a rule may choose are tried."""
    variants: int = 3
    """How many other terms of each operand rules see, besides the smallest."""
    estimates: int = 64
    """How many terms are given to the estimate."""


DEFAULT_LIMITS = Limits()
DEFAULT_EXPLORE_LIMITS = ExploreLimits()
DEFAULT_REWRITE_LIMITS = RewriteLimits()
