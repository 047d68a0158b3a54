"""One node on arrays: as a graph, and as the program of that graph; both give the same bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import from_numpy
from dovetail.ir.evaluate import evaluate as evaluate_program
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.graph import Attribute, Graph, Node, Type, Value
from dovetail.ir.graph.parse import parse
from dovetail.ir.graph.verify import verify
from dovetail.ir.index import constant, variable
from dovetail.ir.program import Size
from dovetail.ir.verify import verify as verify_program
from dovetail.ops.region import graph_program
from dovetail.ops.table import OPERATORS

Given = npt.NDArray[np.generic]
Array = npt.NDArray[np.float64]
"""Whatever the dtype is: NumPy's type annotations know no arithmetic of arrays in general."""
LARGEST = 99


def apply(op: str, *arrays: Given, **attributes: Attribute) -> Array:
    """The one result of ``op``."""
    return apply_many(op, 1, *arrays, **attributes)[0]


def apply_many(op: str, results: int, *arrays: Given, **attributes: Attribute) -> tuple[Array, ...]:
    return run(single(op, results, arrays, attributes), *arrays)


def apply_sized(op: str, extent: int, *arrays: Given, **attributes: Attribute) -> Array:
    """``op`` where every extent that is ``extent`` is known at run time only."""
    return run(single(op, 1, arrays, attributes, extent), *arrays)[0]


def single(
    op: str, results: int, arrays: Sequence[Given], attributes: Mapping[str, Attribute], sized: int | None = None
) -> Graph:
    """A graph of one node; extents that are ``sized`` become the size N."""
    inputs = [Value(f"x{number}", type_of(array, sized)) for number, array in enumerate(arrays)]
    names = tuple(f"y{number}" for number in range(results))
    node = Node(op, tuple(v.name for v in inputs), names, tuple(sorted(attributes.items())))
    sizes = () if sized is None else (Size("N", min(sized, 1), LARGEST),)
    return Graph("single", tuple(inputs), names, (node,), (), sizes)


def run(graph: Graph, *arrays: Given) -> tuple[Array, ...]:
    """The outputs, once text, verifier, evaluator and program agree about them."""
    assert parse(str(graph)) == graph
    types = verify(graph, OPERATORS)
    given = {value.name: array for value, array in zip(graph.inputs, arrays, strict=True)}
    found = evaluate(graph, OPERATORS, given)
    program = graph_program(graph, OPERATORS)
    verify_program(program)
    joined = evaluate_program(program, given)
    given_types = [(value.type, array) for value, array in zip(graph.inputs, arrays, strict=True)]
    seen = [array.shape[dim] for t, array in given_types for dim in sized_dims(t)]
    bound = {"N": seen[0]} if seen else {}
    for name, tensor in zip(graph.outputs, program.outputs, strict=True):
        assert found[name].shape == tuple(extent.evaluate(bound) for extent in types[name].shape)
        assert found[name].dtype == types[name].dtype.numpy
        np.testing.assert_array_equal(joined[tensor.name], found[name])
    return tuple(cast(Array, found[name]) for name in graph.outputs)


def sized_dims(t: Type) -> list[int]:
    return [dim for dim, extent in enumerate(t.shape) if extent == variable("N")]


def type_of(array: Given, sized: int | None = None) -> Type:
    dtype = from_numpy(array.dtype)
    assert dtype is not None
    return Type(dtype, tuple(variable("N") if n == sized else constant(n) for n in array.shape))


def whole(*shape: int, dtype: str = "float32", low: int = -4, high: int = 5) -> Array:
    """Whole numbers, the same ones each time."""
    rng = np.random.default_rng([*shape, low + 100])
    return rng.integers(low, high, shape).astype(dtype)


def broken(*shape: int) -> Array:
    """Numbers that are not whole, from -3 to 3."""
    return np.random.default_rng([*shape]).uniform(-3, 3, shape).astype("float32")
