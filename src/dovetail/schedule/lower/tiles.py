"""Tiles of a plan -> loops of a nest: whole tiles in a loop, edges beside it, guards folded into bounds.

    tile it of 0.i by 6 over i<35   ->   loop v in 0..5: <i = 6*v .. 6*v+5>;  <i = 30 .. 34>

Where a guard holds for most tiles but not for all, the others are taken out of the loop and specialised; where a
guard's last open loop runs one by one, it becomes that loop's bound.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.base.errors import PlanError
from dovetail.ir.index import Condition, Index, constant, variable
from dovetail.ir.interval import interval, simplify
from dovetail.ir.nest import Barrier, Loop, Node, Parallel, When
from dovetail.ir.plan import Leaf, PlanNode, Tile
from dovetail.schedule.lower.holds import enter_holds
from dovetail.schedule.lower.leaf import lanes_always, unrolled
from dovetail.schedule.lower.state import InRegisters, Pair, Span, State, Workshop

UNROLL = 64
"""Most points a leaf spreads out; more become loops."""
PEEL = 8
"""Most tiles taken out of a loop because of a guard."""


def lower_nodes(shop: Workshop, nodes: tuple[PlanNode, ...], state: State) -> tuple[Node, ...]:
    """Neighbours in a plan, in order; units meet between them."""
    found: tuple[Node, ...] = ()
    for node in nodes:
        if state.parallel:
            found += lower_node(shop, node, state)
            continue
        if found:
            found += (Barrier(_unit(shop)),)
        found += lower_node(shop, node, state) if _has_parallel(node) else _alone(shop, node, state)
    return found


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
    statement = shop.statements[leaf.statement]
    if leaf.lanes and leaf.width > 1:
        crossed = [c for c in state.conditions.get(leaf.statement, ()) if leaf.lanes in c.names()]
        if any(not lanes_always(state, leaf, c) for c in crossed):
            leaf = Leaf(leaf.statement)
    total = 1
    rolled: str | None = None
    for loop in reversed(statement.loops):
        span = state.spans[leaf.statement, loop.name]
        width = leaf.width if loop.name == leaf.lanes else 1
        steps = 0 if span.size is None else -(-span.size // width)
        total *= max(1, steps)
        if steps == 0 or (steps > 1 and total > UNROLL):
            rolled = loop.name
    if rolled is None:
        return unrolled(shop, leaf, state)
    step = leaf.width if rolled == leaf.lanes else 1
    return lower_tile(shop, Tile(shop.fresh("auto"), ((leaf.statement, rolled),), step, (leaf,)), state)


def lower_tile(shop: Workshop, tile: Tile, state: State) -> tuple[Node, ...]:
    spans = [state.spans[pair] for pair in tile.loops]
    extent = spans[0].extent
    if any(s.extent != extent for s in spans):
        raise PlanError(f"tile '{tile.name}' covers loops of different extents")
    if tile.unit and not state.parallel:
        return _parallel(shop, tile, state, extent)
    if extent.is_constant:
        return _static(shop, tile, state, extent.const)
    return _dynamic(shop, tile, state, extent)


def _static(shop: Workshop, tile: Tile, state: State, extent: int) -> tuple[Node, ...]:
    """A known number of iterations: whole tiles looped over, the edge apart."""
    whole, rest = divmod(extent, tile.step)
    found: tuple[Node, ...] = ()
    if whole:
        low, high = _clean(shop, tile, state, whole)
        for number in range(low):
            found += _body(shop, tile, state, constant(number), tile.step, last=number == whole - 1 and not rest)
        found += _looped(shop, tile, state, low, high, last=whole if not rest else -1)
        for number in range(high, whole):
            found += _body(shop, tile, state, constant(number), tile.step, last=number == whole - 1 and not rest)
    if rest:
        found += _body(shop, tile, state, constant(whole), rest, last=True)
    return found


def _looped(shop: Workshop, tile: Tile, state: State, low: int, high: int, last: int) -> tuple[Node, ...]:
    if high - low <= 0:
        return ()
    if high - low == 1 or tile.unrolled or _must_unroll(shop, tile, state, high - low):
        found: tuple[Node, ...] = ()
        for number in range(low, high):
            found += _body(shop, tile, state, constant(number), tile.step, last=number == last - 1)
        return found
    var = shop.fresh("v")
    lower, upper, inner = _tightened(shop, tile, state, var, constant(low), constant(high))
    inner = inner.with_range(var, low, high - 1)
    body = _body(shop, tile, inner, variable(var), tile.step, last=None, rounds=constant(last) if last > 0 else None)
    return (Loop(var, lower, upper, 1, body, tile.downward),) if body else ()


def _dynamic(shop: Workshop, tile: Tile, state: State, extent: Index) -> tuple[Node, ...]:
    """Iterations known at run time: whole tiles, then the edge by halves, or by masks along lanes."""
    whole = simplify(extent // tile.step, state.ranges)
    var = shop.fresh("v")
    lower, upper, inner = _tightened(shop, tile, state, var, constant(0), whole)
    top = interval(whole, state.ranges)
    inner = inner.with_range(var, 0, (top[1] if top else 1 << 31) - 1)
    rounds = whole if tile.step == 1 else None
    body = _body(shop, tile, inner, variable(var), tile.step, last=None, rounds=rounds)
    found: tuple[Node, ...] = (Loop(var, lower, upper, 1, body, tile.downward),)
    if tile.step == 1:
        return found
    return found + _dynamic_edge(shop, tile, state, whole, extent)


def _dynamic_edge(shop: Workshop, tile: Tile, state: State, whole: Index, extent: Index) -> tuple[Node, ...]:
    rest = extent % tile.step
    any_left = Condition(rest - 1)
    if _lanes_only(shop, tile):
        changed = {
            pair: Span(state.spans[pair].base + whole * tile.step, constant(tile.step), rest) for pair in tile.loops
        }
        inner = state.with_spans(changed)
        return (When((any_left,), _inside(shop, tile, inner, None)),)
    found: tuple[Node, ...] = ()
    size = 1 << (tile.step - 1).bit_length() >> 1
    while size:
        done = whole * tile.step + (rest // (2 * size)) * (2 * size)
        there = Condition((rest % (2 * size)) // size - 1)
        changed = {pair: Span(state.spans[pair].base + done, constant(size)) for pair in tile.loops}
        found += (When((there,), _inside(shop, tile, state.with_spans(changed), None)),)
        size //= 2
    return found


def _lanes_only(shop: Workshop, tile: Tile) -> bool:
    """Every leaf below runs the tile's loops along its lanes."""
    lanes = {(leaf.statement, leaf.lanes) for leaf in _leaves(tile.body) if leaf.width > 1}
    return all(pair in lanes for pair in tile.loops)


def _parallel(shop: Workshop, tile: Tile, state: State, extent: Index) -> tuple[Node, ...]:
    """Tiles spread over the units; the edge is one of them."""
    inside = replace(state, parallel=True)
    var = shop.fresh("v")
    if not extent.is_constant:
        return _parallel_dynamic(shop, tile, inside, extent, var)
    whole, rest = divmod(extent.const, tile.step)
    count = whole + bool(rest)
    full = inside.with_range(var, 0, max(0, whole - 1))
    body = _body(shop, tile, full, variable(var), tile.step, last=None) if whole else ()
    if rest:
        edge = _body(shop, tile, inside, constant(whole), rest, last=None)
        body = (When((Condition(constant(whole - 1) - variable(var)),), body, edge),) if whole else edge
    return (Parallel(tile.unit, var, (constant(count),), body),) if count else ()


def _parallel_dynamic(shop: Workshop, tile: Tile, state: State, extent: Index, var: str) -> tuple[Node, ...]:
    count = simplify((extent + tile.step - 1) // tile.step, state.ranges)
    top = interval(count, state.ranges)
    inside = state.with_range(var, 0, (top[1] if top else 1 << 31) - 1)
    body = _body(shop, tile, inside, variable(var), tile.step, last=None)
    if tile.step > 1:
        whole = simplify(extent // tile.step, state.ranges)
        edge = _dynamic_edge(shop, tile, state, whole, extent)
        body = (When((Condition(whole - 1 - variable(var)),), body, edge),)
    return (Parallel(tile.unit, var, (count,), body),)


def _body(
    shop: Workshop,
    tile: Tile,
    state: State,
    number: Index,
    size: int,
    last: bool | None,
    rounds: Index | None = None,
) -> tuple[Node, ...]:
    """One tile: number ``number``, ``size`` iterations. ``last`` None: known at run time from ``rounds``."""
    changed = {p: Span(state.spans[p].base + number * tile.step, constant(size)) for p in tile.loops}
    inner = state.with_spans(changed)
    covered = {s for s, _ in tile.loops}
    first, late = dict(inner.first), dict(inner.late)
    for s, loop in tile.loops:
        if loop not in shop.statements[s].out.names():
            first[s] = (*first.get(s, ()), number)
    for leaf in _leaves(tile.body):
        if leaf.statement in covered or last is True:
            continue
        if last is False:
            late[leaf.statement] = (*late.get(leaf.statement, ()), Condition(constant(-1)))
        elif rounds is not None:
            late[leaf.statement] = (*late.get(leaf.statement, ()), Condition(number - rounds + 1))
    return _inside(shop, tile, replace(inner, first=first, late=late), number)


def _inside(shop: Workshop, tile: Tile, state: State, number: Index | None) -> tuple[Node, ...]:
    return enter_holds(shop, tile.holds, tile.body, state, lower_nodes)


# -- guards


def _clean(shop: Workshop, tile: Tile, state: State, whole: int) -> tuple[int, int]:
    """The tiles [low, high) in which every guard on the tile's loops holds throughout; all tiles if too few others."""
    if tile.step == 1:
        return 0, whole
    low, high = 0, whole
    for pair in tile.loops:
        for condition in state.conditions.get(pair[0], ()):
            if pair[1] not in condition.names() or not condition.index.is_affine or condition.equal:
                continue
            while low < high and not _holds_in(state, pair, condition, low, tile.step):
                low += 1
            while high > low and not _holds_in(state, pair, condition, high - 1, tile.step):
                high -= 1
    if low >= high:
        return (whole, whole) if whole <= PEEL else (0, whole)
    return (low, high) if low + whole - high <= PEEL else (0, whole)


def _holds_in(state: State, pair: Pair, condition: Condition, number: int, step: int) -> bool:
    span = Span(state.spans[pair].base + number * step, constant(step))
    found = state.with_spans({pair: span}).condition_range(pair[0], condition)
    return found is not None and found[0] >= 0


def _must_unroll(shop: Workshop, tile: Tile, state: State, trips: int) -> bool:
    """A step-by-step loop in a guard with a spread-out loop: only known numbers resolve the guard."""
    if tile.step != 1 or trips > 16:
        return False
    for s, loop in tile.loops:
        for condition in state.conditions.get(s, ()):
            others = condition.names() - {loop}
            open_others = [n for n in others if (s, n) in state.spans and state.spans[s, n].size not in (1,)]
            known = all(state.spans[s, n].base.is_constant and state.spans[s, n].size is not None for n in open_others)
            if loop in condition.names() and open_others and known:
                found = state.condition_range(s, condition)
                if found is None or found[0] < 0:
                    return True
    return False


def _tightened(
    shop: Workshop, tile: Tile, state: State, var: str, low: Index, high: Index
) -> tuple[tuple[Index, ...], tuple[Index, ...], State]:
    """Bounds of a step-by-step loop with the guards folded in whose last open loop it is."""
    lower, upper = [low], [high]
    if tile.step != 1 or len(tile.loops) != 1:
        return tuple(lower), tuple(upper), state
    statement, loop = tile.loops[0]
    out = shop.statements[statement].out
    if loop not in out.names() and not isinstance(state.held.get(out.tensor), InRegisters):
        return tuple(lower), tuple(upper), state
    if any(leaf.statement != statement for leaf in _leaves(tile.body)):
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


def _leaves(nodes: tuple[PlanNode, ...]) -> list[Leaf]:
    found: list[Leaf] = []
    for node in nodes:
        found += [node] if isinstance(node, Leaf) else _leaves(node.body)
    return found
