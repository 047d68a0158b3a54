"""A leaf that only moves: one fill of what is held of its result, counted through the source."""

from __future__ import annotations

from dataclasses import replace

from dovetail.base.errors import PlanError
from dovetail.ir.index import Access
from dovetail.ir.nest import Node, Start, Wait, When, walk
from dovetail.ir.plan import Leaf
from dovetail.ir.program import Program, Statement
from dovetail.schedule.placed.copying import ending, moved_access
from dovetail.schedule.placed.fills import Held, Mover
from dovetail.schedule.placed.frame import Frame, Live, Site
from dovetail.schedule.placed.storage import Axis, Store


def lower_copy(site: Site, leaf: Leaf, live: Live, frame: Frame) -> tuple[Node, ...]:
    """The fill of what a copying leaf's result holds, with zeros where the source has ended."""
    spot = frame.spots[leaf.statement]
    if any(live.spot[x].left != standing.left for x, standing in spot.items()):
        raise PlanError(f"'{leaf}' moves a part of what is held", hint="a hold of the result for what one leaf moves")
    statement = site.program.statements[leaf.statement]
    access = moved_access(site.program, leaf.statement)
    assert access is not None
    store = seen_from(live.store, statement.out, access)
    near = Held(store, access, spot, live.copy)
    mover = Mover(site.target, site.fresh, frame.ranges, bool(statement.where), frame.unit)
    sizes = site.sizes(access.tensor)
    padded = padded_by(site.program, statement, access, store)
    token = site.fresh(f"{access.tensor}_in")
    nodes: tuple[Node, ...] = mover.fill(near, site.whole(access.tensor), sizes, token, padded)
    there = (*(mover.whole(near, sizes, padded) or ()), *mover.inside(near, sizes))
    if there:
        nodes = (When(there, (), mover.clear(near, site.zero(live.store.buffer.dtype))), *nodes)
    if any(isinstance(node, Start) and node.token == token for node in walk(nodes)):
        nodes = (*nodes, Wait(token))
    return (When(frame.exists, nodes),) if frame.exists else nodes


def seen_from(store: Store, out: Access, access: Access) -> Store:
    """A store of the result with axes that count through ``access``, the source of what lies there."""
    axes = []
    for axis in store.axes:
        loop = axis.loop or next(iter(out.indices[axis.dimension].names()), "")
        if not loop:
            raise PlanError(f"'{out}' is held along a dimension that no loop walks")
        steps = tuple(index.coefficient(loop) * axis.part for index in access.indices)
        axes.append(Axis(axis.extent, steps, loop=loop, part=axis.part, needle=axis.needle, is_inner=axis.is_inner))
    return replace(store, tensor=access.tensor, axes=tuple(axes))


def padded_by(program: Program, statement: Statement, access: Access, store: Store) -> frozenset[int]:
    """Axes along which the source may have ended."""
    dimensions = {d for condition in statement.where for d in ending(program, access, condition)}
    return frozenset(n for n, axis in enumerate(store.axes) if any(axis.steps[d] for d in dimensions))
