"""Regions of a graph as programs under canonical names, so that equal regions are one program and compiled once.

in v7: f32[1, 64]  const v3: f32[64, 64]       in a0: f32[1, 64]  const a1: f32[64, 64]
temp v8: f32[1, 64]  out v9: f32[1, 64]   ->   temp t0: f32[1, 64]  out a2: f32[1, 64]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from dovetail.ir.apart import apart
from dovetail.ir.compact import compact
from dovetail.ir.graph.graph import Graph, Node, Type, Value
from dovetail.ir.graph.verify import Operators
from dovetail.ir.program import Program, Role
from dovetail.ops.copies import copied
from dovetail.ops.region import region_program

_KEPT = 1024
"""Programs of regions that are kept; a model has a few hundred different ones."""


@dataclass(frozen=True, slots=True)
class Named:
    """A program, and the graph's name for each of its tensors that a caller sees."""

    program: Program
    names: Mapping[str, str]


def canonical_program(graph: Graph, nodes: Sequence[Node], operators: Operators, types: Mapping[str, Type]) -> Named:
    """The program of ``nodes``: a0, a1, ... in the order of declaration, temporaries t0, t1, ...

    Where loops are called so, tensors are a_0, a_1, ... instead. Two of them may be one value of the graph.
    """
    alone, values = _alone(graph, nodes, types)
    found = _canonical(_Region(str(alone), id(operators), alone, operators))
    return Named(found.program, {short: values[name] for short, name in found.names.items()})


@dataclass(frozen=True, slots=True)
class _Region:
    """A region as a graph of its own; its text tells apart what compares equal, as 0.0 and -0.0."""

    text: str
    table: int
    graph: Graph = field(compare=False)
    operators: Operators = field(compare=False)


def _alone(graph: Graph, nodes: Sequence[Node], types: Mapping[str, Type]) -> tuple[Graph, dict[str, str]]:
    """A region as a graph of its own, values numbered as they are met, and what each was called."""
    inside = graph.in_order(nodes)
    names: dict[str, str] = {}
    for name in (name for node in inside for name in (*node.operands, *node.results)):
        names.setdefault(name, f"v{len(names)}")
    made = {name for node in inside for name in node.results}
    outputs = [
        name
        for node in inside
        for name in node.results
        if graph.is_output(name) or any(user.results[0] not in made for user in graph.users(name))
    ]
    inputs: list[Value] = []
    constants: list[Value] = []
    for name in (name for name in names if name not in made):
        (constants if graph.is_constant(name) else inputs).append(Value(names[name], types[name]))
    renamed = tuple(
        replace(
            node, operands=tuple(names[n] for n in node.operands), results=tuple(names[n] for n in node.results), line=0
        )
        for node in inside
    )
    shown = tuple(names[name] for name in outputs)
    alone = Graph("region", tuple(inputs), shown, renamed, tuple(constants), graph.sizes)
    return alone, {short: name for name, short in names.items()}


@lru_cache(maxsize=_KEPT)
def _canonical(region: _Region) -> Named:
    graph = region.graph
    found, again = apart(compact(region_program(graph, graph.nodes, region.operators)))
    visible = [t.name for t in found.tensors if t.role is not Role.TEMP]
    loops = {loop.name for statement in found.statements for loop in statement.all_loops}
    argument, temp = _free("a", loops), _free("t", loops)
    names = {name: f"{argument}{number}" for number, name in enumerate(visible)}
    temps = {t.name: f"{temp}{number}" for number, t in enumerate(found.temps)}
    return Named(copied(found, {**names, **temps}, {}), {short: again.get(name, name) for name, short in names.items()})


def _free(prefix: str, taken: Collection[str]) -> str:
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "_"
    return prefix
