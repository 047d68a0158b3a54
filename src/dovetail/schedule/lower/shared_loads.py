"""Leaves side by side that read the same elements load them once.

call load(t1{0}, x[v]); call store(y[v], t1{0});  call load(t2{0}, x[v]); call store(z[v], t2{0})
 -> call load(t1{0}, x[v]); call store(y[v], t1{0}); call store(z[v], t1{0})
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.nest import Alloc, Buffer, Call, Cell, Node, Operand, Place
from dovetail.schedule.lower.state import Workshop, alloc


def share_loads(shop: Workshop, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """``nodes`` without loads of what an earlier one left in a register; as they are where they are not plain calls."""
    buffers: list[Buffer] = []
    calls: list[Call] = []
    if not _flatten(nodes, buffers, calls):
        return nodes
    cells = {b.name for b in buffers}
    known: dict[tuple[str, tuple[Operand, ...], object], Cell] = {}
    same: dict[Cell, Cell] = {}
    kept: list[Node] = []
    for call in calls:
        call = replace(call, operands=tuple(same.get(o, o) if isinstance(o, Cell) else o for o in call.operands))
        written = _written(shop, call)
        if isinstance(written, Place):
            known = {key: cell for key, cell in known.items() if not _reads(key[1], written.buffer)}
        sources = tuple(o for o in call.operands if o is not written)
        if not isinstance(written, Cell) or written.buffer not in cells or not _is_load(sources):
            kept.append(call)
            continue
        key = call.instruction, sources, call.params
        if key in known:
            same[written] = known[key]
        else:
            known[key] = written
            kept.append(call)
    return alloc(buffers, tuple(kept))


def _flatten(nodes: tuple[Node, ...], buffers: list[Buffer], calls: list[Call]) -> bool:
    for node in nodes:
        if isinstance(node, Call):
            calls.append(node)
        elif not isinstance(node, Alloc) or not _flatten(node.body, buffers, calls):
            return False
        else:
            buffers.append(node.buffer)
    return True


def _written(shop: Workshop, call: Call) -> Operand:
    instruction = shop.target.instruction(call.instruction)
    name = instruction.program.statements[0].out.tensor
    return next(o for o, mine in zip(call.operands, instruction.operands, strict=True) if mine.name == name)


def _is_load(sources: tuple[Operand, ...]) -> bool:
    """One element, or a vector, from memory: it depends on nothing else."""
    return len(sources) == 1 and isinstance(sources[0], Place)


def _reads(sources: tuple[Operand, ...], buffer: str) -> bool:
    return any(
        isinstance(o, Place) and (o.buffer == buffer or any(a.tensor == buffer for i in o.indices for a in i.reads()))
        for o in sources
    )
