"""Graphs on which a rule about operators can fire: its left side, with random tensors and attributes for its metas.

An operator says by its own definition what it can take. Operands are drawn from the left, each from the extents of
those before it, until the operator takes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from random import Random

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import DovetailError
from dovetail.ir.functional.types import Scalar, Unknown, shape
from dovetail.ir.functional.types import Type as TermType
from dovetail.ir.graph.graph import Attribute, Graph, Node, Type, Value
from dovetail.ir.graph.operator import meaning
from dovetail.ir.index import Index, constant
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.conditions import Test
from dovetail.rewrite.graph_rule import GraphRule, compiled_graph_rule
from dovetail.rewrite.graph_text import AnyAttribute, AnyValue, AttributeTerm, FixedAttribute, GraphTerm, Operation
from dovetail.rewrite.rule import RESULT, Rule

OPERAND_TRIES = 40
"""Types drawn for one operand before the whole graph is drawn anew."""
MOST_ELEMENTS = 400
_DTYPES = ("f32", "f32", "f32", "i32")


class _Unfit(DovetailError):
    """No type was found that an operator takes."""


def graph_subject(rule: Rule, random: Random) -> Graph | None:
    """A graph that is an instance of the left side; None for a draw that no operator takes."""
    draw = _GraphDraw(compiled_graph_rule(rule), random)
    try:
        draw.state_types()
        result = draw.value(draw.rule.before, ())
    except DovetailError:
        return None
    asked = {c.metas[0] for c in draw.rule.conditions if isinstance(c, Test) and c.predicate == "constant"}
    known = [(name, Value(value, draw.types[value])) for name, value in draw.values.items()]
    constants = tuple(value for name, value in known if name in asked)
    inputs = tuple(value for name, value in known if name not in asked)
    return Graph("subject", inputs, (result,), tuple(draw.nodes), constants)


@dataclass
class _GraphDraw:
    """A graph while it is drawn."""

    rule: GraphRule
    random: Random
    values: dict[str, str] = field(default_factory=dict)
    """The value that each meta stands for."""
    attributes: dict[str, Attribute] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dtype: DType = DTYPES[self.random.choice(_DTYPES)]

    def state_types(self) -> None:
        """Metas whose types the rule states: its sizes are drawn."""
        sizes: dict[str, int] = {}
        for name, kind in self.rule.types:
            if name != RESULT:
                self.types[self.named(name)] = self.stated(kind, sizes)

    def stated(self, kind: TermType, sizes: dict[str, int]) -> Type:
        extents, inner = shape(kind)
        assert isinstance(inner, Scalar | Unknown)
        for index in extents:
            for unknown in sorted(index.names()):
                sizes.setdefault(unknown, self.random.choice((1, 2, 2, 3, 3, 4)))
        found = tuple(constant(index.evaluate(sizes)) for index in extents)
        return Type(inner.dtype if isinstance(inner, Scalar) else self.dtype, found)

    def named(self, meta: str) -> str:
        return self.values.setdefault(meta, f"x_{meta}")

    def value(self, term: GraphTerm, extents: tuple[Index, ...]) -> str:
        """The value that a term is; its nodes are added. ``extents`` are those of the operands before it."""
        if isinstance(term, AnyValue):
            name = self.named(term.name)
            self.types.setdefault(name, self.tensor(extents))
            return name
        operands: list[str] = []
        for number, operand in enumerate(term.operands):
            operands.append(self.operand(term, operands, operand, last=number == len(term.operands) - 1))
        return self.made(term, operands)

    def operand(self, term: Operation, before: list[str], operand: GraphTerm, last: bool) -> str:
        """One operand; a new tensor that is the last one has a type that the operator takes with those before it."""
        extents = tuple(extent for name in before for extent in self.types[name].shape)
        if not last or not isinstance(operand, AnyValue) or self.named(operand.name) in self.types:
            return self.value(operand, extents)
        name = self.named(operand.name)
        for _ in range(OPERAND_TRIES):
            self.types[name] = self.tensor(extents)
            if self.attempt(term, [*before, name]) is not None:
                return name
        raise _Unfit("no operand fits")

    def tensor(self, extents: tuple[Index, ...]) -> Type:
        """A small tensor, most of its extents some that are there already."""
        rank = self.random.choice((0, 1, 2, 2, 3, 4, 4))
        pool = (*extents, *extents, *extents, *map(constant, (1, 2, 3, 4, 5)))
        found = (
            extents if extents and self.random.random() < 0.3 else tuple(self.random.choice(pool) for _ in range(rank))
        )
        return Type(self.dtype, found if prod(e.const for e in found) <= MOST_ELEMENTS else found[:1])

    def made(self, term: Operation, operands: list[str]) -> str:
        for _ in range(OPERAND_TRIES):
            found = self.attempt(term, operands)
            if found is not None:
                node, kind = found
                self.attributes |= {
                    given.name: value
                    for name, given in term.attributes
                    if isinstance(given, AnyAttribute) and (value := node.attribute(name)) is not None
                }
                self.nodes.append(node)
                self.types[node.results[0]] = kind
                return node.results[0]
        raise _Unfit("no attributes fit")

    def attempt(self, term: Operation, operands: list[str]) -> tuple[Node, Type] | None:
        """The node and the type of what it makes, with attributes drawn; None where the operator refuses."""
        first = self.types[operands[0]] if operands else Type(self.dtype, ())
        given = {name: self.attribute(name, found, first) for name, found in term.attributes}
        stated = tuple(sorted((name, value) for name, value in given.items() if value is not None))
        node = Node(term.op, tuple(operands), (f"v{len(self.nodes)}",), stated)
        try:
            found = meaning(OPERATORS[term.op], node, tuple(self.types[name] for name in operands), {})
        except DovetailError:
            return None
        sizes = [prod(extent.const for extent in kind.shape) for kind in found.results]
        return (node, found.results[0]) if 0 < max(sizes) <= MOST_ELEMENTS else None

    def attribute(self, name: str, given: AttributeTerm, first: Type) -> Attribute | None:
        if isinstance(given, AnyAttribute):
            return self.attributes[given.name] if given.name in self.attributes else self.drawn(name, first)
        if isinstance(given, FixedAttribute):
            return given.value
        return tuple(arg.value for arg in given.args if isinstance(arg, FixedAttribute) and isinstance(arg.value, int))

    def drawn(self, name: str, first: Type) -> Attribute | None:
        """A random attribute by what its name means; None leaves the default."""
        pick, rank = self.random.choice, first.rank
        match name:
            case "perm":
                return tuple(self.random.sample(range(rank), rank))
            case "shape":
                return self.reshaped(first)
            case "axis":
                return self.random.randrange(max(rank, 1))
            case "axes":
                return tuple(sorted(self.random.sample(range(rank + 1), self.random.randint(1, min(2, rank + 1)))))
            case "dtype":
                return pick(("f32", "i32", "f64", "f16"))
            case "strides" | "dilations":
                return pick((None, (1, 1), (2, 1), (2, 2)))
            case "pads":
                return pick((None, (1, 1, 1, 1), (0, 1, 2, 0)))
            case "groups":
                return pick((None, 1, 2))
            case "epsilon":
                return pick((1e-5, 1e-3, 0.5))
        raise _Unfit(f"'{name}' is not known")

    def reshaped(self, first: Type) -> tuple[int, ...]:
        """The extents in another order, or two of them as one."""
        extents = [extent.const for extent in first.shape]
        roll = self.random.random()
        if roll < 0.3:
            return tuple(extents)
        if roll < 0.6 and len(extents) > 1:
            return (extents[0] * extents[1], *extents[2:])
        if roll < 0.8:
            return (0, -1) if len(extents) > 1 else (-1,)
        return tuple(self.random.sample(extents, len(extents)))
