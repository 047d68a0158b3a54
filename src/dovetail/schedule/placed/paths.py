"""Ways between memories: which copies lead from main memory to where an instruction wants its operand, and back."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dovetail.ir.expr import Read
from dovetail.schedule.placed.storage import Wanted
from dovetail.targets.model import Instruction, Target

Hop = tuple[str, str]
"""From one memory to another."""


@lru_cache(maxsize=256)
def path(target: Target, source: str, sink: str) -> tuple[str, ...] | None:
    """The memories after ``source`` on the shortest way to ``sink``; None where no copies lead there."""
    hops = _hops(target)
    found: dict[str, tuple[str, ...]] = {source: ()}
    waiting = [source]
    while waiting and sink not in found:
        here = waiting.pop(0)
        for start, end in hops:
            if start == here and end not in found:
                found[end] = (*found[here], end)
                waiting.append(end)
    return found.get(sink)


def lies_in(target: Target, memory: str, wanted: Wanted) -> Wanted | None:
    """How an operand must lie in ``memory`` for a copy to take it on to where it is wanted, or to bring it from there.

    None where no copy does."""
    route = path(target, wanted.memory, memory) if wanted.is_written else path(target, memory, wanted.memory)
    if not route:
        return None
    beside = route[0] if wanted.is_written else (memory, *route)[-2]
    for copy in _copies(target):
        near, far = (_source(copy), _sink(copy)) if wanted.is_written else (_sink(copy), _source(copy))
        mine, other = copy.operand(near), copy.operand(far)
        if (mine.memory, mine.dtype, other.memory) != (wanted.memory, wanted.dtype, beside):
            continue
        if mine.layout != (wanted.layout.name if wanted.layout is not None else ""):
            continue
        layout = next((layout for layout in target.layouts if layout.name == other.layout), None)
        strides = _strides_there(copy, far, len(wanted.needles))
        there = replace(wanted, memory=beside, dtype=other.dtype, strides=strides, layout=layout)
        return there if beside == memory else lies_in(target, memory, there)
    return None


def _strides_there(copy: Instruction, name: str, rank: int) -> tuple[int | str, ...]:
    """Distances along ``rank`` dimensions of a copy's operand; loops around the copy go any distance."""
    operand, own = copy.operand(name), len(copy.program.tensor(name).shape)
    if not operand.strides and own == rank:
        return ()
    strides = operand.strides or ("rows",) * (own - 1) + (1,)
    return ("loops",) * (rank - own) + strides[-rank:]


@lru_cache(maxsize=64)
def _copies(target: Target) -> tuple[Instruction, ...]:
    return tuple(i for i in target.instructions if i.is_copy and not i.emit and not i.broadcast)


@lru_cache(maxsize=64)
def _hops(target: Target) -> tuple[Hop, ...]:
    return tuple(dict.fromkeys((i.operand(_source(i)).memory, i.operand(_sink(i)).memory) for i in _copies(target)))


def _source(copy: Instruction) -> str:
    value = copy.program.statements[0].value
    assert isinstance(value, Read)
    return value.access.tensor


def _sink(copy: Instruction) -> str:
    return copy.program.statements[0].out.tensor
