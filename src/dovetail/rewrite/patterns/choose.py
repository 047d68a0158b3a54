"""Of matches that overlap, those that leave the cheapest graph; in which order patterns were given plays no part.

A match is only left out where another one that is taken shares a node with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dovetail.rewrite.patterns.find import Match
from dovetail.rewrite.patterns.show import show_form

_MOST_EXACT = 14
"""Matches that hang together of which all choices are compared; of more, the best is taken first."""
Gain = Callable[[Match], float]
"""What taking a match saves."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """``key`` orders matches of equal gain, by what they are."""

    match: Match
    gain: float
    nodes: frozenset[str]
    key: tuple[object, ...]


def choose(matches: Sequence[Match], gain: Gain) -> tuple[Match, ...]:
    """Matches that share no node, in the order in which they were given."""
    candidates = sorted(
        (_Candidate(match, gain(match), frozenset(match.inside), _key(match)) for match in matches),
        key=lambda one: (-one.gain, -len(one.nodes), str(one.key)),
    )
    taken: set[int] = set()
    for group in _groups(candidates):
        best = _exact(group) if len(group) <= _MOST_EXACT else _greedy(group)
        taken.update(id(one.match) for one in best)
    return tuple(match for match in matches if id(match) in taken)


def _key(match: Match) -> tuple[object, ...]:
    return match.pattern.name, show_form(match.read.before), match.found


def _groups(candidates: Sequence[_Candidate]) -> list[list[_Candidate]]:
    """Candidates that hang together by shared nodes, in their order."""
    above: dict[str, str] = {}

    def root(node: str) -> str:
        while above.setdefault(node, node) != node:
            above[node] = above[above[node]]
            node = above[node]
        return node

    for one in candidates:
        first, *others = sorted(one.nodes)
        for other in others:
            above[root(other)] = root(first)
    groups: dict[str, list[_Candidate]] = {}
    for one in candidates:
        groups.setdefault(root(min(one.nodes)), []).append(one)
    return list(groups.values())


def _greedy(group: Sequence[_Candidate]) -> list[_Candidate]:
    taken: set[str] = set()
    found = []
    for one in group:
        if taken.isdisjoint(one.nodes):
            taken |= one.nodes
            found.append(one)
    return found


def _exact(group: Sequence[_Candidate]) -> list[_Candidate]:
    """Of all choices to which nothing can be added, the one that saves most; the first of equals."""
    best: list[_Candidate] = []
    most = float("-inf")

    def grow(at: int, chosen: list[_Candidate], taken: frozenset[str], saved: float) -> None:
        nonlocal best, most
        if at == len(group):
            whole = all(one in chosen or not taken.isdisjoint(one.nodes) for one in group)
            if whole and saved > most:
                best, most = list(chosen), saved
            return
        one = group[at]
        if taken.isdisjoint(one.nodes):
            grow(at + 1, [*chosen, one], taken | one.nodes, saved + one.gain)
        grow(at + 1, chosen, taken, saved)

    grow(0, [], frozenset(), 0.0)
    return best
