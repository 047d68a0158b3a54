"""What no state decides is computed ahead of the steps, for all of them at once.

all = scan(h, x, w, r)                                m = matmul(reshape(x), w)
  of n = add(matmul(x, w), matmul(h, r))      ->      all = scan(h, reshape(m), r)
                                                        of n = add(m, matmul(h, r))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.graph.scan_form import Fed, Scan, exchange, tidy
from dovetail.graph.scan_lift import Outer, lifted
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Node, Type, Value
from dovetail.ir.graph.operator import find

_STAY = frozenset(("slice", "expand"))
"""What a step reads where it lies, or repeats by itself: not made ahead for its own sake."""


def hoisted(sheet: Sheet, scan: Scan) -> tuple[Scan, tuple[str, ...]]:
    """The scan as it is in ``sheet`` then, and the operators that went ahead."""
    if any(name == "flipped" for name, _ in scan.settings):
        return scan, ()
    types = scan.types(sheet.operators)
    outer = {fed.value.name: Outer(fed.outer, True) for fed in scan.scanned}
    outer |= {fed.value.name: Outer(fed.outer, False) for fed in scan.shared}
    gone: dict[str, Node] = {}
    for node in scan.nodes:
        made = _ahead(sheet, node, outer, types, scan.steps)
        if made is not None:
            outer.update(zip(node.results, made, strict=True))
            gone[node.results[0]] = node
    for node in reversed(tuple(gone.values())):
        if node.op in _STAY and outer[node.results[0]].stepped and _is_read(scan, node, gone):
            del gone[node.results[0]]
    if not gone:
        return scan, ()
    made_scan = _without(sheet, scan, gone, outer, types)
    names = tuple(node.op for node in gone.values() if outer[node.results[0]].stepped)
    return made_scan, names


def _ahead(
    sheet: Sheet, node: Node, outer: Mapping[str, Outer], types: Mapping[str, Type], steps: int
) -> tuple[Outer, ...] | None:
    if not all(name in outer for name in node.operands) or find(node, sheet.operators).run is not None:
        return None
    operands = [outer[name] for name in node.operands]
    if any(operand.stepped for operand in operands):
        values = lifted(sheet, node, operands, types, steps)
        return None if values is None else tuple(Outer(value, True) for value in values)
    if len(node.results) > 1:
        return None
    attributes = dict(node.attributes)
    return (Outer(sheet.add(node.op, *(operand.name for operand in operands), **attributes), False),)


def _is_read(scan: Scan, node: Node, gone: Mapping[str, Node]) -> bool:
    """Whether something that stays in the body reads what ``node`` makes."""
    value = node.results[0]
    inside = any(value in reader.operands for reader in scan.nodes if reader.results[0] not in gone)
    return inside or value in (state.next_ for state in scan.states)


def _without(
    sheet: Sheet, scan: Scan, gone: Mapping[str, Node], outer: Mapping[str, Outer], types: Mapping[str, Type]
) -> Scan:
    """The scan without the nodes that are gone; what it reads of them is scanned or shared."""
    made = {name for node in gone.values() for name in node.results}
    nodes = [node for node in scan.nodes if node.results[0] not in gone]
    fixed = made | {fed.value.name for fed in (*scan.scanned, *scan.shared)}
    handed = {state.next_ for state in scan.states if state.next_ in fixed}
    passed = {name: f"{name}_next" for name in handed}
    nodes += [Node("identity", (name,), (new,)) for name, new in passed.items()]
    read = {name for node in nodes for name in node.operands}
    new = [Fed(Value(name, types[name]), outer[name].name) for name in outer if name in made and name in read]
    kept = tuple(stack for stack in scan.stacks if stack.value not in fixed)
    direct = tuple(stack for stack in scan.stacks if stack.value in fixed)
    changed = replace(
        scan,
        states=tuple(replace(s, next_=passed.get(s.next_, s.next_)) for s in scan.states),
        scanned=(*scan.scanned, *(fed for fed in new if outer[fed.value.name].stepped)),
        shared=(*scan.shared, *(fed for fed in new if not outer[fed.value.name].stepped)),
        nodes=tuple(nodes),
        stacks=kept,
    )
    for stack in direct:
        sheet.replace(stack.result, _stacked(sheet, outer[stack.value], types[stack.value], scan.steps))
    changed = tidy(changed)
    return exchange(sheet, scan, changed) if changed.results else changed


def _stacked(sheet: Sheet, value: Outer, t: Type, steps: int) -> str:
    if value.stepped:
        return value.name
    shape = tuple(extent.const for extent in t.shape)
    return sheet.add("expand", sheet.add("reshape", value.name, shape=(1, *shape)), shape=(steps, *shape))
