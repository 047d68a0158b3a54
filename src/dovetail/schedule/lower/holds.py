"""Held tensors: accumulators in registers, and copies in another layout.

hold c in registers   ->  alloc; start at the neutral element (or load); ...; store
hold b as d1/16, d0, d1%16  ->  alloc; copy of the part that is read inside; ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dovetail.base.dtypes import compute_type
from dovetail.base.errors import PlanError
from dovetail.ir.expr import Apply, Expr, Literal, Read
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.interval import interval, simplify
from dovetail.ir.nest import Barrier, Buffer, Call, Cell, Fetch, Node, Place, When
from dovetail.ir.plan import Digit, Hold, Leaf, PlanNode, Tile
from dovetail.ir.program import Combine, Loop, Statement
from dovetail.schedule.lower.leaf import unrolled
from dovetail.schedule.lower.state import (
    Following,
    InMemory,
    InRegisters,
    Join,
    Span,
    State,
    Workshop,
    alloc,
    points,
    row_major,
)
from dovetail.schedule.machine import LINE_BYTES
from dovetail.targets.model import MemoryKind

Region = tuple[tuple[Index, ...], tuple[Index, ...], tuple[Index, ...]]
"""Per dimension: the first element, how many there is room for, how many there are."""
MOST_FETCHES = 48
COPIED_ROWS = 16
"""Rows of a source that are read side by side while a copy fills its panels."""
Lower = Callable[[Workshop, tuple[PlanNode, ...], State], tuple[Node, ...]]


def enter_holds(
    shop: Workshop, holds: tuple[Hold, ...], body: tuple[PlanNode, ...], state: State, lower: Lower
) -> tuple[Node, ...]:
    """``body`` with every tensor of ``holds`` in its place."""
    if not holds:
        return lower(shop, body, state)
    hold, rest = holds[0], holds[1:]
    if shop.target.memory(hold.memory).kind is MemoryKind.REGISTERS:
        return _registers(shop, hold, rest, body, state, lower)
    return _memory(shop, hold, rest, body, state, lower)


# -- registers


def _registers(
    shop: Workshop, hold: Hold, rest: tuple[Hold, ...], body: tuple[PlanNode, ...], state: State, lower: Lower
) -> tuple[Node, ...]:
    number, leaf = _writer(shop, hold.tensor, body)
    statement = shop.statements[number]
    held = _register_region(shop, hold, number, leaf, state)
    buffers = [_register_buffer(shop, held)]
    inside = _with_memory_alias(shop, hold.tensor, state).with_held(hold.tensor, held)
    fill: tuple[Node, ...] = ()
    late = hold.fetched and not held.partial and statement.combine is not Combine.SET
    if late:
        start = _move(shop, number, leaf, inside, statement.out, _neutral(shop, statement))
        drained = bool(_drain(shop, hold.tensor, number, leaf, inside, body))
        fill = (_fetches(shop, hold.tensor, held, inside) if drained else ()) + start
        inside = replace(inside, joins=(*inside.joins, Join(body, leaf, hold.tensor, held, held)))
    elif statement.combine is not Combine.SET:
        fill = _fill(shop, hold.tensor, number, leaf, inside)
    if not held.partial:
        nodes = fill + enter_holds(shop, rest, body, inside, lower)
        return alloc(buffers, nodes + _drain(shop, hold.tensor, number, leaf, inside, body))
    whole = replace(held, buffer=shop.fresh("r"), width=1, partial=False)
    buffers.append(_register_buffer(shop, whole))
    waiting = replace(inside, joins=(*inside.joins, Join(body, leaf, hold.tensor, held, whole)))
    nodes = fill + enter_holds(shop, rest, body, waiting, lower)
    after = inside.with_held(hold.tensor, whole)
    return alloc(buffers, nodes + _drain(shop, hold.tensor, number, Leaf(number), after, body))


def joined(shop: Workshop, body: tuple[PlanNode, ...], child: PlanNode, state: State) -> tuple[tuple[Node, ...], State]:
    """What follows ``child`` in ``body``: partial results that it completed are put together."""
    nodes: tuple[Node, ...] = ()
    for join in state.joins:
        number = join.leaf.statement
        if join.body is not body or not any(leaf.statement == number for leaf in _leaves(child)):
            continue
        if join.whole is join.held:
            nodes += _resumed(shop, join.tensor, join.leaf, state)
            continue
        state = state.with_held(join.tensor, join.whole)
        nodes += _fill(shop, join.tensor, number, Leaf(number), state)
        nodes += _join(shop, shop.statements[number], join.held, join.whole)
    return nodes, state


def _writer(shop: Workshop, tensor: str, body: tuple[PlanNode, ...]) -> tuple[int, Leaf]:
    for child in body:
        for leaf in _leaves(child):
            if shop.statements[leaf.statement].out.tensor == tensor:
                return leaf.statement, leaf
    raise PlanError(f"nothing under the tile that holds '{tensor}' in registers writes it")


def _register_region(shop: Workshop, hold: Hold, number: int, leaf: Leaf, state: State) -> InRegisters:
    """The cells that what is left of the writer's loops reaches."""
    out = shop.statements[number].out
    bases = state.bases(number)
    lane_dim: int | None = None
    shape: list[int] = []
    for d, index in enumerate(out.indices):
        extent = 1
        for name in index.names():
            span = state.spans.get((number, name))
            if span is None:
                continue
            if span.size is None or not index.is_affine or index.coefficient(name) < 0:
                raise PlanError(f"'{out}' cannot be held in registers: '{name}' has no fixed rest here")
            extent += index.coefficient(name) * (span.size - 1)
        if leaf.width > 1 and leaf.lanes in index.names():
            lane_dim = d
            extent = -(-extent // leaf.width)
        shape.append(extent)
    base = tuple(simplify(i.substitute(bases), state.ranges) for i in out.indices)
    dtype = compute_type(shop.dtypes[hold.tensor])
    partial = leaf.width > 1 and leaf.lanes not in out.names()
    return InRegisters(shop.fresh("r"), dtype, base, tuple(shape), lane_dim, max(1, leaf.width), partial)


def _register_buffer(shop: Workshop, held: InRegisters) -> Buffer:
    return Buffer(held.buffer, shop.registers, held.dtype, tuple(map(constant, held.shape)), held.width)


def _alias(tensor: str) -> str:
    """The tensor where it lives outside the registers."""
    return f"{tensor}@memory"


def _with_memory_alias(shop: Workshop, tensor: str, state: State) -> State:
    alias = _alias(tensor)
    shop.dtypes[alias] = shop.dtypes[tensor]
    held = state.held.get(tensor)
    if isinstance(held, InMemory):
        return state.with_held(alias, held)
    rank = len(shop.program.tensor(tensor).shape)
    plain = InMemory(tensor, (constant(0),) * rank, tuple(Digit(d) for d in range(rank)))
    return state.with_held(alias, plain)


def _fetches(shop: Workshop, tensor: str, held: InRegisters, state: State) -> tuple[Node, ...]:
    """Every line of memory that the cells will be drained to, where they lie there as in the program."""
    memory = state.held[_alias(tensor)]
    assert isinstance(memory, InMemory)
    if memory.buffer != tensor or any(d.divisor > 1 or d.modulus for d in memory.digits):
        return ()
    sizes = [n * (held.width if d == held.lane_dim else 1) for d, n in enumerate(held.shape)]
    per_line = max(1, LINE_BYTES // shop.dtypes[tensor].bytes)
    along = sorted({*range(0, sizes[-1], per_line), sizes[-1] - 1}) if sizes else []
    found: list[Node] = []
    for position in points(tuple(sizes[:-1])):
        row = tuple(b + at for b, at in zip(held.base, position, strict=False))
        found += [Fetch(Place(tensor, (*row, held.base[-1] + at)), write=True) for at in along]
    return tuple(found) if len(found) <= MOST_FETCHES else ()


def _neutral(shop: Workshop, statement: Statement) -> Literal:
    return Literal(statement.combine.neutral(shop.dtypes[statement.out.tensor]))


def _resumed(shop: Workshop, tensor: str, leaf: Leaf, state: State) -> tuple[Node, ...]:
    """What earlier rounds left in memory joins what is in the registers."""
    statement = shop.statements[leaf.statement]
    counters = [c for c in state.first.get(leaf.statement, ()) if c != constant(0)]
    always = shop.starts_in_memory(tensor) or any(c.is_constant for c in counters)
    if not counters and not always:
        return ()
    earlier = Read(Access(_alias(tensor), statement.out.indices))
    assert statement.combine.function is not None
    both = Apply(statement.combine.function, (earlier, Read(statement.out)))
    resume = _move(shop, leaf.statement, leaf, state, statement.out, both)
    return resume if always else (When(tuple(Condition(-c) for c in counters), (), resume),)


def _fill(shop: Workshop, tensor: str, number: int, leaf: Leaf, state: State) -> tuple[Node, ...]:
    """The neutral element the first time an element is met, else what earlier rounds left in memory."""
    statement = shop.statements[number]
    held = state.held[tensor]
    assert isinstance(held, InRegisters)
    start = _move(shop, number, leaf, state, statement.out, _neutral(shop, statement))
    if held.partial:
        return start
    loaded = Read(Access(_alias(tensor), statement.out.indices))
    if shop.starts_in_memory(tensor):
        return _move(shop, number, leaf, state, statement.out, loaded)
    counters = [c for c in state.first.get(number, ()) if c != constant(0)]
    if not counters:
        return start
    resume = _move(shop, number, leaf, state, statement.out, loaded)
    if any(c.is_constant for c in counters):
        return resume
    return (When(tuple(Condition(-c) for c in counters), start, resume),)


def _drain(
    shop: Workshop, tensor: str, number: int, leaf: Leaf, state: State, body: tuple[PlanNode, ...]
) -> tuple[Node, ...]:
    """Registers to memory, where anyone outside looks for it."""
    inside = {c.statement for child in body for c in _leaves(child)}
    if not state.first.get(number) and not shop.needed_outside(tensor, inside):
        return ()
    out = shop.statements[number].out
    return _move(shop, number, leaf, state, Access(_alias(tensor), out.indices), Read(out))


def _move(shop: Workshop, number: int, leaf: Leaf, state: State, out: Access, value: Expr) -> tuple[Node, ...]:
    """A copy over what is left of the writer's output loops."""
    statement = shop.statements[number]
    used = statement.out.names()
    loops = tuple(loop for loop in statement.loops if loop.name in used)
    copy = shop.add_statement(Statement(loops, out, Combine.SET, value, (), statement.seq, statement.line))
    spans = {(copy, name): span for (s, name), span in state.spans.items() if s == number}
    lanes = leaf.lanes if leaf.lanes in used else ""
    return unrolled(shop, Leaf(copy, lanes, leaf.width if lanes else 1), state.with_spans(spans))


def _join(shop: Workshop, statement: Statement, held: InRegisters, whole: InRegisters) -> tuple[Node, ...]:
    """The partial results of each element, lane by lane, into one."""
    entry = shop.instructions.find("reduce", statement.combine.value, held.dtype.name, held.width)
    if entry is None:
        raise PlanError(f"no instruction joins {held.width} lanes of {held.dtype} by {statement.combine.value}")
    nodes: list[Node] = []
    for position in points(held.shape):
        operands = {"out": Cell(whole.buffer, position), "0": Cell(held.buffer, position)}
        nodes.append(Call(entry.instruction.name, tuple(operands[s] for s in entry.sources)))
    return tuple(nodes)


# -- memory


def _memory(
    shop: Workshop, hold: Hold, rest: tuple[Hold, ...], body: tuple[PlanNode, ...], state: State, lower: Lower
) -> tuple[Node, ...]:
    written = [leaf for child in body for leaf in _leaves(child) if _writes(shop, leaf, hold.tensor)]
    if written:
        return _scratch(shop, hold, written, rest, body, state, lower)
    base, extents, filled = _read_region(shop, hold.tensor, body, state)
    shape = held_shape(hold.digits, extents, state)
    buffer = Buffer(shop.fresh("h"), hold.memory, shop.dtypes[hold.tensor], shape, tensor=hold.tensor)
    shop.strides[buffer.name] = row_major(shape)
    copy, plan = _copy(shop, hold, buffer.name, base, filled, state)
    inner = state.with_spans({(copy, f"e{d}"): Span(constant(0), e) for d, e in enumerate(filled)})
    alias = InMemory(buffer.name, (constant(0),) * len(base), hold.digits)
    fill = lower(shop, (plan,), inner.with_held(buffer.name, alias))
    padded = copy in shop.padded_copies
    following = _following(shop, hold.tensor, base, filled, body, state) if hold.fetched else None
    inside = state.with_held(hold.tensor, InMemory(buffer.name, base, hold.digits, padded, following=following))
    nodes = enter_holds(shop, rest, body, inside, lower)
    if not state.parallel:
        meet = (Barrier(shop.target.units[0].name),)
        return alloc([buffer], fill + meet + nodes + meet)
    return alloc([buffer], fill + nodes)


def _following(
    shop: Workshop,
    tensor: str,
    base: tuple[Index, ...],
    extents: tuple[Index, ...],
    body: tuple[PlanNode, ...],
    state: State,
) -> Following | None:
    """What the next round of the tile around will hold; None where there is none, or nobody knows how much."""
    statement, access = next(
        (leaf.statement, access)
        for child in body
        for leaf in _leaves(child)
        for access in shop.statements[leaf.statement].reads()
        if access.tensor == tensor
    )
    turns = state.turns.get(statement, ())
    if tensor in state.held or not turns or turns[-1].start.is_constant:
        return None
    fixed = tuple(e.const for e in extents if e.is_constant)
    moved = [index.coefficient(turns[-1].loop) * turns[-1].step for index in access.indices]
    if len(fixed) < len(extents) or not any(moved):
        return None
    return Following(tensor, tuple(b + m for b, m in zip(base, moved, strict=True)), fixed, len(turns))


def _writes(shop: Workshop, leaf: Leaf, tensor: str) -> bool:
    return shop.statements[leaf.statement].out.tensor == tensor


def _scratch(
    shop: Workshop,
    hold: Hold,
    writers: list[Leaf],
    rest: tuple[Hold, ...],
    body: tuple[PlanNode, ...],
    state: State,
    lower: Lower,
) -> tuple[Node, ...]:
    """A temporary that only ``body`` sees: as much of it as is alive at once."""
    regions = [_region(leaf.statement, shop.statements[leaf.statement].out, state) for leaf in writers]
    base, extents = _hull(hold.tensor, regions)
    digits = hold.digits or tuple(Digit(d) for d in range(len(base)))
    shape = held_shape(digits, extents, state)
    buffer = Buffer(shop.fresh("h"), hold.memory, shop.dtypes[hold.tensor], shape, tensor=hold.tensor)
    shop.strides[buffer.name] = row_major(shape)
    return alloc(
        [buffer],
        enter_holds(shop, rest, body, state.with_held(hold.tensor, InMemory(buffer.name, base, digits)), lower),
    )


def _hull(tensor: str, regions: list[Region]) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """The first element, and how many there is room for, of all regions together."""
    base, extents, _ = regions[0]
    for other, reach, _ in regions[1:]:
        parts = [_both(tensor, *part) for part in zip(base, extents, other, reach, strict=True)]
        base, extents = tuple(first for first, _ in parts), tuple(room for _, room in parts)
    return base, extents


def _both(tensor: str, first: Index, extent: Index, other: Index, reach: Index) -> tuple[Index, Index]:
    """One stretch of a dimension around two."""
    gap = other - first
    if gap == constant(0) and extent == reach:
        return first, extent
    if not (gap.is_constant and extent.is_constant and reach.is_constant):
        raise PlanError(f"'{tensor}' cannot be held: its parts are no fixed distance apart", why=f"{first}, {other}")
    low, high = min(0, gap.const), max(extent.const, gap.const + reach.const)
    return first + low, constant(high - low)


def _read_region(shop: Workshop, tensor: str, body: tuple[PlanNode, ...], state: State) -> Region:
    """What is read of ``tensor`` inside."""
    found: set[Region] = set()
    for leaf in (leaf for child in body for leaf in _leaves(child)):
        statement = shop.statements[leaf.statement]
        for access in statement.reads():
            if access.tensor == tensor:
                found.add(_region(leaf.statement, access, state))
                if statement.where and not _is_inside(shop, leaf.statement, access, state):
                    raise PlanError(
                        f"'{access}' cannot be held: conditions keep part of it away", where=statement.place
                    )
    if len(found) != 1:
        raise PlanError(f"'{tensor}' is read in {len(found)} different ways under the tile that holds it")
    return found.pop()


def _is_inside(shop: Workshop, number: int, access: Access, state: State) -> bool:
    """All that a copy would touch is surely there."""
    base, _, filled = _region(number, access, state)
    shape = shop.program.tensor(access.tensor).shape
    gaps = [gap for b, e, n in zip(base, filled, shape, strict=True) for gap in (b, n - b - e)]
    return all((interval(gap, state.ranges) or (-1, -1))[0] >= 0 for gap in gaps)


def _region(number: int, access: Access, state: State) -> Region:
    bases = state.bases(number)
    extents, filled = [], []
    for index in access.indices:
        extent = there = constant(1)
        for name in index.names():
            span = state.spans.get((number, name))
            if span is not None:
                c = index.coefficient(name)
                if c <= 0 or not index.is_affine:
                    raise PlanError(f"'{access}' cannot be held: index {index}")
                extent = extent + (span.extent - 1) * c
                there = there + ((span.extent if span.valid is None else span.valid) - 1) * c
        if (interval(extent, state.ranges) or (-1, -1))[0] < 0:
            raise PlanError(f"'{access}' cannot be held: nothing of it may be there", why=f"extent {extent}")
        extents.append(extent)
        filled.append(there)
    return tuple(simplify(i.substitute(bases), state.ranges) for i in access.indices), tuple(extents), tuple(filled)


def held_shape(digits: tuple[Digit, ...], extents: tuple[Index, ...], state: State) -> tuple[Index, ...]:
    """The shape of a tensor of ``extents`` laid out by ``digits``."""
    shape = []
    for digit in digits:
        extent = extents[digit.dimension]
        if digit.modulus:
            shape.append(constant(digit.modulus))
        else:
            shape.append(simplify((extent + (digit.divisor - 1)) // digit.divisor, state.ranges))
    return tuple(shape)


def _copy(
    shop: Workshop, hold: Hold, buffer: str, base: tuple[Index, ...], extents: tuple[Index, ...], state: State
) -> tuple[int, PlanNode]:
    """The statement that fills a held copy, and a plan for it: panels first, lanes where the source is contiguous."""
    loops = tuple(Loop(f"e{d}", e) for d, e in enumerate(extents))
    out = Access(buffer, tuple(variable(loop.name) for loop in loops))
    source = Access(hold.tensor, tuple(b + variable(loop.name) for b, loop in zip(base, loops, strict=True)))
    number = shop.add_statement(Statement(loops, out, Combine.SET, Read(source)))
    shop.dtypes[buffer] = shop.dtypes[hold.tensor]
    panel = next((d for d in hold.digits if d.divisor > 1), None)
    last = len(extents) - 1
    widths = shop.instructions.widths(shop.dtypes[hold.tensor].name)
    order = [d.dimension for d in hold.digits if not d.modulus]
    fastest = hold.digits[-1].dimension
    leaf = Leaf(number)
    if fastest == last and not isinstance(state.held.get(hold.tensor), InMemory):
        limit = panel.divisor if panel is not None and panel.dimension == fastest else 1 << 30
        width = next((w for w in widths if limit % w == 0), 1) if limit < 1 << 30 else widths[0]
        leaf = Leaf(number, f"e{fastest}", width) if width > 1 else leaf
        if limit < 1 << 30:
            shop.padded_copies.add(number)
    node: PlanNode = leaf
    unit = shop.target.units[0].name if hold.shared and not state.parallel else ""
    tiles = [(d, panel.divisor if panel is not None and d == panel.dimension else 1) for d in order]
    if leaf.width > 1 and panel is not None and len(order) > 1:  # some rows of all panels: memory is read in long runs
        tiles.insert(0, (order[1], COPIED_ROWS))
    for position, (d, step) in reversed(list(enumerate(tiles))):
        if d == fastest and step == 1 and position:
            continue
        node = Tile(shop.fresh("copy"), ((number, f"e{d}"),), step, (node,), unit if position == 0 else "")
    return number, node


def _leaves(node: PlanNode) -> list[Leaf]:
    if isinstance(node, Leaf):
        return [node]
    return [leaf for child in node.body for leaf in _leaves(child)]
