"""Images between layers, whose order of axes nobody outside sees: made and read by regions that can do with any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.graph.grouping import Region
from dovetail.graph.roles import Work, works
from dovetail.ir.graph.graph import Graph, Node, Type
from dovetail.ir.graph.verify import Operators
from dovetail.ir.index import ONE

_LAYERS = frozenset(("conv", "conv_transpose", "max_pool", "average_pool", "lp_pool", "global_average_pool"))
"""Operators on images: of their first operand and their result, axis 1 is the channels."""
_ANY_ORDER = frozenset((Work.CONTRACTION, Work.WINDOW, Work.POINTWISE, Work.REDUCTION, Work.PIECES))


@dataclass(frozen=True, slots=True)
class Field:
    """Images that one region after the other reads and makes."""

    images: tuple[str, ...]
    regions: tuple[tuple[Node, ...], ...]
    """All regions that make or read one of them in any order."""
    readers: Mapping[str, tuple[frozenset[str], ...]]
    """For each image: the nodes that read it, region by region."""
    converted: frozenset[str]
    """Images that somebody reads who needs channels before places."""

    @property
    def title(self) -> str:
        every = [node for nodes in self.regions for node in nodes]
        first = next((node for node in every if node.op in _LAYERS), every[0])
        return f"{first.op} and {len(self.regions) - 1} other regions"


def fields(graph: Graph, types: Mapping[str, Type], found: Iterable[Region], operators: Operators) -> tuple[Field, ...]:
    """Connected images, in the order in which they are made."""
    work = works(graph, operators, types)
    every = tuple(region.nodes for region in found)
    home = {node.results[0]: number for number, nodes in enumerate(every) for node in nodes}
    open_ = [_takes_any_order(nodes, work) for nodes in every]
    images = _images(graph, types, every, home, open_)
    touched: dict[str, list[int]] = {value: [] for value in images}
    for number, nodes in enumerate(every):
        seen = dict.fromkeys(v for node in nodes for v in (*node.operands, *node.results) if v in images)
        for value in seen if open_[number] else ():
            touched[value].append(number)
    return tuple(_field(graph, part, every, home, open_, touched) for part in _connected(images, touched))


def has_layers(graph: Graph) -> bool:
    """Whether there are layers on images; without them nothing is known to be one."""
    return any(node.op in _LAYERS for node in graph.nodes)


def _takes_any_order(nodes: tuple[Node, ...], work: Mapping[str, Work]) -> bool:
    kinds = {work[node.results[0]] for node in nodes}
    return not kinds.isdisjoint(_ANY_ORDER) and kinds <= _ANY_ORDER | {Work.VIEW} and all(map(_knows_channels, nodes))


def _knows_channels(node: Node) -> bool:
    """Contractions and windows other than layers on images may mean anything by their axes."""
    return node.op in _LAYERS or node.op not in ("matmul", "dense", "gemm", "einsum")


def _images(
    graph: Graph,
    types: Mapping[str, Type],
    every: tuple[tuple[Node, ...], ...],
    home: Mapping[str, int],
    open_: list[bool],
) -> dict[str, None]:
    """Values between regions that a layer reads or makes, and those of the same shape in regions around them."""
    outputs = frozenset(graph.outputs)
    between = {
        value: None
        for number, nodes in enumerate(every)
        if open_[number]
        for node in nodes
        for value in node.results
        if value not in outputs
        and _has_places(types[value])
        and any(home[user.results[0]] != number for user in graph.users(value))
        and any(open_[home[user.results[0]]] for user in graph.users(value))
    }
    shapes = set()
    for nodes in every:
        layers = [node for node in nodes if node.op in _LAYERS]
        shapes |= {types[value].shape for node in layers for value in (node.operands[0], *node.results)}
    return {value: None for value in between if types[value].shape in shapes}


def _has_places(t: Type) -> bool:
    """Several channels at several places, all known in numbers."""
    if not 3 <= t.rank <= 5 or not all(extent.is_constant for extent in t.shape):
        return False
    return t.shape[1] != ONE and any(extent != ONE for extent in t.shape[2:])


def _connected(images: Iterable[str], touched: Mapping[str, list[int]]) -> list[list[str]]:
    """Images that share regions, together."""
    inside: dict[int, list[str]] = {}
    for value in images:
        for number in touched[value]:
            inside.setdefault(number, []).append(value)
    found: list[list[str]] = []
    seen: set[str] = set()
    for start in images:
        part, waiting = [], [start]
        while waiting:
            value = waiting.pop()
            if value not in seen:
                seen.add(value)
                part.append(value)
                waiting += [near for number in touched[value] for near in inside[number]]
        if part:
            found.append(part)
    return found


def _field(
    graph: Graph,
    part: list[str],
    every: tuple[tuple[Node, ...], ...],
    home: Mapping[str, int],
    open_: list[bool],
    touched: Mapping[str, list[int]],
) -> Field:
    images = tuple(sorted(part, key=graph.place))
    numbers = sorted({number for value in images for number in touched[value]})
    readers: dict[str, tuple[frozenset[str], ...]] = {}
    converted: set[str] = set()
    for value in images:
        by_region: dict[int, set[str]] = {}
        for user in graph.users(value):
            number = home[user.results[0]]
            if number != home[_maker(graph, value)]:
                by_region.setdefault(number, set()).add(user.results[0])
        readers[value] = tuple(frozenset(keys) for keys in by_region.values())
        if not all(open_[number] for number in by_region):
            converted.add(value)
    return Field(images, tuple(every[number] for number in numbers), readers, frozenset(converted))


def _maker(graph: Graph, value: str) -> str:
    made = graph.producer(value)
    assert made is not None, "an image is made by a region"
    return made.results[0]
