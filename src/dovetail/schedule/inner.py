"""The reduction loops inside a register tile: in which order, and which of them is spread out."""

from __future__ import annotations

from collections.abc import Set

from dovetail.schedule.facts import Facts

MOST_TAPS = 7
"""Longest innermost reduction loop that is spread out."""


def inner_order(facts: Facts, lanes: str, tile: Set[str]) -> tuple[str, ...]:
    """Reduction loops, the farthest-striding outermost, so that neighbours in memory meet soon; then those whose
    guard meets the loops of the register ``tile``, so that they can be spread out; lanes last."""
    last = [lanes] if lanes in facts.reduced else []
    rest = [n for n in facts.reduced if n != lanes]
    met = met_by_guard(facts, tile)
    return (*sorted(rest, key=lambda n: (n in met, -_reach(facts, n))), *last)


def met_by_guard(facts: Facts, tile: Set[str]) -> set[str]:
    """Loops in a guard together with a loop of the register tile."""
    return {n for c in facts.statement.where if tile & c.names() for n in c.names()}


def unrolled_loop(facts: Facts, lanes: str, inner: tuple[str, ...]) -> str:
    """The innermost reduction loop, when it is short enough to be spread out beside another one."""
    if len(inner) < 2 or inner[-1] == lanes or inner[-1] in facts.dynamic:
        return ""
    return inner[-1] if facts.extents[inner[-1]] <= MOST_TAPS else ""


def turns(facts: Facts, lanes: str, tile: Set[str]) -> tuple[int, int]:
    """How often the innermost loop turns between two of its starts, and how many steps of the reduction are in a turn:
    those of the loop that is spread out."""
    inner = inner_order(facts, lanes, tile)
    if lanes in facts.reduced:
        inner = inner[:-1]
    taps = unrolled_loop(facts, lanes, inner)
    looped = inner[-2] if taps else inner[-1] if inner else ""
    return facts.extents.get(looped, 1), facts.extents.get(taps, 1)


def _reach(facts: Facts, loop: str) -> int:
    """The largest distance in memory a loop steps."""
    return max((abs(use.stride(loop) or 0) for use in facts.reads), default=0)
