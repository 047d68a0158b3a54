"""Graphs before and after a rule, run on many sets of data at once and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dovetail.ir.evaluate import evaluate
from dovetail.ir.expr import Expr, Read, rebuild
from dovetail.ir.functional.term import Definition, Literal, Param
from dovetail.ir.functional.types import Array as ArrayType
from dovetail.ir.graph.graph import Graph
from dovetail.ir.graph.operator import meaning
from dovetail.ir.graph.verify import result_types
from dovetail.ir.index import Access, constant, variable
from dovetail.ir.program import Loop, Program, Role
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.check.inputs import Array
from dovetail.rewrite.check.values import comparisons
from dovetail.rewrite.graph_attributes import term_type

RUN = "run_"
"""The loop over sets of data; a program's own loops have no such name."""
INEXACT = frozenset({"batch_norm", "exp", "div", "sqrt", "reciprocal"})
"""Operators whose results are rounded even on whole numbers."""

EITHER_ZERO = frozenset({"max", "min"})
"""Operators that may give either zero for two: their operands have no order."""


def graph_difference(before: Graph, after: Graph, kind: str, seed: int, runs: int) -> str | None:
    """Words for the first output that differs; None when ``after`` is as good as the kind of the rule says."""
    params = tuple(
        Param(Role.IN, value.name, ArrayType(constant(runs), term_type(value.type)))
        for value in (*before.inputs, *before.constants)
    )
    data_of = Definition("data", params, (), Literal(0))
    inexact = any(node.op in INEXACT for node in (*before.nodes, *after.nodes))
    for fill, same, exact in comparisons(kind):
        if exact and inexact and kind != "bit-exact":
            continue
        data = fill(data_of, np.random.default_rng(seed))
        if "batch_norm" in {node.op for node in before.nodes}:
            data = {name: np.abs(values) for name, values in data.items()}
        first, second = (_run(graph, data, runs) for graph in (before, after))
        for one, other in zip(before.outputs, after.outputs, strict=True):
            equal = same(first[one], second[other], 0.0)
            if any(node.op in EITHER_ZERO for node in before.nodes):
                equal = equal | ((first[one] == 0) & (second[other] == 0))
            if not equal.all():
                place = tuple(int(k) for k in np.argwhere(~equal)[0])
                return f"element {list(place)}: {first[one][place]!r} before, {second[other][place]!r} after"
    return None


def _run(graph: Graph, data: Mapping[str, Array], runs: int) -> dict[str, Array]:
    """All values of a graph, each with one more axis in front."""
    values = {value.name: data[value.name] for value in (*graph.inputs, *graph.constants)}
    types = {value.name: value.type for value in (*graph.inputs, *graph.constants)}
    for node in graph.nodes:
        known = OPERATORS[node.op]
        found = meaning(known, node, tuple(types[name] for name in node.operands), {})
        named = zip(known.parameters(len(node.operands)), (values[name] for name in node.operands), strict=True)
        made = evaluate(repeated(found.program, runs), dict(named))
        types.update(zip(node.results, result_types(node, types, OPERATORS, {}), strict=True))
        values.update((name, made[out.name]) for name, out in zip(node.results, found.program.outputs, strict=True))
    return values


def repeated(program: Program, runs: int) -> Program:
    """``program`` done so many times: one more loop and axis in front of all others."""
    extent, loop = constant(runs), variable(RUN)

    def deeper(access: Access) -> Access:
        return Access(access.tensor, (loop, *access.indices))

    def read(e: Expr) -> Expr:
        return Read(deeper(e.access)) if isinstance(e, Read) else e

    tensors = tuple(replace(tensor, shape=(extent, *tensor.shape)) for tensor in program.tensors)
    statements = tuple(
        replace(s, loops=(Loop(RUN, extent), *s.loops), out=deeper(s.out), value=rebuild(s.value, read))
        for s in program.statements
    )
    return replace(program, tensors=tensors, statements=statements)
