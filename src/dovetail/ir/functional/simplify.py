"""Terms made shorter without changing what they compute, or how often: one spelling of a function and its application.

    (\\v -> v * v)(x)               ->   x * x
    get(0, tuple(a, b))            ->   a
    \\v -> map(f, v)                ->   map(f)
    \\a b -> a + b                  ->   add
    let a = b in map(f, a)         ->   map(f, b)           also where b is a function, or a is not used

Types are not needed. A number under a name stays: all its uses have one type. The result does not depend on the names
of bound variables but for those names themselves.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.functional.patterns import PATTERNS, apply, missing
from dovetail.ir.functional.term import (
    Call,
    Lambda,
    Let,
    Pattern,
    Scalar,
    Term,
    Var,
    children,
    free_names,
    fresh,
    nameless,
    substitute,
    with_children,
)
from dovetail.ir.index import Index, constant


def simplify(term: Term) -> Term:
    """``term`` with every application, member, trivial function and trivial ``let`` taken away."""
    inner = children(term)
    new = tuple(map(simplify, inner))
    return _step(term if new == inner else with_children(term, new))


def same(a: Term, b: Term) -> bool:
    """Whether two terms are equal but for the names of bound variables."""
    return nameless(a) == nameless(b)


def beta(function: Lambda, args: tuple[Term, ...]) -> Term | None:
    """The body of ``function`` with ``args`` put in; None where their number does not fit.

    Several values are also one tuple, on either side.
    """
    if len(function.params) != len(args):
        args = _regrouped(args, len(function.params))
        if not args:
            return None
    return substitute(function.body, dict(zip(function.params, args, strict=True)))


def _step(term: Term) -> Term:
    """One term whose inner terms are simple; what comes out is simple."""
    match term:
        case Call(Lambda() as function, args):
            body = beta(function, args)
            return term if body is None else simplify(body)
        case Call(Pattern() | Scalar() as function, args) if missing(function):
            applied = apply(function, args if len(args) == missing(function) else _regrouped(args, missing(function)))
            return term if isinstance(applied, Call) else _step(applied)
        case Call(Let(name, value, body), args):
            return simplify(_outside(name, value, body, args))
        case Pattern("get", (Index() as number,), (Pattern("tuple", _, members),)):
            inside = number.is_constant and 0 <= number.const < len(members)
            return members[number.const] if inside else term
        case Let(name, value, body):
            trivial = isinstance(value, Var | Lambda) or missing(value) or name not in free_names(body)
            return simplify(substitute(body, {name: value})) if trivial else term
        case Lambda():
            return _short(term)
    return term


def _outside(name: str, value: Term, body: Term, args: tuple[Term, ...]) -> Term:
    """``(let v = a in f)(x)`` as ``let v = a in f(x)``."""
    taken = frozenset().union(*map(free_names, args))
    if name in taken:
        new = fresh(name, taken | free_names(body))
        name, body = new, substitute(body, {name: Var(new)})
    return Let(name, value, Call(body, args))


def _short(term: Lambda) -> Term:
    """A function that only passes its values on: ``\\v -> map(f, v)`` is ``map(f)``."""
    body, params = term.body, tuple(map(Var, term.params))
    count = len(params)
    if isinstance(body, Call) and body.args == params and not free_names(body.function) & set(term.params):
        return body.function
    if not isinstance(body, Pattern | Scalar) or missing(body) or len(body.args) < count:
        return term
    if body.args[len(body.args) - count :] != params or (isinstance(body, Pattern) and PATTERNS[body.name].several):
        return term
    kept = body.args[: len(body.args) - count]
    used = frozenset().union(*map(free_names, kept))
    return term if used & set(term.params) else replace(body, args=kept)


def _regrouped(args: tuple[Term, ...], count: int) -> tuple[Term, ...]:
    """One tuple as ``count`` values or several values as one tuple; nothing where neither is it."""
    if count == 1:
        return (Pattern("tuple", (), args),)
    if len(args) != 1:
        return ()
    (whole,) = args
    if isinstance(whole, Pattern) and whole.name == "tuple":
        return whole.args if len(whole.args) == count else ()
    return tuple(Pattern("get", (constant(k),), (whole,)) for k in range(count))
