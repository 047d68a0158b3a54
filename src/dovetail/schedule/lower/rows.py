"""Lines that a leaf asks for ahead of their use, of tensors that it reads as they lie.

    loop over c: ... x[c, q], x[c, q + 1], ... x[c, q + 13] ...

needs new lines in every step, far from those of the step before: those of a few steps later are asked for. Rows along
which several steps stay in one line need no such help. Asking is a hint. Past the end of a tensor nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from dovetail.ir.index import Access, Index, constant
from dovetail.ir.nest import Fetch, Place
from dovetail.ir.plan import Leaf
from dovetail.schedule.lower.state import State, Turn, Workshop
from dovetail.schedule.machine import LINE_BYTES

MOST_LINES = 8
"""Lines asked for at once; rows that need more in every step are not for reading as they lie."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One read of a leaf: the loops that go on from round to round, innermost first, and those inside the leaf."""

    access: Access
    turns: tuple[Turn, ...]
    inside: Mapping[str, int]
    strides: Mapping[str, int]
    line: int
    """Elements of a line."""


def row_fetches(shop: Workshop, leaf: Leaf, state: State) -> Iterator[Fetch]:
    """What a leaf asks for, once in each of its rounds."""
    statement = shop.statements[leaf.statement]
    for tensor, rounds in leaf.fetched:
        for access in statement.reads():
            row = _row(shop, leaf, state, access) if access.tensor == tensor else None
            if row is not None:
                bases = state.bases(leaf.statement)
                for moved in _lines(row, state, bases, rounds):
                    indices = tuple(index.substitute({**bases, **moved}) for index in access.indices)
                    yield Fetch(Place(access.tensor, indices))


def _row(shop: Workshop, leaf: Leaf, state: State, access: Access) -> _Row | None:
    """None where the read is laid out otherwise, moves unevenly, or was asked for by another copy of the leaf."""
    if access.tensor in state.held or not all(index.is_affine for index in access.indices):
        return None
    statement = shop.statements[leaf.statement]
    written = statement.out.names()
    strides: dict[str, int] = {}
    for name in sorted(access.names()):
        steps = zip(access.indices, shop.strides[access.tensor], strict=True)
        moves = [(index.coefficient(name), step) for index, step in steps if index.coefficient(name)]
        if any(step is None or not step.is_constant for _, step in moves):
            return None
        strides[name] = abs(sum(c * step.const for c, step in moves if step is not None))
    spans = {name: state.spans[leaf.statement, name] for name in access.names()}
    around = [t for t in reversed(state.turns.get(leaf.statement, ())) if t.loop in spans and t.loop not in written]
    turns = tuple(turn for turn in around if not turn.start.is_constant)
    if not turns or any(turn.start.const for turn in around if turn.start.is_constant):
        return None
    inside = {name: span.size or 1 for name, span in spans.items() if span.size != 1 and strides[name]}
    line = LINE_BYTES // shop.dtypes[access.tensor].bytes
    return _Row(access, turns, inside, strides, line)


def _lines(row: _Row, state: State, bases: Mapping[str, Index], rounds: int) -> Iterator[dict[str, Index]]:
    """Where the lines are that are asked for: values of loops."""
    inner = row.turns[0]
    if row.strides[inner.loop] >= row.line and all(row.strides[name] < row.line for name in row.inside):
        yield from _next_places(row, bases, rounds)


def _next_places(row: _Row, bases: Mapping[str, Index], rounds: int) -> Iterator[dict[str, Index]]:
    """Every step has lines of its own: all of them, of the step so many rounds later along the innermost loop that is
    long enough."""
    passed = 1
    for turn in row.turns:
        ahead = ceil(rounds / passed)
        if turn.rounds > ahead:
            break
        passed *= turn.rounds
    else:
        return
    ends = [{turn.loop: bases[turn.loop] + ahead * turn.step}]
    for name, extent in row.inside.items():
        apart = max(1, row.line // row.strides[name])
        places = [*range(0, extent - 1, apart), extent - 1]
        ends = [{**end, name: bases[name] + constant(place)} for end in ends for place in places]
    yield from ends[:MOST_LINES]
