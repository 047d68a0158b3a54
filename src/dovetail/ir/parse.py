"""Program text -> ``Program``. The grammar is in ``program``; every error shows the line with a caret."""

from __future__ import annotations

import difflib

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import ParseError
from dovetail.base.limits import DEFAULT_LIMITS, Limits
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Position, Read
from dovetail.ir.index import Access, Condition, Index, affine, constant, variable
from dovetail.ir.primitives import INFIX, PREFIX, PRIMITIVES
from dovetail.ir.program import Combine, Loop, Program, Role, Size, Statement, Tensor
from dovetail.ir.tokens import Source, Token, tokenize

_ROLES = {r.value: r for r in Role}
_KEYWORDS = {*_ROLES, "size", "for", "seq", "where"}
_NUMBERS = {"true": True, "false": False, "inf": float("inf"), "nan": float("nan")}
_COMPARE = ("<", "<=", ">", ">=", "==")


def parse(text: str, name: str = "program", limits: Limits = DEFAULT_LIMITS) -> Program:
    """The program ``text`` describes; ``name`` stands for it in messages."""
    if len(text) > limits.text_bytes:
        raise ParseError(f"{name} is {len(text)} characters long, the limit is {limits.text_bytes}")
    return _Parser(Source(text, name)).program()


class _Parser:
    """Recursive descent over tokens; ``scope`` holds the loops of the statement being read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.at = 0
        self.sizes: dict[str, Size] = {}
        self.tensors: dict[str, Tensor] = {}
        self.scope: dict[str, Loop] = {}

    # -- statements and declarations

    def program(self) -> Program:
        statements: list[Statement] = []
        while self.here.kind != "end":
            if self.here.text in _ROLES:
                self.tensor()
            elif self.here.text == "size":
                self.size()
            else:
                statements.append(self.statement())
        return Program(tuple(self.tensors.values()), tuple(statements), tuple(self.sizes.values()))

    def size(self) -> None:
        self.expect("size")
        name = self.new_name("size")
        self.expect("in")
        low = self.integer()
        self.expect("..")
        high = self.integer()
        self.sizes[name.text] = Size(name.text, low, high)

    def tensor(self) -> None:
        role = _ROLES[self.take().text]
        name = self.new_name("tensor")
        self.expect(":")
        kind = self.take()
        if kind.text not in DTYPES:
            raise self.unknown("dtype", kind, DTYPES)
        shape: tuple[Index, ...] = ()
        if self.accept("["):
            shape = self.indices("]", extent=True)
        self.tensors[name.text] = Tensor(role, name.text, DTYPES[kind.text], shape)

    def statement(self) -> Statement:
        line = self.source.line(self.here.place)
        self.scope = {}
        seq: tuple[Loop, ...] = ()
        loops: tuple[Loop, ...] = ()
        where: list[Condition] = []
        if self.accept("seq"):
            seq = self.loops()
            self.expect(":")
        if self.accept("for"):
            loops = self.loops() if self.here.text not in (":", "where") else ()
            if self.accept("where"):
                where = self.conditions()
            self.expect(":")
        out = self.access(self.name("a statement or declaration"))
        combine = self.combine()
        return Statement(loops, out, combine, self.expr(), tuple(where), seq, line)

    def loops(self) -> tuple[Loop, ...]:
        loops = []
        while True:
            name = self.new_name("loop")
            self.expect("<")
            loop = Loop(name.text, self.index(extent=True))
            self.scope[name.text] = loop
            loops.append(loop)
            if not self.accept(","):
                return tuple(loops)

    def conditions(self) -> list[Condition]:
        """Chains such as ``0 <= p + r - 1 < 56``, separated by commas."""
        found: list[Condition] = []
        while True:
            left = self.index()
            if self.here.text not in _COMPARE:
                raise self.error(f"expected a comparison ({' '.join(_COMPARE)})")
            while self.here.text in _COMPARE:
                sign = self.take().text
                right = self.index()
                found.append(_condition(left, sign, right))
                left = right
            if not self.accept(","):
                return found

    def combine(self) -> Combine:
        """``max=`` and ``min=`` arrive as two tokens."""
        text = self.take()
        if text.text in ("max", "min") and self.here.text == "=":
            self.take()
            return Combine(f"{text.text}=")
        if text.text not in ("=", "+=", "*="):
            raise self.error("expected one of = += *= max= min=", text)
        return Combine(text.text)

    # -- indices

    def indices(self, close: str, extent: bool = False) -> tuple[Index, ...]:
        found: list[Index] = []
        while not self.accept(close):
            found.append(self.index(extent))
            if not self.accept(","):
                self.expect(close)
                break
        return tuple(found)

    def index(self, extent: bool = False) -> Index:
        total = self.index_term(extent)
        while self.here.text in ("+", "-"):
            sign = self.take().text
            term = self.index_term(extent)
            total = total + term if sign == "+" else total - term
        return total

    def index_term(self, extent: bool) -> Index:
        total = self.index_factor(extent)
        while self.here.text in ("*", "//", "%"):
            sign = self.take()
            factor = self.index_factor(extent)
            if sign.text == "*":
                if not (factor.is_constant or total.is_constant):
                    raise self.error("an index multiplies by a constant only", sign)
                total = total * factor.const if factor.is_constant else factor * total.const
            elif not factor.is_constant or factor.const <= 0:
                raise self.error(f"an index takes {sign.text} of a positive constant only", sign)
            else:
                total = total // factor.const if sign.text == "//" else total % factor.const
        return total

    def index_factor(self, extent: bool) -> Index:
        if self.accept("-"):
            return -self.index_factor(extent)
        if self.accept("("):
            inner = self.index(extent)
            self.expect(")")
            return inner
        token = self.take()
        if token.kind == "number":
            return constant(self.whole(token))
        if token.text in self.sizes or (not extent and token.text in self.scope):
            return variable(token.text)
        if not extent and token.text in self.tensors:
            return affine(((self.access(token), 1),))
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self.error("expected an extent" if extent else "expected an index", token)
        raise self.unknown("size" if extent else "loop or size", token, {**self.sizes, **({} if extent else self.scope)})

    def access(self, name: Token) -> Access:
        if name.text not in self.tensors:
            raise self.unknown("tensor", name, self.tensors)
        indices = self.indices("]") if self.accept("[") else ()
        rank = len(self.tensors[name.text].shape)
        if len(indices) != rank:
            found = f"{len(indices)} {'index' if len(indices) == 1 else 'indices'}"
            raise self.error(f"'{name.text}' has {rank} dimensions, this access has {found}", name)
        return Access(name.text, indices)

    # -- values

    def expr(self, binding: int = 0) -> Expr:
        left = self.prefix()
        while (row := INFIX.get(self.here.text)) is not None and row.binding >= binding and self.here.kind == "symbol":
            self.take()
            left = Apply(row.name, (left, self.expr(row.binding + 1)))
        return left

    def prefix(self) -> Expr:
        token = self.take()
        if token.text == "(":
            inner = self.expr()
            self.expect(")")
            return inner
        if token.kind == "symbol" and token.text in PREFIX:
            return self.negated(token)
        if token.kind == "number":
            whole = token.text.isdigit()
            return Literal(self.whole(token) if whole else float(token.text))
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self.error("expected a value", token)
        return self.named(token)

    def negated(self, token: Token) -> Expr:
        """``-3`` is a literal, ``-x[i]`` an operation."""
        row = PREFIX[token.text]
        inner = self.expr(row.binding + 1)
        if row.name == "neg" and isinstance(inner, Literal) and not isinstance(inner.value, bool):
            return Literal(-inner.value)
        return Apply(row.name, (inner,))

    def named(self, token: Token) -> Expr:
        text = token.text
        if text in self.scope or text in self.sizes:
            return Position(variable(text))
        if text in self.tensors:
            return Read(self.access(token))
        if self.here.text == "(":
            return self.call(token)
        if text in _NUMBERS:
            return Literal(_NUMBERS[text])
        raise self.unknown("name", token, {**self.scope, **self.sizes, **self.tensors, **PRIMITIVES})

    def call(self, token: Token) -> Expr:
        self.expect("(")
        args = [self.expr()]
        while self.accept(","):
            args.append(self.expr())
        self.expect(")")
        text = token.text
        target = text.removeprefix("bitcast_")
        if target in DTYPES and len(args) == 1:
            return (Bitcast if text != target else Cast)(DTYPES[target], args[0])
        if text not in PRIMITIVES:
            raise self.unknown("function", token, {**PRIMITIVES, **DTYPES})
        if len(args) != PRIMITIVES[text].arity:
            raise self.error(f"{text} takes {PRIMITIVES[text].arity} arguments, not {len(args)}", token)
        return Apply(text, tuple(args))

    # -- tokens

    @property
    def here(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.here
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        if self.here.text != text or self.here.kind == "end":
            return False
        self.take()
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected '{text}'")

    def name(self, what: str) -> Token:
        token = self.take()
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self.error(f"expected {what}", token)
        return token

    def new_name(self, what: str) -> Token:
        token = self.name(f"a name for the {what}")
        if token.text in self.sizes or token.text in self.tensors or token.text in self.scope:
            raise self.error(f"'{token.text}' is already the name of something", token)
        if token.text in PRIMITIVES or token.text in DTYPES or token.text in _NUMBERS:
            raise self.error(f"'{token.text}' is a word of the language", token)
        return token

    def integer(self) -> int:
        negative = self.accept("-")
        value = self.whole(self.take())
        return -value if negative else value

    def whole(self, token: Token) -> int:
        if not token.text.isdigit() or len(token.text) > 30:
            raise self.error("expected a whole number", token)
        return int(token.text)

    def error(self, message: str, token: Token | None = None) -> ParseError:
        token = token or self.here
        return self.source.error(f"{message}, found '{token.text}'", token.place)

    def unknown(self, what: str, token: Token, known: object) -> ParseError:
        names = sorted(known) if isinstance(known, dict) else []
        close = difflib.get_close_matches(token.text, names, 1)
        hint = f"did you mean '{close[0]}'?" if close else (f"known: {', '.join(names[:12])}" if names else None)
        return self.source.error(f"unknown {what} '{token.text}'", token.place, hint)


def _condition(left: Index, sign: str, right: Index) -> Condition:
    if sign == "==":
        return Condition(left - right, equal=True)
    if sign in ("<", "<="):
        return Condition(right - left - (1 if sign == "<" else 0))
    return Condition(left - right - (1 if sign == ">" else 0))
