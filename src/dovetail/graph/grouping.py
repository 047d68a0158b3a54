"""Nodes that are compiled together. Around each piece of work that holds a loop nest by itself, what can run on its
elements while they are near:

    contraction      bias, residual sum, activation behind it
    softmax, norms   scale, mask, residual sum before it; activation behind it
    attention        the products before and behind a softmax
    reduction        what is computed for each element before it; what becomes of the result
    pointwise        whatever is computed from the same elements
    steps            recurrences of as many steps that need nothing of each other
    moves            part of whoever reads them, or of who makes what they move

A region has one value that others read, but for pieces that are made together; no path leaves it and comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from dovetail.graph.abreast import steps_abreast
from dovetail.graph.absorb import absorbed_moves, sunk_moves
from dovetail.graph.attention import rows_between_products
from dovetail.graph.grow import Sketch, before, behind, without_leaving
from dovetail.graph.roles import Work, works
from dovetail.ir.graph.graph import Graph, Node, Type
from dovetail.ir.graph.verify import Operators

Worth = Callable[[tuple[Node, ...]], float]
"""What a region costs, in cycles."""


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes in order: compiled as one program, run on the host, or another view of the same bytes."""

    kind: str
    nodes: tuple[Node, ...]
    title: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} {self.title} ({self.why})"


def regions(
    graph: Graph,
    operators: Operators,
    types: Mapping[str, Type],
    worth: Worth | None = None,
    near_bytes: int = 0,
) -> tuple[Region, ...]:
    """Every node in one region, each region behind those it reads from.

    ``worth`` says what compiling nodes together costs; where it is given, a region that costs more than its parts
    stays in parts. ``near_bytes`` is what a machine keeps next to its units: recurrences walk abreast up to there.
    """
    sketch = Sketch(graph, types, works(graph, operators, types))
    for kinds in _ROUNDS:
        for node in reversed(graph.nodes):
            if sketch.work[node.results[0]] in kinds and node.results[0] not in sketch.home:
                _grow(sketch, node, worth)
    absorbed_moves(sketch)
    sunk_moves(sketch)
    rows_between_products(sketch)
    for node in graph.nodes:
        if node.results[0] not in sketch.home:
            sketch.found((node,), _WHY[sketch.work[node.results[0]]])
    steps_abreast(sketch, operators, near_bytes)
    return tuple(_region(sketch, nodes, why) for nodes, why in _in_order(sketch))


_ROUNDS = (
    (Work.CONTRACTION,),
    (Work.ROWS, Work.WINDOW, Work.REDUCTION),
    (Work.POINTWISE,),
    (Work.PIECES,),
)
"""What others gather around, first things first."""
_WHY = {
    Work.CONTRACTION: "sums of products, and what follows on each",
    Work.ROWS: "row by row, and what is computed for each element beside it",
    Work.WINDOW: "window by window, and what follows on each",
    Work.REDUCTION: "a reduction, and what is computed for each element beside it",
    Work.POINTWISE: "computed for the same elements",
    Work.MOVE: "moves elements, and no neighbour can take that over",
    Work.PIECES: "made part by part",
    Work.LOOKUP: "data decides what is read",
    Work.VIEW: "the same bytes under another shape",
    Work.HOST: "the operator is a function on the host",
    Work.STEPS: "one step after the other",
    Work.OTHER: "a program of its own",
}


def _grow(sketch: Sketch, node: Node, worth: Worth | None) -> None:
    """A region around ``node``."""
    work = sketch.work[node.results[0]]
    found: tuple[Node, ...] = (node,)
    if len(node.results) == 1 and work is not Work.PIECES:
        found = behind(sketch, node)
        if work in (Work.ROWS, Work.REDUCTION, Work.POINTWISE):
            found = before(sketch, found, node)
    if worth is not None and len(found) > 1 and worth(found) > sum(worth((n,)) for n in found):
        found = (node,)
    sketch.found(found, _WHY[work])


def _region(sketch: Sketch, nodes: tuple[Node, ...], why: str) -> Region:
    first = sketch.work[nodes[0].results[0]]
    kind = "compiled"
    if len(nodes) == 1 and first is Work.HOST:
        kind = "host"
    if len(nodes) == 1 and first is Work.VIEW:
        kind = "view" if without_leaving(sketch.graph, nodes[0]) else "compiled"
        why = why if kind == "view" else "an output that would be an input's bytes is a copy"
    return Region(kind, nodes, " + ".join(node.op for node in nodes), why)


def _in_order(sketch: Sketch) -> Iterable[tuple[tuple[Node, ...], str]]:
    """Regions, each behind those it reads from, otherwise as their last nodes stand in the graph."""
    last = {number: max(sketch.places[n.results[0]] for n in nodes) for number, (nodes, _) in sketch.regions.items()}
    readers: dict[int, set[int]] = {number: set() for number in sketch.regions}
    missing = dict.fromkeys(sketch.regions, 0)
    for number, (nodes, _) in sketch.regions.items():
        makers = {sketch.home[m.results[0]] for n in nodes for v in n.operands if (m := sketch.graph.producer(v))}
        for maker in makers - {number}:
            readers[maker].add(number)
            missing[number] += 1
    ready = [(last[number], number) for number, count in missing.items() if not count]
    heapify(ready)
    done = 0
    while ready:
        _, number = heappop(ready)
        done += 1
        yield sketch.regions[number]
        for reader in sorted(readers[number]):
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, (last[reader], reader))
    assert done == len(sketch.regions), "regions read from each other in a circle"
