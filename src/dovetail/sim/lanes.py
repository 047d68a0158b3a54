"""Lanes that part at a parallel, and meet again behind it."""

from __future__ import annotations

from itertools import accumulate

from dovetail.sim.clocks import Clocks, Lane, Resource
from dovetail.sim.units import Topology


def fork(lane: Lane, weights: list[int], clocks: Clocks, topology: Topology) -> list[Lane]:
    """Lanes of these weights where ``lane`` stands; each resource that there are several of is as the first of them."""
    for (kind, name, instance), servers in list(clocks.free.items()):
        owner = topology.owners[name] if kind == "memory" else name
        for other in range(instance + 1, topology.totals[owner]):
            clocks.free[kind, name, other] = list(servers)
            clocks.uses.setdefault((kind, name, other), 0)
    firsts = accumulate(weights, initial=0)
    return [lane.fork(number, weight) for number, weight in zip(firsts, weights, strict=False)]


def join(lane: Lane, lanes: list[Lane], clocks: Clocks) -> None:
    """``lane`` goes on when the last of ``lanes`` has come, with all that is still under way."""
    lane.clock = max(one.clock for one in lanes)
    lane.hazards = [hazard for one in lanes for hazard in one.hazards]
    lane.tokens = {}
    for one in lanes:
        for name, time in one.tokens.items():
            lane.start(name, time)
    together: dict[Resource, list[int]] = {}
    for (kind, name, _), servers in clocks.free.items():
        known = together.setdefault((kind, name, 0), servers)
        together[kind, name, 0] = [max(pair) for pair in zip(known, servers, strict=True)]
    clocks.free = together
