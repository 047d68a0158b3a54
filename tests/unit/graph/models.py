"""Small graphs of the shapes that models have, with integer data, for the tests of passes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dovetail.base.dtypes import DTYPES
from dovetail.ir.graph.bound import Array, BoundGraph
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.graph import Graph, Type
from dovetail.ir.graph.parse import parse
from dovetail.ir.graph.verify import verify
from dovetail.ops.table import OPERATORS


def bound(text: str, data: Mapping[str, Array] | None = None, seed: int = 0) -> BoundGraph:
    """The graph of ``text``; constants that are not given hold small whole numbers."""
    graph = parse(text)
    verify(graph, OPERATORS)
    numbers = np.random.default_rng(seed)
    given = data or {}
    found = {v.name: given[v.name] if v.name in given else numbers_of(v.type, numbers) for v in graph.constants}
    return BoundGraph(graph, found)


def numbers_of(t: Type, numbers: np.random.Generator) -> Array:
    shape = tuple(extent.const for extent in t.shape)
    low = 0 if not t.dtype.is_float and t.dtype.low == 0 else -3
    high = 2 if t.dtype == DTYPES["bool"] else 4
    return numbers.integers(low, high, shape).astype(t.dtype.numpy)


def run(found: BoundGraph, seed: int = 1) -> dict[str, Array]:
    """What it computes from inputs of small whole numbers."""
    numbers = np.random.default_rng(seed)
    inputs = {value.name: numbers_of(value.type, numbers) for value in found.graph.inputs}
    return evaluate(found.graph, OPERATORS, inputs, found.data)


def same(one: BoundGraph, other: BoundGraph, tolerance: float = 0.0) -> None:
    """Both compute the same under the same names."""
    expected, found = run(one), run(other)
    assert list(one.graph.outputs) == list(other.graph.outputs)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        if tolerance:
            close = np.isclose(found[name].astype(np.float64), array.astype(np.float64), tolerance, tolerance, True)
            assert close.all(), (found[name], array)
        else:
            np.testing.assert_array_equal(found[name], array)


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]
