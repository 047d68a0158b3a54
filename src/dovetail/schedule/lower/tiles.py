"""Tiles of a plan -> loops of a nest: whole tiles in a loop, edges beside it, guards folded into bounds.

    tile it of 0.i by 6 over i<35   ->   loop v in 0..5: <i = 6*v .. 6*v+5>;  <i = 30 .. 34>

Where a guard holds for most tiles but not for all, the others are taken out of the loop and specialised; where a
guard's last open loop runs one by one, it becomes that loop's bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dovetail.base.errors import PlanError
from dovetail.ir.index import ZERO, Condition, Index, constant, variable
from dovetail.ir.interval import interval, simplify
from dovetail.ir.nest import Alloc, Barrier, Loop, Node, Parallel, When
from dovetail.ir.plan import Leaf, PlanNode, Tile
from dovetail.ir.program import touch
from dovetail.schedule.lower.holds import enter_holds, joined
from dovetail.schedule.lower.leaf import unrolled
from dovetail.schedule.lower.legality import holds_in, leaves
from dovetail.schedule.lower.point import lanes_always
from dovetail.schedule.lower.shared_loads import share_loads
from dovetail.schedule.lower.state import Pair, Span, State, Turn, Workshop
from dovetail.schedule.lower.tile_call import lower_tile_call
from dovetail.targets.model import MemoryKind

UNROLL = 64
"""Most points a leaf spreads out; more become loops."""
PEEL = 8
"""Most tiles taken out of a loop because of a guard."""
PIECES = 16
"""Most pieces made of an edge whose size is known at run time, one for each size: the rows of any register tile."""
COPIES = 32
"""Most copies of a leaf made to resolve guards; beyond, guards are asked at run time."""


def lower_nodes(shop: Workshop, nodes: tuple[PlanNode, ...], state: State) -> tuple[Node, ...]:
    """Neighbours in a plan, in order; units meet between them where one needs what the other makes."""
    found: tuple[Node, ...] = ()
    since: list[Leaf] = []  # units have met
    for node in nodes:
        if state.parallel:
            after, then = joined(shop, nodes, node, state)
            found += lower_node(shop, node, state) + after
            state = then
            continue
        nodes_here = lower_node(shop, node, state) if _has_parallel(node) else _alone(shop, node, state)
        inside = list(leaves((node,)))
        if _need_each_other(shop, since, inside):
            found, since = _meeting(shop, state, found, nodes_here), inside
        else:
            found, since = found + nodes_here, since + inside
    return share_loads(shop, found) if state.parallel and _is_bundle(shop, nodes) else found


def _need_each_other(shop: Workshop, before: list[Leaf], after: list[Leaf]) -> bool:
    """Whether some work touches what other work makes; instructions for tiles may need a state."""
    if any(leaf.instruction for leaf in (*before, *after)):
        return bool(before)
    one, other = ([shop.statements[leaf.statement] for leaf in found] for found in (before, after))
    return touch(one, other)


def _is_bundle(shop: Workshop, nodes: tuple[PlanNode, ...]) -> bool:
    """Several leaves that make parts of one tensor."""
    numbers = [node.statement for node in nodes if isinstance(node, Leaf)]
    return 1 < len(numbers) == len(nodes) and len({shop.statements[n].out.tensor for n in numbers}) == 1


def lower_node(shop: Workshop, node: PlanNode, state: State) -> tuple[Node, ...]:
    return lower_leaf(shop, node, state) if isinstance(node, Leaf) else lower_tile(shop, node, state)


def _alone(shop: Workshop, node: PlanNode, state: State) -> tuple[Node, ...]:
    """Work of one unit while the others wait."""
    body = lower_node(shop, node, replace(state, parallel=True))
    return (Parallel(_unit(shop), shop.fresh("v"), (constant(1),), body),)


def _has_parallel(node: PlanNode) -> bool:
    return isinstance(node, Tile) and (bool(node.unit) or any(_has_parallel(n) for n in node.body))


def _unit(shop: Workshop) -> str:
    return shop.target.units[0].name


def lower_leaf(shop: Workshop, leaf: Leaf, state: State) -> tuple[Node, ...]:
    """Loops with a long or unknown rest are run one by one (lanes: vector by vector), the rest unrolled."""
    if leaf.instruction:
        return lower_tile_call(shop, leaf, state, lower_nodes)
    statement = shop.statements[leaf.statement]
    if leaf.lanes and leaf.width > 1:
        crossed = [c for c in state.conditions.get(leaf.statement, ()) if leaf.lanes in c.names()]
        if any(not lanes_always(state, leaf, c) for c in crossed):
            leaf = Leaf(leaf.statement)
    state = _without_masks(leaf, state)
    total = 1
    rolled: str | None = None
    for loop in reversed(statement.loops):
        span = state.spans[leaf.statement, loop.name]
        width = leaf.width if loop.name == leaf.lanes else 1
        steps = 0 if span.size is None else -(-span.size // width)
        if span.size == 0:
            return ()
        total *= max(1, steps)
        if steps == 0 or (steps > 1 and total > UNROLL):
            rolled = loop.name
    if rolled is None:
        return unrolled(shop, leaf, state)
    step = leaf.width if rolled == leaf.lanes else 1
    return lower_tile(shop, Tile(shop.fresh("auto"), ((leaf.statement, rolled),), step, (leaf,)), state)


def _without_masks(leaf: Leaf, state: State) -> State:
    """Loops of which only part exists, and which are not lanes, end there."""
    changed = {
        (s, loop): Span(span.base, span.valid)
        for (s, loop), span in state.spans.items()
        if s == leaf.statement and span.valid is not None and (leaf.width == 1 or loop != leaf.lanes)
    }
    return state.with_spans(changed) if changed else state


def lower_tile(shop: Workshop, tile: Tile, state: State) -> tuple[Node, ...]:
    spans = [state.spans[pair] for pair in tile.loops]
    extent = spans[0].extent
    if any(s.extent != extent for s in spans):
        raise PlanError(f"tile '{tile.name}' covers loops of different extents")
    if tile.downward and (not extent.is_constant or tile.unit):
        raise PlanError(f"tile '{tile.name}' runs downward", hint="only over a fixed extent, on one unit")
    if tile.unit and not state.parallel:
        return _parallel(shop, tile, state, extent)
    if extent.is_constant:
        return _static(shop, tile, state, extent.const)
    return _dynamic(shop, tile, state, extent)


@dataclass(frozen=True, slots=True)
class _Round:
    """One pass of a tile: ``size`` iterations from ``start``, after ``before`` (zero: nothing) of the loop's rest.

    ``last``: holds in the last round only; () means that it is the last."""

    start: Index
    size: int | Index
    before: Index
    last: tuple[Condition, ...] = ()
    valid: Index | None = None
    sure: int = 1


def _static(shop: Workshop, tile: Tile, state: State, extent: int) -> tuple[Node, ...]:
    """A known number of iterations: whole tiles looped over, the edge apart."""
    whole, rest = divmod(extent, tile.step)
    low, high = _clean(tile, state, whole) if whole else (0, 0)
    parts = [(n, n + 1) for n in range(low)] + [(low, high)] * (high > low) + [(n, n + 1) for n in range(high, whole)]
    copies = state.copies * (len(parts) + bool(rest))
    if copies > COPIES:
        parts, copies = [(0, whole)] * bool(whole), state.copies * (1 + bool(rest))
    state = replace(state, copies=copies)
    found: tuple[Node, ...] = ()
    for first, end in reversed(parts) if tile.downward else parts:
        found = _meeting(shop, state, found, _looped(shop, tile, state, first, end, extent))
    if rest:
        before = constant(0 if tile.downward else whole)
        last = _never_unless(not tile.downward or not whole)
        edge = _inside(shop, tile, state, _Round(constant(whole * tile.step), rest, before, last))
        found = _meeting(shop, state, edge, found) if tile.downward else _meeting(shop, state, found, edge)
    return found


def _looped(shop: Workshop, tile: Tile, state: State, low: int, high: int, extent: int) -> tuple[Node, ...]:
    """Whole tiles low..high - 1 of a loop of ``extent`` iterations."""
    if high - low == 1 or tile.unrolled or _must_unroll(tile, state, low, high):
        state = replace(state, copies=state.copies * (high - low))
        found: tuple[Node, ...] = ()
        for number in reversed(range(low, high)) if tile.downward else range(low, high):
            found = _meeting(shop, state, found, _inside(shop, tile, state, _whole(tile, constant(number), extent)))
        return found
    var = shop.fresh("v")
    lower, upper, inner = _tightened(shop, tile, state, constant(low), constant(high))
    inner = inner.with_range(var, low, high - 1)
    body = _inside(shop, tile, inner, _whole(tile, variable(var), extent))
    return (Loop(var, lower, upper, 1, _round_end(shop, state, body), tile.downward),) if body else ()


def _whole(tile: Tile, number: Index, extent: int) -> _Round:
    """Whole tile ``number`` of a loop of ``extent`` iterations, in the direction of the tile."""
    start = number * tile.step
    if tile.downward:
        before = constant(-(-extent // tile.step) - 1) - number
        last = Condition(-number)
    else:
        before = number
        last = Condition(start + (tile.step - extent))
    if number.is_constant:
        return _Round(start, tile.step, before, _never_unless(last.index.const >= 0))
    return _Round(start, tile.step, before, (last,))


def _never_unless(holds: bool) -> tuple[Condition, ...]:
    return () if holds else (Condition(constant(-1)),)


def _dynamic(shop: Workshop, tile: Tile, state: State, extent: Index) -> tuple[Node, ...]:
    """Iterations known at run time: whole tiles, then the edge: by its size, by halves, or by masks along lanes."""
    whole = simplify(extent // tile.step, state.ranges)
    top = interval(whole, state.ranges)
    found: tuple[Node, ...] = ()
    if top is None or top[1] > 0:
        var = shop.fresh("v")
        lower, upper, inner = _tightened(shop, tile, state, constant(0), whole)
        inner = inner.with_range(var, 0, (top[1] if top else 1 << 31) - 1)
        number = variable(var)
        last = Condition(number * tile.step + tile.step - extent)
        body = _inside(shop, tile, inner, _Round(number * tile.step, tile.step, number, (last,)))
        found = (Loop(var, lower, upper, 1, _round_end(shop, state, body), tile.downward),)
    if tile.step == 1:
        return found
    return _meeting(shop, state, found, _dynamic_edge(shop, tile, state, whole, extent))


def _dynamic_edge(shop: Workshop, tile: Tile, state: State, whole: Index, extent: Index) -> tuple[Node, ...]:
    rest = simplify(extent % tile.step, state.ranges)
    start = whole * tile.step
    if any(leaf.instruction for leaf in leaves(tile.body)):  # a call is told how much is left, where it can be
        edge = _inside(shop, tile, state, _Round(start, rest, start))
        return (When((Condition(rest - 1),), edge),) if edge else ()
    if _lanes_only(tile):
        return _masked_edge(shop, tile, state, start, rest)
    if tile.step <= PIECES and not any(set(t.loops) & set(tile.loops) for t in _tiles(tile.body)):
        return _edge_by_size(shop, tile, state, start, rest)
    found: tuple[Node, ...] = ()
    size = 1 << (tile.step - 1).bit_length() >> 1
    most = interval(rest, state.ranges)
    while size:
        done = start + (rest // (2 * size)) * (2 * size)
        there = Condition((rest % (2 * size)) // size - 1)
        if most is None or most[1] >= size:
            last = Condition(done + size - extent)
            piece = _inside(shop, tile, state, _Round(done, size, done, (last,)))
            found = _meeting(shop, state, found, (When((there,), piece),) if piece else ())
        size //= 2
    return found


def _edge_by_size(shop: Workshop, tile: Tile, state: State, start: Index, rest: Index) -> tuple[Node, ...]:
    """``rest`` iterations that a leaf spreads out: one piece for each number of them, so that they share their loads.

    In parts they would read again what all of them need, with fewer results in flight."""
    found: tuple[Node, ...] = ()
    least, most = interval(rest, state.ranges) or (0, tile.step - 1)
    for size in range(max(1, least), most + 1):
        piece = _inside(shop, tile, state, _Round(start, size, start))
        there = (Condition(rest - size), Condition(constant(size) - rest))
        found = _meeting(shop, state, found, (When(there, piece),) if piece else ())
    return found


def _masked_edge(shop: Workshop, tile: Tile, state: State, start: Index, rest: Index) -> tuple[Node, ...]:
    """``rest`` iterations along lanes: a loop; or, where registers are held, one piece for each number of vectors."""
    width = min(leaf.width for leaf in leaves(tile.body) if leaf.width > 1)
    registers = any(shop.target.memory(h.memory).kind is MemoryKind.REGISTERS for h in holds_in((tile,)))
    if not registers and any(leaf.width < tile.step for leaf in leaves(tile.body)):
        edge = _inside(shop, tile, state, _Round(start, rest, start))
        return (When((Condition(rest - 1),), edge),) if edge else ()
    found: tuple[Node, ...] = ()
    pieces = -(-tile.step // width)
    if pieces > PEEL:
        raise PlanError(f"tile '{tile.name}' holds registers over a long run-time edge", hint=f"a step of {width}")
    inner = replace(state, copies=state.copies * pieces)
    for vectors in range(1, pieces + 1):
        size = min(tile.step, vectors * width)
        there = [Condition(rest - ((vectors - 1) * width + 1))]
        there += [Condition(constant(size) - rest)] if vectors < pieces else []
        piece = _inside(shop, tile, inner, _Round(start, size, start, (), rest, (vectors - 1) * width + 1))
        found = _meeting(shop, state, found, (When(tuple(there), piece),) if piece else ())
    return found


def _lanes_only(tile: Tile) -> bool:
    """Every leaf below runs the tile's loops along its lanes."""
    lanes = {(leaf.statement, leaf.lanes) for leaf in leaves(tile.body) if leaf.width > 1}
    return all(pair in lanes for pair in tile.loops)


def _parallel(shop: Workshop, tile: Tile, state: State, extent: Index) -> tuple[Node, ...]:
    """Tiles spread over the units; the edge is one of them."""
    inside = replace(state, parallel=True)
    var = shop.fresh("v")
    number = variable(var)
    if not extent.is_constant:
        return _parallel_dynamic(shop, tile, inside, extent, var)
    whole, rest = divmod(extent.const, tile.step)
    count = whole + bool(rest)
    full = inside.with_range(var, 0, max(0, whole - 1))
    body = _inside(shop, tile, full, _Round(number * tile.step, tile.step, number)) if whole else ()
    if rest:
        edge = _inside(shop, tile, inside, _Round(constant(whole * tile.step), rest, constant(whole)))
        body = (When((Condition(constant(whole - 1) - number),), body, edge),) if whole else edge
    backward = _odd_steps(shop, tile, state) if tile.alternating else ZERO
    return (Parallel(tile.unit, var, (constant(count),), body, backward),) if count else ()


def _odd_steps(shop: Workshop, tile: Tile, state: State) -> Index:
    """1 in odd steps of the sequence around a tile, 0 in even ones."""
    number = tile.loops[0][0]
    (step,) = shop.statements[number].seq
    return state.spans[number, step.name].base % 2


def _parallel_dynamic(shop: Workshop, tile: Tile, state: State, extent: Index, var: str) -> tuple[Node, ...]:
    count = simplify((extent + tile.step - 1) // tile.step, state.ranges)
    number = variable(var)
    if tile.step == 1:
        top = interval(count, state.ranges)
        inside = state.with_range(var, 0, (top[1] if top else 1 << 31) - 1)
        return (Parallel(tile.unit, var, (count,), _inside(shop, tile, inside, _Round(number, 1, number))),)
    whole = simplify(extent // tile.step, state.ranges)
    body = _dynamic_edge(shop, tile, state, whole, extent)
    top = interval(whole, state.ranges)
    if top is None or top[1] > 0:
        inside = state.with_range(var, 0, (top[1] if top else 1 << 31) - 1)
        full = _inside(shop, tile, inside, _Round(number * tile.step, tile.step, number))
        body = (When((Condition(whole - 1 - number),), full, body),)
    return (Parallel(tile.unit, var, (count,), body),)


def _inside(shop: Workshop, tile: Tile, state: State, now: _Round) -> tuple[Node, ...]:
    """What one round of a tile does."""
    changed = {p: _advanced(state.spans[p], now) for p in tile.loops}
    covered = {s for s, _ in tile.loops}
    first, late = dict(state.first), dict(state.late)
    for s, loop in tile.loops:
        if loop not in shop.statements[s].out.names():
            first[s] = (*first.get(s, ()), now.before)
    if now.last:
        for leaf in leaves(tile.body):
            if leaf.statement not in covered:
                late[leaf.statement] = (*late.get(leaf.statement, ()), *now.last)
    turns = dict(state.turns)
    for s, loop in tile.loops:
        span = state.spans[s, loop]
        size = span.size if span.size is not None else shop.likely(span.extent)
        if size is not None:
            turns[s] = (*turns.get(s, ()), Turn(loop, span.base, now.start, tile.step, size, span.size is None))
    inner = replace(state.with_spans(changed), first=first, late=late, turns=turns)
    return enter_holds(shop, tile.holds, tile.body, inner, lower_nodes)


def _advanced(span: Span, now: _Round) -> Span:
    size = constant(now.size) if isinstance(now.size, int) else now.size
    if now.valid is not None or span.valid is None:
        return Span(span.base + now.start, size, now.valid, now.sure)
    sure = max(1, span.sure - now.start.const) if now.start.is_constant else 1
    return Span(span.base + now.start, size, span.valid - now.start, sure)


def _meeting(shop: Workshop, state: State, before: tuple[Node, ...], after: tuple[Node, ...]) -> tuple[Node, ...]:
    """One after the other; where units share the work they meet in between."""
    if state.parallel or not before or not after:
        return before + after
    return _round_end(shop, state, before) + after


def _round_end(shop: Workshop, state: State, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """Units meet before the next round of a loop around work they share."""
    return body if state.parallel or not body or _ends_in_barrier(body) else (*body, Barrier(_unit(shop)))


def _ends_in_barrier(nodes: tuple[Node, ...]) -> bool:
    last = nodes[-1] if nodes else None
    return isinstance(last, Barrier) or (isinstance(last, Loop | Alloc) and _ends_in_barrier(last.body))


# -- guards


def _clean(tile: Tile, state: State, whole: int) -> tuple[int, int]:
    """The tiles [low, high) in which every guard on the tile's loops holds throughout; all tiles if too few others."""
    low, high = 0, whole
    for pair in tile.loops:
        for condition in _spread(tile, state, pair):
            if not condition.index.is_affine or condition.equal:
                continue
            while low < high and not _holds_in(state, pair, condition, low, tile.step):
                low += 1
            while high > low and not _holds_in(state, pair, condition, high - 1, tile.step):
                high -= 1
    if low >= high:
        return (whole, whole) if whole <= PEEL else (0, whole)
    return (low, high) if low + whole - high <= PEEL else (0, whole)


def _spread(tile: Tile, state: State, pair: Pair) -> list[Condition]:
    """Guards of a loop that no later loop can take as its bounds: others in them, or itself, are spread out below."""
    later = {p for t in _tiles((tile,)) if t is not tile and t.step == 1 and not t.unrolled for p in t.loops}
    found = []
    for condition in state.conditions.get(pair[0], ()):
        if pair[1] not in condition.names():
            continue
        others = [(pair[0], n) for n in condition.names() if n != pair[1] and (pair[0], n) in state.spans]
        spread = any(state.spans[p].size != 1 and p not in later for p in others)
        if spread or (tile.step > 1 and pair not in later):
            found.append(condition)
    return found


def _tiles(nodes: tuple[PlanNode, ...]) -> Iterator[Tile]:
    for node in nodes:
        if isinstance(node, Tile):
            yield node
            yield from _tiles(node.body)


def _holds_in(state: State, pair: Pair, condition: Condition, number: int, step: int) -> bool:
    span = Span(state.spans[pair].base + number * step, constant(step))
    found = state.with_spans({pair: span}).condition_range(pair[0], condition)
    return found is not None and found[0] >= 0


def _must_unroll(tile: Tile, state: State, low: int, high: int) -> bool:
    """A step-by-step loop in a guard with a spread-out loop: only known numbers resolve the guard."""
    if tile.step != 1 or (high - low) * state.copies > COPIES:
        return False
    for s, loop in tile.loops:
        for condition in _spread(tile, state, (s, loop)):
            others = [state.spans[s, n] for n in condition.names() if n != loop and (s, n) in state.spans]
            if any(not o.base.is_constant or o.size is None for o in others if o.size != 1):
                continue
            span = Span(state.spans[s, loop].base + low, constant(high - low))
            found = state.with_spans({(s, loop): span}).condition_range(s, condition)
            if condition.equal or found is None or found[0] < 0:
                return True
    return False


def _tightened(
    shop: Workshop, tile: Tile, state: State, low: Index, high: Index
) -> tuple[tuple[Index, ...], tuple[Index, ...], State]:
    """Bounds of a step-by-step loop with the guards folded in whose last open loop it is."""
    lower, upper = [low], [high]
    if tile.step != 1 or len(tile.loops) != 1:
        return tuple(lower), tuple(upper), state
    statement, loop = tile.loops[0]
    if not _may_skip(shop, tile, statement):
        return tuple(lower), tuple(upper), state
    if any(leaf.statement != statement for leaf in leaves(tile.body)):
        return tuple(lower), tuple(upper), state
    kept: list[Condition] = []
    for condition in state.conditions.get(statement, ()):
        bound = _as_bound(state, statement, loop, condition)
        if bound is None:
            kept.append(condition)
        elif bound[0] is not None:
            lower.append(simplify(bound[0], state.ranges))
        elif bound[1] is not None:
            upper.append(simplify(bound[1], state.ranges))
    kept_state = state.with_conditions(statement, tuple(kept))
    return _drop(lower, state, True), _drop(upper, state, False), kept_state


def _may_skip(shop: Workshop, tile: Tile, statement: int) -> bool:
    """A round without any point has nothing to do: its output was set up before."""
    tensor = shop.statements[statement].out.tensor
    return shop.starts_in_memory(tensor) or not any(hold.tensor == tensor for hold in holds_in((tile,)))


def _as_bound(
    state: State, statement: int, loop: str, condition: Condition
) -> tuple[Index | None, Index | None] | None:
    """``c*loop + rest >= 0`` as a bound on the counter of the loop's own tile: (lower, None) or (None, upper)."""
    c = condition.index.coefficient(loop)
    if condition.equal or c == 0 or not condition.index.is_affine:
        return None
    spans = {n: state.spans[statement, n] for n in condition.names() if (statement, n) in state.spans}
    if any(s.size != 1 for n, s in spans.items() if n != loop):
        return None
    rest = (condition.index - variable(loop) * c).substitute({n: s.base for n, s in spans.items() if n != loop})
    rest = rest + spans[loop].base * c
    if c > 0:
        return (-rest + (c - 1)) // c, None
    return None, rest // -c + 1


def _drop(bounds: list[Index], state: State, lower: bool) -> tuple[Index, ...]:
    """Without bounds that the first one always implies."""
    kept = [bounds[0]]
    for bound in bounds[1:]:
        gap = interval((kept[0] - bound) if lower else (bound - kept[0]), state.ranges)
        if gap is None or gap[0] < 0:
            kept.append(bound)
    return tuple(kept)
