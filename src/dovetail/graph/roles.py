"""What kind of work a node is, read off its program: new operators need no entry here."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from dovetail.ir.expr import Apply, Expr, Read, walk
from dovetail.ir.graph.graph import SCAN, Graph, Node, Type
from dovetail.ir.graph.operator import find, meaning
from dovetail.ir.graph.verify import Operators
from dovetail.ir.index import ONE, ZERO, Index, variable
from dovetail.ir.program import Combine, Program, Role, Statement

VIEWS = frozenset(("reshape", "flatten", "squeeze", "unsqueeze", "identity"))
"""Operators whose result is the operand's bytes."""


class Work(Enum):
    """Kinds of nodes."""

    HOST = "host"
    VIEW = "view"
    MOVE = "move"
    """Elements of the operands at other places, each read by an index that loops alone decide."""
    PIECES = "pieces"
    """A result that several statements make part by part: concat, pad."""
    POINTWISE = "pointwise"
    LOOKUP = "lookup"
    """Elements at places that data decides."""
    CONTRACTION = "contraction"
    WINDOW = "window"
    """A reduction over places that windows share: pooling."""
    ROWS = "rows"
    """Reductions, and then a value for each element that went into them: softmax, norms."""
    REDUCTION = "reduction"
    STEPS = "steps"
    """One step after the other: recurrences."""
    OTHER = "other"


def works(graph: Graph, operators: Operators, types: Mapping[str, Type]) -> dict[str, Work]:
    """For each node, by its first result: what kind of work it is."""
    sizes = {size.name: size for size in graph.sizes}
    seen: dict[int, tuple[Program, Work]] = {}
    found: dict[str, Work] = {}
    for node in graph.nodes:
        kind = _known_work(node, operators)
        if kind is None:
            operands = tuple(types[name] for name in node.operands)
            program = meaning(find(node, operators), node, operands, sizes).program
            if id(program) not in seen:  # meanings are kept, so equal nodes have the same program
                seen[id(program)] = (program, _work(program))
            kind = seen[id(program)][1]
        found[node.results[0]] = kind
    return found


def _known_work(node: Node, operators: Operators) -> Work | None:
    """Of nodes that have no program, or whose bytes stay as they are."""
    if node.op == SCAN or node.bodies:
        return Work.STEPS if node.op == SCAN else Work.OTHER
    if find(node, operators).run is not None:
        return Work.HOST
    return Work.VIEW if node.op in VIEWS else None


def _work(program: Program) -> Work:
    statements = program.statements
    reads = [access for s in statements for access in s.reads()]
    if any(s.seq for s in statements):
        return Work.STEPS
    if any(True for s in statements for _ in s.out.reads()):
        return Work.OTHER
    if any(True for access in reads for _ in access.reads()):
        return Work.LOOKUP
    if all(s.combine is Combine.SET for s in statements):
        return _moved(program)
    if any(map(is_product, statements)):
        return Work.CONTRACTION
    if any(_slides(index) for access in reads for index in access.indices):
        return Work.WINDOW
    return _reduced(program)


def _moved(program: Program) -> Work:
    """Of programs without reductions."""
    outs = {t.name for t in program.outputs}
    if len(program.statements) > len(outs):
        return Work.PIECES if all(s.out.tensor in outs for s in program.statements) else Work.OTHER
    if all(isinstance(s.value, Read) for s in program.statements):
        return Work.MOVE
    plain = len(outs) == 1 and _each_point(program, program.statements[0])
    return Work.POINTWISE if plain else Work.OTHER


def _each_point(program: Program, statement: Statement) -> bool:
    """Whether each element is made of elements at its own place, or at 0 along an axis of one element."""
    place = statement.out.indices
    whole = tuple(variable(loop.name) for loop in statement.loops)
    if statement.where or place != whole or tuple(x.extent for x in statement.loops) != program.outputs[0].shape:
        return False
    return all(index in (*place, ZERO) for access in statement.reads() for index in access.indices)


def is_product(statement: Statement) -> bool:
    """Whether it sums products of elements of two tensors."""
    if statement.combine is not Combine.ADD or not statement.reduced:
        return False
    return any(_multiplies(part) for part in walk(statement.value))


def _multiplies(part: Expr) -> bool:
    if not isinstance(part, Apply) or part.function != "mul":
        return False
    left, right = ({n.access.tensor for n in walk(arg) if isinstance(n, Read)} for arg in part.args)
    return bool(left) and bool(right) and left != right


def _slides(index: Index) -> bool:
    """Whether two loops walk one dimension."""
    return sum(isinstance(atom, str) for atom, _ in index.terms) > 1


def _reduced(program: Program) -> Work:
    last, given = program.outputs[0], program.inputs
    writer = next(s for s in reversed(program.statements) if s.out.tensor == last.name)
    same = bool(given) and without_ones(last.shape) == without_ones(given[0].shape)
    between = any(t.role is Role.TEMP for t in program.tensors)
    return Work.ROWS if same and between and writer.combine is Combine.SET else Work.REDUCTION


def without_ones(shape: tuple[Index, ...]) -> tuple[Index, ...]:
    return tuple(extent for extent in shape if extent != ONE)
