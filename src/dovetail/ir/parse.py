"""Program text -> ``Program``. The grammar is in ``program``; every error shows the line with a caret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import ParseError
from dovetail.base.limits import DEFAULT_LIMITS, MAX_EXTENT, Limits
from dovetail.ir.cursor import COMPARE, DEEPEST, Cursor, condition
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Position, Read, shallow
from dovetail.ir.index import Access, Condition, Index, affine, constant, variable
from dovetail.ir.primitives import INFIX, PREFIX, PRIMITIVES
from dovetail.ir.program import Combine, Loop, Program, Role, Size, Statement, Tensor
from dovetail.ir.tokens import Source, Token, tokenize

_ROLES = {r.value: r for r in Role}
_KEYWORDS = {*_ROLES, "size", "for", "seq", "where"}
_NUMBERS = {"true": True, "false": False, "inf": float("inf"), "nan": float("nan")}


def parse(text: str, name: str = "program", limits: Limits = DEFAULT_LIMITS) -> Program:
    """The program ``text`` describes; ``name`` stands for it in messages."""
    if len(text) > limits.text_bytes:
        raise ParseError(f"{name} is {len(text)} characters long, the limit is {limits.text_bytes}")
    return _Parser(Source(text, name)).program()


def parse_statement(text: str, dtypes: Mapping[str, DType], sizes: Sequence[Size], name: str) -> Statement:
    """One statement over tensors whose dtypes are known and whose shapes are not (an instruction's ``computes``)."""
    parser = _Parser(Source(text, name), sizes)
    parser.tensors = {tensor: Tensor(Role.IN, tensor, kind, ()) for tensor, kind in dtypes.items()}
    parser.ranked = False
    return parser.whole_text(parser.statement)


def parse_conditions(text: str, sizes: Sequence[Size], name: str) -> tuple[Condition, ...]:
    """Comparisons of indices over ``sizes``: ``m % 4 == 0, m <= n``."""
    parser = _Parser(Source(text, name), sizes)
    return tuple(parser.whole_text(parser.conditions))


def parse_index(text: str, sizes: Sequence[Size], name: str) -> Index:
    """An index over ``sizes``: ``4 * n + k % 4``."""
    parser = _Parser(Source(text, name), sizes)
    return parser.whole_text(parser.index)


class _Parser(Cursor):
    """Recursive descent over tokens; ``scope`` holds the loops of the statement being read."""

    def __init__(self, source: Source, sizes: Sequence[Size] = ()) -> None:
        super().__init__(source, tokenize(source))
        self.sizes = {size.name: size for size in sizes}
        self.tensors: dict[str, Tensor] = {}
        self.scope: dict[str, Loop] = {}
        self.ranked = True
        self.loop_names: set[str] = set()

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
        usual = self.integer() if "about" not in self.tensors and self.accept("about") else 0
        self.sizes[name.text] = Size(name.text, low, high, usual)

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
        start = self.here
        value = self.expr()
        if not shallow(value, DEEPEST):
            raise self.refusal(f"this value nests more than {DEEPEST} operations", start)
        return Statement(loops, out, combine, value, tuple(where), seq, line)

    def loops(self) -> tuple[Loop, ...]:
        loops = []
        while True:
            name = self.new_name("loop")
            self.expect("<")
            loop = Loop(name.text, self.index(extent=True))
            self.scope[name.text] = loop
            self.loop_names.add(name.text)
            loops.append(loop)
            if not self.accept(","):
                return tuple(loops)

    def conditions(self) -> list[Condition]:
        """Chains such as ``0 <= p + r - 1 < 56``, separated by commas."""
        found: list[Condition] = []
        while True:
            left = self.index()
            if self.here.text not in COMPARE:
                raise self.error(f"expected a comparison ({' '.join(COMPARE)})")
            while self.here.text in COMPARE:
                sign = self.take().text
                right = self.index()
                found.append(condition(left, sign, right))
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
                    raise self.refusal("an index multiplies by a constant only", sign)
                total = total * factor.const if factor.is_constant else factor * total.const
            elif not factor.is_constant or factor.const <= 0:
                raise self.refusal(f"an index takes {sign.text} of a positive constant only", sign)
            else:
                total = total // factor.const if sign.text == "//" else total % factor.const
        return total

    def index_factor(self, extent: bool) -> Index:
        if self.accept("-"):
            return -self.inside(lambda: self.index_factor(extent))
        if self.accept("("):
            return self.inside(lambda: self.index(extent), ")")
        token = self.take()
        if token.kind == "number":
            return constant(self.whole(token))
        if token.text in self.sizes or (not extent and token.text in self.scope):
            return variable(token.text)
        if not extent and token.text in self.tensors:
            return affine(((self.access(token), 1),))
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self.error("expected an extent" if extent else "expected an index", token)
        known = {**self.sizes} if extent else {**self.sizes, **self.scope}
        raise self.unknown("size" if extent else "loop or size", token, known)

    def access(self, name: Token) -> Access:
        if name.text not in self.tensors:
            raise self.unknown("tensor", name, self.tensors)
        indices = self.inside(lambda: self.indices("]")) if self.accept("[") else ()
        rank = len(self.tensors[name.text].shape)
        if self.ranked and len(indices) != rank:
            found = f"{len(indices)} {'index' if len(indices) == 1 else 'indices'}"
            has = f"{rank} dimension{'' if rank == 1 else 's'}"
            raise self.refusal(f"'{name.text}' has {has}, this access has {found}", name)
        return Access(name.text, indices)

    # -- values

    def expr(self, binding: int = 0) -> Expr:
        left = self.prefix()
        while (row := INFIX.get(self.here.text)) is not None and row.binding >= binding and self.here.kind == "symbol":
            self.take()
            left = _operation(row.name, left, self.expr(row.binding + 1))
        return left

    def prefix(self) -> Expr:
        token = self.take()
        if token.text == "(":
            return self.inside(self.expr, ")")
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
        inner = self.inside(lambda: self.expr(row.binding + 1))
        if row.name == "neg" and isinstance(inner, Literal) and not isinstance(inner.value, bool):
            return Literal(-inner.value)
        if row.name == "neg" and isinstance(inner, Position):
            return Position(-inner.index)
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
        args = self.inside(self.arguments, ")")
        text = token.text
        target = text.removeprefix("bitcast_")
        if target in DTYPES and len(args) == 1:
            return (Bitcast if text != target else Cast)(DTYPES[target], args[0])
        if text not in PRIMITIVES:
            raise self.unknown("function", token, {**PRIMITIVES, **DTYPES})
        if len(args) != PRIMITIVES[text].arity:
            raise self.refusal(f"{text} takes {PRIMITIVES[text].arity} arguments, not {len(args)}", token)
        return Apply(text, tuple(args))

    def arguments(self) -> list[Expr]:
        args = [self.expr()]
        while self.accept(","):
            args.append(self.expr())
        return args

    # -- names

    def name(self, what: str) -> Token:
        token = self.take()
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self.error(f"expected {what}", token)
        return token

    def new_name(self, what: str) -> Token:
        token = self.name(f"a name for the {what}")
        if token.text in self.sizes or token.text in self.tensors or token.text in self.scope:
            raise self.refusal(f"'{token.text}' is already the name of something", token)
        if what != "loop" and token.text in self.loop_names:
            raise self.refusal(f"'{token.text}' is already the name of a loop", token)
        if token.text in PRIMITIVES or token.text in DTYPES or token.text in _NUMBERS:
            raise self.refusal(f"'{token.text}' is a word of the language", token)
        return token


def _operation(name: str, left: Expr, right: Expr) -> Expr:
    """``left name right``; arithmetic of loops, sizes and whole numbers is one index: ``2 * i + 1``, ``i // 4``."""
    a, b = _as_index(left), _as_index(right)
    if a is None or b is None:
        return Apply(name, (left, right))
    index = None
    if name in ("add", "sub"):
        index = a + b if name == "add" else a - b
    elif name == "mul" and (a.is_constant or b.is_constant):
        index = a * b.const if b.is_constant else b * a.const
    elif name in ("floordiv", "mod") and b.is_constant and b.const > 0:
        index = a // b.const if name == "floordiv" else a % b.const
    return Apply(name, (left, right)) if index is None or index.is_constant else Position(index)


def _as_index(e: Expr) -> Index | None:
    if isinstance(e, Position):
        return e.index
    whole = isinstance(e, Literal) and isinstance(e.value, int) and not isinstance(e.value, bool)
    return constant(int(e.value)) if isinstance(e, Literal) and whole and abs(e.value) <= MAX_EXTENT else None
