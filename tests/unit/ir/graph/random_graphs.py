"""Random valid graphs of small operators, for properties that hold of all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.graph import Attribute, Graph, Type
from dovetail.ir.index import constant, variable
from dovetail.ir.program import Size
from dovetail.ops.table import OPERATORS

Array = npt.NDArray[np.float32]
UNARY = ("relu", "neg", "abs", "identity", "reduce_max", "transpose", "clip", "slice", "cumsum", "concat")
BINARY = ("add", "sub", "mul", "max", "min", "matmul")
ATTRIBUTES: dict[str, dict[str, Attribute]] = {
    "reduce_max": {"axes": (1,), "keepdims": 1},
    "clip": {"low": -20.0, "high": 1e3},
    "slice": {"starts": (0,), "ends": (2**62,)},
    "cumsum": {"axis": 1},
    "concat": {"axis": 0},
    "matmul": {"transpose_b": 1},
}


def random_graph(seed: int, nodes: int = 8) -> Graph:
    """Whole-number arithmetic on matrices of a few shapes, one extent of which may be known at run time only."""
    rng = np.random.default_rng(seed)
    sized = bool(rng.integers(2))
    rows = variable("N") if sized else constant(int(rng.integers(1, 4)))
    builder = Builder(f"g{seed}", OPERATORS, (Size("N", 1, 9),) if sized else ())
    matrix = Type(DTYPES["f32"], (rows, constant(3)))
    values = [
        builder.input("x", matrix),
        builder.input("y", matrix),
        builder.constant("c", Type(DTYPES["f32"], (constant(3),))),
    ]
    for _ in range(nodes):
        op = str(rng.choice((*UNARY, *BINARY)))
        same = [v for v in values if builder.types[v] == matrix]
        first = str(rng.choice(same))
        second = first if op == "matmul" else str(rng.choice([*same, "c"]))
        operands = (first, second) if op in BINARY else (first,)
        values.append(builder.add(op, *operands, **ATTRIBUTES.get(op, {})))
    outputs = rng.choice(values, 3)
    return builder.graph(*map(str, outputs))


def inputs_for(graph: Graph, rows: int = 2) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs and data of a random graph: whole numbers."""
    rng = np.random.default_rng(len(graph.nodes))
    drawn = {
        value.name: rng.integers(-2, 3, [e.evaluate({"N": rows}) for e in value.type.shape]).astype(np.float32)
        for value in (*graph.inputs, *graph.constants)
    }
    constants = {value.name for value in graph.constants}
    return {n: a for n, a in drawn.items() if n not in constants}, {n: drawn[n] for n in constants}
