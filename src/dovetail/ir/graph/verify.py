"""Whether a graph means anything, and the type of every value in it.

Raises the first thing that is wrong: a name that cannot be one, a value that nothing makes, an operator that cannot
take its operands, a body that does not fit its ``scan``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import GraphError, LimitError
from dovetail.base.limits import DEFAULT_LIMITS, Limits
from dovetail.ir.graph.graph import SCAN, Graph, Node, Type, Value
from dovetail.ir.graph.operator import Operator, closest, find, meaning
from dovetail.ir.graph.scan import Repetition, repetition
from dovetail.ir.interval import interval
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Role, Size

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_SIZE_OF_A_PROGRAM = re.compile(r"Z[0-9]+")
_OWN_WORDS = ("graph", "do", "end", "size", "for", "seq", "where", "true", "false", "inf", "nan")
_WORDS = frozenset((*_OWN_WORDS, *(role.value for role in Role), *PRIMITIVES, *DTYPES))
"""What a value cannot be called: words of this language and of programs, where it becomes a tensor."""

Operators = Mapping[str, Operator]
Where = Node | Value | Size
"""What a message points to."""


def verify(graph: Graph, operators: Operators, limits: Limits = DEFAULT_LIMITS) -> dict[str, Type]:
    """The type of every value of ``graph``; raises a GraphError unless it is valid."""
    sizes = {size.name: size for size in graph.sizes}
    if len(sizes) < len(graph.sizes):
        raise GraphError("a size is declared twice", where="\n".join(map(str, graph.sizes)))
    for size in graph.sizes:
        check_name(size.name, size)
        if not 0 <= size.low <= size.high <= limits.extent:
            raise GraphError(f"the range of size '{size.name}' is not one of 0..{limits.extent}", where=str(size))
    types = _check_graph(graph, operators, sizes, limits)
    graph.keep_types(operators, types)
    return dict(types)


def infer(graph: Graph, operators: Operators, around: Mapping[str, Size] | None = None) -> dict[str, Type]:
    """The type of every value of a graph that has passed ``verify``; a body has the sizes of the graph around it."""
    kept = None if around else graph.types_by(operators)
    if kept is not None:
        return dict(kept)
    types = {value.name: value.type for value in (*graph.inputs, *graph.constants)}
    sizes = {**(around or {}), **{size.name: size for size in graph.sizes}}
    for node in graph.nodes:
        types.update(zip(node.results, result_types(node, types, operators, sizes), strict=True))
    if not around:
        graph.keep_types(operators, types)
    return dict(types)


def result_types(
    node: Node, types: Mapping[str, Type], operators: Operators, sizes: Mapping[str, Size]
) -> tuple[Type, ...]:
    """The types of what ``node`` makes of values of these types."""
    operands = tuple(types[name] for name in node.operands)
    if node.op == SCAN:
        return _scan_types(node, operands, operators, sizes, DEFAULT_LIMITS)
    if node.bodies:
        raise GraphError(f"{node.op} has a body", where=node.place, why=f"only {SCAN} repeats one")
    return meaning(find(node, operators), node, operands, sizes).results


def check_name(name: str, where: Where) -> None:
    """A name that a value can have; ``where`` is written out only in a message."""
    if not _NAME.fullmatch(name) or _SIZE_OF_A_PROGRAM.fullmatch(name):
        raise GraphError(f"{name!r} cannot be a name", where=_text(where), hint="letters, digits and _, as in v0")
    if name in _WORDS:
        raise GraphError(f"'{name}' is a word of the language", where=_text(where), hint=f"{name}_")


def _check_graph(graph: Graph, operators: Operators, sizes: Mapping[str, Size], limits: Limits) -> dict[str, Type]:
    types: dict[str, Type] = {}
    later = {name: node for node in graph.nodes for name in node.results}
    for value in (*graph.inputs, *graph.constants):
        _check_value(value, types, sizes, limits)
        types[value.name] = value.type
    for node in graph.nodes:
        _check_node(node, types, later, sizes)
        types.update(zip(node.results, result_types(node, types, operators, sizes), strict=True))
    for name in graph.outputs:
        if name not in types:
            raise GraphError(f"output '{name}' is made by nothing", where=_header(graph), hint=closest(name, types))
    return types


def _check_value(value: Value, types: Mapping[str, Type], sizes: Mapping[str, Size], limits: Limits) -> None:
    check_name(value.name, value)
    _check_new(value.name, value, types, sizes)
    if all(extent.is_constant and 0 <= extent.const <= limits.extent for extent in value.type.shape):
        return
    ranges = {size.name: (size.low, size.high) for size in sizes.values()}
    for dim, extent in enumerate(value.type.shape):
        if unknown := sorted(extent.names() - sizes.keys()):
            raise GraphError(
                f"unknown size '{unknown[0]}'",
                where=str(value),
                hint=closest(unknown[0], sizes) or f"size {unknown[0]} in 1..1024 above the graph",
            )
        found = interval(extent, ranges)
        if found is None or found[0] < 0:
            raise GraphError(f"dimension {dim} of '{value.name}' can be negative", where=str(value))
        if found[1] > limits.extent:
            raise LimitError(
                f"dimension {dim} of '{value.name}' can be {found[1]}, the limit is {limits.extent}", where=str(value)
            )


def _check_node(node: Node, types: Mapping[str, Type], later: Mapping[str, Node], sizes: Mapping[str, Size]) -> None:
    for name in node.operands:
        if name not in types:
            why = f"it is made below, by {later[name].place}" if name in later else None
            what = "is used before it is made" if name in later else "is made by nothing"
            raise GraphError(f"'{name}' {what}", where=node.place, why=why, hint=None if why else closest(name, types))
    for number, name in enumerate(node.results):
        check_name(name, node)
        _check_new(name, node, types, sizes)
        if name in node.results[:number]:
            raise GraphError(f"'{name}' is made twice", where=node.place)


def _check_new(name: str, where: Where, types: Container[str], sizes: Container[str]) -> None:
    if name in types:
        raise GraphError(f"'{name}' is made twice", where=_text(where), why="there is another value of this name above")
    if name in sizes:
        raise GraphError(f"'{name}' is already the name of a size", where=_text(where))


def _text(where: Where) -> str:
    return where.place if isinstance(where, Node) else str(where)


def _scan_types(
    node: Node, operands: tuple[Type, ...], operators: Operators, sizes: Mapping[str, Size], limits: Limits
) -> tuple[Type, ...]:
    found: Repetition = repetition(node, operands)
    body = node.bodies[0]
    if body.constants or body.sizes:
        what = "constants" if body.constants else "sizes"
        raise GraphError(
            f"the body '{body.name}' has {what} of its own", where=node.place, hint="hand them in as operands"
        )
    inner = _check_graph(body, operators, sizes, limits)
    return found.results(tuple(inner[name] for name in body.outputs))


def _header(graph: Graph) -> str:
    return next(line for line in str(graph).splitlines() if line.startswith("graph"))
