"""Lines that are asked for ahead of their use, where a tensor is held in panels and passes in a stream.

Either what is read some steps later in the same panel is asked for: every panel passes once, or more of them pass
before it comes again than the second cache keeps. Or a block of panels is passed over by many register tiles before
the next one comes:

    tile j4 by 48: tile i3 of 128 rows by 4: tile j2 by 24: loop over k: ... load w[j/24, k, j%24] ...

Then each register tile asks for its part of the block that follows, a little at every step: after the last row of the
block all of it is near. Where the block is a copy that is made in every round of ``j4``, that is the part of the tensor
that the next copy will read. Asking is a hint. Past the end of a tensor nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from dovetail.base.dtypes import DType
from dovetail.ir.index import Access, Index, constant
from dovetail.ir.interval import floor_divide, modulo, simplify
from dovetail.ir.nest import Fetch, Place
from dovetail.schedule.lower.state import Following, InMemory, State, Turn, Workshop
from dovetail.schedule.machine import LINE_BYTES

AHEAD_BYTES = 1536
"""How far ahead of its use a stream is asked for."""
MOST_LINES = 8
"""Lines asked for at once; where a copy is used in so few steps that they would be more, it is not asked for."""
FEW_ROUNDS = 8
"""Where nobody knows how many rounds there are, so many ask for all that follows: asking again costs little."""


@dataclass(frozen=True, slots=True)
class _Block:
    """``outer`` goes from block to block; rounds of ``again`` pass over a block, one after the other; in each of them a
    register tile takes the steps ``inner``."""

    outer: Turn
    again: tuple[Turn, ...]
    inner: tuple[Turn, ...]
    elements: int
    """How many each block has."""


def fetches(shop: Workshop, state: State, statement: int, access: Access, place: Place) -> Iterator[Fetch]:
    """What to ask for where a vector, or a value for all lanes, is loaded from ``place``."""
    held, dtype = state.held.get(access.tensor), shop.dtypes[access.tensor]
    if not isinstance(held, InMemory) or len(place.indices) < 2 or not place.indices[-1].is_constant:
        return
    if held.following is not None and not place.indices[-1].const:
        yield from _next_copy(state, statement, access, held.following, dtype)
    last, width = place.indices[-1], held.digits[-1].modulus
    if not held.fetched or not width:
        return
    block = _block(state.turns.get(statement, ()), access)
    if block is not None and _stays_near(shop, block.elements * dtype.bytes):
        if not last.const:
            yield from _next_block(state, statement, access, held, place.buffer, dtype, block)
    elif last.const * dtype.bytes % LINE_BYTES == 0:
        ahead = place.indices[-2] + max(1, AHEAD_BYTES // (width * dtype.bytes))
        yield Fetch(Place(place.buffer, (*place.indices[:-2], ahead, last)))


def _stays_near(shop: Workshop, size_bytes: int) -> bool:
    """Whether the second cache keeps so much while it is passed over again."""
    caches = shop.target.caches
    return len(caches) < 2 or size_bytes <= caches[1].bytes


def _block(turns: tuple[Turn, ...], access: Access) -> _Block | None:
    """How the rounds around a statement pass over blocks of what it reads; None where they do not."""
    moving = [turn.loop in access.names() for turn in turns]
    fixed = [n for n, turn in enumerate(turns) if not moving[n] and turn.rounds > 1]
    outside = [n for n in range(fixed[-1] if fixed else 0) if moving[n] and turns[n].rounds > 1]
    if not outside:
        return None
    again = tuple(turns[n] for n in fixed if n > outside[-1])
    inner = tuple(turn for n, turn in enumerate(turns) if n > fixed[-1] and moving[n] and turn.step == 1)
    extents = {turn.loop: turn.extent for n, turn in reversed([*enumerate(turns)]) if n > outside[-1] and moving[n]}
    return _Block(turns[outside[-1]], again, inner, prod(extents.values())) if inner else None


def _next_block(
    state: State, statement: int, access: Access, held: InMemory, buffer: str, dtype: DType, block: _Block
) -> Iterator[Fetch]:
    """Of what one register tile reads, one block further on: the part of this round, spread over its steps."""
    values = state.bases(statement) | {turn.loop: turn.begin for turn in reversed(block.inner)}
    values[block.outer.loop] = values[block.outer.loop] + block.outer.step
    indices = [i.substitute(values) - b for i, b in zip(access.indices, held.base, strict=True)]
    digits = [_digit(indices[d.dimension], d.divisor, d.modulus, state) for d in held.digits]
    width = held.digits[-1].modulus
    round_, rounds = _counted(block.again, state)
    step, steps = _counted(block.inner, state)
    passed = floor_divide(round_ * (steps * width), rounds, state.ranges)
    passed = digits[-1] + passed + floor_divide(step * width, rounds, state.ranges)
    for line in range(-(-width * dtype.bytes // (rounds * LINE_BYTES))):
        yield Fetch(Place(buffer, (*digits[:-1], passed + line * (LINE_BYTES // dtype.bytes))))


def _next_copy(state: State, statement: int, access: Access, following: Following, dtype: DType) -> Iterator[Fetch]:
    """Of what the next round of the tile around will copy: some of its rows in each round over what was copied, and of
    these a line in each step."""
    turns = state.turns.get(statement, ())[following.outside :]
    round_, rounds = _counted(tuple(t for t in turns if t.loop not in access.names() and t.rounds > 1), state)
    step, steps = _counted(tuple(t for t in turns if t.loop in access.names() and t.rounds > 1), state)
    *around, run = following.extents
    rows = prod(around)
    per_row = run * dtype.bytes // LINE_BYTES + 1
    lines = -(-rows // rounds) * per_row
    if lines > MOST_LINES * steps:
        return
    first = floor_divide(round_ * rows, rounds, state.ranges)
    number = floor_divide(step * lines, steps, state.ranges)
    for line in range(-(-lines // steps)):
        row = first + floor_divide(number + line, per_row, state.ranges)
        column = modulo(number + line, per_row, state.ranges) * (LINE_BYTES // dtype.bytes)
        offsets = [column]
        for extent in reversed(around[1:]):
            offsets.append(modulo(row, extent, state.ranges))
            row = floor_divide(row, extent, state.ranges)
        offsets.append(row)
        indices = (b + o for b, o in zip(following.base, reversed(offsets[: len(following.base)]), strict=True))
        yield Fetch(Place(following.tensor, tuple(indices)))


def _counted(turns: tuple[Turn, ...], state: State) -> tuple[Index, int]:
    """Which of all rounds of some tiles this is, and how many there are."""
    number, total = constant(0), 1
    for turn in turns:
        which = floor_divide(turn.start, turn.step, state.ranges)
        rounds = min(turn.rounds, FEW_ROUNDS) if turn.varies else turn.rounds
        number = number * rounds + (modulo(which, rounds, state.ranges) if turn.varies else which)
        total *= rounds
    return number, total


def _digit(index: Index, divisor: int, modulus: int, state: State) -> Index:
    quotient = floor_divide(simplify(index, state.ranges), divisor, state.ranges)
    return modulo(quotient, modulus, state.ranges) if modulus else quotient
