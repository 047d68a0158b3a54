"""Text of rules about operators of a graph -> what they look for and what they make.

value     = "?" name | operator "(" value, ... ")" ["{" name "=" attribute, ... "}"]
attribute = "?" name | number | string | "(" attribute, ... ")" | function "(" attribute, ... ")"

relu(add(matmul(?x, ?w), ?b))
transpose(transpose(?x){perm = ?p}){perm = ?q}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.ir.cursor import Cursor
from dovetail.ir.functional.sizes import TOKENS
from dovetail.ir.tokens import Source, tokenize


@dataclass(frozen=True, slots=True)
class AnyAttribute:
    """``?p``."""

    name: str


@dataclass(frozen=True, slots=True)
class FixedAttribute:
    """A number or a text."""

    value: int | float | str


@dataclass(frozen=True, slots=True)
class MadeAttribute:
    """A function of attributes; a list is one, without a name."""

    function: str
    args: tuple[AttributeTerm, ...]


AttributeTerm = AnyAttribute | FixedAttribute | MadeAttribute


@dataclass(frozen=True, slots=True)
class AnyValue:
    """``?x``."""

    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator on values."""

    op: str
    operands: tuple[GraphTerm, ...]
    attributes: tuple[tuple[str, AttributeTerm], ...] = ()


GraphTerm = AnyValue | Operation


def parse_graph_term(text: str, name: str = "rule") -> GraphTerm:
    """The graph term that ``text`` describes; ``name`` stands for it in messages."""
    reader = GraphReader(Source(text, name))
    return reader.whole_text(reader.value)


def operations(term: GraphTerm) -> Iterator[Operation]:
    """Every operation in a term, its sink first."""
    if isinstance(term, Operation):
        yield term
        for operand in term.operands:
            yield from operations(operand)


def value_metas(term: GraphTerm) -> frozenset[str]:
    """The values that may be anything."""
    if isinstance(term, AnyValue):
        return frozenset((term.name,))
    return frozenset().union(*map(value_metas, term.operands))


def attribute_metas(term: GraphTerm) -> frozenset[str]:
    """The attributes that may be anything."""
    return frozenset().union(*(_metas(found) for op in operations(term) for _, found in op.attributes))


def _metas(attribute: AttributeTerm) -> frozenset[str]:
    match attribute:
        case AnyAttribute(name):
            return frozenset((name,))
        case MadeAttribute(_, args):
            return frozenset().union(*map(_metas, args))
    return frozenset()


class GraphReader(Cursor):
    """Recursive descent over the tokens of the functional language."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, tokenize(source, TOKENS))

    def value(self) -> GraphTerm:
        token = self.take()
        if token.kind == "meta":
            return AnyValue(token.text[1:])
        if token.kind != "name":
            raise self.error("expected an operator or ?x", token)
        self.expect("(")
        operands: list[GraphTerm] = []
        while not self.accept(")"):
            operands.append(self.inside(self.value))
            if not self.accept(","):
                self.expect(")")
                break
        return Operation(token.text, tuple(operands), self.attributes() if self.accept("{") else ())

    def attributes(self) -> tuple[tuple[str, AttributeTerm], ...]:
        found: dict[str, AttributeTerm] = {}
        while not self.accept("}"):
            token = self.take()
            if token.kind != "name":
                raise self.error("expected the name of an attribute", token)
            if token.text in found:
                raise self.refusal(f"attribute '{token.text}' is given twice", token)
            self.expect("=")
            found[token.text] = self.attribute()
            if not self.accept(","):
                self.expect("}")
                break
        return tuple(found.items())

    def attribute(self) -> AttributeTerm:
        token = self.take()
        if token.kind == "meta":
            return AnyAttribute(token.text[1:])
        if token.text == "(":
            return MadeAttribute("", self.args())
        if token.kind == "name":
            self.expect("(")
            return MadeAttribute(token.text, self.args())
        if token.kind == "text":
            return FixedAttribute(token.text.strip('"'))
        sign = -1 if token.text == "-" else 1
        token = self.take() if sign < 0 else token
        if token.kind != "number":
            raise self.error("expected an attribute: ?p, a number, a text or a list", token)
        return FixedAttribute(sign * (self.whole(token) if token.text.isdigit() else float(token.text)))

    def args(self) -> tuple[AttributeTerm, ...]:
        found: list[AttributeTerm] = []
        while not self.accept(")"):
            found.append(self.inside(self.attribute))
            if not self.accept(","):
                self.expect(")")
                break
        return tuple(found)
