"""Python functions over operators of graphs -> forms, by calling them with holes.

    def swish(x):
        return x * op.sigmoid(x)

    def sums(x: "f32[?k]"):                                   an annotation is the type of a hole
        return op.repeat(lambda h: h + op.each("b"), x)       b: another value at every step

``op`` has every operator as a method; its keywords are the operator's attributes, and a text that begins with ``?``
is an attribute that may be anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dovetail.base.errors import PatternError
from dovetail.base.suggest import closest
from dovetail.ir.graph.graph import Attribute, SmallTensor
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.graph_text import AnyAttribute, AttributeTerm, FixedAttribute, MadeAttribute
from dovetail.rewrite.patterns.form import Chain, Each, Form, FormBuilder, Hole, Item, Number, Operation, Result
from dovetail.rewrite.patterns.own import CALL, PROGRAM


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A value of a function that is being traced."""

    builder: FormBuilder
    part: int

    def __add__(self, other: Operand) -> Traced:
        return _applied("add", (self, other))

    def __radd__(self, other: Operand) -> Traced:
        return _applied("add", (other, self))

    def __mul__(self, other: Operand) -> Traced:
        return _applied("mul", (self, other))

    def __rmul__(self, other: Operand) -> Traced:
        return _applied("mul", (other, self))

    def __sub__(self, other: Operand) -> Traced:
        return _applied("sub", (self, other))

    def __rsub__(self, other: Operand) -> Traced:
        return _applied("sub", (other, self))

    def __truediv__(self, other: Operand) -> Traced:
        return _applied("div", (self, other))

    def __rtruediv__(self, other: Operand) -> Traced:
        return _applied("div", (other, self))

    def __matmul__(self, other: Traced) -> Traced:
        return _applied("matmul", (self, other))

    def __neg__(self) -> Traced:
        return _applied("neg", (self,))

    def __bool__(self) -> bool:
        raise PatternError(
            "a pattern asks whether a value is true", why="it is traced once, for all values", hint="op.select(...)"
        )


Operand = Traced | Item | Each | int | float


class Operations:
    """``op.matmul(x, w, transpose_b=1)``: an operator on traced values."""

    def __getattr__(self, name: str) -> Callable[..., Traced]:
        known = name.rstrip("_")
        if known not in OPERATORS and known not in (PROGRAM, CALL):
            raise PatternError(f"unknown operator '{known}'", hint=closest(known, OPERATORS))

        def call(*operands: Operand, **attributes: Attribute) -> Traced:
            return _applied(known, operands, attributes)

        return call

    def several(self, name: str, count: int, *operands: Operand, **attributes: Attribute) -> tuple[Traced, ...]:
        """The ``count`` values of an operator that makes several: ``op.several("split", 2, x, sizes="?s")``."""
        made = _applied(name, operands, attributes, count)
        return tuple(Traced(made.builder, made.builder.add(Result(made.part, k))) for k in range(count))

    def repeat(self, step: Callable[[Traced], Traced], start: Traced, count: str = "?n", least: int = 1) -> Traced:
        """A chain of steps, each of the one before it; ``count`` is what the number of steps is called."""
        inner, name = FormBuilder(start.builder.depth + 1), "previous"
        found = step(Traced(inner, inner.add(Hole(name))))
        taken = _moved_in(found, inner)
        form = inner.form(taken)
        chain = Chain(count.removeprefix("?"), least, start.part, name, form)
        return Traced(start.builder, start.builder.add(chain))

    def each(self, value: str | Traced) -> Each | Item:
        """In a step: another value at every step. On the right side: as many operands as there were steps."""
        if isinstance(value, str):
            return Item(value.removeprefix("?"))
        return Each(value.builder.form(value.part))


op = Operations()
"""Every operator, as a method."""


def traced(function: Callable[..., object], name: str) -> tuple[Form, tuple[str, ...]]:
    """What ``function`` makes of its parameters, and the types that its annotations give them."""
    builder = FormBuilder()
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters):
        raise PatternError("a pattern takes any number of values", where=f"pattern '{name}'", hint="op.each in a step")
    made = function(*(Traced(builder, builder.add(Hole(one.name))) for one in parameters))
    results = made if isinstance(made, tuple | list) else (made,)
    for result in results:
        if not isinstance(result, Traced):
            what = f"the function of pattern '{name}' returns {type(result).__name__}, not what operators make"
            raise PatternError(what, hint="return op.relu(x), or a tuple of such values")
    sinks = [result.part for result in results if isinstance(result, Traced)]
    return builder.form(*sinks), tuple(_typed(one) for one in parameters if one.annotation is not one.empty)


def _typed(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    return f"{parameter.name}: {kind if isinstance(kind, str) else getattr(kind, '__name__', kind)}".replace("'", "")


def _builder(name: str, operands: tuple[object, ...]) -> FormBuilder:
    """Of a value in a step and one around it, the step's."""
    builders = [operand.builder for operand in operands if isinstance(operand, Traced)]
    if not builders:
        raise PatternError(f"{name} is called without a traced value", hint=f"op.{name}(x)")
    return max(builders, key=lambda builder: builder.depth)


def _applied(
    name: str,
    operands: tuple[object, ...],
    attributes: Mapping[str, Attribute] | None = None,
    results: int = 1,
) -> Traced:
    builder = _builder(name, operands)
    places = tuple(_place(builder, name, operand) for operand in operands)
    terms = tuple((key, _attribute(value)) for key, value in (attributes or {}).items())
    return Traced(builder, builder.add(Operation(name, places, terms, results)))


def _place(builder: FormBuilder, name: str, operand: object) -> int:
    if isinstance(operand, Traced):
        if operand.builder is builder:
            return operand.part
        outer = operand.builder.parts[operand.part]
        if isinstance(outer, Hole):
            return builder.add(outer)
        why = "what every step reads is a hole: it would be computed again at each of them"
        raise PatternError(f"{name} reads, in a step, what is made outside of it", why=why)
    if isinstance(operand, Item | Each):
        return builder.add(operand)
    if isinstance(operand, int | float):
        return builder.add(Number(float(operand)))
    raise PatternError(f"{name} is called with {type(operand).__name__}", hint="a traced value or a number")


def _attribute(value: Attribute) -> AttributeTerm:
    if isinstance(value, str):
        return AnyAttribute(value[1:]) if value.startswith("?") else FixedAttribute(value)
    if isinstance(value, SmallTensor):
        raise PatternError("a pattern cannot name a small tensor", hint="?p, and a condition on it")
    if isinstance(value, tuple | list):
        return MadeAttribute("", tuple(_attribute(one) for one in value))
    return FixedAttribute(value)


def _moved_in(found: object, inner: FormBuilder) -> int:
    if not isinstance(found, Traced) or found.builder is not inner:
        raise PatternError("a step of a repetition makes nothing of the one before it", hint="lambda h: op.relu(h)")
    return found.part
