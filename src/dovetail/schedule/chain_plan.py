"""A plan for a chain of products: tiles around the plans of its statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, prod

from dovetail.ir.index import Index, constant
from dovetail.ir.plan import Hold, PlanNode, Tile
from dovetail.ir.program import Loop, Program, Statement
from dovetail.schedule.chains import Chain, Walk
from dovetail.schedule.facts import Facts
from dovetail.schedule.machine import Machine

_ROWS = 12
"""Blocks are multiples of it: register tiles of 2, 3, 4 and 6 rows fill them."""
_NEAR = 0.5
"""What of the second cache the rows of a block may take that are made and read again, beside what is read once."""
_IDLE = 1.15
"""How much longer the busiest unit may work than all do on average."""


@dataclass(frozen=True, slots=True)
class Around:
    """The tiles around a chain, outermost first, each with its step; units share the first."""

    tiles: tuple[tuple[Walk, int], ...]
    trips: float
    """How often what is inside runs."""

    def step(self, walk: Walk) -> int:
        """Iterations of a loop that are left inside; 0: all."""
        return next((step for known, step in self.tiles if known == walk), 0)


def around(chain: Chain, facts: Callable[[int], Facts], machine: Machine, units: int) -> Around | None:
    """Units share iterations of a batch loop, or blocks of rows where those do not come out even; None: neither."""
    first = chain.numbers[0]
    extents = facts(first).extents
    batch = sorted(chain.batch, key=lambda walk: _idle(extents[walk[first]], units))
    even = _idle(extents[batch[0][first]], units) <= _IDLE
    tiles = [(walk, 1) for walk in batch]
    trips = float(prod(extents[walk[first]] for walk in batch))
    if not chain.rows:
        return Around(tuple(tiles), trips) if even else None
    rows = extents[chain.rows[first]]
    block = _block(chain, facts, machine, rows)
    if not even:
        block = min(block, max(_ROWS, rows // (4 * units) // _ROWS * _ROWS))
        if _idle(ceil(rows / block), units) > _IDLE:
            return None
    if block < rows:
        tiles.insert(len(tiles) if even else 0, (chain.rows, block))
        trips *= rows / block
    return Around(tuple(tiles), trips)


def _idle(parts: int, units: int) -> float:
    """How much longer the busiest unit works than all do on average."""
    return ceil(parts / units) * units / parts


def _block(chain: Chain, facts: Callable[[int], Facts], machine: Machine, rows: int) -> int:
    """Rows of which all that products make for others here, or read of what others made here, stays near."""
    near = machine.usable[min(1, len(machine.usable) - 1)] * _NEAR if machine.usable else 0.0
    products = [n for n in chain.numbers if facts(n).is_contraction]
    read = {use.access.tensor for n in products for use in facts(n).reads}
    row_bytes = 0
    for number in chain.numbers[:-1]:
        out = facts(number).out
        outer = {walk[number] for walk in (*chain.batch, chain.rows)}
        if number in products or out.access.tensor in read:
            row_bytes += out.bytes * prod(facts(number).extents[n] for n in facts(number).kept if n not in outer)
    blocks = ceil(rows / max(_ROWS, near / max(1, row_bytes)))
    return ceil(rows / blocks / _ROWS) * _ROWS


def inside(program: Program, chain: Chain, tiles: Around) -> Program:
    """``program`` with the chain's loops as they are inside the tiles."""
    statements = list(program.statements)
    for number in chain.numbers:
        gone: dict[str, Index] = {walk[number]: constant(0) for walk, step in tiles.tiles if step == 1}
        short = {walk[number]: step for walk, step in tiles.tiles if step > 1}
        statements[number] = _shortened(statements[number], gone, short)
    return replace(program, statements=tuple(statements))


def _shortened(statement: Statement, gone: dict[str, Index], short: dict[str, int]) -> Statement:
    left = tuple(
        Loop(loop.name, constant(short[loop.name])) if loop.name in short else loop
        for loop in statement.loops
        if loop.name not in gone
    )
    return statement.substitute(gone, left)


def wrapped(
    nodes: list[PlanNode],
    holds: list[Hold],
    chain: Chain,
    tiles: Around,
    setting: tuple[Program, str, str, Callable[[str], str]],
) -> PlanNode:
    """The tiles, with ``nodes`` and the layouts for all of them inside; setting: program, memory, unit, names.

    What rows share is laid out once for all blocks of rows, where these are inside.
    """
    program, memory, unit, name = setting
    first = chain.numbers[0]
    kept = {hold.tensor for node in nodes for hold in _held(node)}
    scratch = tuple(Hold(t, memory) for t in chain.scratch if t not in kept)
    last = tiles.tiles[-1][0] == chain.rows and len(tiles.tiles) > 1
    shared = [replace(hold, shared=False) for hold in holds]
    if last:
        own = _beside_rows(program, chain)
        shared += [hold for node in nodes for hold in _held(node) if hold.tensor in own]
        nodes = [_without(node, own) for node in nodes]
    body: tuple[PlanNode, ...] = tuple(_alone(node) for node in nodes)
    for depth in reversed(range(len(tiles.tiles))):
        walk, step = tiles.tiles[depth]
        here = scratch if depth == len(tiles.tiles) - 1 else ()
        if depth == len(tiles.tiles) - 1 - last:
            here = (*shared, *here)
        pairs = tuple((number, walk[number]) for number in chain.numbers)
        body = (Tile(name(walk[first]), pairs, step, body, "" if depth else unit, holds=tuple(here)),)
    return body[0]


def _beside_rows(program: Program, chain: Chain) -> frozenset[str]:
    """Tensors that are read here, not made here, and the same at every row."""
    made = {program.statements[n].out.tensor for n in chain.numbers}
    uses = [(a, chain.rows[n]) for n in chain.numbers for a in program.statements[n].reads() if a.tensor not in made]
    return frozenset(a.tensor for a, _ in uses) - {a.tensor for a, row in uses if row in a.names()}


def _held(node: PlanNode) -> list[Hold]:
    if not isinstance(node, Tile):
        return []
    return [*node.holds, *(hold for part in node.body for hold in _held(part))]


def _without(node: PlanNode, tensors: frozenset[str]) -> PlanNode:
    if not isinstance(node, Tile):
        return node
    body = tuple(_without(part, tensors) for part in node.body)
    return replace(node, body=body, holds=tuple(h for h in node.holds if h.tensor not in tensors))


def _alone(node: PlanNode) -> PlanNode:
    """The same for one unit."""
    if not isinstance(node, Tile):
        return node
    holds = tuple(replace(hold, shared=False) for hold in node.holds)
    return replace(node, unit="", body=tuple(map(_alone, node.body)), holds=holds)
