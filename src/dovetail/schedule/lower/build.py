"""``build_nest``: program + plan + target -> nest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dovetail.base.errors import PlanError
from dovetail.ir.expr import Literal
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.interval import interval
from dovetail.ir.nest import Alloc, Barrier, Buffer, Nest, Node, Place, When, calls
from dovetail.ir.plan import Case, Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor
from dovetail.schedule.lower.holds import enter_holds, held_shape
from dovetail.schedule.lower.legality import after_writers, check_plan, leaves
from dovetail.schedule.lower.state import InMemory, Pair, Span, State, Workshop, row_major
from dovetail.schedule.lower.tiles import lower_nodes
from dovetail.schedule.repertoire import repertoire
from dovetail.targets.model import MemoryKind, Target


def build_nest(program: Program, plan: Plan, target: Target) -> Nest:
    """Loops, moves and instruction calls that do what ``program`` says in the way ``plan`` says."""
    arguments, body = _build(program, plan, target, 0)
    for number, case in reversed(list(enumerate(plan.cases, 1))):
        small = narrowed(program, case)
        others, instead = _build(small, case.plan, target, number)
        if others != arguments or case.plan.cases:
            raise PlanError(f"the plan for {case.size} <= {case.most} wants constants in another layout")
        body = (When((Condition(constant(case.most) - variable(case.size)),), instead, body),)
    for tensor in program.temps:
        if _touches_memory(tensor.name, body):
            body = (Alloc(Buffer(tensor.name, target.main.name, tensor.dtype, tensor.shape, tensor=tensor.name), body),)
    written = tuple(t.name for t in program.outputs)
    return Nest(arguments, tuple(s.name for s in program.sizes), body, written)


def narrowed(program: Program, case: Case) -> Program:
    """The program where the case's size is small."""
    if not any(s.name == case.size and s.low <= case.most < s.high for s in program.sizes):
        raise PlanError(f"a plan for {case.size} <= {case.most}, which is no part of that size's range")
    sizes = tuple(replace(s, high=case.most) if s.name == case.size else s for s in program.sizes)
    return replace(program, sizes=sizes)


def _build(program: Program, plan: Plan, target: Target, number: int) -> tuple[tuple[Buffer, ...], tuple[Node, ...]]:
    """The caller's arrays, and what to do with them; names do not meet those of another ``number``."""
    check_plan(program, plan, target)
    shop = Workshop(program, target, repertoire(target), number)
    state = _start(shop)
    arguments: list[Buffer] = []
    for tensor in program.tensors:
        if tensor.role is not Role.TEMP:
            buffer, state = _argument(shop, tensor, plan, state)
            arguments.append(buffer)
    needed = _find_initialised(shop, plan)
    body: tuple[Node, ...] = ()
    for tensor in needed:
        node, inner = _initialise(shop, tensor, state)
        body += (*lower_nodes(shop, (node,), inner), Barrier(target.units[0].name))
    body += _whole(shop, tuple(h for h in plan.holds if not h.ahead), plan.body, state)
    return tuple(arguments), body


def _whole(shop: Workshop, holds: tuple[Hold, ...], body: tuple[PlanNode, ...], state: State) -> tuple[Node, ...]:
    """The nodes of a plan; what is held all along is filled once its writers are done."""
    begins = {hold: after_writers(shop.program, body, hold.tensor) for hold in holds}
    late = tuple(h for h in holds if begins[h])
    if not late:
        return enter_holds(shop, holds, body, state, lower_nodes)
    if len(late) < len(holds):

        def lower(shop: Workshop, nodes: tuple[PlanNode, ...], inner: State) -> tuple[Node, ...]:
            return _whole(shop, late, nodes, inner) if nodes is body else lower_nodes(shop, nodes, inner)

        return enter_holds(shop, tuple(h for h in holds if not begins[h]), body, state, lower)
    first = min(begins.values())
    meet = (Barrier(shop.target.units[0].name),)
    return lower_nodes(shop, body[:first], state) + meet + _whole(shop, holds, body[first:], state)


def _start(shop: Workshop) -> State:
    spans: dict[Pair, Span] = {}
    for number, statement in shop.statements.items():
        for loop in statement.all_loops:
            spans[number, loop.name] = Span(constant(0), loop.extent)
    for tensor in shop.program.tensors:
        shop.strides[tensor.name] = row_major(tensor.shape)
    ranges = {s.name: (s.low, s.high) for s in shop.program.sizes}
    return State(spans, ranges, {n: s.where for n, s in shop.statements.items()})


def _argument(shop: Workshop, tensor: Tensor, plan: Plan, state: State) -> tuple[Buffer, State]:
    """The caller's array; a constant held ahead of time arrives in its new layout."""
    memory = shop.target.main.name
    hold = next((h for h in plan.holds if h.tensor == tensor.name and h.ahead), None)
    if hold is None:
        return Buffer(tensor.name, memory, tensor.dtype, tensor.shape, tensor=tensor.name), state
    if tensor.role is not Role.CONST:
        raise PlanError(f"'{tensor.name}' is held ahead of time and is not a constant")
    shape = held_shape(hold.digits, tensor.shape, state)
    shop.strides[tensor.name] = row_major(shape)
    padded = bool(hold.digits and hold.digits[-1].modulus)
    held = InMemory(tensor.name, (constant(0),) * len(tensor.shape), hold.digits, padded, hold.fetched)
    return Buffer(tensor.name, memory, tensor.dtype, shape, tensor=tensor.name), state.with_held(tensor.name, held)


def _find_initialised(shop: Workshop, plan: Plan) -> list[Tensor]:
    """Tensors whose ``op=`` must find the neutral element in memory, since registers do not set up all of it."""
    found: list[Tensor] = []
    for tensor in shop.program.tensors:
        writers = [n for n, s in enumerate(shop.program.statements) if s.out.tensor == tensor.name]
        combines = {shop.program.statements[n].combine for n in writers}
        if tensor.role is Role.INOUT or not writers or Combine.SET in combines:
            continue
        if len(writers) > 1 or not _set_up_in_registers(shop, tensor, writers[0], plan):
            found.append(tensor)
            shop.initialised[tensor.name] = combines.pop()
    return found


def _set_up_in_registers(shop: Workshop, tensor: Tensor, number: int, plan: Plan) -> bool:
    """Every element starts in a register: a hold around the writer, met for each element at least once."""
    statement = shop.statements[number]
    free = {loop.name: loop.extent for loop in statement.all_loops}
    ranges = {s.name: (s.low, s.high) for s in shop.program.sizes}
    for index, extent in zip(statement.out.indices, tensor.shape, strict=True):
        if not index.names() <= free.keys() or not _is_whole(index, extent, free):
            return False
        for name in index.names():
            del free[name]
    for tile in _tiles_around(plan.body, number):
        reduced = [loop for s, loop in tile.loops if s == number and loop in free]
        if any((interval(free[loop], ranges) or (0, 0))[0] < 1 for loop in reduced):
            return False
        if any(h.tensor == tensor.name and _is_register(h, shop.target) for h in tile.holds):
            return True
    return False


def _is_whole(index: Index, extent: Index, loops: Mapping[str, Index]) -> bool:
    """``index`` takes every value below ``extent``: it is one loop, or its loops are the digits of a number."""
    if len(index.names()) == 1:
        name = next(iter(index.names()))
        return index == variable(name) and loops[name] == extent
    dense = constant(1)
    for c, name in sorted((index.coefficient(n), n) for n in index.names()):
        if constant(c) != dense or not loops[name].is_constant:
            return False
        dense = dense * loops[name].const
    return index.is_affine and index.const == 0 and dense == extent


def _tiles_around(nodes: tuple[PlanNode, ...], number: int) -> Iterator[Tile]:
    """The tiles a statement runs in, outermost first."""
    for node in nodes:
        if isinstance(node, Tile) and any(leaf.statement == number for leaf in leaves((node,))):
            yield node
            yield from _tiles_around(node.body, number)


def _touches_memory(tensor: str, body: tuple[Node, ...]) -> bool:
    places = (o for call in calls(body) for o in call.operands if isinstance(o, Place))
    return any(p.buffer == tensor or any(a.tensor == tensor for i in p.indices for a in i.reads()) for p in places)


def _is_register(hold: Hold, target: Target) -> bool:
    return target.memory(hold.memory).kind is MemoryKind.REGISTERS


def _initialise(shop: Workshop, tensor: Tensor, state: State) -> tuple[PlanNode, State]:
    """``tensor[...] = neutral`` everywhere."""
    loops = tuple(Loop(f"e{d}", e) for d, e in enumerate(tensor.shape))
    out = Access(tensor.name, tuple(variable(loop.name) for loop in loops))
    value = Literal(shop.initialised[tensor.name].neutral(tensor.dtype))
    number = shop.add_statement(Statement(loops, out, Combine.SET, value))
    inner = state.with_spans({(number, loop.name): Span(constant(0), loop.extent) for loop in loops})
    if not loops:
        return Leaf(number), inner
    width = max(shop.instructions.widths(tensor.dtype.name))
    leaf = Leaf(number, loops[-1].name, width) if width > 1 else Leaf(number)
    step = 64 * width if len(loops) == 1 else 1
    return Tile(shop.fresh("start"), ((number, "e0"),), step, (leaf,), shop.target.units[0].name), inner
