"""Text -> terms, types and definitions. The grammars are in ``term`` and ``types``; ``show`` prints.

    size n in 1..64
    def layer(const w: f32[8, 16], x: f32[16], b: f32[8]) -> y =
      map(\\row bias -> max(reduce(add, 0, map(mul, zip(row, x))) + bias, 0), zip(w, b))

``f . g`` is read as ``\\v -> f(g(v))``. A name that nothing binds is a variable, whose type the
environment says.
"""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import ParseError
from dovetail.base.limits import DEFAULT_LIMITS
from dovetail.ir.cursor import COMPARE, condition
from dovetail.ir.functional.patterns import PATTERNS, WORDS, PatternRow, apply, scalar_arity
from dovetail.ir.functional.patterns import Setting as SettingRow
from dovetail.ir.functional.term import (
    Call,
    Definition,
    Lambda,
    Let,
    Literal,
    Meta,
    Param,
    Pattern,
    Places,
    Scalar,
    Setting,
    Term,
    Var,
    free_names,
    fresh,
)
from dovetail.ir.functional.type_text import TypeReader, parse_type
from dovetail.ir.index import Condition, Index
from dovetail.ir.primitives import INFIX, PREFIX, PRIMITIVES
from dovetail.ir.program import Loop, Role, Size
from dovetail.ir.tokens import Source, Token

__all__ = ["TermReader", "parse_definition", "parse_definitions", "parse_term", "parse_type"]

_NUMBERS = {"true": True, "false": False, "inf": float("inf"), "nan": float("nan"), "none": None}
_MOST_LETS = 200


def parse_term(text: str, name: str = "term") -> Term:
    """The term that ``text`` describes; ``name`` stands for it in messages."""
    reader = _reader(text, name)
    return reader.whole_text(reader.term)


def parse_definition(text: str, name: str = "definition") -> Definition:
    """The one definition in ``text``, with the sizes declared before it."""
    reader = _reader(text, name)
    return reader.whole_text(reader.definition)


def parse_definitions(text: str, name: str = "definitions") -> tuple[Definition, ...]:
    """All definitions in ``text``; each has the sizes declared just before it."""
    reader = _reader(text, name)
    found = [reader.definition()]
    while reader.here.kind != "end":
        found.append(reader.definition())
    return tuple(found)


def _reader(text: str, name: str) -> TermReader:
    if len(text) > DEFAULT_LIMITS.text_bytes:
        raise ParseError(f"{name} is {len(text)} characters long, the limit is {DEFAULT_LIMITS.text_bytes}")
    return TermReader(Source(text, name))


class TermReader(TypeReader):
    """Reads terms and definitions by recursive descent."""

    # -- definitions

    def definition(self) -> Definition:
        sizes = []
        while self.accept("size"):
            sizes.append(self.declared_size())
        self.expect("def")
        name = self.new_name("definition")
        self.expect("(")
        params: list[Param] = []
        while not self.accept(")"):
            params.append(self.param())
            if not self.accept(","):
                self.expect(")")
                break
        self.expect("->")
        results = [self.new_name("result")]
        while self.accept(","):
            results.append(self.new_name("result"))
        self.expect("=")
        return Definition(name, tuple(params), tuple(results), self.term(), tuple(sizes))

    def declared_size(self) -> Size:
        name = self.new_name("size")
        self.expect("in")
        low = self.integer()
        self.expect("..")
        return Size(name, low, self.integer())

    def param(self) -> Param:
        role = next((r for r in (Role.IN, Role.CONST, Role.INOUT) if self.accept(r.value)), Role.IN)
        name = self.new_name("parameter")
        self.expect(":")
        return Param(role, name, self.type())

    # -- terms

    def term(self) -> Term:
        """A term; ``f . g`` binds least."""
        lets: list[tuple[str, Term]] = []
        while self.accept("let"):
            name = self.new_name("value")
            self.expect("=")
            lets.append((name, self.inside(self.term)))
            self.expect("in")
            if len(lets) > _MOST_LETS:
                raise self.refusal(f"more than {_MOST_LETS} lets", self.here)
        parts = [self.operation()]
        while self.accept("."):
            parts.append(self.operation())
        term = _composed(parts)
        for name, value in reversed(lets):
            term = Let(name, value, term)
        return term

    def operation(self, binding: int = 0) -> Term:
        left = self.prefix()
        while (row := INFIX.get(self.here.text)) is not None and row.binding >= binding and self.here.kind == "symbol":
            self.take()
            left = Scalar(row.name, (left, self.operation(row.binding + 1)))
        return left

    def prefix(self) -> Term:
        token = self.take()
        if token.kind == "symbol" and token.text in PREFIX:
            return self.negated(token)
        if token.text == "\\":
            return self.function()
        if token.text == "(":
            term = self.inside(self.term, ")")
        elif token.kind == "number":
            term = Literal(self.whole(token) if token.text.isdigit() else float(token.text))
        elif token.kind == "meta":
            term = Meta(token.text[1:])
        elif token.kind == "name":
            term = self.named(token)
        else:
            raise self.error("expected a term", token)
        while self.accept("("):
            term = Call(term, tuple(self.inside(self.terms)))
        return term

    def negated(self, token: Token) -> Term:
        """``-3`` is a number, ``-x`` an operation."""
        row = PREFIX[token.text]
        inner = self.inside(lambda: self.operation(row.binding + 1))
        if row.name == "neg" and isinstance(inner, Literal) and isinstance(inner.value, int | float):
            return Literal(-inner.value)
        return Scalar(row.name, (inner,))

    def function(self) -> Term:
        params = [self.new_name("value")]
        while self.here.kind == "name":
            params.append(self.new_name("value"))
        if len(set(params)) < len(params):
            raise self.refusal("two values of one name", self.here)
        self.expect("->")
        return Lambda(tuple(params), self.inside(self.term))

    def named(self, token: Token) -> Term:
        text = token.text
        if text in PATTERNS:
            return self.pattern(PATTERNS[text], token)
        if text in PRIMITIVES or text == "orelse" or text.removeprefix("bitcast_") in DTYPES:
            args = tuple(self.inside(self.terms)) if self.accept("(") else ()
            if len(args) > scalar_arity(text):
                raise self.refusal(f"{text} takes {scalar_arity(text)} terms, not {len(args)}", token)
            return Scalar(text, args)
        if text in _NUMBERS:
            return Literal(_NUMBERS[text])
        if text in WORDS:
            raise self.error("expected a term", token)
        return Var(text)

    def terms(self) -> list[Term]:
        """Terms up to the closing parenthesis."""
        found: list[Term] = []
        while not self.accept(")"):
            found.append(self.term())
            if not self.accept(","):
                self.expect(")")
                break
        return found

    # -- patterns and their settings

    def pattern(self, row: PatternRow, token: Token) -> Term:
        if not self.accept("("):
            if row.settings:
                needed = ", ".join(setting.name for setting in row.settings)
                raise self.refusal(f"{row.name} needs its settings: {row.name}({needed})", token)
            return Pattern(row.name)
        settings: list[Setting] = []
        read: list[Setting] = []
        for setting in row.settings:
            if read:
                self.expect(",")
            read = self.setting(setting)
            settings += read
        if row.settings and not self.accept(","):
            self.expect(")")
            return Pattern(row.name, tuple(settings))
        args = tuple(self.inside(self.terms))
        if not row.several and len(args) > len(row.terms):
            raise self.refusal(f"{row.name} takes {len(row.terms)} terms, not {len(args)}", token)
        return Pattern(row.name, tuple(settings), args)

    def setting(self, row: SettingRow) -> list[Setting]:
        if row.kind == "sizes":
            if self.here.text == "[":
                return []
            found: list[Setting] = [self.size()]
            while self.tokens[self.at + 1].text != "[" and self.accept(","):
                found.append(self.size())
            return found
        if row.kind == "writes":
            return self.writes()
        if row.kind in ("size", "number"):
            return [self.size()]
        if self.here.kind == "meta":
            return [self.take().text]
        if row.kind == "places":
            return [self.places()]
        return [self.memory() if row.kind == "memory" else self.combine()]

    def memory(self) -> str:
        token = self.take()
        if token.kind not in ("name", "text"):
            raise self.error("expected the name of a memory", token)
        return token.text.strip('"')

    def combine(self) -> str:
        token = self.take()
        text = token.text
        if text in ("max", "min") and self.accept("="):
            text += "="
        if text not in ("=", "+=", "*=", "max=", "min="):
            raise self.error("expected one of = += *= max= min=", token)
        return text

    def writes(self) -> list[Setting]:
        """``=, 0, [t<8: t + 1], +=, 1, [t<8: 0]``: how, which array, and where."""
        found: list[Setting] = []
        while not found or (self.more_writes() and self.accept(",")):
            found.append(self.combine())
            self.expect(",")
            found.append(self.size())
            self.expect(",")
            found.append(self.places())
        return found

    def more_writes(self) -> bool:
        after = [token.text for token in self.tokens[self.at + 1 : self.at + 3]]
        return after[:1] in (["="], ["+="], ["*="]) or after in (["max", "="], ["min", "="])

    def places(self) -> Places:
        self.expect("[")
        loops = []
        while self.here.text not in ("where", ":"):
            name = self.new_name("loop")
            self.expect("<")
            loops.append(Loop(name, self.size()))
            if not self.accept(","):
                break
        where = self.conditions() if self.accept("where") else ()
        self.expect(":")
        indices: list[Index] = []
        while not self.accept("]"):
            indices.append(self.size())
            if not self.accept(","):
                self.expect("]")
                break
        return Places(tuple(loops), tuple(indices), where)

    def conditions(self) -> tuple[Condition, ...]:
        """Chains such as ``0 <= p + r - 1 < 56``, separated by commas."""
        found: list[Condition] = []
        while True:
            left = self.size()
            if self.here.text not in COMPARE:
                raise self.error(f"expected a comparison ({' '.join(COMPARE)})")
            while self.here.text in COMPARE:
                sign = self.take().text
                right = self.size()
                found.append(condition(left, sign, right))
                left = right
            if not self.accept(","):
                return tuple(found)

    def new_name(self, what: str) -> str:
        token = self.take()
        if token.kind != "name":
            raise self.error(f"expected a name for the {what}", token)
        if token.text in WORDS:
            raise self.refusal(f"'{token.text}' is a word of the language", token)
        return token.text


def _composed(parts: list[Term]) -> Term:
    """``f . g`` as a function."""
    if len(parts) == 1:
        return parts[0]
    name = fresh("v", frozenset().union(*map(free_names, parts)))
    term: Term = Var(name)
    for function in reversed(parts):
        term = apply(function, (term,))
    return Lambda((name,), term)
