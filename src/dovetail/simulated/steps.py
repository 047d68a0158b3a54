"""What a step of a sequence takes on a simulated machine: the difference that more of them make.

What comes before the steps and after them, such as weights on their way to the machine, does not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dovetail.ir.index import constant
from dovetail.ir.nest import Alloc, Loop, Nest, Node, Parallel, Start, Wait, When, walk
from dovetail.ir.plan import Plan, PlanNode, Tile
from dovetail.ir.program import Program
from dovetail.sim.timed import simulate_time
from dovetail.targets.model import Target


@dataclass(frozen=True, slots=True)
class StepTime:
    """Cycles of one of ``steps``, and for how many of them each unit works."""

    steps: int
    cycles: float
    busy: tuple[tuple[str, float], ...]
    """The busiest first, copies apart from other work."""

    def share(self, unit: str) -> float:
        """The part of a step in which a unit works."""
        return dict(self.busy).get(unit, 0.0) / self.cycles if self.cycles else 0.0

    def __str__(self) -> str:
        units = ", ".join(f"{name} at work {cycles / self.cycles:.1%}" for name, cycles in self.busy if self.cycles)
        return f"{self.cycles:,.1f} cycles for each of {self.steps} steps: {units}"


def step_times(program: Program, plan: Plan, nest: Nest, machine: Target) -> tuple[StepTime, ...]:
    """Of every sequence of ``program`` whose steps are a loop of ``nest``."""
    return tuple(_step_time(tile, count, nest, machine) for tile, count in _steps(program, plan.body))


def _steps(program: Program, nodes: tuple[PlanNode, ...]) -> Iterator[tuple[Tile, int]]:
    """Tiles that take the steps of a sequence one by one, at least four."""
    for tile in (node for node in nodes if isinstance(node, Tile)):
        number, loop = tile.loops[0]
        seq = {x.name: x.extent.const for x in program.statements[number].seq}
        if tile.step == 1 and seq.get(loop, 0) > 3:
            yield tile, seq[loop]
        else:
            yield from _steps(program, tile.body)


def _step_time(tile: Tile, count: int, nest: Nest, machine: Target) -> StepTime:
    fewer, many = count // 2, count - 1
    short, long = (
        simulate_time(replace(nest, body=_shortened(nest.body, tile.name, steps)), machine) for steps in (fewer, many)
    )
    before = {(u.name, u.is_engine): u.busy_cycles for u in short.units}
    busy = [
        (f"{u.name or 'machine'}{' copies' if u.is_engine else ''}", (u.busy_cycles - earlier) / (many - fewer))
        for u in long.units
        if (earlier := before.get((u.name, u.is_engine), 0.0)) < u.busy_cycles
    ]
    busy.sort(key=lambda row: -row[1])
    return StepTime(count, (long.cycles - short.cycles) / (many - fewer), tuple(busy))


def _shortened(nodes: tuple[Node, ...], var: str, count: int) -> tuple[Node, ...]:
    """The same nodes with fewer iterations of a loop; what is on its way for the next one is waited for."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop) and node.var == var:
            started = dict.fromkeys(inner.token for inner in walk(node.body) if isinstance(inner, Start))
            found += [replace(node, upper=(constant(count),)), *map(Wait, started)]
        elif isinstance(node, When):
            body, otherwise = _shortened(node.body, var, count), _shortened(node.otherwise, var, count)
            found.append(replace(node, body=body, otherwise=otherwise))
        elif isinstance(node, Loop | Alloc | Parallel):
            found.append(replace(node, body=_shortened(node.body, var, count)))
        else:
            found.append(node)
    return tuple(found)
