"""Products that no later step needs are computed behind the steps, for all of them at once.

all = scan(h, x, r, v)                                   s = scan(h, x, r)
  of n = tanh(add(x, matmul(h, r)))  -> n, y     ->        of n = tanh(add(x, matmul(h, r)))  -> n, n
     y = matmul(n, v)                                    all = matmul(reshape(s), v)
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.graph.scan_form import Scan, Stacked, exchange, tidy
from dovetail.graph.scan_lift import Outer, lifted
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Node

_PRODUCTS = frozenset(("matmul", "dense"))


def sunk(sheet: Sheet, scan: Scan) -> tuple[Scan, tuple[str, ...]]:
    """The scan as it is in ``sheet`` then, and the operators that went behind it."""
    if any(name == "flipped" for name, _ in scan.settings):
        return scan, ()
    nodes = _behind(scan)
    if not nodes:
        return scan, ()
    made = {name for node in nodes for name in node.results}
    fed = {part.value.name for part in (*scan.scanned, *scan.shared)}
    read = dict.fromkeys(name for node in nodes for name in node.operands if name not in made | fed)
    known = {stack.value for stack in scan.stacks}
    new = tuple(Stacked(name, f"{name}_of_steps") for name in read if name not in known)
    changed = exchange(sheet, scan, replace(scan, stacks=(*scan.stacks, *new)))
    values = _lifted(sheet, changed, nodes)
    if values is None:
        return changed, ()
    for stack in changed.stacks:
        if stack.value in made:
            sheet.replace(stack.result, values[stack.value].name)
    kept = tidy(replace(changed, stacks=tuple(s for s in changed.stacks if s.value not in made)))
    return exchange(sheet, changed, kept), tuple(node.op for node in nodes)


def _behind(scan: Scan) -> list[Node]:
    """Products that no state needs, and what is made of them."""
    makers = {name: node for node in scan.nodes for name in node.results}
    needed: set[str] = set()
    waiting = [state.next_ for state in scan.states]
    while waiting:
        node = makers.get(waiting.pop())
        if node is not None and node.results[0] not in needed:
            needed.add(node.results[0])
            waiting += node.operands
    found: dict[str, Node] = {}
    for node in scan.nodes:
        if node.results[0] not in needed and (node.op in _PRODUCTS or not found.keys().isdisjoint(node.operands)):
            found.update((name, node) for name in node.results)
    return list({node.results[0]: node for node in found.values()}.values())


def _lifted(sheet: Sheet, scan: Scan, nodes: list[Node]) -> dict[str, Outer] | None:
    types = scan.types(sheet.operators)
    values = {fed.value.name: Outer(fed.outer, True) for fed in scan.scanned}
    values |= {fed.value.name: Outer(fed.outer, False) for fed in scan.shared}
    values |= {stack.value: Outer(stack.result, True) for stack in reversed(scan.stacks)}
    for node in nodes:
        operands = [values[name] for name in node.operands]
        made = lifted(sheet, node, operands, types, scan.steps)
        if made is None:
            return None
        values.update(zip(node.results, (Outer(value, True) for value in made), strict=True))
    return values
