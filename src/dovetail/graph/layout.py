"""In which order the axes of each image between layers lie in memory: channels before places, or behind them.

    c = conv(x, w)                          c = conv(x, w)                       -- writes t: c is not made
    y = max_pool(c)                   ->    t = transpose(c) {perm = (0, 2, 3, 1)}
                                            u = transpose(t) {perm = (0, 3, 1, 2)}
                                            y = max_pool(u)                      -- reads t: u is not made

A layer reads one order and writes another at no cost beyond its own, so each image is chosen for itself: what its maker
and its readers cost together, with the others as they are, until nothing gets cheaper. Without a cost, channels lie
behind places, where layers walk them in vectors. Who cannot read an image that way gets it in the order it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod

from dovetail.graph.fields import Field, fields, has_layers
from dovetail.graph.grouping import regions
from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.sheet import Sheet
from dovetail.ir.compact import aligned, compact
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Graph, Node, Type
from dovetail.ir.graph.verify import Operators, infer
from dovetail.ir.program import Program, Role
from dovetail.ir.reorder import inverse, with_dimensions
from dovetail.ops.copies import copied
from dovetail.ops.region import region_program

Estimate = Callable[[Program], float]
"""What a program costs, in cycles."""
_NEEDED = "who reads them needs them as they are"
_FEW_CHANNELS = 8
"""Fewer do not fill a vector of any machine."""
_MOST_ESTIMATES, _MOST_ROUNDS = 400, 8
_LEAST_GAIN = 0.05
"""Of the regions around an image: less than that an estimate cannot tell."""
_CONVERTED_CYCLES_PER_BYTE = 0.5
"""An image written in another order once more: as much as reading and writing it from a near cache."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Chooses the order of every image that lies between two regions."""

    name: str = "layout"
    estimate: Estimate | None = None

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        graph = bound.graph
        if not has_layers(graph):
            return bound, ()
        types = infer(graph, operators)
        found = fields(graph, types, regions(graph, operators, types), operators)
        if not found:
            return bound, ()
        records: list[Record] = []
        chosen: set[str] = set()
        costs = None if self.estimate is None else _Costs(graph, types, operators, self.estimate)
        for field in found:
            images, record = self._chosen(field, types, costs)
            chosen |= images
            records.append(record)
        if not chosen:
            return bound, tuple(records)
        readers = {value: field.readers[value] for field in found for value in field.images if value in chosen}
        return _moved(Sheet(bound, operators), chosen, readers), tuple(records)

    def _chosen(self, field: Field, types: Mapping[str, Type], costs: _Costs | None) -> tuple[set[str], Record]:
        every = set(field.images)
        what = f"{counted(len(every), 'image')} around {field.title}"
        if costs is None:
            many = {value for value in every if types[value].shape[1].const >= _FEW_CHANNELS}
            easy = many - field.converted
            why = "layers walk channels in vectors" if easy else "few channels" if not many else _NEEDED
            return easy, Record(self.name, f"{len(easy)} of {what}: channels last", why)
        plain, last = costs.total(field, set()), costs.total(field, every)
        images, cost = (every, last) if last < plain else (set[str](), plain)
        images, cost = costs.improved(field, images, cost)
        why = f"{cost:,.0f} cycles estimated; all before places {plain:,.0f}, all behind them {last:,.0f}"
        return images, Record(self.name, f"{len(images)} of {what}: channels last", why)


def to_last(rank: int) -> tuple[int, ...]:
    """The order of axes that puts channels behind places."""
    return (0, *range(2, rank), 1)


def _moved(sheet: Sheet, chosen: Iterable[str], readers: Mapping[str, tuple[frozenset[str], ...]]) -> BoundGraph:
    """The graph with ``chosen`` values in the other order, once each for all who make and for each who reads them."""
    order = {value: number for number, value in enumerate(sheet.types)}
    for value in sorted(chosen, key=order.__getitem__):
        forth = to_last(sheet.types[value].rank)
        nodes = sheet.readers(value)
        moved = sheet.add("transpose", value, perm=forth)
        for keys in readers[value]:
            back = sheet.add("transpose", moved, perm=inverse(forth))
            for node in nodes:
                if node.results[0] in keys:
                    sheet.redirect(node.results[0], value, back)
    return sheet.finish()


class _Costs:
    """What regions cost with some of their tensors in the other order; equal programs are asked about once."""

    def __init__(self, graph: Graph, types: Mapping[str, Type], operators: Operators, estimate: Estimate) -> None:
        self.graph, self.types, self.operators, self.estimate = graph, types, operators, estimate
        self.programs: dict[tuple[str, ...], tuple[Program, dict[str, str]]] = {}
        self.known: dict[str, float] = {}
        self.left = _MOST_ESTIMATES

    def total(self, field: Field, last: set[str]) -> float:
        """Of all regions of a field."""
        return sum(self.region(nodes, last) for nodes in field.regions) + self.converted(field, last)

    def improved(self, field: Field, last: set[str], cost: float) -> tuple[set[str], float]:
        """One image after the other changed where that makes its maker and readers cheaper, until none does."""
        for _ in range(_MOST_ROUNDS):
            changed = False
            for value in field.images:
                near = [nodes for nodes in field.regions if _touches(nodes, value)]
                other = last ^ {value}
                before = sum(self.region(nodes, last) for nodes in near) + self.converted(field, last)
                after = sum(self.region(nodes, other) for nodes in near) + self.converted(field, other)
                if before - after > _LEAST_GAIN * abs(before):
                    last, cost, changed = other, cost - before + after, True
            if not changed or self.left <= 0:
                break
        return last, cost

    def converted(self, field: Field, last: set[str]) -> float:
        return sum(_bytes(self.types[value]) * _CONVERTED_CYCLES_PER_BYTE for value in field.converted if value in last)

    def region(self, nodes: tuple[Node, ...], last: set[str]) -> float:
        program, names = self._program(nodes)
        for value, name in names.items():
            if value in last:
                program = with_dimensions(program, name, to_last(self.types[value].rank))
        program = aligned(program)
        text = str(program)
        if text not in self.known:
            self.left -= 1
            self.known[text] = self.estimate(program)
        return self.known[text]

    def _program(self, nodes: tuple[Node, ...]) -> tuple[Program, dict[str, str]]:
        """The region's program under names that do not tell it apart from equal ones."""
        key = tuple(node.results[0] for node in nodes)
        if key not in self.programs:
            found = compact(region_program(self.graph, nodes, self.operators, self.types))
            seen = [t.name for t in found.tensors if t.role is not Role.TEMP]
            names = {name: f"a{number}" for number, name in enumerate(seen)}
            temps = {t.name: f"t{number}" for number, t in enumerate(found.temps)}
            self.programs[key] = copied(found, {**names, **temps}, {}), names
        return self.programs[key]


def _touches(nodes: tuple[Node, ...], value: str) -> bool:
    return any(value in node.operands or value in node.results for node in nodes)


def _bytes(t: Type) -> int:
    return prod(extent.const for extent in t.shape) * t.dtype.bytes
