"""Values of run-time sizes at which a kernel is worth a look: whole tiles with a rest, and less than a tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.ir.plan import Plan, PlanNode, Tile
from dovetail.ir.program import Program


def size_choices(program: Program, plan: Plan) -> tuple[dict[str, int], ...]:
    """Two choices of all sizes together; a single empty one where there are none."""
    if not program.sizes:
        return ({},)
    large: dict[str, int] = {}
    small: dict[str, int] = {}
    for size in program.sizes:
        step = max(_steps(program, plan.body, size.name), default=1)
        large[size.name] = max(size.low, min(size.high, 3 * step - 1))
        small[size.name] = size.low if size.low <= 1 else max(size.low, min(size.high, step // 2))
    return (large, small) if large != small else (large,)


def shown(sizes: Mapping[str, int]) -> str:
    return f" at {', '.join(f'{name} = {value}' for name, value in sizes.items())}" if sizes else ""


def _steps(program: Program, nodes: tuple[PlanNode, ...], size: str) -> Iterator[int]:
    """Steps of the tiles over loops that the size bounds."""
    for node in nodes:
        if isinstance(node, Tile):
            for number, loop in node.loops:
                extent = next(x.extent for x in program.statements[number].all_loops if x.name == loop)
                if size in extent.names():
                    yield node.step
            yield from _steps(program, node.body, size)
