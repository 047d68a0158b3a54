"""Nodes of a graph -> one program: each node's program, renamed and put one behind the other.

    h = matmul(x, w) {transpose_b = 1}         in x: f32[1, 64]   const w: f32[128, 64]
    y = relu(h)                                temp h: f32[1, 128]   out y: f32[1, 128]
                                          ->   for i<1, j<128, l<64: h[i, j] += x[i, l] * w[j, l]
                                               for d0<1, d1<128: y[d0, d1] = max(h[d0, d1], 0)

Tensors have the names of the graph's values; what a node keeps for itself is called by its first result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dovetail.base.errors import GraphError
from dovetail.ir.graph.graph import SCAN, Graph, Node, Type
from dovetail.ir.graph.operator import find, meaning
from dovetail.ir.graph.verify import Operators, infer
from dovetail.ir.index import Index, variable
from dovetail.ir.program import Loop, Program, Role, Size, Statement, Tensor
from dovetail.ops.copies import copied, whole_copy
from dovetail.ops.scan import scan_program


def graph_program(graph: Graph, operators: Operators, types: Mapping[str, Type] | None = None) -> Program:
    """The program of a whole valid graph: its inputs, its constants and its outputs, in order.

    An output that is an input, a constant or another output as well is a copy of it, under a name of its own.
    """
    types = infer(graph, operators) if types is None else types
    made = {name for node in graph.nodes for name in node.results}
    outputs = [name for number, name in enumerate(graph.outputs) if name in made and name not in graph.outputs[:number]]
    joined = _Joined(graph, operators, types, graph.nodes, outputs, graph.names())
    tensors = [joined.tensor(Role.IN, value.name) for value in graph.inputs]
    tensors += [joined.tensor(Role.CONST, value.name) for value in graph.constants]
    statements = list(joined.statements)
    for number, name in enumerate(graph.outputs):
        if name in outputs and name not in graph.outputs[:number]:
            tensors.append(joined.tensor(Role.OUT, name))
            continue
        copy = Tensor(Role.OUT, joined.fresh(f"{name}_copy"), types[name].dtype, types[name].shape)
        tensors.append(copy)
        statements.append(whole_copy(copy.name, name, copy.shape))
    return joined.program(tensors, statements)


def region_program(
    graph: Graph, nodes: Iterable[Node], operators: Operators, types: Mapping[str, Type] | None = None
) -> Program:
    """The program of some nodes of a valid graph: inputs are what they read and do not make, in the order of reading;
    outputs what is read outside, in the order of making. ``types`` are the graph's, where the caller has them.
    """
    inside = graph.in_order(nodes)
    types = infer(graph, operators) if types is None else types
    made = {name: node for node in inside for name in node.results}
    outputs = [
        name for name in made if name in graph.outputs or any(user.results[0] not in made for user in graph.users(name))
    ]
    joined = _Joined(graph, operators, types, inside, outputs)
    read = dict.fromkeys(name for node in inside for name in node.operands if name not in made)
    tensors = [joined.tensor(Role.CONST if graph.is_constant(name) else Role.IN, name) for name in read]
    tensors += [joined.tensor(Role.OUT, name) for name in outputs]
    return joined.program(tensors, list(joined.statements))


def node_program(node: Node, types: Mapping[str, Type], operators: Operators, sizes: Mapping[str, Size]) -> Program:
    """What one node computes, under the graph's sizes; inputs are the operands, outputs the results, in order."""
    operands = tuple(types[name] for name in node.operands)
    if node.op == SCAN:
        body = replace(node.bodies[0], sizes=tuple(sizes.values()))
        return scan_program(node, operands, graph_program(body, operators))
    known = find(node, operators)
    if known.run is not None:
        raise GraphError(f"{node.op} runs on the host and has no program", where=node.place)
    found = meaning(known, node, operands, sizes)
    if not found.sizes:
        return found.program
    loops = {loop.name for s in found.program.statements for loop in s.all_loops}
    names = {z: variable(name) for z, name in found.sizes.items()}
    for name in sorted(loops & set(found.sizes.values())):  # a loop must not be read as the size it is called like
        names[name] = variable(_unlike(name, loops | set(sizes)))
    return copied(found.program, {}, names)


def _unlike(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


class _Joined:
    """Statements of nodes over one set of names."""

    def __init__(
        self,
        graph: Graph,
        operators: Operators,
        types: Mapping[str, Type],
        nodes: Sequence[Node],
        outputs: Sequence[str],
        names: Iterable[str] = (),
    ) -> None:
        self.graph, self.types = graph, types
        self.sizes = {size.name: size for size in graph.sizes}
        self.taken = {name for node in nodes for name in (*node.operands, *node.results)} | set(self.sizes)
        self.taken.update(names)
        self.statements: list[Statement] = []
        self.temps: list[Tensor] = []
        seen = set(outputs)
        for node in nodes:
            self.temps += [self.tensor(Role.TEMP, name) for name in node.results if name not in seen]
            self._add(node, node_program(node, types, operators, self.sizes))

    def tensor(self, role: Role, name: str) -> Tensor:
        return Tensor(role, name, self.types[name].dtype, self.types[name].shape)

    def fresh(self, name: str) -> str:
        """``name``, or the first of its kind that nothing is called by."""
        found, number = name, 1
        while found in self.taken:
            found, number = f"{name}{number}", number + 1
        self.taken.add(found)
        return found

    def program(self, tensors: Sequence[Tensor], statements: Sequence[Statement]) -> Program:
        """The whole; loops that have the name of a tensor or a size get another."""
        loops = {loop.name for s in statements for loop in s.all_loops}
        renamed: dict[str, Index] = {name: variable(self.fresh(f"{name}_")) for name in sorted(loops & self.taken)}
        used = frozenset(name for t in (*tensors, *self.temps) for extent in t.shape for name in extent.names())
        sizes = tuple(size for size in self.graph.sizes if size.name in used)
        found = Program((*tensors, *self.temps), tuple(statements), sizes)
        return found if not renamed else copied(found, {}, renamed)

    def _add(self, node: Node, program: Program) -> None:
        names = dict(zip((t.name for t in program.inputs), node.operands, strict=True))
        names |= dict(zip((t.name for t in program.outputs), node.results, strict=True))
        for temp in program.temps:
            names[temp.name] = self.fresh(f"{node.results[0]}_{temp.name}")
            self.temps.append(Tensor(Role.TEMP, names[temp.name], temp.dtype, temp.shape))
        steps = {loop.name for s in program.statements for loop in s.seq}
        renamed: dict[str, Index] = {name: variable(f"{name}{len(self.statements)}") for name in steps}
        for statement in program.statements:
            self.statements.append(_renamed(statement.rename(names), renamed))


def _renamed(statement: Statement, loops: Mapping[str, Index]) -> Statement:
    """Steps under names of their own: neighbours with the same steps would be read as one recurrence."""
    if not statement.seq:
        return statement
    found = statement.substitute(loops, statement.loops)
    seq = tuple(Loop(str(loops[loop.name]), loop.extent) for loop in statement.seq)
    return replace(found, seq=seq)
