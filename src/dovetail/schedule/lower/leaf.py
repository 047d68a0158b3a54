"""A leaf of a plan -> instruction calls: what is left of every loop is unrolled, lanes first.

``for i<6, j<16: c[i, j] += a[i, k] * b[k, j]`` with lanes j x 8 becomes two loads of b, six broadcasts of a, twelve
multiply-adds; each value is loaded once.
"""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES, DType, compute_type
from dovetail.base.errors import MappingError, PlanError
from dovetail.ir.expr import (
    Apply,
    Bitcast,
    Cast,
    Expr,
    Literal,
    Position,
    Read,
    argument_types,
    names,
    value_type,
)
from dovetail.ir.index import ZERO, Access, Condition, Index, constant, variable
from dovetail.ir.interval import floor_divide, modulo, simplify
from dovetail.ir.nest import Buffer, Call, Cell, Node, Number, Operand, Place, Value, When
from dovetail.ir.plan import Leaf
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Statement
from dovetail.schedule.lanes import COUNTED, moved_type
from dovetail.schedule.lower.across import Neighbours
from dovetail.schedule.lower.fetches import fetches
from dovetail.schedule.lower.point import Here, open_conditions
from dovetail.schedule.lower.rows import row_fetches
from dovetail.schedule.lower.state import InMemory, InRegisters, Span, State, Workshop, alloc, points
from dovetail.schedule.repertoire import Entry

LANE = "%lane"
"""The position inside a vector, while an address is being worked out."""
LANE_INDEX = variable(LANE)
ONE_APART = constant(1)


def unrolled(shop: Workshop, leaf: Leaf, state: State) -> tuple[Node, ...]:
    """All calls of a leaf whose loops all have a known, small rest."""
    statement = shop.statements[leaf.statement]
    slowest = _is_across(leaf, statement.out, state)
    order = sorted((loop.name for loop in statement.loops), key=lambda name: (name == leaf.lanes) != slowest)
    rest = {name: state.spans[leaf.statement, name] for name in order}
    sizes = tuple(_steps(name, span, leaf) for name, span in rest.items())
    plain: list[tuple[int, ...]] = []
    guarded: dict[tuple[Condition, ...], list[tuple[int, ...]]] = {}
    here = Here(state.bases(leaf.statement))
    for offsets in points(sizes):
        here.move(rest, offsets, leaf)
        asked = open_conditions(state, leaf, rest, offsets, here)
        if asked is None:
            continue
        if asked:
            guarded.setdefault(asked, []).append(offsets)
        else:
            plain.append(offsets)
    nodes = (*row_fetches(shop, leaf, state), *_Builder(shop, leaf, state, rest).build(plain)) if plain else ()
    for conditions, several in guarded.items():
        nodes += (When(conditions, _Builder(shop, leaf, state, rest).build(several)),)
    late = state.late.get(leaf.statement, ())
    return (When(late, nodes),) if late and nodes else nodes


def _is_across(leaf: Leaf, out: Access, state: State) -> bool:
    """Whether the lanes of a result in memory are rows of it: what lies side by side is written one after the other
    then, before its lines are driven out by those of further rows. Otherwise lanes are fastest, and one broadcast is
    alive at a time."""
    held = state.held.get(out.tensor)
    if leaf.lanes not in out.names() or isinstance(held, InRegisters):
        return False
    fastest = held.digits[-1].dimension if isinstance(held, InMemory) else -1
    return leaf.lanes not in out.indices[fastest].names()


def _steps(name: str, span: Span, leaf: Leaf) -> int:
    assert span.size is not None
    return -(-span.size // leaf.width) if name == leaf.lanes else span.size


class _Builder:
    """Calls for some points of a leaf; loads and broadcasts are shared between the points."""

    def __init__(self, shop: Workshop, leaf: Leaf, state: State, rest: dict[str, Span]) -> None:
        self.shop, self.leaf, self.state, self.rest = shop, leaf, state, rest
        self.statement: Statement = shop.statements[leaf.statement]
        self.wide = leaf.width if leaf.lanes else 1
        self.out_dtype = shop.dtypes[self.statement.out.tensor]
        self.nodes: list[Node] = []
        self.buffers: dict[tuple[str, int], tuple[str, int]] = {}
        self.cache: dict[object, Operand] = {}
        bases = state.bases(leaf.statement)
        self.here = self.along = Here(bases)
        self.lane_ranges = state.ranges
        if self.wide > 1:
            self.along = Here({**bases, leaf.lanes: bases[leaf.lanes] + variable(LANE)})
            self.lane_ranges = {**state.ranges, LANE: (0, self.wide - 1)}
        self.texts: dict[int, tuple[Expr, str, tuple[str, ...]]] = {}
        self.live: tuple[Index, ...] = ()
        self.own = moved_type(self.statement, shop.dtypes)
        self.out_has_lanes = self.wide > 1 and leaf.lanes in self.statement.out.names()
        self.beside = Neighbours(shop.instructions, self.out_dtype, self.wide)

    def build(self, offsets: list[tuple[int, ...]]) -> tuple[Node, ...]:
        for point in offsets:
            self.here.move(self.rest, point, self.leaf)
            self.along.offsets = self.here.offsets
            lanes = self.rest.get(self.leaf.lanes)
            self.live = ()
            if lanes is not None and self.wide > 1:
                self.live = self.live_lanes(lanes, self.here.offsets.get(self.leaf.lanes, 0))
            self.point()
        self.nodes += self.beside.written()
        buffers = [
            Buffer(name, self.shop.registers, DTYPES[dtype], (constant(count),), lanes)
            for (dtype, lanes), (name, count) in self.buffers.items()
        ]
        return alloc(buffers, tuple(self.nodes))

    def live_lanes(self, span: Span, at: int) -> tuple[Index, ...]:
        """How many lanes of the vector at ``at`` exist; empty when all do."""
        ends = [span.extent - at] + ([span.valid - at] if span.valid is not None else [])
        known = [e.const for e in ends if e.is_constant]
        open_ends = tuple(e for e in ends if not e.is_constant)
        if not open_ends:
            return () if min(known) >= self.wide else (constant(min(known)),)
        return (constant(min(self.wide, *known)), *open_ends)

    # -- one point

    def point(self) -> None:
        statement = self.statement
        held = self.state.held.get(statement.out.tensor)
        own = self.own
        lanes = self.wide if self.out_has_lanes or self.varies(statement.value) else 1
        if isinstance(held, InRegisters):
            self.into_register(held, own)
            return
        if self.wide > 1 and not self.out_has_lanes:
            raise PlanError(f"'{statement.out}' does not vary over its lanes '{self.leaf.lanes}'", hint="hold it")
        if statement.combine is Combine.SET:
            value = self.converted(self.value(statement.value, own, lanes), own, self.out_dtype, lanes)
            self.store(statement.out, value, lanes)
            return
        acc = compute_type(self.out_dtype)
        before = self.converted(self.load(statement.out, lanes), self.out_dtype, acc, lanes)
        after = self.combined(before, own, acc, lanes, None)
        self.store(statement.out, self.converted(after, acc, self.out_dtype, lanes), lanes)

    def into_register(self, held: InRegisters, own: DType) -> None:
        statement = self.statement
        cell = self.cell(held, statement.out)
        if held.width != self.wide and not (held.partial and isinstance(statement.value, Literal)):
            raise PlanError(f"'{statement.out}' is held over {held.width} lanes and written over {self.wide}")
        if statement.combine is Combine.SET:
            value = self.value(statement.value, own, held.width)
            rounded = self.converted(value, own, self.out_dtype, held.width)
            self.move(self.converted(rounded, self.out_dtype, held.dtype, held.width), cell, held.dtype, held.width)
            return
        self.combined(cell, own, held.dtype, held.width, cell)

    def combined(self, before: Operand, own: DType, acc: DType, lanes: int, into: Cell | None) -> Operand:
        """``before op value``; a multiply-add where the target has one."""
        statement, value = self.statement, self.statement.value
        function = statement.combine.function
        assert function is not None
        masked = bool(self.live) and lanes > 1 and not self.out_has_lanes
        if isinstance(value, Apply) and own == acc and (not masked or self.zero_outside(value)):
            entry = self.shop.instructions.find("accumulate", statement.combine.value, value.function, acc.name, lanes)
            if entry is not None:
                arguments = [self.value(a, own, lanes) for a in value.args]
                into = into or self.copy(before, acc, lanes)
                return self.call(entry.instruction.name, entry.sources, into, arguments)
        result = self.converted(self.value(value, own, lanes), own, acc, lanes)
        if masked:
            neutral = Number(statement.combine.neutral(acc), acc)
            entry = self.need("keep", acc.name, lanes)
            kept = self.temporary(acc, lanes)
            params = ((entry.param, self.live),)
            result = self.call(entry.instruction.name, entry.sources, kept, [result, neutral], params)
        return self.apply(function, acc, acc, [before, result], lanes, into)

    def zero_outside(self, value: Apply) -> bool:
        """Dead lanes of every factor read as zero, and zeros add nothing."""
        zeros = all(
            isinstance(a, Read) and self.varies(a) and not isinstance(self.state.held.get(a.access.tensor), InRegisters)
            for a in value.args
        )
        return value.function == "mul" and self.statement.combine is Combine.ADD and zeros

    # -- values

    def varies(self, e: Expr) -> bool:
        return self.wide > 1 and self.leaf.lanes in self.text(e)[2]

    def text(self, e: Expr) -> tuple[Expr, str, tuple[str, ...]]:
        """``e``, how it reads, and which of the leaf's loops are in it."""
        found = self.texts.get(id(e))
        if found is None:
            loops = names(e)
            found = self.texts[id(e)] = e, str(e), tuple(name for name in self.rest if name in loops)
        return found

    def key(self, e: Expr) -> tuple[str, tuple[int, ...]]:
        """The same for the same value: its text, and how far its loops are along."""
        _, text, loops = self.text(e)
        offsets = self.here.offsets
        return text, tuple([offsets.get(name, 0) for name in loops])

    def value(self, e: Expr, want: DType, lanes: int) -> Operand:
        """``e`` in dtype ``want`` over ``lanes`` lanes."""
        if isinstance(e, Literal):
            return Number(_literal(e.value, want), want)
        if lanes > 1 and not self.varies(e):
            return self.spread(e, want, lanes)
        key = ("value", *self.key(e), want.name, lanes)
        if key not in self.cache:
            self.cache[key] = self.fresh_value(e, want, lanes)
        return self.cache[key]

    def fresh_value(self, e: Expr, want: DType, lanes: int) -> Operand:
        if isinstance(e, Read):
            natural = self.shop.dtypes[e.access.tensor]
            held = self.state.held.get(e.access.tensor)
            if isinstance(held, InRegisters):
                return self.converted(self.from_register(held, e.access, lanes), held.dtype, want, lanes)
            return self.converted(self.load(e.access, lanes), natural, want, lanes)
        if isinstance(e, Position):
            return self.converted(self.counted(e.index, lanes), COUNTED, want, lanes)
        if isinstance(e, Cast):
            inner = compute_type(value_type(e.arg, self.shop.dtypes, None))
            cast = self.converted(self.value(e.arg, inner, lanes), inner, e.dtype, lanes)
            return self.converted(cast, e.dtype, want, lanes)
        if isinstance(e, Bitcast):
            inner = value_type(e.arg, self.shop.dtypes, None)
            wide = compute_type(inner)
            bits = self.converted(self.value(e.arg, wide, lanes), wide, inner, lanes)
            entry = self.need("bitcast", inner.name, e.dtype.name, lanes)
            out = self.temporary(e.dtype, lanes)
            cast = self.call(entry.instruction.name, entry.sources, out, [bits])
            return self.converted(cast, e.dtype, want, lanes)
        assert isinstance(e, Apply)
        return self.applied(e, want, lanes)

    def counted(self, index: Index, lanes: int) -> Operand:
        """``index`` in each lane: of the first one, and from there on as far apart as the lanes are in it."""
        first = Value(self.here.index(index))
        if lanes == 1:
            return first
        if not index.is_affine:
            raise PlanError(f"'{index}' is not even along its lanes '{self.leaf.lanes}'", hint="choose other lanes")
        entry = self.need("count", COUNTED.name, lanes)
        own = self.call(entry.instruction.name, entry.sources, self.temporary(COUNTED, lanes), [])
        if (step := index.coefficient(self.leaf.lanes)) != 1:
            own = self.apply("mul", COUNTED, COUNTED, [own, Number(step, COUNTED)], lanes, None)
        entry = self.need("broadcast", "registers", COUNTED.name, lanes)
        start = self.call(entry.instruction.name, entry.sources, self.temporary(COUNTED, lanes), [first])
        return self.apply("add", COUNTED, COUNTED, [own, start], lanes, None)

    def applied(self, e: Apply, want: DType, lanes: int) -> Operand:
        own = compute_type(value_type(e, self.shop.dtypes, want))
        types = tuple(map(compute_type, argument_types(e, self.shop.dtypes, own)))
        arguments = [self.value(a, t, lanes) for a, t in zip(e.args, types, strict=True)]
        result = DTYPES["bool"] if PRIMITIVES[e.function].result == "bool" else own
        return self.converted(self.apply(e.function, types[-1], result, arguments, lanes, None), result, want, lanes)

    def apply(
        self, function: str, argument: DType, result: DType, args: list[Operand], lanes: int, into: Cell | None
    ) -> Operand:
        entry = self.need("apply", function, argument.name, lanes)
        return self.call(entry.instruction.name, entry.sources, into or self.temporary(result, lanes), args)

    def spread(self, e: Expr, want: DType, lanes: int) -> Operand:
        """One value for all lanes: straight from memory where possible, else computed once and broadcast."""
        key = ("spread", *self.key(e), want.name, lanes)
        if key in self.cache:
            return self.cache[key]
        direct = isinstance(e, Read) and self.shop.dtypes[e.access.tensor] == want
        entry = self.shop.instructions.find("broadcast", "memory", want.name, lanes) if direct else None
        if (
            entry is not None
            and isinstance(e, Read)
            and not isinstance(self.state.held.get(e.access.tensor), InRegisters)
        ):
            place, _ = self.place(e.access)
            self.nodes += fetches(self.shop, self.state, self.leaf.statement, e.access, place)
            result = self.call(entry.instruction.name, entry.sources, self.temporary(want, lanes), [place])
        else:
            entry = self.need("broadcast", "registers", want.name, lanes)
            scalar = self.value(e, want, 1)
            result = self.call(entry.instruction.name, entry.sources, self.temporary(want, lanes), [scalar])
        self.cache[key] = result
        return result

    def converted(self, value: Operand, source: DType, to: DType, lanes: int) -> Operand:
        if source == to:
            return value
        if isinstance(value, Number) and to.is_float:
            return Number(float(value.value), to)
        entry = self.need("cast", source.name, to.name, lanes)
        return self.call(entry.instruction.name, entry.sources, self.temporary(to, lanes), [value])

    # -- registers

    def from_register(self, held: InRegisters, access: Access, lanes: int) -> Operand:
        cell = self.cell(held, access)
        if held.partial or (held.width != lanes and held.width != 1):
            raise PlanError(f"'{access}' is held over {held.width} lanes and read over {lanes}")
        if held.width == lanes:
            return cell
        entry = self.need("broadcast", "registers", held.dtype.name, lanes)
        return self.call(entry.instruction.name, entry.sources, self.temporary(held.dtype, lanes), [cell])

    def cell(self, held: InRegisters, access: Access) -> Cell:
        position = []
        for d, (index, base) in enumerate(zip(access.indices, held.base, strict=True)):
            offset = simplify(self.here.index(index) - base, self.state.ranges)
            if not offset.is_constant:
                raise PlanError(f"'{access}' is not where '{held.buffer}' holds it", why=f"offset {offset}")
            if d == held.lane_dim and offset.const % held.width:
                raise PlanError(f"'{access}' begins inside a vector of '{held.buffer}'", why=f"offset {offset}")
            position.append(offset.const // held.width if d == held.lane_dim else offset.const)
        if any(not 0 <= p < n for p, n in zip(position, held.shape, strict=True)):
            raise PlanError(f"'{access}' is not inside what '{held.buffer}' holds", why=f"cell {position}")
        return Cell(held.buffer, tuple(position))

    def temporary(self, dtype: DType, lanes: int) -> Cell:
        name, count = self.buffers.get((dtype.name, lanes), ("", 0))
        name = name or self.shop.fresh("t")
        self.buffers[dtype.name, lanes] = (name, count + 1)
        return Cell(name, (count,))

    def copy(self, value: Operand, dtype: DType, lanes: int) -> Cell:
        cell = self.temporary(dtype, lanes)
        self.move(value, cell, dtype, lanes)
        return cell

    def move(self, value: Operand, cell: Cell, dtype: DType, lanes: int) -> None:
        entry = self.need("move", dtype.name, lanes)
        self.call(entry.instruction.name, entry.sources, cell, [value])

    # -- memory

    def place(self, access: Access) -> tuple[Place, Index | None]:
        """Where an access is, and how far apart its lanes are (0: they share it; None: not a constant stride)."""
        held = self.state.held.get(access.tensor)
        if not isinstance(held, InMemory) and all(i.is_affine for i in access.indices):
            return Place(access.tensor, tuple(map(self.here.index, access.indices))), self.stride(access)
        ranges = self.lane_ranges
        indices = tuple(simplify(self.along.index(i), ranges) for i in access.indices)
        buffer = access.tensor
        if isinstance(held, InMemory):
            buffer = held.buffer
            offsets = [i - b for i, b in zip(indices, held.base, strict=True)]
            indices = tuple(
                modulo(floor_divide(offsets[d.dimension], d.divisor, ranges), d.modulus, ranges)
                if d.modulus
                else floor_divide(offsets[d.dimension], d.divisor, ranges)
                for d in held.digits
            )
        stride: Index | None = ZERO
        first: list[Index] = []
        for index, step in zip(indices, self.shop.strides[buffer], strict=True):
            c = index.coefficient(LANE)
            rest = index - LANE_INDEX * c if c else index
            deeper = not rest.is_affine and LANE in rest.names()
            unchecked = bool(c) and step != ONE_APART and index.is_indirect
            if deeper or (c and step is None) or unchecked:
                stride = None
            elif stride is not None and c and step is not None:
                stride = stride + step * c
            first.append(rest.substitute({LANE: ZERO}) if deeper else rest)
        return Place(buffer, tuple(first)), stride

    def stride(self, access: Access) -> Index | None:
        """How far apart the lanes of a plain access are."""
        total = ZERO
        for index, step in zip(access.indices, self.shop.strides[access.tensor], strict=True):
            c = index.coefficient(self.leaf.lanes) if self.wide > 1 else 0
            if c and step is None:
                return None
            total += step * c if c and step is not None else 0
        return total

    def load(self, access: Access, lanes: int) -> Operand:
        dtype = self.shop.dtypes[access.tensor]
        place, stride = self.place(access)
        out = self.temporary(dtype, lanes)
        if lanes == 1:
            entry = self.need("load", dtype.name, 1, False, False)
            return self.call(entry.instruction.name, entry.sources, out, [place])
        live = () if self.padded(access) and stride == ONE_APART else self.live
        self.nodes += fetches(self.shop, self.state, self.leaf.statement, access, place)
        return self.vector_move("load", dtype, place, stride, live, out)

    def padded(self, access: Access) -> bool:
        """Panels of whole vectors, whose last one is as long as the others."""
        held = self.state.held.get(access.tensor)
        return isinstance(held, InMemory) and held.padded and held.digits[-1].modulus % self.wide == 0

    def store(self, access: Access, value: Operand, lanes: int) -> None:
        place, stride = self.place(access)
        if lanes == 1:
            entry = self.need("store", self.out_dtype.name, 1, False, False)
            self.call(entry.instruction.name, entry.sources, place, [value])
            return
        live = () if self.leaf.statement in self.shop.padded_copies else self.live
        if live or stride in (None, ONE_APART) or self.reads_elsewhere(access.tensor):
            self.vector_move("store", self.out_dtype, value, stride, live, place)
            return
        assert stride is not None
        if self.beside.is_full or not (self.beside.follows(place, stride) and self.ends_evenly(place)):
            self.nodes += self.beside.written()
        self.beside.add(place, value, stride)

    def ends_evenly(self, place: Place) -> bool:
        """The last dimension's neighbours lie side by side."""
        strides = self.shop.strides[place.buffer]
        return bool(strides) and strides[-1] == ONE_APART

    def reads_elsewhere(self, tensor: str) -> bool:
        """Whether what is written may be read, as another element, by a point that comes later."""
        out = self.statement.out
        return any(read.tensor == tensor and read != out for read in self.statement.reads())

    def vector_move(
        self, kind: str, dtype: DType, source: Operand, stride: Index | None, live: tuple[Index, ...], out: Cell | Place
    ) -> Operand:
        """A load or store of one vector: contiguous or strided, whole or masked."""
        if stride is None:
            raise PlanError(f"lanes '{self.leaf.lanes}' of '{self.statement}' are not evenly spaced in memory")
        strided = stride != ONE_APART
        entry = self.need(kind, dtype.name, self.wide, bool(live), strided)
        params: tuple[tuple[str, tuple[Index, ...]], ...] = ((entry.param, live),) if live else ()
        params += ((entry.stride, (stride,)),) if strided else ()
        return self.call(entry.instruction.name, entry.sources, out, [source], params)

    # -- calls

    def need(self, *key: str | int | bool) -> Entry:
        entry = self.shop.instructions.find(*key)
        if entry is None:
            what = " ".join(str(k) for k in key)
            if self.wide > 1:
                raise PlanError(f"no instruction for {what}", where=self.statement.place, hint="fewer lanes")
            raise MappingError(
                f"target '{self.shop.target.name}' has no instruction for {what}",
                where=f"line {self.statement.line}: {self.statement}",
                hint="inherit 'generic', or add an instruction that computes it",
            )
        return entry

    def call(
        self,
        instruction: str,
        sources: tuple[str, ...],
        out: Cell | Place,
        arguments: list[Operand],
        params: tuple[tuple[str, tuple[Index, ...]], ...] = (),
    ) -> Operand:
        operands = tuple(out if s == "out" else arguments[int(s)] for s in sources)
        self.nodes.append(Call(instruction, operands, params))
        return out


def _literal(value: int | float | bool, dtype: DType) -> int | float | bool:
    if dtype.is_float:
        return float(value)
    return bool(value) if dtype.name == "bool" else int(value)
