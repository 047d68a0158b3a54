"""Moves join the region that reads what they make, or the one that makes what they move.

q = reshape(h) {shape = (1, 128, 12, 64)}       q is another view of h's bytes
t = transpose(q) {perm = (0, 2, 1, 3)}          t is not made: the product reads q[0, i, h, d]
s = matmul(t, u)

c = matmul(p, v)                                c is not made: the product writes t[0, i, h, d]
t = transpose(c) {perm = (0, 2, 1, 3)}
y = reshape(t) {shape = (1, 128, 768)}          y is another view of t's bytes
"""

from __future__ import annotations

from collections.abc import Collection

from dovetail.graph.grow import Sketch
from dovetail.graph.roles import Work, without_ones
from dovetail.ir.graph.graph import Node, Type

_READERS = frozenset((Work.CONTRACTION, Work.POINTWISE, Work.ROWS, Work.WINDOW, Work.REDUCTION, Work.PIECES))

_ANY_LANES = frozenset((Work.CONTRACTION, Work.WINDOW))
"""What can go in vectors along any axis of its result."""


def absorbed_moves(sketch: Sketch) -> None:
    """Moves that one region alone reads become part of it, with the views between them."""
    for number in tuple(sketch.regions):
        nodes, _ = sketch.regions[number]
        kinds = {sketch.work_of(node) for node in nodes}
        if kinds.isdisjoint(_READERS):
            continue
        inside = {node.results[0] for node in nodes}
        joined: list[Node] = []
        for value in [value for node in nodes for value in node.operands]:
            chain = _chain(sketch, value, inside, last_stays=Work.ROWS in kinds)
            joined += chain
            inside.update(node.results[0] for node in chain)
            sketch.home.update((node.results[0], number) for node in chain)
        if joined:
            sketch.join(number, tuple(joined))


def sunk_moves(sketch: Sketch) -> None:
    """A change of axes that is left joins the region whose one value it reads.

    Who walks the last axis in vectors would write it with gaps; not so who reads across axes as well.
    """
    graph = sketch.graph
    for node in graph.nodes:
        if not sketch.is_free(node) or node.op != "transpose":
            continue
        (value,) = node.operands
        made = graph.producer(value)
        if made is None or sketch.is_free(made) or len(graph.users(value)) > 1 or value in sketch.outputs:
            continue
        number = sketch.home[made.results[0]]
        inside = sketch.regions[number][0]
        kinds = {sketch.work_of(n) for n in inside}
        if kinds.isdisjoint(_READERS) or len(made.results) > 1:
            continue
        across = any(not _keeps_last(sketch, n) for n in inside)
        if across or not kinds.isdisjoint(_ANY_LANES) or _keeps_last(sketch, node):
            sketch.join(number, (node,))


def _chain(sketch: Sketch, value: str, inside: Collection[str], last_stays: bool) -> tuple[Node, ...]:
    """Moves and views up from ``value``, that only ``inside`` reads; it ends with a move.

    A view that joins axes stays outside: through it, one loop of the reader would be a quotient and a remainder.
    """
    found: list[Node] = []
    below = ""
    while (node := sketch.graph.producer(value)) is not None and _joins(sketch, node, inside, below):
        if sketch.work_of(node) is Work.VIEW and not splits(sketch.types[node.operands[0]], sketch.types[value]):
            break
        if last_stays and sketch.work_of(node) is Work.MOVE and not _keeps_last(sketch, node):
            break
        if found and found[-1].op == node.op == "transpose":
            break  # the upper one belongs to who makes the value: together they would be none
        found.append(node)
        below, value = value, node.operands[0]
    while found and sketch.work_of(found[-1]) is Work.VIEW:
        found.pop()
    return tuple(found)


def _joins(sketch: Sketch, node: Node, inside: Collection[str], below: str) -> bool:
    """Whether a move or view is read by ``inside`` alone, and by the one node ``below`` of its chain."""
    if sketch.work_of(node) not in (Work.MOVE, Work.VIEW) or not sketch.is_free(node) or len(node.results) > 1:
        return False
    (value,) = node.results
    read_here = all(user.results[0] in inside or user.results[0] == below for user in sketch.graph.users(value))
    return len(node.operands) == 1 and read_here and value not in sketch.outputs


def _keeps_last(sketch: Sketch, node: Node) -> bool:
    """Whether neighbours along the last axis of the result are neighbours in the operand."""
    if node.op != "transpose":
        return True
    perm = node.attribute("perm")
    shape = sketch.types[node.operands[0]].shape
    order = perm if isinstance(perm, tuple) else tuple(reversed(range(len(shape))))
    moved = [axis for axis in order if without_ones((shape[int(axis)],))]
    return not moved or moved[-1] == max(moved)


def splits(old: Type, new: Type) -> bool:
    """Whether each axis of ``new`` lies within one of ``old``: f32[128, 768] -> f32[128, 12, 64]."""
    rest = list(without_ones(new.shape))
    for extent in without_ones(old.shape):
        if rest and rest[0] == extent:
            rest.pop(0)
            continue
        if not extent.is_constant:
            return False
        found = 1
        while found < extent.const and rest and rest[0].is_constant and rest[0].const:
            found *= rest.pop(0).const
        if found != extent.const:
            return False
    return not rest
