"""Terms of the functional language.

    term    = name | number | "none"
            | "\" name ... "->" term                          a function
            | term "(" term, ... ")"                          its application
            | primitive "(" term, ... ")"                     scalar arithmetic; infix and prefix as in programs
            | pattern "(" setting, ... term, ... ")"          map(f, x), split(4, x), slide(3, 1, x)
            | "let" name "=" term "in" term                   a value that is stored, and named
            | term "." term                                   composition: short for \\v -> f(g(v))
            | "?" name                                        any term: rules only
    setting = size | name of a memory

A pattern or primitive that is given fewer terms than it takes is a function of the rest: ``map(f)``, ``add``,
``reduce(add, 0)``. A function of several values also takes the tuple of them, so that ``map(mul, zip(x, y))``
multiplies pairs. Arithmetic has the type it is computed in, small floats f32: only a cast rounds, ``f16(x * y)``, so
that a value is the same wherever it is stored. ``none`` is the value that is not there: arithmetic on it gives none,
``reduce`` passes over it, ``orelse(a, b)`` is b where a is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.ir.functional.types import Type
from dovetail.ir.index import Condition, Index
from dovetail.ir.program import Loop, Role, Size

_PRINTED: list[Callable[..., str]] = []


class Printed:
    """What prints as text that can be read back; ``show`` says how."""

    __slots__ = ()

    def __str__(self) -> str:
        return _PRINTED[isinstance(self, Definition)](self)


@dataclass(frozen=True, slots=True)
class Var(Printed):
    """A name that a parameter, a ``let`` or a function binds."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal(Printed):
    """A number, which takes the type of what it meets; ``None`` is the value that is not there."""

    value: int | float | bool | None

    def __eq__(self, other: object) -> bool:
        """Equal as written: 1 and 1.0 differ, nan equals nan."""
        return isinstance(other, Literal) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True, slots=True)
class Lambda(Printed):
    """A function."""

    params: tuple[str, ...]
    body: Term


@dataclass(frozen=True, slots=True)
class Call(Printed):
    """A function that is a variable, a ``?f`` or written out, applied."""

    function: Term
    args: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Scalar(Printed):
    """A primitive of programs (``add``, ``exp``), a dtype's name (a cast), ``bitcast_i32``, or ``orelse``."""

    function: str
    args: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Places:
    """Where the elements of a ``view`` or a ``scatter`` lie: ``[i<8, j<3 where i + j < 9: i + j, 2 * j]``.

    Loops are bound here; ``indices`` and ``where`` are over them and the run-time sizes.
    """

    loops: tuple[Loop, ...]
    indices: tuple[Index, ...]
    where: tuple[Condition, ...] = ()


Setting = Index | str | Places


@dataclass(frozen=True, slots=True)
class Pattern(Printed):
    """An operation on whole arrays; ``settings`` are known when it is compiled."""

    name: str
    settings: tuple[Setting, ...] = ()
    args: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Let(Printed):
    """``value`` under a name in ``body``; an array that is named is stored."""

    name: str
    value: Term
    body: Term


@dataclass(frozen=True, slots=True)
class Meta(Printed):
    """Any term, in a rule."""

    name: str


Term = Var | Literal | Lambda | Call | Scalar | Pattern | Let | Meta


@dataclass(frozen=True, slots=True)
class Param:
    """A named array from outside: ``in``, ``const``, or ``inout``, which a result of the same name writes."""

    role: Role
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Definition(Printed):
    """``def name(params) -> results = body``: a body of several results is a tuple of as many arrays."""

    name: str
    params: tuple[Param, ...]
    results: tuple[str, ...]
    body: Term
    sizes: tuple[Size, ...] = ()


def print_with(term: Callable[[Term], str], definition: Callable[[Definition], str]) -> None:
    """Set how terms and definitions print: the printer is in a module above this one."""
    _PRINTED[:] = (term, definition)


def children(term: Term) -> tuple[Term, ...]:
    """The terms directly inside ``term``, in the order in which they are written."""
    if isinstance(term, Pattern | Scalar):
        return term.args
    if isinstance(term, Lambda):
        return (term.body,)
    if isinstance(term, Let):
        return (term.value, term.body)
    return (term.function, *term.args) if isinstance(term, Call) else ()


def with_children(term: Term, new: tuple[Term, ...]) -> Term:
    """``term`` over other terms, as many as ``children`` gives; nothing is renamed."""
    match term:
        case Lambda():
            return Lambda(term.params, new[0])
        case Call():
            return Call(new[0], new[1:])
        case Scalar():
            return Scalar(term.function, new)
        case Pattern():
            return Pattern(term.name, term.settings, new)
        case Let():
            return Let(term.name, *new)
    return term


def walk(term: Term) -> Iterator[Term]:
    """``term`` and every term inside it, outermost first."""
    yield term
    for child in children(term):
        yield from walk(child)


def rebuild(term: Term, change: Callable[[Term], Term]) -> Term:
    """``change`` applied to every term, innermost first."""
    inner = children(term)
    new = tuple(rebuild(child, change) for child in inner)
    return change(term if new == inner else with_children(term, new))


def free_names(term: Term) -> frozenset[str]:
    """Variables that nothing inside ``term`` binds."""
    match term:
        case Var(name):
            return frozenset((name,))
        case Lambda(params, body):
            return free_names(body) - frozenset(params)
        case Let(name, value, body):
            return free_names(value) | (free_names(body) - {name})
    return frozenset().union(*(free_names(child) for child in children(term)))


def substitute(term: Term, values: Mapping[str, Term]) -> Term:
    """Free variables replaced; names bound inside are changed where they would catch a variable of ``values``."""
    values = {name: value for name, value in values.items() if name in free_names(term)}
    if not values:
        return term
    match term:
        case Var(name):
            return values[name]
        case Lambda(params, body):
            params, body = _clear(params, body, values)
            return Lambda(params, substitute(body, values))
        case Let(name, value, body):
            below = {k: v for k, v in values.items() if k != name}
            (new,), inner = _clear((name,), body, below)
            return Let(new, substitute(value, values), substitute(inner, below))
    return with_children(term, tuple(substitute(child, values) for child in children(term)))


def fresh(prefix: str, taken: frozenset[str] | set[str]) -> str:
    """A name like ``prefix`` that is not taken."""
    if prefix not in taken:
        return prefix
    prefix = prefix.rstrip("0123456789")
    return next(name for number in range(len(taken) + 2) if (name := f"{prefix}{number}") not in taken)


def nameless(term: Term, bound: Mapping[str, str] | None = None) -> Term:
    """``term`` with bound names numbered from the outside: equal for terms that differ in bound names only."""
    bound = bound or {}
    match term:
        case Var(name):
            return Var(bound.get(name, name))
        case Lambda(params, body):
            inner = {**bound, **{p: f"%{len(bound) + k}" for k, p in enumerate(params)}}
            return Lambda(tuple(inner[p] for p in params), nameless(body, _counted(inner, len(bound) + len(params))))
        case Let(name, value, body):
            inner = {**bound, name: f"%{len(bound)}"}
            return Let(inner[name], nameless(value, bound), nameless(body, _counted(inner, len(bound) + 1)))
    return with_children(term, tuple(nameless(child, bound) for child in children(term)))


def _counted(bound: dict[str, str], depth: int) -> dict[str, str]:
    """``bound`` with as many entries as names were bound on the way, also where one hides another."""
    while len(bound) < depth:
        bound[f"%{len(bound)}"] = ""
    return bound


def _clear(names: tuple[str, ...], body: Term, values: Mapping[str, Term]) -> tuple[tuple[str, ...], Term]:
    """A binder's names and body, renamed where ``values`` mention a name."""
    caught = frozenset().union(*(free_names(value) for value in values.values())) if values else frozenset()
    if not caught.intersection(names):
        return names, body
    taken = set(caught | free_names(body) | frozenset(names))
    renamed: dict[str, Term] = {}
    new: list[str] = []
    for name in names:
        if name in caught:
            name_ = fresh(name, taken)
            taken.add(name_)
            renamed[name] = Var(name_)
            name = name_
        new.append(name)
    return tuple(new), substitute(body, renamed)
