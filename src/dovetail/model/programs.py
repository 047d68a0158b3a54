"""Regions of a graph as programs under canonical names, so that equal regions are one program and compiled once.

in v7: f32[1, 64]  const v3: f32[64, 64]       in a0: f32[1, 64]  const a1: f32[64, 64]
temp v8: f32[1, 64]  out v9: f32[1, 64]   ->   temp t0: f32[1, 64]  out a2: f32[1, 64]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dovetail.ir.apart import apart
from dovetail.ir.compact import compact
from dovetail.ir.graph.graph import Graph, Node, Type
from dovetail.ir.graph.verify import Operators
from dovetail.ir.program import Program, Role
from dovetail.ops.copies import copied
from dovetail.ops.region import region_program


@dataclass(frozen=True, slots=True)
class Named:
    """A program, and the graph's name for each of its tensors that a caller sees."""

    program: Program
    names: Mapping[str, str]


def canonical_program(graph: Graph, nodes: Sequence[Node], operators: Operators, types: Mapping[str, Type]) -> Named:
    """The program of ``nodes``: a0, a1, ... in the order of declaration, temporaries t0, t1, ...

    Where loops are called so, tensors are a_0, a_1, ... instead. Two of them may be one value of the graph.
    """
    found, again = apart(compact(region_program(graph, nodes, operators, types)))
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
