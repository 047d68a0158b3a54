"""What a plan for placed memories says before anything is built: what is left of loops, and holds where they belong.

A hold is hoisted outwards while its region does not change: past every tile over loops that its tensor's accesses do
not have, and past tiles that leave all of a loop. It stays among statements that write what it holds.

    tile i: tile j: hold a in pad, do 0        ->      tile i: hold a in pad, tile j: do 0       (a[i, k])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dovetail.base.errors import PlanError
from dovetail.ir.index import Access
from dovetail.ir.plan import Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program, Statement

Lefts = Mapping[tuple[int, str], int]
"""Statement and loop -> what is left of it."""


def hoisted(program: Program, plan: Plan) -> Plan:
    """The same plan with every hold on the outermost tile where its region is the same."""
    lefts = {(n, x.name): x.extent.const for n, s in enumerate(program.statements) for x in s.all_loops}
    body = tuple(around(node, lefts, up) for node, up in _hoist_all(program, plan.body, lefts))
    return replace(plan, body=body)


def around(node: PlanNode, lefts: Lefts, holds: tuple[Hold, ...]) -> PlanNode:
    """``node`` inside a tile that runs once and holds what is the same in all of it."""
    if not holds:
        return node
    assert isinstance(node, Tile)
    return Tile(f"{node.name}_once", node.loops, max(lefts[pair] for pair in node.loops), (node,), holds=holds)


def leaves_of(nodes: tuple[PlanNode, ...]) -> Iterator[Leaf]:
    """Every leaf, in order."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from leaves_of(node.body)


def tiles_of(nodes: tuple[PlanNode, ...]) -> Iterator[Tile]:
    """Every tile, outermost first."""
    for node in nodes:
        if isinstance(node, Tile):
            yield node
            yield from tiles_of(node.body)


def accesses_of(statement: Statement, tensor: str) -> tuple[Access, ...]:
    """How a statement touches a tensor, each way once."""
    found = (a for a in (statement.out, *statement.reads()) if a.tensor == tensor)
    return tuple(dict.fromkeys(found))


def lefts(program: Program, plan: Plan, number: int) -> dict[str, int]:
    """What is left of each loop of a statement at its leaf: the step of the innermost tile over it, or all of it."""
    found = {loop.name: loop.extent.const for loop in program.statements[number].all_loops}
    path = _path(plan.body, number)
    if path is None:
        raise PlanError(f"the plan leaves out statement {number}", where=program.statements[number].place)
    for tile in path:
        for statement, loop in tile.loops:
            if statement == number:
                found[loop] = tile.step
    return found


def _path(nodes: tuple[PlanNode, ...], number: int) -> list[Tile] | None:
    for node in nodes:
        if isinstance(node, Leaf):
            if node.statement == number:
                return []
            continue
        inside = _path(node.body, number)
        if inside is not None:
            return [node, *inside]
    return None


def _hoist_all(program: Program, nodes: tuple[PlanNode, ...], lefts: Lefts) -> list[tuple[PlanNode, tuple[Hold, ...]]]:
    """Each node, and the holds that leave it. Of several nodes under a tile each keeps its own together."""
    found: list[tuple[PlanNode, tuple[Hold, ...]]] = []
    for node in nodes:
        if isinstance(node, Leaf):
            found.append((node, ()))
            continue
        inside = {**lefts, **dict.fromkeys(node.loops, node.step)}
        body: list[PlanNode] = []
        stay = [h for h in node.holds if len(node.body) > 1 or _changes(program, node, h, lefts)]
        up = [h for h in node.holds if h not in stay]
        written = (
            {program.statements[x.statement].out.tensor for x in leaves_of((node,))} if len(node.body) > 1 else set()
        )
        for child, rising in _hoist_all(program, node.body, inside):
            here = tuple(h for h in rising if h.tensor in written or _changes(program, node, h, lefts))
            up += [h for h in rising if h not in here]
            body.append(around(child, inside, here) if len(node.body) > 1 else child)
            stay += here if len(node.body) == 1 else ()
        found.append((replace(node, body=tuple(body), holds=tuple(stay)), tuple(up)))
    return found


def _changes(program: Program, tile: Tile, hold: Hold, lefts: Lefts) -> bool:
    """Whether what is held differs between iterations of a tile. Units each hold their own."""
    if tile.unit:
        return True
    for number, loop in tile.loops:
        if hold.statement not in (-1, number):
            continue
        for access in accesses_of(program.statements[number], hold.tensor):
            if loop in access.names() and lefts.get((number, loop)) != tile.step:
                return True
    return False
