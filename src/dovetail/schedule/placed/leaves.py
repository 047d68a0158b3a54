"""A leaf of the plan: one call of an instruction on what is held, or of the host."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from dovetail.base.errors import PlanError
from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.nest import Call, Node, Place, When
from dovetail.ir.plan import Leaf
from dovetail.schedule.placed.copy_leaf import lower_copy
from dovetail.schedule.placed.copying import is_copying
from dovetail.schedule.placed.frame import Frame, Live, Site
from dovetail.schedule.placed.host import host_call
from dovetail.schedule.placed.padding import asked, exact_loops, leaf_shape, zeroed
from dovetail.schedule.placed.standing import Spot, lower, upper
from dovetail.schedule.placed.storage import Wanted, coordinate, walk_strides, whole_store
from dovetail.schedule.tile_shape import TileLoop


def lower_leaf(site: Site, leaf: Leaf, frame: Frame) -> tuple[Node, ...]:
    """The call, where its tile exists and its guards hold."""
    spot = frame.spots[leaf.statement]
    if not leaf.instruction:
        steps = {x.name: spot[x.name].base for x in site.program.statements[leaf.statement].seq}
        return (host_call(site.program, leaf.statement, steps),)
    if is_copying(site.program, site.target, leaf):
        return _copied(site, leaf, frame)
    shape, bound = leaf_shape(site, leaf), dict(leaf.bound)
    zeroed(site, leaf)
    _check_loops(leaf, spot)
    exact = exact_loops(site, leaf)
    extents = {loop.name: _extent(leaf, loop, bound[loop.name], spot, frame, exact) for loop in shape.loops}
    params = {loop.size.name: extents[loop.name] for loop in shape.loops if loop.size is not None}
    places: list[Place] = []
    for wanted in site.operands(leaf):
        place, strides = _operand(site, leaf, wanted, frame)
        places.append(place)
        params |= strides
    call = Call(leaf.instruction, tuple(places), tuple(params.items()))
    bases = {name: standing.base for name, standing in spot.items()}
    guards = tuple(c.substitute(bases) for c in asked(site, leaf))
    conditions = tuple(c for c in (*frame.exists, *guards) if not _always(c, frame))
    return (When(conditions, (call,)),) if conditions else (call,)


def _copied(site: Site, leaf: Leaf, frame: Frame) -> tuple[Node, ...]:
    """A leaf that only moves."""
    wanted = next(w for w in site.operands(leaf) if w.is_written)
    live = _live(leaf, wanted, frame)
    if live is None:
        raise PlanError(f"'{leaf}': '{wanted.access.tensor}' is not held in '{wanted.memory}'")
    return lower_copy(site, leaf, live, frame)


def _check_loops(leaf: Leaf, spot: Spot) -> None:
    """Every loop that the instruction does not run over has come down to one iteration."""
    inside = {loop for _, group in leaf.bound for loop in group}
    for name, standing in spot.items():
        if name not in inside and standing.left > 1:
            raise PlanError(f"'{leaf}': {standing.left} iterations of '{name}' are left", hint="a tile of it by 1")


def _extent(
    leaf: Leaf, loop: TileLoop, group: tuple[str, ...], spot: Spot, frame: Frame, exact: frozenset[str]
) -> tuple[Index, ...]:
    """What a call does of one of its loops: the smallest of these."""
    inner = prod(spot[name].left for name in group[1:])
    whole = (spot[group[0]].left if group else 1) * inner
    if not loop.allows(constant(whole), whole):
        raise PlanError(f"'{leaf}': a call cannot do {whole} of '{loop.name}'", hint=f"up to {loop.most}")
    if not group or group[0] in exact:
        return (constant(whole),)
    return tuple(count * inner for count in spot[group[0]].valid(frame.ranges))


def _operand(site: Site, leaf: Leaf, wanted: Wanted, frame: Frame) -> tuple[Place, Mapping[str, tuple[Index, ...]]]:
    """Where the operand begins, and its named strides."""
    spot = frame.spots[leaf.statement]
    live = _live(leaf, wanted, frame)
    if live is not None:
        store, copy = live.store, live.copy_of(wanted.access, spot)
    elif wanted.memory == site.main:
        name = site.whole(wanted.access.tensor).name
        store, copy = whole_store(name, wanted, site.sizes(wanted.access.tensor)), constant(0)
    else:
        raise PlanError(f"'{leaf}': '{wanted.access.tensor}' is not held in '{wanted.memory}'")
    at = {
        n: coordinate(axis, wanted.access, None, spot) if live is None else live.coordinate(axis, wanted.access, spot)
        for n, axis in enumerate(store.axes)
        if not (store.layout is not None and axis.needle >= 0)
    }
    strides = walk_strides(store, wanted, spot)
    if strides is None:
        raise PlanError(f"'{leaf}': '{wanted.access}' is not evenly spaced for operand '{wanted.operand}'")
    told: dict[str, tuple[Index, ...]] = {}
    for stride, need in zip(strides, wanted.strides, strict=False):
        if isinstance(need, str):
            told[need] = (constant(stride),)
    return store.place(at, copy), told


def _live(leaf: Leaf, wanted: Wanted, frame: Frame) -> Live | None:
    """What the statement finds of a tensor where the instruction wants it."""
    for live in reversed(frame.live):
        mine = live.hold.statement in (-1, leaf.statement)
        if mine and (live.hold.tensor, live.hold.memory) == (wanted.access.tensor, wanted.memory):
            return live
    return None


def _always(condition: Condition, frame: Frame) -> bool:
    low, high = lower(condition.index, frame.ranges), upper(condition.index, frame.ranges)
    return low == high == 0 if condition.equal else low >= 0
