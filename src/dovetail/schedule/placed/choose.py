"""Plans for placed memories, chosen by the estimate: the best cut of every statement, the host where nothing fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod

from dovetail.base.errors import PlanError
from dovetail.ir.fit import Fit
from dovetail.ir.plan import Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program, Role
from dovetail.schedule.placed.estimate import Estimator, Priced
from dovetail.schedule.placed.lower import placed_nest
from dovetail.schedule.placed.predict import predict
from dovetail.schedule.placed.resident import resident_groups
from dovetail.schedule.placed.space import Work, block_choices, plan_node, unit_count, works
from dovetail.targets.model import MemoryKind, Target

MOST_WORKS = 12
"""Fits of a statement whose cuts are searched, those that compute least first."""
MOST_BOUNDED = 64
"""Fits of a statement that are looked at in blocks of several sizes, those that are best call by call first."""
MOST_PREDICTED = 12
"""Cuts of a statement for which a nest is built and predicted."""
RESERVED = 0.25
"""Share of each memory that is left to the other statements of a sequence."""
SOME = 512
"""Iterations of a loop in a block of middling size."""
SLACK = 2.0
"""A fit that computes so many times as long as the best is not looked at."""


Kept = Mapping[tuple[int, ...], PlanNode]
"""Groups of statements that are planned together."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A cut of a work and what it is estimated to cost."""

    priced: Priced
    work: Work = field(hash=False)


def default_placed_plan(program: Program, target: Target, fits: tuple[Fit, ...]) -> Plan:
    """The plan of the best predictions among the best estimates of every statement.

    Of sequences of which everything can be kept on the machine, the steps that do so."""
    kept = _kept(program, target, fits)
    return assemble(program, best_choices(program, target, fits, kept), kept)


def _kept(program: Program, target: Target, fits: tuple[Fit, ...]) -> Kept:
    return {found.group: found.node for found in resident_groups(program, target, fits)}


def least_cycles(program: Program, target: Target, fits: tuple[Fit, ...]) -> float:
    """About the fewest that a plan could take, in a part of the time that making one takes; the host counts nothing.

    What is spread over units is taken to be spread evenly."""
    room = tuple(capacities(target).items())
    total = 0.0
    for number in range(len(program.statements)):
        found = _most_promising(program, target, fits, number, room)
        total += min((bound / unit_count(target, work.unit) for bound, work in found), default=0.0)
    return total


def best_choices(
    program: Program, target: Target, fits: tuple[Fit, ...], kept: Kept | None = None
) -> dict[int, Choice | None]:
    """What each statement is done by that is not in a group of ``kept``; None: the host."""
    found: dict[int, Choice | None] = {}
    for group in program.groups():
        if kept and group in kept:
            continue
        room = capacities(target)
        for number in _heaviest_first(program, group):
            share = RESERVED if len(group) > 1 else 0.0
            mine = {memory: int(bytes_ - share * target.memory(memory).bytes) for memory, bytes_ in room.items()}
            found[number] = choice = chosen(program, target, fits, number, mine)
            for memory, bytes_ in _resident(choice, room).items():
                room[memory] -= bytes_
    return found


def _heaviest_first(program: Program, group: tuple[int, ...]) -> list[int]:
    """Statements of a sequence; what the one with the most points keeps on the machine saves most."""
    points = {n: prod(x.extent.const for x in program.statements[n].loops) for n in group}
    return sorted(group, key=lambda n: -points[n])


def _resident(choice: Choice | None, room: Mapping[str, int]) -> dict[str, int]:
    """What a choice takes of the memories while the other statements of its sequence run."""
    if choice is None:
        return {}
    return Estimator(choice.work, room).resident(dict(choice.priced.cut.blocks))


def placed_plans(program: Program, target: Target, fits: tuple[Fit, ...]) -> Iterator[Plan]:
    """The default plan, then plans that differ from it in one statement, the best estimates first.

    Endless for no program: every cut that was looked at, once."""
    kept = _kept(program, target, fits)
    first = best_choices(program, target, fits, kept)
    yield assemble(program, first, kept)
    others: list[tuple[float, int, Choice]] = []
    for number, choice in first.items():
        if choice is not None:
            for other in choices(program, target, fits, number, capacities(target)):
                others.append((other.priced.cycles - choice.priced.cycles, number, other))
    for _, number, other in sorted(others, key=lambda row: row[0]):
        yield assemble(program, {**first, number: other}, kept)


def chosen(
    program: Program, target: Target, fits: tuple[Fit, ...], number: int, room: Mapping[str, int]
) -> Choice | None:
    """The choice whose nest is predicted to take the fewest cycles; None where there is none."""
    best: tuple[float, Choice] | None = None
    built = 0
    for choice in choices(program, target, fits, number, room):
        cycles = predicted(program, target, choice)
        if cycles is None:
            continue
        built += 1
        if best is None or (cycles, choice.priced.calls) < (best[0], best[1].priced.calls):
            best = (cycles, choice)
        if built == MOST_PREDICTED:
            break
    return best[1] if best is not None else None


def predicted(program: Program, target: Target, choice: Choice) -> float | None:
    """The cycles of the statement by itself; None where the cut cannot be built."""
    alone = only(program, choice.work.number)
    work = replace(choice.work, program=alone, number=0)
    try:
        nest = placed_nest(alone, assemble(alone, {0: replace(choice, work=work)}), target)
    except PlanError:
        return None
    return predict(nest, target).cycles


def only(program: Program, number: int) -> Program:
    """A statement as a program: what it reads is given, what it writes is asked for."""
    statement = program.statements[number]
    used = {access.tensor for access in statement.reads()} | {statement.out.tensor}
    tensors = []
    for tensor in program.tensors:
        if tensor.name in used:
            written = tensor.name == statement.out.tensor
            role = Role.INOUT if written and tensor.role is Role.INOUT else Role.OUT if written else Role.IN
            tensors.append(replace(tensor, role=role))
    return Program(tuple(tensors), (statement,))


def choices(
    program: Program, target: Target, fits: tuple[Fit, ...], number: int, room: Mapping[str, int]
) -> list[Choice]:
    """Cuts of a statement, the cheapest by estimate first; none where no instruction fits."""
    found: list[Choice] = []
    for bound, work in _most_promising(program, target, fits, number, tuple(room.items())):
        if found and bound > SLACK * min(c.priced.cycles for c in found):
            break
        found += [Choice(priced, work) for priced in climbed(work, room)]
    return sorted(dict.fromkeys(found), key=lambda c: c.priced.price)


@lru_cache(maxsize=64)
def _most_promising(
    program: Program, target: Target, fits: tuple[Fit, ...], number: int, room: tuple[tuple[str, int], ...]
) -> list[tuple[float, Work]]:
    """The works with the lowest bounds of their cycles, and these."""
    ready: list[tuple[float, int, Estimator, tuple[dict[str, int], ...]]] = []
    for n, work in enumerate(works(program, target, fits, number)):
        options = {loop: block_choices(work, loop) for loop in work.extents}
        if all(options.values()):
            most = {loop: max(blocks) for loop, blocks in options.items()}
            some = {loop: max((b for b in blocks if b <= SOME), default=blocks[0]) for loop, blocks in options.items()}
            calls = {loop: some[loop] if loop in work.walked else 1 for loop in some}
            estimator = Estimator(work, dict(room))
            ready.append((estimator.least(calls), n, estimator, (most, some)))
    ready.sort(key=lambda row: row[:2])
    bounds = [(min(least, *map(e.least, blocks)), n, e.work) for least, n, e, blocks in ready[:MOST_BOUNDED]]
    return [(bound, work) for bound, _, work in sorted(bounds, key=lambda row: row[:2])[:MOST_WORKS]]


def climbed(work: Work, room: Mapping[str, int]) -> Iterator[Priced]:
    """From small blocks up: the loop whose larger block helps most, until none does.

    It begins with the smallest of all, and with each operand held whole."""
    estimator = Estimator(work, room)
    options = {loop: block_choices(work, loop) for loop in work.extents}
    inputs = frozenset(t for _, t in work.operands if t != estimator.written)
    starts = [frozenset[str](), *(wanted.access.names() for wanted in estimator.wanted)]
    for twice in (inputs | {estimator.written}, inputs, frozenset[str]()):
        for whole in dict.fromkeys(starts):
            first = {x: len(blocks) - 1 if x in whole else 0 for x, blocks in options.items()}
            yield from _climb(estimator, options, twice, first)


def _climb(
    estimator: Estimator, options: Mapping[str, tuple[int, ...]], twice: frozenset[str], first: Mapping[str, int]
) -> Iterator[Priced]:
    at = dict(first)
    here = estimator.best({x: options[x][n] for x, n in at.items()}, twice)
    if here is not None:
        yield here
    while here is not None:
        better: Priced | None = None
        there: dict[str, int] = {}
        for loop, number in at.items():
            for larger in _larger(options[loop], number):
                step = {**at, loop: larger}
                found = estimator.best({x: options[x][n] for x, n in step.items()}, twice)
                if found is None:
                    continue
                yield found
                if better is None or found.price < better.price:
                    better, there = found, step
        if better is None or better.price >= here.price:
            return
        at, here = there, better


def _larger(options: tuple[int, ...], number: int) -> tuple[int, ...]:
    """The next larger block, and the first that is twice as large."""
    more = range(number + 1, len(options))
    twice = next((n for n in more if options[n] >= 2 * options[number]), None)
    return tuple(dict.fromkeys((*more[:1], *(() if twice is None else (twice,)))))


def assemble(program: Program, chosen: Mapping[int, Choice | None], kept: Kept | None = None) -> Plan:
    """One plan of the chosen cuts, and of whole groups that are ``kept``; statements without one run on the host."""
    nodes: list[PlanNode] = []
    for group in program.groups():
        if kept and group in kept:
            nodes.append(kept[group])
            continue
        body: tuple[PlanNode, ...] = tuple(_statement(n, chosen[n]) for n in group)
        seq = program.statements[group[0]].seq
        for depth in reversed(range(len(seq))):
            loops = tuple((n, program.statements[n].seq[depth].name) for n in group)
            body = (Tile(f"s{group[0]}{seq[depth].name}", loops, 1, body),)
        nodes += body
    return Plan(tuple(nodes), note="analytic model")


def capacities(target: Target) -> dict[str, int]:
    """Bytes of each memory that data is put into."""
    return {m.name: m.bytes for m in target.memories if m.kind is MemoryKind.SCRATCHPAD}


def _statement(number: int, choice: Choice | None) -> PlanNode:
    return Leaf(number) if choice is None else plan_node(choice.work, choice.priced.cut, f"s{number}")
