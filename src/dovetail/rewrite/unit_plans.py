"""A plan read as an answer to the problem of units: its tiles are the sites, what it holds are the values.

tile i of 0.i by 64 on core:                  site 0, on core
  hold x in pad                               a value in pad, made and read inside site 0
  tile k of 0.k by 8:                         site 1, in sequence
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.ir.plan import Hold, Leaf, Plan, PlanNode, Tile
from dovetail.rewrite.units import SEQUENTIAL, Assignment, Problem, Site, Stretch, Value, broken, problem, unit_chain
from dovetail.targets.model import MemoryKind, Target


def plan_units(plan: Plan, target: Target) -> tuple[Problem, Assignment]:
    """The problem that a plan poses on a machine, and the plan's own solution of it."""
    reader = _Reader(target)
    for hold in plan.holds:
        reader.hold(hold, -1)
    reader.nodes(plan.body, -1, 0)
    values = tuple(Value(h.tensor, h.memory, s, tuple(ends), tuple(ends)) for h, s, ends in reader.held)
    return problem(tuple(reader.sites), values, target), tuple(reader.stretches)


def broken_by_plan(plan: Plan, target: Target) -> tuple[str, ...]:
    """The rules about units that a plan breaks, in words."""
    return broken(*plan_units(plan, target))


@dataclass(slots=True)
class _Reader:
    target: Target
    sites: list[Site] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    held: list[tuple[Hold, int, dict[int, None]]] = field(default_factory=list)
    """With the site around each, and the sites of the leaves that use it."""

    def hold(self, hold: Hold, site: int) -> None:
        """What is held where data is put; a layout for a cache lies in main memory, which all see."""
        if self.target.memory(hold.memory).kind is not MemoryKind.CACHE:
            self.held.append((hold, site, {}))

    def nodes(self, nodes: tuple[PlanNode, ...], site: int, used: int) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self.leaf(node, site)
            else:
                self.tile(node, site, used)

    def tile(self, tile: Tile, parent: int, used: int) -> None:
        stretch = self.stretch(tile.unit, used)
        self.sites.append(Site(tile.name, parent))
        self.stretches.append(stretch)
        site = len(self.sites) - 1
        for hold in tile.holds:
            self.hold(hold, site)
        self.nodes(tile.body, site, max(used, stretch[1]))

    def stretch(self, unit: str, used: int) -> Stretch:
        """Units of a chain that a tile on ``unit`` takes: all down to it that no tile around has."""
        numbers = [n for n, level in enumerate(unit_chain(self.target)) if level.unit == unit]
        return (min(used, numbers[0]), numbers[-1] + 1) if numbers else SEQUENTIAL

    def leaf(self, leaf: Leaf, site: int) -> None:
        for hold, scope, ends in self.held:
            if hold.statement in (-1, leaf.statement) and self.is_inside(site, scope):
                ends[site] = None

    def is_inside(self, site: int, scope: int) -> bool:
        while site not in (scope, -1):
            site = self.sites[site].parent
        return site == scope
