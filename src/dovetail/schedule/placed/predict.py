"""How many cycles a nest takes, from its loops alone: no data, and no stepping through iterations.

The rules are those of the simulated machine: calls issue in order, hold a pipe or an engine, pass ports, and wait for
what they read. Every time is the latest of earlier times plus a constant, so one iteration is a matrix over max and
plus, and n iterations that are decided alike are its n-th power. What it costs does not depend on the extents.

It differs from the simulation where buffers count as one place, or as one place for each iteration of a loop; where
units of a parallel differ, which all count as the first; and where many iterations are all different.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dovetail.ir.nest import Nest
from dovetail.schedule.placed.predict_build import build
from dovetail.schedule.placed.predict_keys import Env, Key, Piece, key, pieces
from dovetail.schedule.placed.predict_maxplus import NEVER, Matrix, identity, power, product, settle
from dovetail.schedule.placed.predict_steps import CLOCK, END, CallStep, LoopStep, Step, WaitStep, WhenStep
from dovetail.targets.model import Target

Row = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Busy:
    """Cycles for which one unit's pipe, its engine for copies, or one memory's port is held."""

    kind: str
    """One of "unit", "engine" and "memory"."""
    name: str
    cycles: float

    def __str__(self) -> str:
        return f"copies of {self.name or 'machine'}" if self.kind == "engine" else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The cycles of a nest, and what it spends them on."""

    cycles: float
    busy: tuple[Busy, ...]
    """The busiest first."""

    @property
    def bound(self) -> Busy | None:
        """What the nest would wait for if everything overlapped."""
        return self.busy[0] if self.busy else None

    @property
    def exposed_cycles(self) -> float:
        """Cycles in which the busiest unit or memory does nothing: what is not overlapped with it."""
        return self.cycles - (self.busy[0].cycles if self.busy else 0.0)


def predict(nest: Nest, target: Target, sizes: Mapping[str, int] | None = None) -> Prediction:
    """How long ``nest`` takes on ``target``; run-time sizes have the values in ``sizes``."""
    steps = build(nest, target, sizes or {})
    state = _State([np.zeros(1) for _ in range(steps.size)], np.zeros(steps.size))
    _Runner().steps(steps.body, state, {})
    busy = [Busy(r.kind, r.name, float(state.busy[n])) for n, r in steps.resources.items()]
    busy.sort(key=lambda one: -one.cycles)
    return Prediction(float(max(state.rows[CLOCK][0], state.rows[END][0])), tuple(busy))


@dataclass(slots=True)
class _State:
    """A row for each number of the state: after which columns of the beginning it comes, and by how much."""

    rows: list[Row]
    busy: Row
    """Cycles for which each resource was held."""


@dataclass(frozen=True, slots=True)
class _Transfer:
    """What a loop, or its body, does to the numbers that it touches."""

    matrix: Matrix
    busy: Row


@dataclass(slots=True)
class _Runner:
    loops: dict[tuple[LoopStep, Key], _Transfer] = field(default_factory=dict)
    bodies: dict[tuple[LoopStep, Key, Key], _Transfer] = field(default_factory=dict)

    def steps(self, steps: tuple[Step, ...], state: _State, env: Env) -> None:
        for step in steps:
            if isinstance(step, CallStep):
                _call(step, state, env)
            elif isinstance(step, WaitStep):
                for number in step.awaited:
                    state.rows[CLOCK] = np.maximum(state.rows[CLOCK], state.rows[number])
            elif isinstance(step, WhenStep):
                holds = all(_holds(c.index.evaluate(env), c.equal) for c in step.conditions)
                self.steps(step.body if holds else step.otherwise, state, env)
            else:
                self.loop(step, state, env)

    def loop(self, step: LoopStep, state: _State, env: Env) -> None:
        if not step.touched:
            return
        now = key(step.items, env)
        found = self.loops.get((step, now))
        if found is None:
            low = max([i.evaluate(env) for i in step.lower])
            count = max(0, -(-(min([i.evaluate(env) for i in step.upper]) - low) // step.step))
            if count < 2:
                if count:
                    env[step.var] = low
                    self.steps(step.body, state, env)
                    del env[step.var]
                return
            found = self.loops[step, now] = self.iterations(step, low, count, env, len(state.busy))
        before = np.array([state.rows[n] for n in step.touched])
        after = product(found.matrix, before)
        for number, row in zip(step.touched, after, strict=True):
            state.rows[number] = row
        state.busy += found.busy

    def iterations(self, step: LoopStep, low: int, count: int, env: Env, size: int) -> _Transfer:
        """Two iterations or more."""
        around = key(step.other_items, env)
        found_pieces = pieces(step.own_items, step.var, low, step.step, count, env)
        bodies = [(self.body(step, piece, around, env, size), piece.count) for piece in found_pieces]
        busy = np.zeros(size)
        for body, times in bodies:
            busy += body.busy * times
        found: Matrix | None = None
        last = len(bodies) - 1
        for number, (body, times) in enumerate(bodies):
            many = times - 1 if number == last and step.own else times
            if many:
                these = power(_between(step, body.matrix) if step.own else body.matrix, many)
                found = these if found is None else product(these, found)
        assert found is not None
        if step.own:
            found = product(bodies[-1][0].matrix, found)
            for first, _ in step.pairs:
                found[first] = _between(step, bodies[0][0].matrix, keep=True)[first]
        return _Transfer(found, busy)

    def body(self, step: LoopStep, piece: Piece, around: Key, env: Env, size: int) -> _Transfer:
        """One iteration."""
        found = self.bodies.get((step, piece.key, around))
        if found is None:
            rows: list[Row] = [_NONE] * size
            for number, row in zip(step.touched, identity(len(step.touched)), strict=True):
                rows[number] = row
            state = _State(rows, np.zeros(size))
            env[step.var] = piece.value
            self.steps(step.body, state, env)
            del env[step.var]
            found = _Transfer(np.array([rows[n] for n in step.touched]), state.busy)
            settle(found.matrix, step.touched.index(CLOCK))
            self.bodies[step, piece.key, around] = found
        return found


_NONE = np.zeros(0)


def _between(step: LoopStep, matrix: Matrix, keep: bool = False) -> Matrix:
    """An iteration that finds its own places as they were before the loop, and leaves them so for the others.

    The place that one loop comes to first is the first of the next one, too."""
    found = matrix.copy()
    for first, last in step.pairs:
        found[:, first] = np.maximum(found[:, first], found[:, last])
        found[:, last] = NEVER
    if not keep:
        for number in step.own:
            found[number] = NEVER
            found[number, number] = 0.0
    return found


def _call(step: CallStep, state: _State, env: Env) -> None:
    """A call issues, holds what it needs, and leaves a result."""
    cost, rows = step.cost(env), state.rows
    issued = rows[CLOCK]
    for number in step.awaited:
        issued = np.maximum(issued, rows[number])
    start = np.maximum(issued, rows[step.pipe])
    end = start + cost.hold
    for number, cycles in zip(step.ports, cost.ports, strict=True):
        rows[number] = np.maximum(rows[number], start) + cycles
        end = np.maximum(end, rows[number])
        state.busy[number] += cycles
    servers = step.shared.servers
    rows[step.pipe] = end if servers == 1 else start + cost.hold / servers
    done = end if cost.result <= cost.hold else np.maximum(end, start + cost.result)
    rows[END] = np.maximum(rows[END], done)
    state.busy[step.pipe] += max(cost.hold, *cost.ports) / servers if cost.ports else cost.hold / servers
    if step.token >= 0:
        rows[step.token] = np.maximum(rows[step.token], done)
        rows[CLOCK] = issued
    elif step.instruction.is_async:
        rows[CLOCK] = done
    else:
        rows[CLOCK] = start
        for number in step.written:
            rows[number] = np.maximum(rows[number], done)
        for number in step.read:
            rows[number] = np.maximum(rows[number], end)


def _holds(value: int, equal: bool) -> bool:
    return value == 0 if equal else value >= 0
