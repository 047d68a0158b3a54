"""Small graphs with whole numbers as data, for tests of models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.graph import Type
from dovetail.ir.index import constant
from dovetail.ops.table import OPERATORS

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float32]


def kind(dtype: str, *shape: int) -> Type:
    return Type(DTYPES[dtype], tuple(map(constant, shape)))


def whole_numbers(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def mlp(layers: int = 2, width: int = 24, rows: int = 6) -> BoundGraph:
    """Products with ReLUs, of which the first is an output too; views between them."""
    b = Builder("mlp", OPERATORS)
    x = b.input("x0", kind("f32", rows, width))
    data = {f"c{n}": whole_numbers(n, width, width) for n in range(layers)}
    first = last = x
    for name in data:
        last = b.add("relu", b.add("matmul", last, b.constant(name, kind("f32", width, width))))
        first = last if first is x else first
    flat = b.add("reshape", last, shape=(3, rows // 3, width))
    return BoundGraph(b.graph(flat, first), data, {"x0": "pixels\n"})


def wanted(bound: BoundGraph, *arrays: Array) -> list[Array]:
    """What the reference evaluator says."""
    graph = bound.graph
    given: Mapping[str, Array] = {v.name: a for v, a in zip(graph.inputs, arrays, strict=True)}
    found = evaluate(graph, OPERATORS, given, bound.data)
    return [found[name] for name in graph.outputs]


def same(found: tuple[Array, ...], expected: list[Array]) -> bool:
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
