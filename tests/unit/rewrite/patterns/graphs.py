"""Small graphs from text, with data for their constants."""

import numpy as np

from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.parse import parse
from dovetail.rewrite.patterns.find import Match, find
from dovetail.rewrite.patterns.pattern import Pattern


def bound(body: str, inputs: str = "x: f32[4, 6], y: f32[4, 6]", outputs: str = "z", **data: object) -> BoundGraph:
    """The graph that ``body`` describes; each constant in it has data, given or made up."""
    graph = parse(f"graph g({inputs}) -> ({outputs})\n{body}")
    rng = np.random.default_rng(0)
    arrays = {
        value.name: np.asarray(
            data.get(value.name, rng.integers(-3, 4, [extent.const for extent in value.type.shape]))
        ).astype(value.type.dtype.numpy)
        for value in graph.constants
    }
    return BoundGraph(graph, arrays)


def sinks(graph: BoundGraph, *patterns: Pattern) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.pattern.name, one.found.sinks) for one in find(graph, patterns)]


def only(graph: BoundGraph, pattern: Pattern) -> Match:
    (found,) = find(graph, [pattern])
    return found
