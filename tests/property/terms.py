"""Random well-typed definitions, and what they mean one element at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

from dovetail.base.errors import TermError
from dovetail.ir.functional.infer import infer
from dovetail.ir.functional.patterns import apply
from dovetail.ir.functional.term import (
    Call,
    Definition,
    Lambda,
    Let,
    Literal,
    Param,
    Pattern,
    Places,
    Scalar,
    Term,
    Var,
)
from dovetail.ir.functional.type_text import parse_type
from dovetail.ir.functional.types import Array, Tuple, Type, shape
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.index import Condition, constant, variable
from dovetail.ir.program import Loop, Role

MOST_ELEMENTS = 120
_TYPES = ("i32[4]", "i32[6]", "i32[2, 3]", "f32[4]", "f32[3, 2]", "i8[6]", "i32[4, 3]", "f16[4]")
_BINARY = ("add", "sub", "mul", "max", "min")


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    """One to three parameters and a body of some steps, all on small arrays; data should be small whole numbers."""
    kinds = draw(st.lists(st.sampled_from(_TYPES), min_size=1, max_size=3))
    env = {name: parse_type(kind) for name, kind in zip("abc", kinds, strict=False)}
    body = draw(terms(env, 2))
    params = tuple(Param(Role.IN, name, kind) for name, kind in env.items())
    if draw(st.booleans()):
        stored = draw(st.sampled_from("uva"))
        kept = {name: kind for name, kind in env.items() if name != stored}
        body = Let(stored, body, draw(terms({**kept, stored: infer(body, env)}, 1)))
    kind = infer(body, env)
    while not isinstance(shape(kind)[1], Number):
        member: Term = Pattern("get", (constant(0),))
        for _ in shape(kind)[0]:
            member = Pattern("map", (), (member,))
        body = apply(member, (body,))
        kind = infer(body, env)
    return Definition("f", params, ("y",), body)


@st.composite
def terms(draw: st.DrawFn, env: Mapping[str, Type], depth: int) -> Term:
    """A term over the names of ``env``."""
    pool: list[Term] = [Var(name) for name in env]
    for _ in range(draw(st.integers(1, 5))):
        found = draw(_steps(pool, env, depth))
        if _fits(found, env):
            pool.append(found)
    return pool[-1]


@st.composite
def _steps(draw: st.DrawFn, pool: list[Term], env: Mapping[str, Type], depth: int) -> Term:
    """One more operation on terms of ``pool``; it may be ill typed."""
    x, y = draw(st.sampled_from(pool[-2:])), draw(st.sampled_from(pool))  # what is new is used
    kind = infer(x, env)
    if isinstance(kind, Number):
        return draw(_arithmetic(x, y))
    if isinstance(kind, Tuple):
        return Pattern("get", (constant(draw(st.integers(0, len(kind.members) - 1))),), (x,))
    assert isinstance(kind, Array)
    n = draw(st.integers(1, 3))
    name = draw(st.sampled_from(("map", "map", "map", "reduce", "scan", "pair", "move", "move", "view", "call")))
    if name == "map" and depth:
        return Pattern("map", (), (draw(_functions((kind.element,), env, depth - 1)), x))
    if name == "reduce" and isinstance(kind.element, Number):
        return Pattern("reduce", (), (Scalar(draw(st.sampled_from(("add", "max")))), Literal(0), x))
    if name == "scan" and isinstance(kind.element, Number):
        return Pattern("scan", (), (draw(_folds(kind.element)), Literal(n), x))
    if name == "pair":
        return Pattern(draw(st.sampled_from(("zip", "tuple", "array"))), (), (x, y))
    if name == "view":
        return draw(_views(x, kind))
    if name == "call" and depth:
        return Call(draw(_functions((kind, infer(y, env)), env, depth - 1)), (x, y))
    moves = (
        Pattern("slide", (constant(n), constant(draw(st.integers(1, 2)))), (x,)),
        Pattern("split", (constant(n),), (x,)),
        Pattern("join", (), (x,)),
        Pattern("transpose", (), (x,)),
        Pattern("to", ("",), (x,)),
        Pattern("pad", (constant(1), constant(n - 1)), (Literal(draw(st.sampled_from((None, 2)))), x)),
        Pattern("repeat", (constant(n),), (x,)),
        Pattern("slice", (constant(1), constant(n), constant(1)), (x,)),
    )
    return draw(st.sampled_from(moves))


@st.composite
def _arithmetic(draw: st.DrawFn, x: Term, y: Term) -> Term:
    y = draw(st.sampled_from((y, Literal(2), Literal(-1))))
    whole = Scalar(draw(st.sampled_from(_BINARY)), (x, y))
    return draw(
        st.sampled_from(
            (
                whole,
                Scalar("orelse", (x, y)),
                Scalar("select", (Scalar("lt", (x, y)), x, whole)),
                Scalar(draw(st.sampled_from(("i32", "f16", "i8", "i64"))), (x,)),
                Scalar("neg", (x,)),
            )
        )
    )


@st.composite
def _functions(draw: st.DrawFn, given: tuple[Type, ...], env: Mapping[str, Type], depth: int) -> Term:
    """A function of values of the types ``given``; an element that is a pair may be taken as two."""
    if len(given) == 1 and isinstance(given[0], Tuple) and draw(st.booleans()):
        given = given[0].members
    names = draw(st.permutations(("p", "q", "a", "r")))[: len(given)]
    body = draw(terms({**env, **dict(zip(names, given, strict=True))}, depth))
    return Lambda(tuple(names), body)


@st.composite
def _folds(draw: st.DrawFn, kind: Type) -> Term:
    value = Scalar(draw(st.sampled_from(_BINARY)), (Var("s"), Var("e")))
    return Lambda(("s", "e"), value)


@st.composite
def _views(draw: st.DrawFn, x: Term, kind: Array) -> Term:
    """Elements at every other place, or in a corner that is not there everywhere."""
    i, j = variable("i"), variable("j")
    one = Places((Loop("i", constant(2)),), (i + draw(st.integers(0, 1)),))
    two = Places((Loop("i", constant(2)), Loop("j", constant(3))), (i * 2 + j - 1,), (Condition(i + j - 1),))
    return Pattern("view", (draw(st.sampled_from((one, two))),), (x,))


def _fits(term: Term, env: Mapping[str, Type]) -> bool:
    """Whether ``term`` is well typed and small."""
    try:
        kind = infer(term, env)
    except TermError:
        return False
    return _elements(kind) <= MOST_ELEMENTS


def _elements(kind: Type) -> int:
    if isinstance(kind, Array):
        return kind.size.const * _elements(kind.element)
    return sum(map(_elements, kind.members)) if isinstance(kind, Tuple) else 1


def inputs(definition: Definition, seed: int) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Small whole numbers for every parameter."""
    made = np.random.default_rng(seed)
    arrays = {}
    for param in definition.params:
        sizes, inner = shape(param.type)
        assert isinstance(inner, Number)
        arrays[param.name] = made.integers(-3, 4, [size.const for size in sizes]).astype(inner.dtype.numpy)
    return arrays
