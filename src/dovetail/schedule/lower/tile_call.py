"""A leaf done by one call of an instruction that works on a whole tile in memory.

    do 0 by gemm with i = p, j = q, k = c    ->    call gemm(y[p, q], x[p, 0], w[0, q]) {ldc = 96, lda = 64, n = 64}

Loops that the instruction does not have run around it, one by one; longer ones in parts. A tile that does not fill
the instruction, or that a guard may cut, is done with registers and lanes instead: the same sums, from and to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from dovetail.base.errors import PlanError
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.interval import floor_divide, interval, modulo, simplify
from dovetail.ir.nest import Call, Node, Place, When
from dovetail.ir.plan import Hold, Leaf, PlanNode, Tile
from dovetail.ir.program import Combine
from dovetail.schedule.lower.state import InMemory, InRegisters, Span, State, Workshop
from dovetail.schedule.tile_shape import TileShape, operand_accesses, tile_shape

Lower = Callable[[Workshop, tuple[PlanNode, ...], State], tuple[Node, ...]]
SPARE = 3
"""Registers kept free for operands while an edge is summed up."""
UNSURE = 2
"""Registers along a loop of which an edge has an unknown number of iterations."""


def lower_tile_call(shop: Workshop, leaf: Leaf, state: State, lower: Lower) -> tuple[Node, ...]:
    """The calls of a leaf ``by`` an instruction, and what does its edges."""
    shape = tile_shape(shop.target.instruction(leaf.instruction))
    assert shape is not None, "checked with the plan"
    accesses = operand_accesses(shape, shop.statements[leaf.statement], dict(leaf.bound), shop.dtypes)
    assert accesses is not None, "checked with the plan"
    return _TileCall(shop, leaf, state, lower, shape, accesses).nodes()


class _TileCall:
    """One leaf in one place; ``spans`` are what is left of its loops, without what does not exist."""

    def __init__(
        self,
        shop: Workshop,
        leaf: Leaf,
        state: State,
        lower: Lower,
        shape: TileShape,
        accesses: Mapping[str, Access],
    ) -> None:
        self.shop, self.leaf, self.state, self.lower = shop, leaf, state, lower
        self.shape, self.accesses = shape, accesses
        self.statement = shop.statements[leaf.statement]
        self.bound = dict(leaf.bound)
        left = {loop.name: state.spans[leaf.statement, loop.name] for loop in self.statement.loops}
        self.spans = {n: Span(s.base, s.valid if s.valid is not None else s.extent) for n, s in left.items()}

    def nodes(self) -> tuple[Node, ...]:
        if any(span.size == 0 for span in self.spans.values()):
            return ()
        around = self.loop_around()
        if around is not None:
            tile = Tile(self.shop.fresh("auto"), ((self.leaf.statement, around[0]),), around[1], (self.leaf,))
            return self.lower(self.shop, (tile,), self.state)
        extents = {loop.name: self.extent(self.bound[loop.name]) for loop in self.shape.loops}
        params = self.shape.parameters(extents)
        fits = all(loop.allows(extents[loop.name], self.most(extents[loop.name])) for loop in self.shape.loops)
        guards = self.guards()
        if params is None or not fits or guards is None:
            return self.edge()
        call: tuple[Node, ...] = (self.call(extents, params),)
        late = self.state.late.get(self.leaf.statement, ())
        some = tuple(Condition(e - 1) for e in extents.values() if not self.state.always(Condition(e - 1)))
        whole: tuple[Node, ...] = (When((*some, *late), call),) if late or some else call
        return (When(guards, whole, self.edge()),) if guards else whole

    # -- the tile

    def loop_around(self) -> tuple[str, int] | None:
        """A loop that has to run around the call, and by how much."""
        inside = {loop for group in self.bound.values() for loop in group}
        for name, span in self.spans.items():
            if name not in inside and span.size != 1:
                return name, 1
        for loop in self.shape.loops:
            group = self.bound[loop.name]
            if not group:
                continue
            inner = self.whole(group[1:])
            first = self.spans[group[0]]
            if first.size is None:
                most = self.most(first.extent)
                if most is None or most * inner > loop.most:
                    return self.part(group[0], loop.largest(loop.most), inner, first)
            else:
                step = loop.largest(first.size * inner)
                if step and step < first.size * inner:
                    return self.part(group[0], step, inner, first)
        return None

    def part(self, name: str, step: int, inner: int, span: Span) -> tuple[str, int]:
        count = step // inner
        if count < 1 or (span.size is not None and count >= span.size):
            raise PlanError(f"'{self.leaf}': {inner} iterations of the fused loops do not fit a call", hint="tile them")
        return name, count

    def whole(self, loops: tuple[str, ...]) -> int:
        """Iterations of the inner loops of a fused group, which must all be left."""
        extents = {loop.name: loop.extent for loop in self.statement.loops}
        for name in loops:
            if self.spans[name].extent != extents[name] or self.spans[name].size is None:
                raise PlanError(f"'{self.leaf}': '{name}' is fused and not whole", hint="do not tile it")
        return prod(self.spans[name].extent.const for name in loops)

    def extent(self, group: tuple[str, ...]) -> Index:
        return self.spans[group[0]].extent * self.whole(group[1:]) if group else constant(1)

    def most(self, extent: Index) -> int | None:
        found = interval(extent, self.state.ranges)
        return None if found is None else found[1]

    def guards(self) -> tuple[Condition, ...] | None:
        """What must hold for every point of the tile to be there; None where that cannot be said, or never is."""
        found: list[Condition] = []
        for condition in self.state.conditions.get(self.leaf.statement, ()):
            least = condition.index.substitute({n: s.base for n, s in self.spans.items()})
            inside = [n for n, s in self.spans.items() if n in condition.names() and s.size != 1]
            if inside and (condition.equal or not condition.index.is_affine):
                return None
            for name in inside:
                c = condition.index.coefficient(name)
                least = least + (self.spans[name].extent - 1) * c if c < 0 else least
            here = Condition(simplify(least, self.state.ranges), condition.equal)
            if self.state.never(here):
                return None
            if not self.state.always(here):
                found.append(here)
        return tuple(found)

    # -- the call

    def call(self, extents: dict[str, Index], params: dict[str, Index]) -> Call:
        places: list[Place] = []
        told: dict[str, Index] = {}
        for operand in self.shape.instruction.operands:
            place, strides = self.place(self.accesses[operand.name])
            mine = self.shape.told(operand, strides, extents)
            if mine is None or any(told.get(n, s) != s for n, s in mine.items()):
                lie = ", ".join(f"{n} by {s}" for n, s in strides.items())
                why = f"neighbours lie apart along {lie}"
                raise PlanError(f"'{self.leaf}' cannot take '{operand.name}' from {place}", why=why, hint="hold it")
            places.append(place)
            told |= mine
        given = {**told, **params}
        return Call(self.leaf.instruction, tuple(places), tuple((n, (value,)) for n, value in given.items()))

    def place(self, access: Access) -> tuple[Place, dict[str, Index]]:
        """Where the first element of a tile is, and how far apart neighbours are along each loop of the call."""
        values, ranges, walks = self.walks()
        indices = tuple(simplify(i.substitute(values), ranges) for i in access.indices)
        held = self.state.held.get(access.tensor)
        if isinstance(held, InRegisters):
            raise PlanError(f"'{self.leaf}' works in memory, '{access.tensor}' is held in registers")
        buffer = access.tensor
        if isinstance(held, InMemory):
            buffer = held.buffer
            offsets = [i - b for i, b in zip(indices, held.base, strict=True)]
            quotients = [floor_divide(offsets[d.dimension], d.divisor, ranges) for d in held.digits]
            indices = tuple(
                modulo(q, d.modulus, ranges) if d.modulus else q for q, d in zip(quotients, held.digits, strict=True)
            )
        strides = {needle: self.stride(buffer, indices, names, access) for needle, names in walks.items()}
        zero = {name: constant(0) for names in walks.values() for name in names}
        return Place(buffer, tuple(i.substitute(zero) for i in indices)), strides

    def walks(self) -> tuple[dict[str, Index], dict[str, tuple[int, int]], dict[str, tuple[str, ...]]]:
        """Every loop at a point of the tile, ranges of what stands for the point, its names by loop of the call."""
        values = self.state.bases(self.leaf.statement)
        values |= {name: span.base for name, span in self.spans.items()}
        ranges = dict(self.state.ranges)
        walks: dict[str, tuple[str, ...]] = {}
        for needle, group in self.bound.items():
            for name in group:
                ranges[f"%{name}"] = (0, max(0, (self.most(self.spans[name].extent) or 1) - 1))
                values[name] = values[name] + variable(f"%{name}")
            walks[needle] = tuple(f"%{name}" for name in group)
        return values, ranges, walks

    def stride(self, buffer: str, indices: tuple[Index, ...], names: tuple[str, ...], access: Access) -> Index:
        """Elements between neighbours along ``names``, fused: each must go on where the next one inside it ends."""
        single = [self.single_stride(buffer, indices, name, access) for name in names]
        inner, count = (single[-1], 1) if single else (constant(0), 1)
        for name, stride in zip(reversed(names), reversed(single), strict=True):
            if stride != inner * count:
                raise PlanError(f"'{self.leaf}': fused loops jump in '{access}'", hint="bind one of them")
            count *= self.spans[name.removeprefix("%")].size or 1
        return inner

    def single_stride(self, buffer: str, indices: tuple[Index, ...], name: str, access: Access) -> Index:
        total = constant(0)
        for index, step in zip(indices, self.shop.strides[buffer], strict=True):
            c = index.coefficient(name)
            if name in (index - variable(name) * c).names() or (c and step is None):
                raise PlanError(
                    f"'{self.leaf}': elements of '{access}' are not evenly spaced", hint="hold it otherwise"
                )
            total = total + step * c if c and step is not None else total
        return total

    # -- edges

    def edge(self) -> tuple[Node, ...]:
        """What no call can do: sums in registers where each stands for an element, else as any leaf."""
        number = self.leaf.statement
        plain = Leaf(number, self.leaf.lanes, self.leaf.width)
        kept = [n for n in self.spans if n in self.statement.out.names()]
        simple = not self.state.late.get(number) and self.statement.combine is not Combine.SET
        if not (kept and simple and self.is_separate(kept)):
            return self.lower(self.shop, (plain,), self.state)
        lanes = self.leaf.lanes if self.leaf.lanes in kept else ""
        node = self.summed(Leaf(number, lanes, plain.width if lanes else 1), kept)
        spans = {(number, name): span for name, span in self.spans.items()}
        return self.lower(self.shop, (node,), self.state.with_spans(spans))

    def is_separate(self, kept: list[str]) -> bool:
        """Each output index is one kept loop, so that a register stands for one element."""
        indices = self.statement.out.indices
        return sorted(n for i in indices for n in i.names() if n in kept) == sorted(kept) and all(
            len(i.names() & set(kept)) <= 1 and i.is_affine and all(c > 0 for _, c in i.terms) for i in indices
        )

    def summed(self, leaf: Leaf, kept: list[str]) -> PlanNode:
        """Tiles over what is left, the innermost with its sums in registers."""
        bank = self.shop.target.registers
        cells = max(1, (bank.count if bank is not None else 1) - SPARE)
        node: PlanNode = leaf
        for name in reversed([n for n in self.spans if n not in kept]):
            node = self.tile(name, 1, node)
        steps: dict[str, int] = {}
        for name in sorted(kept, key=lambda n: n != leaf.lanes):
            unit = leaf.width if name == leaf.lanes else 1
            size = self.spans[name].size
            count = UNSURE if size is None else -(-size // unit)
            steps[name] = min(count, cells) * unit
            cells = max(1, cells // min(count, cells))
        held: tuple[Hold, ...] = (Hold(self.statement.out.tensor, self.shop.registers),)
        for name, step in steps.items():
            node = self.tile(name, step, node, held)
            held = ()
        return node

    def tile(self, name: str, step: int, body: PlanNode, holds: tuple[Hold, ...] = ()) -> Tile:
        return Tile(self.shop.fresh("edge"), ((self.leaf.statement, name),), step, (body,), holds=holds)
