"""A recurrence with fewer steps, and its plan: what happens in a step is the same whatever their number.

    for t<1500, j<64: x[t, j] = 2 * v[t, j]                    for t<3, j<64: x[t, j] = 2 * v[t, j]
    seq t<1500: for j<64: h[t+1, j] = h[t, j] + x[t, j]   ->   seq t<3: for j<64: h[t+1, j] = h[t, j] + x[t, j]
    for j<64: y[j] = h[1500, j]                                for j<64: y[j] = h[3, j]

Every loop that walks a dimension along which steps go is as short, and the dimensions with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dovetail.ir.expr import Expr, Position, Read, rebuild, walk
from dovetail.ir.index import Access, Index
from dovetail.ir.plan import Leaf, Plan, PlanNode
from dovetail.ir.program import Loop, Program, Statement

Walked = tuple[int, str]
"""A loop of a statement."""
Dimension = tuple[str, int]
"""Of a tensor."""
NEAR = 2
"""A place along steps is counted from the first one up to here, from the last one behind it."""


def with_fewer_steps(program: Program, plan: Plan, steps: int) -> tuple[Program, tuple[Plan, ...]] | None:
    """The program with ``steps`` in every sequence, and plans of it: with tiles as short, and with tiles as they were,
    for instructions that cannot do less. None where sequences differ in length, or are short, or not plain."""
    counts = {s.seq[0].extent.const for s in program.statements if len(s.seq) == 1}
    if len(counts) != 1 or any(len(s.seq) > 1 for s in program.statements):
        return None
    count = counts.pop()
    along = _along(program)
    if count <= steps + NEAR or along is None or not _is_plain(program, along, count):
        return None
    return _Shorter(along, count - steps).program(program), (_shorter_plan(plan, along, steps), plan)


@dataclass(frozen=True, slots=True)
class _Along:
    """Loops that go along with the steps, and dimensions that they walk."""

    loops: frozenset[Walked]
    dimensions: frozenset[Dimension]


def _along(program: Program) -> _Along | None:
    """None where a loop walks steps and something else at once."""
    loops = {(n, s.seq[0].name) for n, s in enumerate(program.statements) if s.seq}
    dimensions: set[Dimension] = set()
    while True:
        before = len(loops), len(dimensions)
        for number, access in _accesses(program):
            for d, index in enumerate(access.indices):
                walked = {(number, str(name)) for name in index.names()}
                if walked & loops or (access.tensor, d) in dimensions:
                    loops |= walked
                    dimensions.add((access.tensor, d))
                    if len(walked) > 1 or any(abs(c) != 1 for _, c in index.terms):
                        return None
        if (len(loops), len(dimensions)) == before:
            return _Along(frozenset(loops), frozenset(dimensions))


def _is_plain(program: Program, along: _Along, count: int) -> bool:
    """Whether all of these loops have one extent, nothing else is said of them, and places are near an end."""
    for number, statement in enumerate(program.statements):
        mine = {loop for n, loop in along.loops if n == number}
        guarded = any(c.names() & mine for c in statement.where)
        looked_at = any(isinstance(e, Position) and e.index.names() & mine for e in walk(statement.value))
        if guarded or looked_at or any(x.extent.const != count for x in statement.all_loops if x.name in mine):
            return False
    for _, access in _accesses(program):
        for d, index in enumerate(access.indices):
            if (access.tensor, d) in along.dimensions and NEAR < index.const < count - 1:
                return False
    return True


@dataclass(frozen=True, slots=True)
class _Shorter:
    """``less`` steps."""

    along: _Along
    less: int

    def program(self, program: Program) -> Program:
        tensors = []
        for tensor in program.tensors:
            shape = tuple(
                e - self.less if (tensor.name, d) in self.along.dimensions else e for d, e in enumerate(tensor.shape)
            )
            tensors.append(replace(tensor, shape=shape))
        statements = tuple(self.statement(n, s) for n, s in enumerate(program.statements))
        return replace(program, tensors=tuple(tensors), statements=statements)

    def statement(self, number: int, statement: Statement) -> Statement:
        def loops(several: tuple[Loop, ...]) -> tuple[Loop, ...]:
            return tuple(
                Loop(x.name, x.extent - self.less) if (number, x.name) in self.along.loops else x for x in several
            )

        def value(e: Expr) -> Expr:
            return Read(self.access(e.access)) if isinstance(e, Read) else e

        return replace(
            statement,
            loops=loops(statement.loops),
            seq=loops(statement.seq),
            out=self.access(statement.out),
            value=rebuild(statement.value, value),
        )

    def access(self, access: Access) -> Access:
        def moved(d: int, index: Index) -> Index:
            is_late = (access.tensor, d) in self.along.dimensions and index.const > NEAR
            return index - self.less if is_late else index

        return Access(access.tensor, tuple(moved(d, index) for d, index in enumerate(access.indices)))


def _shorter_plan(plan: Plan, along: _Along, steps: int) -> Plan:
    def node(one: PlanNode) -> PlanNode:
        if isinstance(one, Leaf):
            return one
        step = min(one.step, steps) if along.loops & set(one.loops) else one.step
        return replace(one, step=step, body=tuple(node(inner) for inner in one.body))

    return replace(plan, body=tuple(node(one) for one in plan.body))


def _accesses(program: Program) -> Iterator[tuple[int, Access]]:
    for number, statement in enumerate(program.statements):
        for access in (statement.out, *statement.reads()):
            yield number, access
