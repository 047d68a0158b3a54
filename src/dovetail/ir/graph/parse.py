"""Graph text -> ``Graph``. The grammar is in ``graph``; every error shows the line with a caret."""

from __future__ import annotations

import json
import re

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import ParseError
from dovetail.base.limits import DEFAULT_LIMITS, Limits
from dovetail.ir.cursor import Cursor
from dovetail.ir.graph.graph import Attribute, Graph, Node, SmallTensor, Type, Value
from dovetail.ir.index import Index, constant
from dovetail.ir.parse import parse_index
from dovetail.ir.program import Size
from dovetail.ir.tokens import Source, tokenize

_PATTERN = re.compile(
    r"(?P<space>[ \t\r\n;]+|\#[^\n]*)"
    r"|(?P<number>-?(?:inf\b|nan\b|\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?))"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<symbol>\.\.|->|//|[-+*%=(),:\[\]{}])"
)


def parse(text: str, name: str = "graph", limits: Limits = DEFAULT_LIMITS) -> Graph:
    """The graph ``text`` describes; ``name`` stands for it in messages."""
    if len(text) > limits.text_bytes:
        raise ParseError(f"{name} is {len(text)} characters long, the limit is {limits.text_bytes}")
    parser = _Parser(Source(text, name))
    sizes = parser.sizes_declared()
    graph = parser.graph(sizes)
    if parser.here.kind != "end":
        raise parser.error("expected a node or the end of the text")
    return graph


def parse_type(text: str, sizes: tuple[Size, ...] = (), name: str = "type") -> Type:
    """``f32[1, N + 1]``."""
    parser = _Parser(Source(text, name))
    parser.sizes = {size.name: size for size in sizes}
    return parser.whole_text(parser.type)


class _Parser(Cursor):
    """Recursive descent over tokens."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, tokenize(source, _PATTERN))
        self.sizes: dict[str, Size] = {}
        self.counted = (0, 1)

    def sizes_declared(self) -> tuple[Size, ...]:
        while self.accept("size"):
            name = self.name("a name for the size")
            self.expect("in")
            low = self.integer()
            self.expect("..")
            self.sizes[name] = Size(name, low, self.integer())
        return tuple(self.sizes.values())

    def graph(self, sizes: tuple[Size, ...] = ()) -> Graph:
        self.expect("graph")
        name = self.name("a name for the graph")
        inputs = self.values()
        self.expect("->")
        self.expect("(")
        outputs = self.names(")")
        constants = []
        while self.accept("const"):
            constants.append(self.value())
        nodes = []
        while self.here.kind == "name" and self.here.text != "end":
            nodes.append(self.node())
        return Graph(name, inputs, outputs, tuple(nodes), tuple(constants), sizes)

    def node(self) -> Node:
        line = self.line()
        results = self.names("=")
        op = self.name("an operator")
        self.expect("(")
        operands = self.names(")")
        attributes = self.attributes() if self.accept("{") else {}
        bodies = []
        while self.accept("do"):
            bodies.append(self.inside(self.graph, "end"))
        return Node(op, operands, results, tuple(sorted(attributes.items())), tuple(bodies), line)

    def values(self) -> tuple[Value, ...]:
        self.expect("(")
        found: list[Value] = []
        while not self.accept(")"):
            found.append(self.value())
            if not self.accept(","):
                self.expect(")")
                break
        return tuple(found)

    def value(self) -> Value:
        name = self.name("a name for the tensor")
        self.expect(":")
        return Value(name, self.type())

    def type(self) -> Type:
        dtype = self.dtype()
        self.expect("[")
        extents: list[Index] = []
        while not self.accept("]"):
            extents.append(self.extent())
            if not self.accept(","):
                self.expect("]")
                break
        return Type(dtype, tuple(extents))

    def dtype(self) -> DType:
        token = self.take()
        if token.text not in DTYPES:
            raise self.source.error(f"unknown dtype '{token.text}'", token.place, f"one of {', '.join(DTYPES)}")
        return DTYPES[token.text]

    def extent(self) -> Index:
        """A number, or whatever stands before the next comma, over the sizes."""
        start, depth = self.here, 0
        while self.here.kind != "end" and (depth or self.here.text not in (",", "]")):
            depth += {"(": 1, ")": -1}.get(self.here.text, 0)
            token = self.take()
            if token.kind == "name" and token.text not in self.sizes:
                raise self.unknown("size", token, self.sizes)
        text = self.source.text[start.place : self.here.place].strip()
        if text.isdigit() and len(text) < 20:
            return constant(int(text))
        if not text:
            raise self.error("expected an extent")
        return parse_index(text, tuple(self.sizes.values()), f"{self.source.name}:{self.line()}, extent")

    def attributes(self) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {}
        while not self.accept("}"):
            place = self.here.place
            name = self.name("a name for the attribute")
            if name in found:
                raise self.source.error(f"attribute '{name}' is given twice", place)
            self.expect("=")
            found[name] = self.attribute()
            if not self.accept(","):
                self.expect("}")
                break
        return found

    def attribute(self) -> Attribute:
        if self.here.kind == "string":
            return self.string()
        if self.here.kind == "number":
            return self.number()
        if self.accept("("):
            return _same(self.numbers())
        if self.here.text in DTYPES:
            return self.small_tensor()
        raise self.error("expected a number, a string, a list in parentheses or a small tensor")

    def small_tensor(self) -> SmallTensor:
        dtype = self.dtype()
        self.expect("[")
        shape: list[int] = []
        while not self.accept("]"):
            shape.append(self.integer())
            self.accept(",")
        self.expect("(")
        values = self.numbers()
        kept = tuple(map(float, values)) if dtype.is_float else tuple(values)
        return SmallTensor(dtype, tuple(shape), kept)

    def numbers(self) -> list[int | float]:
        found: list[int | float] = []
        while not self.accept(")"):
            found.append(self.number())
            if not self.accept(","):
                self.expect(")")
                break
        return found

    def string(self) -> str:
        token = self.take()
        try:
            text = json.loads(token.text)
        except ValueError as error:
            raise self.source.error("a string that cannot be read", token.place, str(error)) from None
        assert isinstance(text, str)
        return text

    def number(self) -> int | float:
        token = self.take()
        if token.kind != "number" or len(token.text) > 40:
            raise self.error("expected a number", token)
        return int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)

    def integer(self) -> int:
        token = self.here
        number = self.number()
        if isinstance(number, float):
            raise self.error("expected a whole number", token)
        return number

    def names(self, close: str) -> tuple[str, ...]:
        found: list[str] = []
        while not self.accept(close):
            found.append(self.name("a name"))
            if not self.accept(","):
                self.expect(close)
                break
        return tuple(found)

    def name(self, what: str) -> str:
        token = self.take()
        if token.kind != "name":
            raise self.error(f"expected {what}", token)
        return token.text

    def line(self) -> int:
        """Of the token here; counted on from the last one asked for, since a text may have very many lines."""
        place, line = self.counted
        line += self.source.text.count("\n", place, self.here.place)
        self.counted = (self.here.place, line)
        return line


def _same(values: list[int | float]) -> tuple[int, ...] | tuple[float, ...]:
    """All of one kind: a float makes the others floats."""
    whole = tuple(value for value in values if isinstance(value, int))
    return whole if len(whole) == len(values) else tuple(map(float, values))
