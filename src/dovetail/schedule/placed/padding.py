"""Where an instruction reads more than there is: edges that must be zero.

A tile at the end of a loop is whole for an instruction that cannot do less, and a guard such as ``p + r >= 1`` leaves
out points that one call would touch: there the operands of a sum of products are zero, and add nothing. A guard on
loops that no call walks is asked before each call, and needs no zeros; nor does one that the result's own end is: what
lies beyond is computed and not stored.
"""

from __future__ import annotations

from dovetail.base.errors import PlanError
from dovetail.ir.index import Condition
from dovetail.ir.interval import interval
from dovetail.ir.plan import Leaf, Plan
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.schedule.placed.copying import ending, is_copying
from dovetail.schedule.placed.frame import Live, Site
from dovetail.schedule.placed.shape import leaves_of
from dovetail.schedule.tile_shape import TileShape, tile_shape
from dovetail.targets.model import Target


def leaf_shape(site: Site, leaf: Leaf) -> TileShape:
    """The instruction of a leaf taken apart."""
    shape = tile_shape(site.instruction(leaf))
    if shape is None:
        raise PlanError(f"'{leaf}': '{leaf.instruction}' is no plain statement over tiles")
    return shape


def exact_loops(site: Site, leaf: Leaf) -> frozenset[str]:
    """Loops of the statement that a call does whole, even where they end before.

    Among them the inner ones of a dense operand, whose rows lie as far apart as they are long."""
    found: set[str] = set()
    if is_copying(site.program, site.target, leaf):
        return frozenset()
    shape, bound = leaf_shape(site, leaf), dict(leaf.bound)
    for loop in shape.loops:
        group = bound[loop.name]
        found |= set(group if loop.is_exact else group[1:])
    for wanted in site.operands(leaf):
        if wanted.layout is None and not wanted.strides:
            found.update(loop for group in wanted.needles[1:] for loop in group)
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
    if is_copying(site.program, site.target, leaf):
        return found
    free = () if statement.combine is Combine.SET else asked(site, leaf)
    for condition in sorted(set(statement.where) - set(free), key=str):
        edges = edges_of(site.program, statement, condition)
        if edges is None:
            raise PlanError(
                f"'{leaf}': zeros cannot stand for the points that {condition} leaves out",
                where=statement.place,
                why="it is no edge of a tensor, or they would meet values that may be infinite",
                hint="tiles of one iteration along its loops, or the host",
            )
        for tensor, dimension in edges:
            found.setdefault(tensor, set()).add(dimension)
    return found


def edges_of(program: Program, statement: Statement, condition: Condition) -> tuple[tuple[str, int], ...] | None:
    """Tensors and dimensions whose ends a condition is: zeros beyond stand for the points that it leaves out.

    None where they cannot: beside floating point that the program computes itself, which may be infinite (0 * inf is no
    number), and where a point that is not there would overwrite what another statement wrote. Where the result ends at
    the same place, nothing of such a point is kept, whatever it is."""
    found = tuple(
        (access.tensor, dimension) for access in statement.reads() for dimension in ending(program, access, condition)
    )
    if ending(program, statement.out, condition):
        return found if found or _stay_inside(program, statement) else None
    given = all(program.tensor(a.tensor).role in (Role.IN, Role.CONST) for a in statement.reads())
    is_exact = given or not program.tensor(statement.out.tensor).dtype.is_float
    return found if found and is_exact and statement.combine is not Combine.SET else None


def _stay_inside(program: Program, statement: Statement) -> bool:
    """Whether all that is read is there even where a condition does not hold."""
    ranges = {loop.name: (0, loop.extent.const - 1) for loop in statement.all_loops}
    for access in statement.reads():
        for index, size in zip(access.indices, program.tensor(access.tensor).shape, strict=True):
            found = interval(index, ranges)
            if found is None or found[0] < 0 or found[1] >= size.const:
                return False
    return True


def finite_tensors(program: Program, plan: Plan, target: Target) -> frozenset[str]:
    """Arguments that must be finite: what is multiplied with the zeros of a padding, which adds nothing only then."""
    site = Site(program, plan, target)
    found: set[str] = set()
    for leaf in plan.leaves():
        statement = program.statements[leaf.statement]
        if leaf.instruction and program.tensor(statement.out.tensor).dtype.is_float and zeroed(site, leaf):
            found |= {access.tensor for access in statement.reads()}
    return frozenset(found)


def padded_loops(site: Site, leaf: Leaf, tensor: str) -> frozenset[str]:
    """Loops of a leaf that end inside a call which goes on, or that are padded, where ``tensor`` has them."""
    lefts, extents = site.lefts[leaf.statement], _extents(site, leaf)
    short = {x for x in exact_loops(site, leaf) if extents[x] % lefts[x]}
    padded = tensor in zeroed(site, leaf)
    return frozenset(short) if not padded else frozenset(extents)


def _extents(site: Site, leaf: Leaf) -> dict[str, int]:
    return {x.name: x.extent.const for x in site.program.statements[leaf.statement].all_loops}


def padded_axes(site: Site, live: Live) -> frozenset[int]:
    """Axes of a store along which what does not exist must be zero: padded ones, and loops that end inside a call."""
    leaf = next(x for x in leaves_of(site.plan.body) if x.statement == live.statement)
    padded = zeroed(site, leaf).get(live.hold.tensor, set())
    lefts = site.lefts[leaf.statement]
    exact = frozenset(x for x in exact_loops(site, leaf) if live.spot[x].extent % lefts[x])
    found: set[int] = set()
    for number, axis in enumerate(live.store.axes):
        if axis.loop:
            touches = {d for d, step in enumerate(axis.steps) if step}
            once = live.spot[axis.loop].extent == 1
            if (axis.loop in exact and (any(axis.steps) or once)) or touches & padded:
                found.add(number)
        elif axis.dimension in padded or exact & live.wanted.access.indices[axis.dimension].names():
            found.add(number)
    return frozenset(found)
