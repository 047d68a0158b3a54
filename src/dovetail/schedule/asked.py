"""Which reads of a register tile are asked for ahead of their use, on machines that do not follow them by themselves.

A read that the tile takes as it lies, and that is somewhere else in every step: ``x[c, q]`` for 14 neighbours in one
channel after the other. What is packed lies in the order of its use.
"""

from __future__ import annotations

from math import ceil, prod

from dovetail.schedule.facts import Facts, Use
from dovetail.schedule.inner import unrolled_loop
from dovetail.schedule.machine import Machine
from dovetail.schedule.order import Order


def asked_ahead(facts: Facts, order: Order, machine: Machine) -> tuple[tuple[str, int], ...]:
    """(tensor, how many rounds of the leaf ahead) of the reads that are asked for."""
    tiling = order.tiling
    if not machine.ahead_cycles or not facts.is_contraction or tiling.lanes in facts.reduced or not machine.caches:
        return ()
    packed = {number for number, _, _ in order.packs}
    cells = tiling.rows * tiling.vectors * prod(facts.extents[n] for n in tiling.inside)
    rounds = ceil(machine.ahead_cycles / (cells * machine.operation_cycles(facts, tiling.width)))
    reads = [use for number, use in enumerate(facts.reads) if number not in packed]
    far = [use for use in reads if facts.elements(use) * use.bytes > machine.usable[0]]
    return tuple({use.access.tensor: rounds for use in far if machine.asks(_step_bytes(facts, use, order))}.items())


def _step_bytes(facts: Facts, use: Use, order: Order) -> int:
    """How far a read goes on in a step of the innermost loop that moves it."""
    taken_apart = unrolled_loop(facts, order.tiling.lanes, order.inner)
    strides = [abs(use.stride(n) or 0) * use.bytes for n in order.inner if n != taken_apart]
    return next((stride for stride in reversed(strides) if stride), 0)
