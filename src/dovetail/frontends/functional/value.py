"""Terms as Python values: operators build terms, Python functions are functions.

A Python function is called once, with a variable for each of its parameters, and what it gives is the body. The
variables have the parameters' names, changed where a function around it has one of that name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from dovetail.base.errors import TermError
from dovetail.ir.functional.patterns import WORDS, scalar_arity
from dovetail.ir.functional.patterns import apply as applied
from dovetail.ir.functional.term import Lambda, Let, Literal, Scalar, Term, Var, fresh
from dovetail.ir.index import Index, as_index
from dovetail.ir.program import Size

Number = int | float | bool


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A term. Arithmetic and comparisons build larger ones; ``==`` is Python's, ``eq(a, b)`` compares elements."""

    term: Term

    def __str__(self) -> str:
        return str(self.term)

    def __add__(self, other: Operand) -> Value:
        return scalar("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return scalar("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return scalar("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return scalar("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return scalar("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return scalar("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return scalar("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return scalar("div", other, self)

    def __floordiv__(self, other: Operand) -> Value:
        return scalar("floordiv", self, other)

    def __mod__(self, other: Operand) -> Value:
        return scalar("mod", self, other)

    def __neg__(self) -> Value:
        return scalar("neg", self)

    def __lt__(self, other: Operand) -> Value:
        return scalar("lt", self, other)

    def __le__(self, other: Operand) -> Value:
        return scalar("le", self, other)

    def __gt__(self, other: Operand) -> Value:
        return scalar("gt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return scalar("ge", self, other)

    def __bool__(self) -> bool:
        raise TermError(f"'{self}' has no value while a term is built", hint="select(condition, a, b) chooses")


@dataclass(frozen=True, slots=True)
class Extent:
    """A run-time size, or arithmetic on run-time sizes and numbers."""

    index: Index
    sizes: tuple[Size, ...]

    def __add__(self, other: Extent | int) -> Extent:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Extent | int) -> Extent:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, factor: int) -> Extent:
        return Extent(self.index * factor, self.sizes)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Extent:
        return Extent(self.index // divisor, self.sizes)

    def _with(self, other: Extent | int, combine: Callable[[Index, Index], Index]) -> Extent:
        more = other.sizes if isinstance(other, Extent) else ()
        index = other.index if isinstance(other, Extent) else as_index(other)
        return Extent(combine(self.index, index), tuple(dict.fromkeys(self.sizes + more)))


Operand = Value | Number | Extent
Function = Callable[..., Value] | Value
NONE = Value(Literal(None))
"""The value that is not there."""


@dataclass(slots=True)
class Frame:
    """A function whose body is being built: the names in use, and the values it has named so far."""

    names: frozenset[str]
    lets: list[tuple[str, Term]] = field(default_factory=list)
    sizes: dict[str, Size] = field(default_factory=dict)


_FRAME: ContextVar[Frame | None] = ContextVar("frame", default=None)


def scalar(function: str, *args: Operand) -> Value:
    """A primitive, by its name in programs."""
    assert len(args) <= scalar_arity(function)
    return Value(Scalar(function, tuple(term_of(arg) for arg in args)))


def apply(function: Function, *args: Operand) -> Value:
    """A function of values."""
    return Value(applied(function_of(function), tuple(term_of(arg) for arg in args)))


def let(name: str, value: Value) -> Value:
    """``value`` under a name, from here to the end of the function being built: an array with a name is stored."""
    frame = _FRAME.get()
    if frame is None:
        raise TermError(f"'{name}' is named outside of a function", hint="let is for the body of a function")
    new = fresh(name, frame.names | WORDS)
    frame.names |= {new}
    frame.lets.append((new, value.term))
    return Value(Var(new))


def body_of(names: tuple[str, ...], build: Callable[..., Value]) -> tuple[tuple[str, ...], Term, Frame]:
    """What ``build`` gives for variables of ``names``: the variables, the term, and what was used in it."""
    outer = _FRAME.get()
    taken = outer.names if outer else frozenset()
    new: list[str] = []
    for name in names:
        new.append(fresh(name, taken | frozenset(new) | WORDS))
    frame = Frame(taken | frozenset(new), sizes=outer.sizes if outer else {})
    token = _FRAME.set(frame)
    try:
        term = term_of(build(*(Value(Var(name)) for name in new)))
    finally:
        _FRAME.reset(token)
    for name, value in reversed(frame.lets):
        term = Let(name, value, term)
    return tuple(new), term, frame


def function_of(function: Function) -> Term:
    """A Python function, or a value that is one, as a term."""
    if isinstance(function, Value):
        return function.term
    params, body, _ = body_of(parameters(function), function)
    return Lambda(params, body)


def parameters(function: Callable[..., Value]) -> tuple[str, ...]:
    """The parameters that a Python function must be given."""
    found = inspect.signature(function).parameters.values()
    return tuple(p.name for p in found if p.default is p.empty and p.kind is not p.VAR_KEYWORD)


def term_of(value: Operand) -> Term:
    """A value, a number or a run-time size as a term."""
    if isinstance(value, Value):
        return value.term
    if not isinstance(value, Extent):
        return Literal(value)
    used(value)
    names = value.index.names()
    if len(names) != 1 or str(value.index) not in names:
        raise TermError(f"{value.index} is arithmetic on sizes", hint="compute with the sizes one by one")
    return Var(str(value.index))


def index_of(extent: Extent | int) -> Index:
    """A size of a setting."""
    return used(extent) if isinstance(extent, Extent) else as_index(extent)


def used(extent: Extent) -> Index:
    """``extent``, whose sizes the definition being built then declares."""
    frame = _FRAME.get()
    if frame is not None:
        frame.sizes.update({size.name: size for size in extent.sizes})
    return extent.index


def add(a: Operand, b: Operand) -> Value:
    return scalar("add", a, b)


def mul(a: Operand, b: Operand) -> Value:
    return scalar("mul", a, b)


def max(a: Operand, b: Operand) -> Value:
    return scalar("max", a, b)


def min(a: Operand, b: Operand) -> Value:
    return scalar("min", a, b)


def eq(a: Operand, b: Operand) -> Value:
    return scalar("eq", a, b)


def select(condition: Operand, a: Operand, b: Operand) -> Value:
    """``a`` where ``condition``, else ``b``."""
    return scalar("select", condition, a, b)


def orelse(a: Operand, b: Operand) -> Value:
    """``a``, but ``b`` where it is not there."""
    return scalar("orelse", a, b)


def exp(a: Operand) -> Value:
    return scalar("exp", a)


def log(a: Operand) -> Value:
    return scalar("log", a)


def sqrt(a: Operand) -> Value:
    return scalar("sqrt", a)


def rsqrt(a: Operand) -> Value:
    return scalar("rsqrt", a)


def tanh(a: Operand) -> Value:
    return scalar("tanh", a)


def sigmoid(a: Operand) -> Value:
    return scalar("sigmoid", a)
