"""Where an instruction reads more than there is: edges that must be zero.

A tile at the end of a loop is whole for an instruction that cannot do less, and a guard such as ``p + r >= 1`` leaves
out points that one call would touch: there the operands of a sum of products are zero, and add nothing. A guard on
loops that no call walks is asked before each call, and needs no zeros.
"""

from __future__ import annotations

from dovetail.base.errors import PlanError
from dovetail.ir.index import Condition, constant
from dovetail.ir.plan import Leaf
from dovetail.schedule.placed.frame import Live, Site
from dovetail.schedule.placed.shape import leaves_of
from dovetail.schedule.tile_shape import TileShape, tile_shape


def leaf_shape(site: Site, leaf: Leaf) -> TileShape:
    """The instruction of a leaf taken apart."""
    shape = tile_shape(site.instruction(leaf))
    if shape is None:
        raise PlanError(f"'{leaf}': '{leaf.instruction}' is no plain statement over tiles")
    return shape


def exact_loops(site: Site, leaf: Leaf) -> frozenset[str]:
    """Loops of the statement that a call does whole, even where they end before."""
    shape, bound = leaf_shape(site, leaf), dict(leaf.bound)
    found: set[str] = set()
    for loop in shape.loops:
        group = bound[loop.name]
        found |= set(group if loop.is_exact else group[1:])
    return frozenset(found)


def asked(site: Site, leaf: Leaf) -> tuple[Condition, ...]:
    """Guards on loops that no call walks."""
    lefts = site.lefts[leaf.statement]
    where = site.program.statements[leaf.statement].where
    return tuple(c for c in where if all(lefts.get(name, 1) == 1 for name in c.names()))


def zeroed(site: Site, leaf: Leaf) -> dict[str, set[int]]:
    """Tensor -> dimensions outside of which it counts as zero; a PlanError for guards that are no such padding."""
    statement = site.program.statements[leaf.statement]
    found: dict[str, set[int]] = {}
    for condition in set(statement.where) - set(asked(site, leaf)):
        matched = False
        for access in statement.reads():
            for dimension, index in enumerate(access.indices):
                size = site.sizes(access.tensor)[dimension]
                if not condition.equal and condition.index in (index, constant(size - 1) - index):
                    found.setdefault(access.tensor, set()).add(dimension)
                    matched = True
        if not matched:
            raise PlanError(
                f"'{leaf}': {condition} is no edge of a tensor",
                where=statement.place,
                hint="tiles of one iteration along its loops, or the host",
            )
    return found


def padded_axes(site: Site, live: Live) -> frozenset[int]:
    """Axes of a store along which what does not exist must be zero."""
    leaf = next(x for x in leaves_of(site.plan.body) if x.statement == live.statement)
    exact, padded = exact_loops(site, leaf), zeroed(site, leaf).get(live.hold.tensor, set())
    found: set[int] = set()
    for number, axis in enumerate(live.store.axes):
        if axis.loop:
            touches = {d for d, step in enumerate(axis.steps) if step}
            if (axis.loop in exact and any(axis.steps)) or touches & padded:
                found.add(number)
        elif axis.dimension in padded or exact & live.wanted.access.indices[axis.dimension].names():
            found.add(number)
    return frozenset(found)
