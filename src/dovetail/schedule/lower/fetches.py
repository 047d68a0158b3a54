"""Lines that are asked for ahead of their use, where a tensor is held in panels and passes in a stream.

Either every panel passes once: what is read some steps later in the same panel is asked for. Or a block of panels is
passed over by many register tiles before the next one comes:

    tile j4 by 48: tile i3 of 128 rows by 4: tile j2 by 24: loop over k: ... load w[j/24, k, j%24] ...

Then each register tile asks for its part of the block that follows, a little at every step: after the last row of the
block all of it is near. Asking is a hint. Past the end of a tensor nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.base.dtypes import DType
from dovetail.ir.index import Access, Index, constant
from dovetail.ir.interval import floor_divide, modulo, simplify
from dovetail.ir.nest import Fetch, Place
from dovetail.schedule.lower.state import InMemory, State, Turn
from dovetail.schedule.machine import LINE_BYTES

AHEAD_BYTES = 1536
"""How far ahead of its use a stream is asked for."""
FEW_ROUNDS = 8
"""Where nobody knows how many rounds there are, so many ask for all that follows: asking again costs little."""


@dataclass(frozen=True, slots=True)
class _Block:
    """``outer`` goes from block to block; rounds of ``again`` pass over a block, one after the other; in each of them a
    register tile takes the steps ``inner``."""

    outer: Turn
    again: tuple[Turn, ...]
    inner: tuple[Turn, ...]


def fetches(
    state: State, statement: int, access: Access, held: InMemory, place: Place, dtype: DType
) -> Iterator[Fetch]:
    """What to ask for where a vector at ``place`` is loaded."""
    last, width = place.indices[-1], held.digits[-1].modulus
    if len(place.indices) < 2 or not width or not last.is_constant:
        return
    block = _block(state.turns.get(statement, ()), access)
    if block is not None:
        if not last.const:
            yield from _next_block(state, statement, access, held, place.buffer, dtype, block)
    elif last.const * dtype.bytes % LINE_BYTES == 0:
        ahead = place.indices[-2] + max(1, AHEAD_BYTES // (width * dtype.bytes))
        yield Fetch(Place(place.buffer, (*place.indices[:-2], ahead, last)))


def _block(turns: tuple[Turn, ...], access: Access) -> _Block | None:
    """How the rounds around a statement pass over blocks of what it reads; None where they do not."""
    moving = [turn.loop in access.names() for turn in turns]
    fixed = [n for n, turn in enumerate(turns) if not moving[n] and turn.rounds > 1]
    outside = [n for n in range(fixed[-1] if fixed else 0) if moving[n] and turns[n].rounds > 1]
    if not outside:
        return None
    again = tuple(turns[n] for n in fixed if n > outside[-1])
    inner = tuple(turn for n, turn in enumerate(turns) if n > fixed[-1] and moving[n] and turn.step == 1)
    return _Block(turns[outside[-1]], again, inner) if inner else None


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
