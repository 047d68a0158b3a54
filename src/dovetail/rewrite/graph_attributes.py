"""What rules about graphs may compute of attributes, and ask of attributes and values: two closed tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dovetail.ir.functional.term import Places
from dovetail.ir.functional.types import Scalar, array
from dovetail.ir.functional.types import Type as TermType
from dovetail.ir.graph.graph import Attribute, Graph, Type
from dovetail.ir.index import Index
from dovetail.rewrite.match import Binding
from dovetail.rewrite.shape import Value


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """What is known where a rule may fire: the graph, the types of its values, and the value that is replaced."""

    graph: Graph
    types: Mapping[str, Type]
    root: str
    binding: Binding[str]

    def type_of(self, name: str) -> Type:
        return self.types[self.binding.terms[name]]


@dataclass(frozen=True, slots=True)
class GraphPredicate:
    """One row of the table."""

    name: str
    arity: int
    meaning: Callable[..., bool]
    doc: str


def term_type(found: Type) -> TermType:
    """The type of a tensor in the functional language."""
    return array(found.shape, Scalar(found.dtype))


def whole_numbers(value: Value) -> tuple[int, ...]:
    """A list of whole numbers; empty for anything else."""
    return tuple(v for v in value if isinstance(v, int)) if isinstance(value, tuple) else ()


def plain_attribute(value: Value) -> Attribute | None:
    """What stands in a node for the value of a meta; None where it has no spelling, or is the default."""
    if isinstance(value, Index):
        return value.const if value.is_constant else None
    return None if isinstance(value, Places) else value


def _is_constant(facts: GraphFacts, name: str) -> bool:
    """Made of constants alone, at any depth."""
    waiting, seen = [facts.binding.terms[name]], set[str]()
    while waiting:
        value = waiting.pop()
        node = facts.graph.producer(value)
        if node is None and not facts.graph.is_constant(value):
            return False
        if node is not None and value not in seen:
            seen.add(value)
            waiting += node.operands
    return True


def _is_sorted(facts: GraphFacts, name: str) -> bool:
    axes = whole_numbers(facts.binding.settings[name])
    return axes == tuple(range(len(axes)))


def _rank(facts: GraphFacts, name: str, rank: int) -> bool:
    return facts.type_of(name).rank == rank


def _same_type(facts: GraphFacts, name: str) -> bool:
    return facts.type_of(name) == facts.types[facts.root]


def _same_types(facts: GraphFacts, first: str, second: str) -> bool:
    return facts.type_of(first) == facts.type_of(second)


def _are_different(facts: GraphFacts, first: str, second: str) -> bool:
    return facts.binding.terms[first] != facts.binding.terms[second]


def _used_once(facts: GraphFacts, name: str) -> bool:
    return facts.graph.uses(facts.binding.terms[name]) == 1


GRAPH_PREDICATES = {
    row.name: row
    for row in (
        GraphPredicate("constant", 1, _is_constant, "it is made of constants alone"),
        GraphPredicate("same_type", 1, _same_type, "it has the type of the result"),
        GraphPredicate("same_types", 2, _same_types, "both have one type"),
        GraphPredicate("different", 2, _are_different, "they are not the same value"),
        GraphPredicate("used_once", 1, _used_once, "nothing else reads it"),
        GraphPredicate("scalar", 1, lambda facts, x: _rank(facts, x, 0), "it is one number"),
        GraphPredicate("vector", 1, lambda facts, x: _rank(facts, x, 1), "it has one axis"),
        GraphPredicate("matrix", 1, lambda facts, x: _rank(facts, x, 2), "it has two axes"),
        GraphPredicate("float", 1, lambda facts, x: facts.type_of(x).dtype.is_float, "its numbers are floats"),
        GraphPredicate("integer", 1, lambda facts, x: not facts.type_of(x).dtype.is_float, "its numbers are integers"),
        GraphPredicate("sorted", 1, _is_sorted, "an order of axes that changes nothing"),
        GraphPredicate(
            "whole",
            1,
            lambda facts, p: all(v > 0 for v in whole_numbers(facts.binding.settings[p])),
            "a list of positive numbers: no extent is left open",
        ),
    )
}


def _composed(first: Value, second: Value) -> Attribute | None:
    """The order of axes that is ``first``, then ``second``."""
    inner, outer = whole_numbers(first), whole_numbers(second)
    fits = len(inner) == len(outer) and all(0 <= axis < len(inner) for axis in outer)
    return tuple(inner[axis] for axis in outer) if fits else None


def _inverse(order: Value) -> Attribute | None:
    """The order of axes that undoes ``order``."""
    axes = whole_numbers(order)
    return tuple(axes.index(k) for k in range(len(axes))) if sorted(axes) == list(range(len(axes))) else None


def _listed(*values: Value) -> Attribute | None:
    found = [plain_attribute(value) for value in values]
    whole = tuple(v for v in found if isinstance(v, int))
    return whole if len(whole) == len(found) else None


def _sum(first: Value, second: Value) -> Attribute | None:
    """Number by number."""
    if isinstance(first, Index) and isinstance(second, Index):
        return plain_attribute(first + second)
    left, right = whole_numbers(first), whole_numbers(second)
    return tuple(a + b for a, b in zip(left, right, strict=True)) if len(left) == len(right) else None


ATTRIBUTE_FUNCTIONS: dict[str, tuple[int | None, Callable[..., Attribute | None]]] = {
    "": (None, _listed),
    "compose": (2, _composed),
    "inverse": (1, _inverse),
    "plus": (2, _sum),
}
"""By name: how many attributes (any number: None), and what is made of them; None where it cannot be made."""
