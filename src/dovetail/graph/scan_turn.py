"""A step that ends with the product of the next one's state begins with it instead.

    u' = matmul(h', r)                        carried u of 4h numbers, first matmul(h0, r), or zeros
    ->
    u = matmul(h, r)                          carried h of h numbers, first h0, or zeros

So loops come out whose first product an exporter has computed ahead, or whose first state of zeros it has folded away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from dovetail.graph.scan_form import Body, Scan, State, exchange
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import Array
from dovetail.ir.graph.evaluate import run_node
from dovetail.ir.graph.graph import Node, Type, Value

_PRODUCTS = ("matmul", "gemm", "dense")
_MOST_NODES = 4


@dataclass(frozen=True, slots=True)
class _Turn:
    """``nodes``, the last first, make the next ``state`` of ``source``, which is ``first`` before all steps."""

    state: State
    nodes: tuple[Node, ...]
    source: str
    first: str | Array


def turned(sheet: Sheet, scan: Scan) -> tuple[Scan, int]:
    """The scan as it is in ``sheet`` then, and how many states have become smaller ones."""
    count = 0
    while count < len(scan.states):
        found = next((t for state in scan.states if (t := _turn(sheet, scan, state)) is not None), None)
        if found is None:
            break
        scan, count = _apply(sheet, scan, found), count + 1
    return scan, count


def _turn(sheet: Sheet, scan: Scan, state: State) -> _Turn | None:
    body = Body(scan, sheet.operators)
    nodes: list[Node] = []
    value, first, known = state.next_, state.first, True
    while len(nodes) < _MOST_NODES:
        node = body.maker(value)
        inner = None if node is None else _moving_operand(body, node)
        if node is None or inner is None or body.uses(value) != 1 or len(node.results) > 1:
            return None
        nodes.append(node)
        if known:
            above = _same_outside(sheet, body, node, inner, first)
            first, known = (above, True) if above is not None else (first, False)
        value = node.operands[inner]
        if node.op in _PRODUCTS:
            break
    else:
        return None
    smaller = _elements(body.types[value]) < _elements(body.types[state.value.name])
    if not smaller and not any(other.next_ == value for other in scan.states if other is not state):
        return None
    if known:
        return _Turn(state, tuple(nodes), value, first)
    zeros = np.zeros([extent.const for extent in body.types[value].shape], body.types[value].dtype.numpy)
    return _Turn(state, tuple(nodes), value, zeros) if _gives(sheet, body, nodes, value, zeros, state.first) else None


def _moving_operand(body: Body, node: Node) -> int | None:
    """The one operand that is not shared."""
    places = [place for place, name in enumerate(node.operands) if name not in body.shared]
    return places[0] if len(places) == 1 else None


def _same_outside(sheet: Sheet, body: Body, node: Node, inner: int, first: str) -> str | None:
    """What the node that makes ``first`` outside reads in the place of ``inner``, where it is the same node."""
    made = sheet.maker(first)
    if made is None or made.op != node.op or repr(made.attributes) != repr(node.attributes):
        return None
    if len(made.operands) != len(node.operands):
        return None
    for place, (outside, name) in enumerate(zip(made.operands, node.operands, strict=True)):
        if place != inner and body.shared[name].outer != outside:
            return None
    wanted = body.types[node.operands[inner]]
    return made.operands[inner] if sheet.types[made.operands[inner]] == wanted else None


def _gives(sheet: Sheet, body: Body, nodes: list[Node], value: str, start: Array, first: str) -> bool:
    """Whether the nodes make the constant ``first`` of ``start``."""
    wanted = sheet.array(first)
    values: dict[str, Array] = {value: start}
    for node in reversed(nodes):
        for name in node.operands:
            if name in body.shared:
                array = sheet.array(body.shared[name].outer)
                if array is None:
                    return False
                values[name] = array
        values[node.results[0]] = run_node(node, body.types, sheet.operators, values, {}, {})[0]
    return wanted is not None and np.array_equal(values[nodes[0].results[0]], wanted)


def _apply(sheet: Sheet, scan: Scan, turn: _Turn) -> Scan:
    body = Body(scan, sheet.operators)
    t = body.types[turn.source]
    first = turn.first if isinstance(turn.first, str) else sheet.constant(turn.first, t)
    same = (s for s in scan.states if s.next_ == turn.source and s.first == first)
    carried = next(same, None) or State(Value(body.fresh(), t), first, turn.source, _unused(sheet, scan))
    body.types[carried.value.name] = t
    value, last = carried.value.name, carried.result
    names = {turn.source: value}
    for node in reversed(turn.nodes):
        operands = tuple(names.get(name, name) for name in node.operands)
        names[node.results[0]] = value = body.insert(replace(node, operands=operands, results=(body.fresh(),)))[0]
    body.replace(turn.state.value.name, value)
    made = body.finish()
    kept = tuple(state for state in made.states if state.value.name != turn.state.value.name)
    states = kept if carried.value.name in {s.value.name for s in kept} else (*kept, carried)
    changed = exchange(sheet, scan, replace(made, states=states))
    if sheet.needed(turn.state.result):
        last = next(s.result for s in changed.states if s.value.name == carried.value.name)
        outer = {**changed.outer_of(), turn.source: last}
        for node in reversed(turn.nodes):
            made_last = sheet.add(node.op, *(outer[name] for name in node.operands), **dict(node.attributes))
            outer[node.results[0]] = made_last
        sheet.replace(turn.state.result, outer[turn.nodes[0].results[0]])
    return changed


def _unused(sheet: Sheet, scan: Scan) -> str:
    number = 0
    while (name := f"u{number}") in sheet.types or name in scan.results:
        number += 1
    return name


def _elements(t: Type) -> int:
    return prod(extent.const for extent in t.shape)
