"""What the matcher looks for: the left side of a rule, made once from its term.

shape = ?x                         anything
      | label {settings} (shape, ...)   an operation
      | bound                      a variable that the rule itself binds
      | binder . shape             a function or a ``let``, up to the names it binds
      | ?f(bound, ...)             anything, as a function of these variables
      | ?f(shape)                  anything around the shape: one operation deep
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.base.errors import RuleError
from dovetail.ir.functional.term import Call, Lambda, Let, Literal, Meta, Pattern, Scalar, Setting, Term, Var
from dovetail.ir.graph.graph import Attribute
from dovetail.ir.primitives import PRIMITIVES

Value = Setting | Attribute | None
"""What a setting of a term, or an attribute of an operator, may be; a whole number is an ``Index``."""


@dataclass(frozen=True, slots=True)
class Anything:
    """``?x``: any operand, the same one at every place."""

    name: str


@dataclass(frozen=True, slots=True)
class Node:
    """An operation with as many operands; ``settings`` by position or by name."""

    label: str
    settings: tuple[tuple[str, Value], ...]
    operands: tuple[Shape, ...]
    commutative: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """The variable that the binder at ``level``, counted from the outside, binds."""

    level: int


@dataclass(frozen=True, slots=True)
class Binder:
    """A function of ``count`` parameters, or a ``let`` (``outside`` is its value)."""

    label: str
    count: int
    outside: tuple[Shape, ...]
    body: Shape


@dataclass(frozen=True, slots=True)
class Applied:
    """``?f(a, b)``: whatever is there, as a function of bound variables; no other bound variable may occur in it."""

    name: str
    levels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """``?f(shape)``: one operation around what the shape matches; ``?f`` is that operation as a function."""

    name: str
    inner: Shape


Shape = Anything | Node | Bound | Binder | Applied | Split

FUNCTION = "\\"
LET = "let"


def shape_of(term: Term, levels: Mapping[str, int] | None = None, depth: int = 0) -> Shape:
    """The shape a term with metas stands for; ``levels`` are the variables bound around it."""
    levels = levels or {}
    match term:
        case Meta(name):
            return Anything(name)
        case Var(name) if name in levels:
            return Bound(levels[name])
        case Lambda(params, body):
            inner = {**levels, **{name: depth + k for k, name in enumerate(params)}}
            return Binder(FUNCTION, len(params), (), shape_of(body, inner, depth + len(params)))
        case Let(name, value, body):
            outside = (shape_of(value, levels, depth),)
            return Binder(LET, 1, outside, shape_of(body, {**levels, name: depth}, depth + 1))
        case Call(Meta(name), args):
            return _applied(name, args, levels, depth)
        case Scalar(function, (arg,)) if is_commutative(function):
            both = (shape_of(arg, levels, depth + 1), Bound(depth))
            return Binder(FUNCTION, 1, (), Node(f"{function}(2)", (), both, True))
    operands = tuple(shape_of(child, levels, depth) for child in _operands(term))
    return Node(label_of(term), settings_of(term), operands, commutes(term))


def label_of(term: Term) -> str:
    """What must be equal for two operations to be the same, apart from settings and operands."""
    match term:
        case Var(name):
            return f"name {name}"
        case Literal(value):
            return f"= {plain(value)!r}"
        case Lambda(params, _):
            return f"{FUNCTION}{len(params)}"
        case Let():
            return LET
        case Call(Var(name), args):
            return f"{name}({len(args)})"
        case Call(_, args):
            return f"call({len(args)})"
        case Scalar(name, args) | Pattern(name, _, args):
            return f"{name}({len(args)})"
    raise AssertionError(f"no label for {term}")


def settings_of(term: Term) -> tuple[tuple[str, Setting], ...]:
    """Settings by position."""
    return tuple((str(k), setting) for k, setting in enumerate(term.settings)) if isinstance(term, Pattern) else ()


def commutes(term: Term) -> bool:
    """Whether its two operands may be exchanged."""
    return isinstance(term, Scalar) and len(term.args) == 2 and is_commutative(term.function)


def is_commutative(function: str) -> bool:
    """Whether the primitive of this name is commutative."""
    return function in PRIMITIVES and PRIMITIVES[function].commutative


def plain(value: float | bool | None) -> float | bool | None:
    """The one spelling of a number: ``2.0`` is 2, and -0.0 stays what it is."""
    if isinstance(value, float) and value.is_integer() and str(value) != "-0.0":
        return int(value)
    return value


def _operands(term: Term) -> tuple[Term, ...]:
    match term:
        case Call(Var(), args):
            return args
        case Call(function, args):
            return (function, *args)
        case Scalar(_, args) | Pattern(_, _, args):
            return args
    return ()


def _applied(name: str, args: tuple[Term, ...], levels: Mapping[str, int], depth: int) -> Shape:
    bound = [levels[arg.name] for arg in args if isinstance(arg, Var) and arg.name in levels]
    if len(bound) == len(args) and len(set(bound)) == len(bound):
        return Applied(name, tuple(bound))
    if len(args) == 1:
        return Split(name, shape_of(args[0], levels, depth))
    raise RuleError(
        f"what '?{name}' is applied to cannot be found again",
        why="before the arrow a function that may be anything is applied to different bound variables, or to one term",
        hint=f"?{name}(a, b) inside \\a b -> ..., or ?{name} . ?g",
    )
