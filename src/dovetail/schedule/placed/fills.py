"""Fills, drains and zeros: a held region as calls of copy instructions, clipped where a tensor or a loop ends.

    hold x in scratchpad    ->    start t = move_in(x_1[0, 0, 0], x[64*i, 0]) {m = min(64, 100 - 64*i), p = 32, ...}

Where a region may begin before its tensor (padding), the part that exists is copied, by cases. A hop between two
scratchpads also copies the zeros beyond edges, where instructions want them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

from dovetail.base.errors import PlanError
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.nest import Call, Loop, Node, Place, Start, When
from dovetail.schedule.placed.alignment import start_unit
from dovetail.schedule.placed.moves import Line, Move, Side, best_move, copies_between, is_misaligned
from dovetail.schedule.placed.standing import Ranges, Spot, Standing, lower, span, upper
from dovetail.schedule.placed.storage import Axis, Store, across, coordinate
from dovetail.targets.model import Target


@dataclass(frozen=True, slots=True)
class Held:
    """A store, the spot from which its region is touched, and which of its copies is meant."""

    store: Store
    access: Access
    spot: Spot
    copy: Index

    @property
    def side(self) -> Side:
        return Side(self.store.buffer.memory, self.store.buffer.dtype, self.store.layout)


@dataclass(frozen=True, slots=True)
class Whole:
    """A tensor in main memory, dense."""

    name: str
    side: Side
    sizes: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        found, step = [], 1
        for size in reversed(self.sizes):
            found.append(step)
            step *= size
        return tuple(reversed(found))


@dataclass(frozen=True, slots=True)
class Edge:
    """Along one axis, where ``conditions`` hold: from ``start``, as many as the smallest of ``counts``."""

    conditions: tuple[Condition, ...]
    start: Index
    counts: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Mover:
    """Makes the nodes; ``fresh`` gives names to loops, ``guarded`` says that points may be missing (padding)."""

    target: Target
    fresh: Callable[[str], str]
    ranges: Ranges
    guarded: bool
    unit: tuple[str, str] = ("", "")
    """The units that a parallel loop is spread over, and its variable."""

    def fill(
        self, near: Held, far: Held | Whole, sizes: tuple[int, ...], token: str, padded: frozenset[int]
    ) -> tuple[Node, ...]:
        """Copies into ``near``, started by ``token`` where they are asynchronous; zeros are along ``padded`` axes."""
        return self._copy(near, far, sizes, token, padded, True)

    def drain(
        self, near: Held, far: Held | Whole, sizes: tuple[int, ...], token: str, padded: frozenset[int]
    ) -> tuple[Node, ...]:
        """Copies out of ``near``."""
        return self._copy(near, far, sizes, token, padded, False)

    def clear(self, near: Held, zero: Whole) -> tuple[Node, ...]:
        """Zeros in all of ``near``: by an instruction, else from the one element of ``zero``."""
        numbers = range(len(near.store.axes))
        edges = {n: Edge((), constant(0), (constant(near.store.axes[n].extent),)) for n in numbers}
        lines = tuple(self._line(near, n, edges[n], 0, {}) for n in numbers)
        move = best_move(lines, near.side, None, self.target, True)
        if move is not None:
            return self._nodes(move, near, edges, {}, lambda at: None, "")
        move = best_move(lines, near.side, zero.side, self.target, True) if self.target.host is not None else None
        if move is None:
            what = f"nothing sets '{near.store.buffer.memory}' to zero"
            why = f"edges of '{near.store.tensor}' are padded there"
            hint = "an instruction whose program is y[...] = 0, or a copy whose distances may be 0 and a host unit"
            raise PlanError(what, where=f"target '{self.target.name}'", why=why, hint=hint)
        return self._nodes(move, near, edges, {}, lambda at: Place(zero.name, (constant(0),)), "")

    def whole(self, near: Held, sizes: tuple[int, ...], axes: frozenset[int]) -> tuple[Condition, ...] | None:
        """What must hold for everything along ``axes`` to exist; None where it always does."""
        found: list[Condition] = []
        for number in sorted(axes):
            edges, extent = self._reach(near, number, sizes)
            inside = [edge for edge in edges if edge.start == constant(0)]
            if not inside:
                return (Condition(constant(-1)),)
            short = [Condition(c - extent) for c in inside[0].counts]
            found += [c for c in (*inside[0].conditions, *short) if lower(c.index, self.ranges) < 0]
        return tuple(dict.fromkeys(found)) or None

    def _reach(self, near: Held, number: int, sizes: tuple[int, ...]) -> tuple[tuple[Edge, ...], int]:
        """The edges along an axis, and how much there should be; blocks of a loop are taken together."""
        axis = near.store.axes[number]
        if axis.dimension >= 0:
            found = span(near.access.indices[axis.dimension], near.spot, sizes[axis.dimension], self.ranges)
            return self._cases(found.low, 1, found.valid), axis.extent
        standing = near.spot[axis.loop]
        if not any(axis.steps):
            return (self._again(near, axis),), axis.extent
        single = replace(axis, part=1, steps=tuple(s // axis.part for s in axis.steps))
        return self._padded(near, single, standing.valid(self.ranges), sizes), standing.left

    def _copy(
        self, near: Held, far: Held | Whole, sizes: tuple[int, ...], token: str, padded: frozenset[int], fills: bool
    ) -> tuple[Node, ...]:
        axes = near.store.axes
        names = {n: self.fresh("c") for n in range(len(axes))}
        found: list[Node] = []
        for chosen in product(*self._edges(near, far, sizes, names, padded)):
            edges = dict(enumerate(chosen))
            lines = tuple(self._line(near, n, edges[n], self._far_stride(axes[n], far, near), names) for n in edges)
            move = best_move(lines, near.side, far.side, self.target, fills, self._everywhere(near) if fills else "")
            if move is None:
                raise self._cannot(near, far, lines, fills)
            nodes = self._nodes(move, near, edges, names, lambda at: self._far_place(near, far, at), token)
            conditions = (*self.inside(near, sizes), *(c for edge in chosen for c in edge.conditions))
            found += [When(conditions, nodes)] if conditions else nodes
        return tuple(found)

    def inside(self, near: Held, sizes: tuple[int, ...]) -> tuple[Condition, ...]:
        """What must hold where one index of a dimension is held, which may not exist (no axis clips it)."""
        found: list[Condition] = []
        bases = {name: standing.base for name, standing in near.spot.items()}
        for dimension, index in enumerate(near.access.indices):
            if self.guarded and not any(_clips(axis, dimension) for axis in near.store.axes):
                low = index.substitute(bases)
                found += [Condition(end) for end in (low, constant(sizes[dimension] - 1) - low)]
        return tuple(c for c in found if lower(c.index, self.ranges) < 0)

    def _everywhere(self, near: Held) -> str:
        """The units around, where all of them hold the same region."""
        unit, var = self.unit
        moving = {name for index in near.access.indices for name in index.names()}
        return "" if any(var in near.spot[name].base.names() for name in moving) else unit

    def _line(self, near: Held, number: int, edge: Edge, far: int, names: Mapping[int, str]) -> Line:
        axis = near.store.axes[number]
        counts = edge.counts
        full = len(counts) == 1 and counts[0].is_constant and counts[0].const == axis.extent
        needle = axis.needle if near.store.layout is not None and axis.needle >= 0 else -1
        shifted = edge.start != constant(0)
        used = {name for index in (edge.start, *counts) for name in index.names()}
        within = next((n for n, name in names.items() if name in used), -1)
        return Line(number, axis.extent, full, near.store.strides[number], far, needle, shifted, within)

    # -- edges

    def _edges(
        self,
        near: Held,
        far: Held | Whole,
        sizes: tuple[int, ...],
        names: Mapping[int, str],
        padded: frozenset[int],
    ) -> list[tuple[Edge, ...]]:
        whole = padded if isinstance(far, Held) else frozenset[int]()
        return [
            (Edge((), constant(0), (constant(axis.extent),)),) if n in whole else self._edge(near, n, sizes, names)
            for n, axis in enumerate(near.store.axes)
        ]

    def _edge(self, near: Held, number: int, sizes: tuple[int, ...], names: Mapping[int, str]) -> tuple[Edge, ...]:
        axis = near.store.axes[number]
        if axis.dimension >= 0:
            found = span(near.access.indices[axis.dimension], near.spot, sizes[axis.dimension], self.ranges)
            return self._cases(found.low, 1, found.valid)
        standing = near.spot[axis.loop]
        if axis.is_inner and axis.extent == 1:
            return (Edge((), constant(0), (constant(1),)),)
        parts = (n for n, a in enumerate(near.store.axes) if a.loop == axis.loop and not a.is_inner)
        blocks = next(parts) if axis.is_inner else None
        if axis.part > 1:
            counts = tuple((v + (axis.part - 1)) // axis.part for v in standing.valid(self.ranges))
            return (Edge((), constant(0), counts),)
        if not any(axis.steps):
            return (self._again(near, axis),)
        if blocks is not None:
            base = standing.base + variable(names[blocks]) * axis.extent
            standing = Standing(base, axis.extent, standing.extent)
        ranges = self._with_names(near, names)
        return self._padded(near, axis, standing.valid(ranges), sizes)

    def _again(self, near: Held, axis: Axis) -> Edge:
        """Every element again along a loop that the tensor does not have; once where that loop runs once."""
        count = 1 if near.spot[axis.loop].extent == 1 else axis.extent
        return Edge((), constant(0), (constant(count),))

    def _with_names(self, near: Held, names: Mapping[int, str]) -> Ranges:
        return {**self.ranges, **{names[n]: (0, a.extent - 1) for n, a in enumerate(near.store.axes)}}

    def _padded(self, near: Held, axis: Axis, valid: tuple[Index, ...], sizes: tuple[int, ...]) -> tuple[Edge, ...]:
        """A packed axis, clipped where the dimension it walks ends, if points may be missing."""
        if not self.guarded or axis.extent == 1:
            return (Edge((), constant(0), valid),)
        for dimension, step in enumerate(axis.steps):
            index = near.access.indices[dimension]
            found = span(index, near.spot, sizes[dimension], self.ranges)
            outside = (
                lower(found.low, self.ranges) < 0 or upper(found.low, self.ranges) + found.extent > sizes[dimension]
            )
            if not step or not outside:
                continue
            if sum(near.spot[n].left > 1 for n in index.names()) > 1 or sum(map(bool, axis.steps)) > 1:
                what = f"'{near.access}' is padded along several loops at once in {near.store.buffer.memory}"
                raise PlanError(what, hint="hold it inside all but one of them")
            behind = (constant(sizes[dimension] + step - 1) - found.low) // step
            return self._cases(found.low, step, (*valid, behind))
        return (Edge((), constant(0), valid),)

    def _cases(self, low: Index, step: int, counts: tuple[Index, ...]) -> tuple[Edge, ...]:
        """From 0 on where ``low`` is inside, else from the first place that is."""
        inside = Edge((Condition(low),), constant(0), counts)
        if lower(low, self.ranges) >= 0:
            return (Edge((), constant(0), counts),)
        start = (constant(step - 1) - low) // step
        outside = Edge((Condition(constant(-1) - low),), start, tuple(c - start for c in counts))
        return (inside, outside) if upper(low, self.ranges) >= 0 else (outside,)

    # -- the other side

    def _far_stride(self, axis: Axis, far: Held | Whole, near: Held) -> int:
        if isinstance(far, Whole):
            return sum(step * stride for step, stride in zip(axis.steps, far.strides, strict=True))
        pairs = zip(far.store.axes, far.store.strides, strict=True)
        return sum(stride * across(axis, other, far.store, near.access, near.spot) for other, stride in pairs)

    def _far_place(self, near: Held, far: Held | Whole, at: Mapping[int, Index]) -> Place:
        """Where the element of ``near`` at these coordinates lies on the other side."""
        bases = {name: standing.base for name, standing in near.spot.items()}
        if isinstance(far, Whole):
            indices = []
            for dimension, index in enumerate(near.access.indices):
                moved = (at[n] * near.store.axes[n].steps[dimension] for n in at)
                indices.append(sum(moved, index.substitute(bases)))
            return Place(far.name, tuple(indices) or (constant(0),))
        found: dict[int, Index] = {}
        for number, other in enumerate(far.store.axes):
            place = coordinate(other, near.access, far.spot, near.spot)
            for n, value in at.items():
                place += value * across(near.store.axes[n], other, far.store, near.access, near.spot)
            found[number] = place
        return far.store.place(found, far.copy)

    # -- calls

    def _nodes(
        self,
        move: Move,
        near: Held,
        edges: Mapping[int, Edge],
        names: Mapping[int, str],
        far_place: Callable[[Mapping[int, Index]], Place | None],
        token: str,
    ) -> tuple[Node, ...]:
        chunks = dict(move.chunks)
        names = names or {n: self.fresh("c") for n in (*(line.number for line in move.around), *chunks)}
        at = {n: edge.start for n, edge in edges.items()}
        at |= {line.number: variable(names[line.number]) for line in move.around}
        at |= {n: edges[n].start + variable(names[n]) * size for n, size in chunks.items()}
        near_place, other = near.store.place(at, near.copy), far_place(at)
        places = {True: near_place, False: other}
        operands = tuple(places[o.name == move.near] for o in move.instruction.operands)
        counts = self._counts(move, edges, names)
        params = (*counts.items(), *((name, (constant(value),)) for name, value in move.strides))
        call = Call(move.instruction.name, tuple(o for o in operands if o is not None), params)
        node: Node = Start(token, call) if token and move.instruction.is_async else call
        extents = {n: near.store.axes[n].extent for n in edges}
        ranges = {**self.ranges, **{names[line.number]: (0, line.extent - 1) for line in move.around}}
        ranges |= {names[n]: (0, -(-extents[n] // size) - 1) for n, size in chunks.items()}
        some = [Condition(c - 1) for values in counts.values() for c in values if lower(c, ranges) < 1]
        nodes: tuple[Node, ...] = (When(tuple(dict.fromkeys(some)), (node,)),) if some else (node,)
        for line in reversed(move.around):
            edge = edges[line.number]
            upper_bounds = tuple(edge.start + c for c in edge.counts)
            nodes = (Loop(names[line.number], (edge.start,), upper_bounds, 1, nodes),)
        for n, size in chunks.items():
            ends = tuple((c + (size - 1)) // size for c in edges[n].counts)
            nodes = (Loop(names[n], (constant(0),), ends, 1, nodes),)
        return nodes

    def _counts(self, move: Move, edges: Mapping[int, Edge], names: Mapping[int, str]) -> dict[str, tuple[Index, ...]]:
        """The instruction's parameters."""
        taken = dict(move.taken)
        found: dict[str, tuple[Index, ...]] = {}
        for loop in move.instruction.program.statements[0].loops:
            if loop.extent.is_constant:
                continue
            group, inner = taken[loop.name], 1
            for line in group[1:]:
                inner *= line.extent
            counts = edges[group[0].number].counts if group else (constant(1),)
            size = dict(move.chunks).get(group[0].number, 0) if group else 0
            if size:
                done = variable(names[group[0].number]) * size
                counts = (constant(size), *(c - done for c in counts))
            found[next(iter(loop.extent.names()))] = tuple(c * inner for c in counts)
        return found

    def _cannot(self, near: Held, far: Held | Whole, lines: tuple[Line, ...], fills: bool) -> PlanError:
        source, sink = (far.side, near.side) if fills else (near.side, far.side)
        apart = ", ".join(
            f"{'' if line.is_full else 'up to '}{line.extent} of them {line.near} and {line.far} apart"
            for line in lines
            if line.extent > 1
        )
        if is_misaligned(lines, near.side, far.side, self.target, fills):
            placed = [side for side in (near.side, far.side) if start_unit(self.target, side.memory, side.dtype) > 1]
            starts = (f"{self.target.memory(side.memory).align} bytes in '{side.memory}'" for side in placed)
            return PlanError(
                f"no copy from '{source.memory}' to '{sink.memory}' moves '{near.access}' in aligned parts",
                where=f"target '{self.target.name}'",
                why=f"operands start at multiples of {' and '.join(starts)}",
                hint="a smaller 'align' of the [[memory]], or a copy of more dimensions",
            )
        there = copies_between(self.target, source, sink)
        listed = "; ".join(copy.source for copy in there)
        return PlanError(
            f"no copy from '{source.memory}' to '{sink.memory}' moves '{near.access}'",
            where=f"target '{self.target.name}'",
            why=f"it would move {source.dtype} to {sink.dtype}, {apart or 'one element'}"
            + (f"; what copies there: {listed}" if there else "; nothing copies these dtypes there"),
            hint="named distances in its 'operands', and 'params' for its extents"
            if there
            else f'an [[instruction]] with computes = "for i<n: s[i] = x[i]", s = "{sink.dtype} @ {sink.memory}" and'
            f' x = "{source.dtype} @ {source.memory}"',
        )


def _clips(axis: Axis, dimension: int) -> bool:
    """Whether copies along an axis are cut where a dimension ends."""
    return axis.dimension == dimension or (axis.extent > 1 and bool(axis.steps[dimension]))
