"""Plan -> nest for memories that hold what is put there.

    tile i of 0.i by 64:                       alloc a_1: i8[2, 64, 256] @ scratchpad
      hold a in scratchpad twice      ->       start a_1 = move_in(a_1[0, 0, 0], a[0, 0])
      do 0 by matmul16 ...                     loop i in 0..8:
                                                 wait a_1
                                                 when i < 7: start a_1 = move_in(a_1[(i + 1) % 2, 0, 0], a[64*i + 64])
                                                 call matmul16(..., a_1[i % 2, 0, 0], ...)

What is held is filled where its hold stands; ``twice``, the next region is on its way while this one is used. Results
start from zero and leave when their last part is in. Loops count tiles; where a loop may end early, its tiles ask
whether they exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.base.errors import PlanError
from dovetail.ir.index import constant, variable
from dovetail.ir.nest import Alloc, Buffer, Loop, Nest, Node, Parallel, When
from dovetail.ir.plan import Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program, Role
from dovetail.schedule.placed.frame import Frame, Ring, Site
from dovetail.schedule.placed.holds import Holds, zero_cells
from dovetail.schedule.placed.host import host_start
from dovetail.schedule.placed.kept import Steps, can_keep, kept_steps
from dovetail.schedule.placed.leaves import lower_leaf
from dovetail.schedule.placed.shape import hoisted
from dovetail.schedule.placed.standing import Spot, Standing, lower
from dovetail.targets.model import Target


def placed_nest(program: Program, plan: Plan, target: Target) -> Nest:
    """``program`` as ``plan`` says, for ``target``; a PlanError where that cannot be."""
    return _Builder(program, hoisted(program, plan), target).nest()


def steps_kept(program: Program, plan: Plan, target: Target, tile: Tile) -> tuple[Tile, Steps]:
    """``tile``, the steps of a sequence in ``plan``, with those of its holds that can be, and what they become."""
    builder = _Builder(program, plan, target)
    frame = Frame(builder.spots())
    count = builder.tiles(tile, frame)
    inner = builder.entered(tile, frame, count)
    kept = tuple(hold for hold in tile.holds if can_keep(builder.site, tile, inner, count, hold))
    found = replace(tile, holds=kept)
    return found, kept_steps(builder.site, found, inner, count)


class _Builder:
    """Walks the plan's tree; ``holds`` knows the buffers."""

    def __init__(self, program: Program, plan: Plan, target: Target) -> None:
        self.program, self.plan, self.target = program, plan, target
        self.site = Site(program, plan, target)
        self.holds = Holds(self.site)

    def spots(self) -> dict[int, Spot]:
        """Every statement before its first loop."""
        return {
            n: {x.name: Standing(constant(0), x.extent.const, x.extent.const) for x in s.all_loops}
            for n, s in enumerate(self.program.statements)
        }

    def nest(self) -> Nest:
        body = self.scope(self.plan.body, Frame(self.spots()), self.plan.holds)
        starts = (host_start(self.program, leaf.statement) for leaf in self.plan.leaves() if not leaf.instruction)
        cells = zero_cells(self.holds.used_zeros(body))
        body = (*(call for call in starts if call is not None), *(call for _, call in cells), *body)
        for buffer in (*(cell for cell, _ in cells), *(self.argument(t.name) for t in self.program.temps)):
            body = (Alloc(buffer, body),)
        arguments = tuple(self.argument(t.name) for t in self.program.tensors if t.role is not Role.TEMP)
        return Nest(arguments, (), body, tuple(t.name for t in self.program.outputs))

    def argument(self, name: str) -> Buffer:
        tensor = self.program.tensor(name)
        return Buffer(name, self.site.main, tensor.dtype, tensor.shape, tensor=name)

    # -- scopes and tiles

    def scope(self, nodes: tuple[PlanNode, ...], frame: Frame, holds: tuple[Hold, ...]) -> tuple[Node, ...]:
        """Nodes with buffers of their own, one after the other; nothing is on its way when it begins or ends."""
        with self.holds.scope() as buffers:
            body = self.position(nodes, frame, holds, apart=len(nodes) > 1)
        for buffer in reversed(buffers):
            body = (Alloc(buffer, body),)
        return body

    def position(
        self, nodes: tuple[PlanNode, ...], frame: Frame, holds: tuple[Hold, ...], apart: bool = False
    ) -> tuple[Node, ...]:
        """``holds`` filled, ``nodes`` done, results drained."""
        with self.holds.level(frame) as level:
            fills: list[Node] = []
            drains: list[Node] = []
            for hold in self.holds.in_order(holds):
                live = self.holds.live(hold, frame, nodes)
                fills += self.holds.fill(live, frame)
                drains = [*self.holds.drain(live, frame), *drains]
                frame = replace(frame, live=(*frame.live, live))
            body: list[Node] = []
            for node in nodes:
                body += self.scope((node,), frame, ()) if apart else self.node(node, frame)
        return (*fills, *level.before, *body, *level.after, *drains)

    def node(self, node: PlanNode, frame: Frame) -> tuple[Node, ...]:
        if isinstance(node, Leaf):
            return lower_leaf(self.site, node, frame)
        count = self.tiles(node, frame)
        inner = self.entered(node, frame, count)
        if any(hold.digits for hold in node.holds):
            return self.steps(node, inner, count)
        if self.is_group(node):
            body = self.scope(node.body, replace(inner, exists=()), node.holds)
            body = (When(inner.exists, body),) if inner.exists else body
        else:
            body = self.position(node.body, inner, node.holds)
        if node.unit:
            return (Parallel(node.unit, node.name, (constant(count),), body),)
        return (Loop(node.name, (constant(0),), (constant(count),), 1, body),) if count > 1 else body

    def steps(self, node: Tile, inner: Frame, count: int) -> tuple[Node, ...]:
        """Steps of a sequence, with buffers that outlive them."""
        if inner.exists or node.unit or not all(hold.digits for hold in node.holds):
            raise PlanError(f"'{node}': what is kept from step to step is all that such a tile holds")
        kept = kept_steps(self.site, node, inner, count)
        inside = replace(inner, live=(*inner.live, *kept.lives))
        body: list[Node] = []
        for number, child in enumerate(node.body):
            body += kept.before.get(number, ())
            body += self.scope((child,), inside, ())
            body += kept.after.get(number, ())
        nodes = (Loop(node.name, (constant(0),), (constant(count),), 1, tuple(body)),) if count > 1 else tuple(body)
        nodes = (*kept.first, *kept.ready, *nodes, *kept.last)
        for buffer in reversed(kept.buffers):
            nodes = (Alloc(buffer, nodes),)
        return nodes

    def entered(self, node: Tile, frame: Frame, count: int) -> Frame:
        """The frame inside a tile."""
        ring = (Ring(node.name, count),) if count > 1 or node.unit else ()
        spots, exists = dict(frame.spots), list(frame.exists)
        ranges = replace(frame, rings=frame.rings + ring).ranges
        for number, loop in node.loops:
            before = frame.spots[number][loop]
            after = Standing(before.base + (variable(node.name) * node.step if ring else 0), node.step, before.extent)
            spots[number] = {**spots[number], loop: after}
            exists += after.exists(ranges)
        unit = (node.unit, node.name) if node.unit else frame.unit
        return replace(frame, rings=frame.rings + ring, spots=spots, exists=tuple(dict.fromkeys(exists)), unit=unit)

    def is_group(self, node: Tile) -> bool:
        """A tile over several statements, steps in order, or units: what is inside stands for itself."""
        steps: Mapping[int, set[str]] = {n: {x.name for x in self.program.statements[n].seq} for n, _ in node.loops}
        return len(node.loops) > 1 or bool(node.unit) or any(loop in steps[n] for n, loop in node.loops)

    def tiles(self, node: Tile, frame: Frame) -> int:
        """How many iterations a tile has, at most."""
        counts = set()
        for number, loop in node.loops:
            standing = frame.spots[number].get(loop)
            if standing is None or node.step < 1:
                raise PlanError(f"'{node}': statement {number} has no loop '{loop}' that can be cut so")
            if standing.left % node.step and standing.left < standing.extent:
                what = f"'{node}' does not cut the {standing.left} iterations of '{loop}' around it evenly"
                raise PlanError(what, hint="a step that divides them")
            most = min(standing.left, standing.extent - lower(standing.base, frame.ranges))
            counts.add(-(-most // node.step))
        if len(counts) != 1:
            raise PlanError(f"'{node}' covers loops of {', '.join(map(str, sorted(counts)))} tiles")
        return counts.pop()
