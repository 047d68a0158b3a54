"""Random types, functions and data for the metas of a rule.

A function that is drawn looks at every argument, at every element of it, and at where the element stands (but for a
few that look at none): two sides of a rule that hand it different values, or the same in another order, differ in what
they compute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from dovetail.base.dtypes import DType, dtype
from dovetail.ir.functional.term import Lambda, Literal, Pattern, Scalar, Term, Var
from dovetail.ir.functional.types import Array, Function, Tuple, Type, array, shape
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.index import constant

_OPERATIONS = ("add", "mul", "max", "min")
STARTS: tuple[float, ...] = (0, 1, float("-inf"), float("inf"))
DTYPES = ("f32", "f32", "i32")


@dataclass
class Draw:
    """A source of random parts of a term; ``params`` are the names that it made up, to be filled with data."""

    random: Random
    dtypes: tuple[str, ...] = DTYPES
    bilinear: bool = False
    """Whether functions of two values are products where they can be."""
    params: dict[str, Type] = field(default_factory=dict)
    _names: int = 0

    def kind(self) -> Type:
        """A type: a number more often than an array, and that more often than a pair."""
        number = Number(dtype(self.random.choice(self.dtypes)))
        roll = self.random.random()
        if roll < 0.6:
            return number
        if roll < 0.85:
            return Array(constant(self.random.randint(1, 3)), number)
        if roll < 0.95:
            return Array(constant(self.random.randint(1, 2)), Array(constant(self.random.randint(1, 3)), number))
        return Tuple((number, Number(dtype(self.random.choice(self.dtypes)))))

    def term(self, kind: Type) -> Term:
        """A term of this type."""
        if isinstance(kind, Function):
            return self.function(kind)
        roll = self.random.random()
        if isinstance(kind, Number) and roll < 0.5:
            return self.start()
        if isinstance(kind, Array):
            return self.data(kind, roll)
        return self.param(kind)

    def data(self, kind: Array, roll: float) -> Term:
        """Mostly data as it is; now and then computed, all alike, or with places that are not there."""
        size = kind.size.const
        if roll < 0.15 and size >= 2:
            left = self.random.randint(0, size - 1)
            rest = Array(constant(size - 1), kind.element)
            ends = (constant(min(left, 1)), constant(1 - min(left, 1)))
            return Pattern("pad", ends, (Literal(None), self.param(rest)))
        if roll < 0.3:
            return Pattern("repeat", (kind.size,), (self.term(kind.element),))
        if roll < 0.45:
            return Pattern("map", (), (self.function(Function((kind.element,), kind.element)), self.param(kind)))
        return self.param(kind)

    def start(self) -> Term:
        """A number to start a reduction from."""
        return Literal(self.random.choice(STARTS) if self.random.random() < 0.8 else self.random.randint(-3, 3))

    def param(self, kind: Type) -> Term:
        """New data; a pair is a pair of data, and an array of pairs is a pair of arrays put together."""
        sizes, inner = shape(kind)
        if isinstance(inner, Tuple):
            return self.paired([self.param(array(sizes, member)) for member in inner.members], len(sizes))
        name = f"in{len(self.params)}"
        self.params[name] = kind
        return Var(name)

    def paired(self, parts: list[Term], depth: int) -> Term:
        """Arrays that are ``depth`` deep as one array of tuples."""
        if depth < 2:
            return Pattern("zip" if depth else "tuple", (), tuple(parts))
        names = tuple(self.fresh() for _ in parts)
        inner = Lambda(names, self.paired([Var(name) for name in names], depth - 1))
        return Pattern("map", (), (inner, Pattern("zip", (), tuple(parts))))

    def function(self, kind: Function) -> Term:
        """A function: one of two equal values and as many of one that are alike is often a plain operation."""
        (a, *rest) = kind.params
        if not rest and isinstance(a, Tuple):
            return self.function(Function(a.members, kind.result))
        if rest == [a] and kind.result == a and self.random.random() < 0.6:
            return self.operation(a, self.random.choice(_OPERATIONS))
        product = self.product(a, rest[0], kind.result) if self.bilinear and len(rest) == 1 else None
        if product is not None:
            return product
        names = tuple(self.fresh() for _ in kind.params)
        if self.random.random() < 0.05:
            return Lambda(names, self.param(kind.result))
        parts = [self.reach(Var(n), p, kind.result) for n, p in zip(names, kind.params, strict=True)]
        return Lambda(names, self.joined(parts, kind.result))

    def operation(self, kind: Type, function: str) -> Term:
        """A primitive, lifted over arrays and pairs."""
        if isinstance(kind, Number):
            return Scalar(function)
        a, b = self.fresh(), self.fresh()
        if isinstance(kind, Array):
            pairs = Pattern("zip", (), (Var(a), Var(b)))
            return Lambda((a, b), Pattern("map", (), (self.operation(kind.element, function), pairs)))
        assert isinstance(kind, Tuple)
        members = (_both(self.operation(m, function), Var(a), Var(b), k) for k, m in enumerate(kind.members))
        return Lambda((a, b), Pattern("tuple", (), tuple(members)))

    def product(self, a: Type, b: Type, result: Type) -> Term | None:
        """The product of two numbers, or the sum of products of two arrays however deep: linear in both."""
        if a != b or shape(a)[1] != result or not isinstance(result, Number):
            return None
        if not isinstance(a, Array):
            return Scalar("mul")
        inner = self.product(a.element, a.element, result)
        assert inner is not None, "an array of arrays of numbers"
        x, y = self.fresh(), self.fresh()
        products = Pattern("map", (), (inner, Pattern("zip", (), (Var(x), Var(y)))))
        return Lambda((x, y), Pattern("reduce", (), (Scalar("add"), Literal(0), products)))

    def joined(self, parts: list[Term], kind: Type) -> Term:
        """Values of one type as one; exchanging two of them changes it."""
        if isinstance(kind, Tuple):
            return Pattern(
                "tuple", (), tuple(self.joined([_get(k, p) for p in parts], m) for k, m in enumerate(kind.members))
            )
        if isinstance(kind, Array):
            names = tuple(self.fresh() for _ in parts)
            body = self.joined([Var(name) for name in names], kind.element)
            data = parts[0] if len(parts) == 1 else Pattern("zip", (), tuple(parts))
            return Pattern("map", (), (Lambda(names, body), data))
        total = self.unary(parts[0])
        for part in parts[1:]:
            total = Scalar(
                self.random.choice(("sub", "max", "mul")), (Scalar("mul", (Literal(2), total)), self.unary(part))
            )
        return total

    def unary(self, value: Term) -> Term:
        """A number changed a little."""
        roll = self.random.random()
        if roll < 0.4:
            return value
        if roll < 0.6:
            return Scalar("add", (Scalar("mul", (Literal(3), value)), Literal(self.random.randint(-2, 2))))
        return Scalar("neg" if roll < 0.75 else "max", (value,) if roll < 0.75 else (value, Literal(-1)))

    def reach(self, value: Term, kind: Type, wanted: Type) -> Term:
        """``value`` of one type turned into another, such that every element counts."""
        if kind == wanted:
            return value
        match kind, wanted:
            case _, Tuple(members):
                return Pattern("tuple", (), tuple(self.reach(value, kind, m) for m in members))
            case Tuple(members), _:
                return self.joined([self.reach(_get(k, value), m, wanted) for k, m in enumerate(members)], wanted)
            case Array(size, element), Array(other, inner) if size == other:
                name = self.fresh()
                return Pattern("map", (), (Lambda((name,), self.reach(Var(name), element, inner)), value))
            case _, Array(size, inner):
                return Pattern("repeat", (size,), (self.reach(value, kind, inner),))
            case Array(_, element), Number(own):
                return self.summed(value, element, own)
        assert isinstance(wanted, Number)
        return Scalar(wanted.dtype.name, (value,))

    def summed(self, value: Term, element: Type, own: DType) -> Term:
        """All elements, in order: each step doubles what came before, so that every place counts differently."""
        total, name = self.fresh(), self.fresh()
        step = Scalar("sub", (self.reach(Var(name), element, Number(own)), Scalar("mul", (Literal(2), Var(total)))))
        return Pattern("reduce", (), (Lambda((total, name), step), Scalar(own.name, (Literal(0),)), value))

    def fresh(self) -> str:
        self._names += 1
        return f"u{self._names}"


def _get(number: int, value: Term) -> Term:
    return Pattern("get", (constant(number),), (value,))


def _both(function: Term, a: Term, b: Term, number: int) -> Term:
    """``function`` of one member of each of two pairs."""
    args = (_get(number, a), _get(number, b))
    if isinstance(function, Scalar):
        return Scalar(function.function, args)
    raise AssertionError("pairs of numbers only")
