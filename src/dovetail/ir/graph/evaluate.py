"""The reference evaluator of graphs: each node's program, run by the reference evaluator of programs.

Every value is rounded to its dtype when a node has made it, as a temporary of a program is: a graph and the program
of that graph give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import CallError
from dovetail.ir.bind import bind_arrays
from dovetail.ir.evaluate import evaluate as evaluate_program
from dovetail.ir.graph.graph import SCAN, Graph, Node, Type, Value
from dovetail.ir.graph.operator import find, meaning
from dovetail.ir.graph.scan import repetition
from dovetail.ir.graph.verify import Operators, infer
from dovetail.ir.program import Program, Role, Size, Tensor

Array = npt.NDArray[np.generic]


def evaluate(
    graph: Graph,
    operators: Operators,
    inputs: Mapping[str, Array],
    data: Mapping[str, Array] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """The outputs of a valid ``graph``, by name; ``data`` holds its constants, and may hold more.

    Sizes that are not given are read off the arrays' shapes.
    """
    constants = {value.name: _constant(value, data or {}) for value in graph.constants}
    tensors = [*((Role.IN, v) for v in graph.inputs), *((Role.CONST, v) for v in graph.constants)]
    interface = tuple(Tensor(role, v.name, v.type.dtype, v.type.shape) for role, v in tensors)
    arrays = {**inputs, **constants}
    bound = bind_arrays(Program(interface, (), graph.sizes), arrays, sizes)
    sizes_by_name = {size.name: size for size in graph.sizes}
    return _run(graph, infer(graph, operators), operators, arrays, sizes_by_name, bound)


def run_node(
    node: Node,
    types: Mapping[str, Type],
    operators: Operators,
    values: Mapping[str, Array],
    sizes: Mapping[str, Size],
    bound: Mapping[str, int],
) -> tuple[Array, ...]:
    """What ``node`` makes of ``values``."""
    arrays = tuple(values[name] for name in node.operands)
    if node.op == SCAN:
        return _scan(node, tuple(types[name] for name in node.operands), operators, arrays, sizes, bound)
    known = find(node, operators)
    found = meaning(known, node, tuple(types[name] for name in node.operands), sizes)
    if known.run is not None:
        return known.run(*arrays, **known.settings(node))
    named = dict(zip(known.parameters(len(arrays)), arrays, strict=True))
    made = evaluate_program(found.program, named, {z: bound[name] for z, name in found.sizes.items()})
    return tuple(made[tensor.name] for tensor in found.program.outputs)


def _run(
    graph: Graph,
    types: Mapping[str, Type],
    operators: Operators,
    arrays: Mapping[str, Array],
    sizes: Mapping[str, Size],
    bound: Mapping[str, int],
) -> dict[str, Array]:
    values = dict(arrays)
    for node in graph.nodes:
        values.update(zip(node.results, run_node(node, types, operators, values, sizes, bound), strict=True))
    return {name: values[name] for name in graph.outputs}


def _scan(
    node: Node,
    types: tuple[Type, ...],
    operators: Operators,
    arrays: tuple[Array, ...],
    sizes: Mapping[str, Size],
    bound: Mapping[str, int],
) -> tuple[Array, ...]:
    """The body, step by step."""
    how = repetition(node, types)
    body, steps = node.bodies[0], how.steps.evaluate(bound)
    names = [value.name for value in body.inputs]
    state, scanned = list(arrays[: how.carried]), arrays[how.carried : how.carried + how.scanned]
    shared = arrays[how.carried + how.scanned :]
    inner = infer(body, operators, sizes)
    made_types = how.results(tuple(inner[name] for name in body.outputs))
    stacked = [
        np.zeros([extent.evaluate(bound) for extent in t.shape], t.dtype.numpy) for t in made_types[how.carried :]
    ]
    for step in reversed(range(steps)) if how.reverse else range(steps):
        slices = [array[step, ...] for array in scanned]
        given = dict(zip(names, (*state, *slices, *shared), strict=True))
        made = _run(body, inner, operators, given, sizes, bound)
        state = [made[name] for name in body.outputs[: how.carried]]
        for array, name in zip(stacked, body.outputs[how.carried :], strict=True):
            array[step, ...] = made[name]
    return (*state, *stacked)


def _constant(value: Value, data: Mapping[str, Array]) -> Array:
    if value.name not in data:
        raise CallError(f"the data of constant '{value.name}' is missing", why=f"the graph declares const {value}")
    return data[value.name]
