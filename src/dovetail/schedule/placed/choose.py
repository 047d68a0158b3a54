"""Plans for placed memories, chosen by the estimate: the best cut of every statement, the host where nothing fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dovetail.base.errors import PlanError
from dovetail.ir.fit import Fit
from dovetail.ir.index import constant
from dovetail.ir.plan import Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program, Role
from dovetail.schedule.placed.estimate import Estimator, Priced
from dovetail.schedule.placed.lower import placed_nest
from dovetail.schedule.placed.predict import predict
from dovetail.schedule.placed.space import Work, block_choices, plan_node, works
from dovetail.targets.model import MemoryKind, Target

MOST_WORKS = 12
"""Fits of a statement whose cuts are searched, those that compute least first."""
MOST_PREDICTED = 8
"""Cuts of a statement for which a nest is built and predicted."""
SLACK = 2.0
"""A fit that computes so many times as long as the best is not looked at."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A cut of a work and what it is estimated to cost."""

    priced: Priced
    work: Work


def default_placed_plan(program: Program, target: Target, fits: tuple[Fit, ...]) -> Plan:
    """The plan of the best predictions among the best estimates of every statement."""
    room = capacities(target)
    return assemble(program, {n: chosen(program, target, fits, n, room) for n in range(len(program.statements))})


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
        if best is None or cycles < best[0]:
            best = (cycles, choice)
        if built == MOST_PREDICTED:
            break
    return best[1] if best is not None else None


def predicted(program: Program, target: Target, choice: Choice) -> float | None:
    """The cycles of one step of the statement by itself; None where the cut cannot be built."""
    alone = step_of(program, choice.work.number)
    work = replace(choice.work, program=alone, number=0)
    try:
        nest = placed_nest(alone, assemble(alone, {0: replace(choice, work=work)}), target)
    except PlanError:
        return None
    return predict(nest, target).cycles


def step_of(program: Program, number: int) -> Program:
    """The first step of a statement as a program: what it reads is given, what it writes is asked for."""
    statement = program.statements[number]
    statement = replace(statement, seq=tuple(replace(x, extent=constant(1)) for x in statement.seq))
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
    bounds: list[tuple[float, int, Work]] = []
    for n, work in enumerate(works(program, target, fits, number)):
        choices_of = {loop: block_choices(work, loop) for loop in work.extents}
        if all(choices_of.values()):
            most = {loop: max(blocks) for loop, blocks in choices_of.items()}
            bounds.append((Estimator(work, room).least(most), n, work))
    bounds.sort(key=lambda row: row[:2])
    for bound, _, work in bounds[:MOST_WORKS]:
        if found and bound > SLACK * min(c.priced.cycles for c in found):
            break
        found += [Choice(priced, work) for priced in climbed(work, room)]
    return sorted(found, key=lambda c: c.priced.price)


def climbed(work: Work, room: Mapping[str, int]) -> Iterator[Priced]:
    """From the smallest blocks up: the loop whose larger block helps most, until none does."""
    estimator = Estimator(work, room)
    options = {loop: block_choices(work, loop) for loop in work.extents}
    inputs = frozenset(t for _, t in work.operands if t != estimator.written)
    for twice in (inputs | {estimator.written}, inputs, frozenset[str]()):
        yield from _climb(estimator, options, twice)


def _climb(estimator: Estimator, options: Mapping[str, tuple[int, ...]], twice: frozenset[str]) -> Iterator[Priced]:
    at = dict.fromkeys(options, 0)
    here = estimator.best({x: options[x][0] for x in options}, twice)
    while here is not None:
        yield here
        better: Priced | None = None
        step = ""
        for loop, number in at.items():
            if number + 1 == len(options[loop]):
                continue
            blocks = {x: options[x][n + (x == loop)] for x, n in at.items()}
            found = estimator.best(blocks, twice)
            if found is not None and (better is None or found.price < better.price):
                better, step = found, loop
        if better is None or better.price >= here.price:
            return
        at[step] += 1
        here = better


def assemble(program: Program, chosen: Mapping[int, Choice | None]) -> Plan:
    """One plan of the chosen cuts; statements without one run on the host."""
    nodes: list[PlanNode] = []
    for group in program.groups():
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
