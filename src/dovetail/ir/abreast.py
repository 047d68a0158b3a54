"""Sequences of as many steps that need nothing of each other are walked together: units meet once for all of them.

    seq t<T: for j<8: h[t + 1, j] = ...            for j<8: g[0, j] = 0
    for j<8: g[0, j] = 0                     ->    seq t<T: for j<8: h[t + 1, j] = ...
    seq s<T: for j<8: g[s + 1, j] = ...            seq t<T: for j<8: g[t + 1, j] = ...

Every element is computed as before, so every value keeps its bits.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.index import variable
from dovetail.ir.program import Loop, Program, Statement, touch

Group = tuple[Statement, ...]


def with_sequences_abreast(program: Program) -> Program:
    """``program`` with as few sequences of one loop as walk the same steps."""
    groups = [tuple(program.statements[n] for n in group) for group in program.groups()]
    joined = groups
    while (shorter := _joined(joined)) is not None:
        joined = shorter
    return program if joined is groups else replace(program, statements=tuple(s for group in joined for s in group))


def _joined(groups: list[Group]) -> list[Group] | None:
    """The groups with two sequences as one; None where no two can be."""
    for first, one in enumerate(groups):
        bound: list[Group] = []  # what needs the first sequence, or must wait for it
        ahead: list[Group] = []
        for number in range(first + 1, len(groups) if len(one[0].seq) == 1 else 0):
            other = groups[number]
            if any(touch(other, earlier) for earlier in (one, *bound)):
                bound.append(other)
                continue
            if [loop.extent for loop in other[0].seq] == [one[0].seq[0].extent]:
                found = [*groups[:first], *ahead, _under_one_loop(one, other), *bound, *groups[number + 1 :]]
                if not any(map(_are_one, found, found[1:])):
                    return found
            ahead.append(other)
    return None


def _are_one(one: Group, other: Group) -> bool:
    """Whether neighbours would be read as one sequence."""
    return bool(one[0].seq) and one[0].seq == other[0].seq


def _under_one_loop(one: Group, other: Group) -> Group:
    """Both sequences as the steps of one, under a name that no loop inside has."""
    inside = {loop.name for s in (*one, *other) for loop in s.loops}
    name = one[0].seq[0].name
    while name in inside:
        name += "_"
    return tuple(_with_step(s, name) for s in (*one, *other))


def _with_step(statement: Statement, name: str) -> Statement:
    (step,) = statement.seq
    if step.name == name:
        return statement
    renamed = statement.substitute({step.name: variable(name)}, statement.loops)
    return replace(renamed, seq=(Loop(name, step.extent),))
