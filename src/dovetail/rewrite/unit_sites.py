"""The maps of a definition that may be spread over units, and the stored values that they share.

A value is stored by ``let``, by ``to(memory, x)`` and as a result. What computes it is a nest of maps down to where the
work is: those maps are the sites. A map that feeds another one, or a reduction, is fused with it and runs where that
runs; one that only changes the layout does not run at all.

    to(pad, map(\\row -> map(f, row), x))        two sites, one inside the other; they write pad
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dovetail.ir.functional.infer import typing_of
from dovetail.ir.functional.term import (
    Call,
    Definition,
    Lambda,
    Let,
    Pattern,
    Scalar,
    Term,
    Var,
    children,
    walk,
    with_children,
)
from dovetail.ir.functional.types import Array, Function, Type
from dovetail.rewrite.units import Assignment, Problem, Site, Value, problem
from dovetail.targets.model import Target

Path = tuple[int, ...]
"""Which child, from the outside in."""
LAYOUT = frozenset(
    {"zip", "slide", "split", "join", "transpose", "pad", "tuple", "get", "array", "repeat", "slice", "view", "iota"}
)
"""Patterns that move no data by themselves."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A definition, the paths of its sites, and the problem they pose on a machine."""

    definition: Definition
    paths: tuple[Path, ...]
    problem: Problem

    def annotated(self, assignment: Assignment) -> Definition:
        """The definition with ``map@unit`` for every map that is spread: for reading, it has no other meaning."""
        names = {path: self.problem.text(s) for path, s in zip(self.paths, assignment, strict=True) if s[0] < s[1]}
        return replace(self.definition, body=_named(self.definition.body, names, ()))


def spread(definition: Definition, target: Target) -> Spread:
    """The sites of ``definition`` on ``target``; its arguments and results lie in main memory."""
    finder = _Finder(target.main.name)
    known = {p.name: frozenset({finder.new(p.name, target.main.name, -1)}) for p in definition.params}
    finder.store(", ".join(definition.results), target.main.name, definition.body, _At((), -1, known))
    types, most = typing_of(definition).at, {size.name: size.high for size in definition.sizes}
    sites = [
        replace(site, extent=_extent(types[path], most)) for site, path in zip(finder.sites, finder.paths, strict=True)
    ]
    found = problem(tuple(sites), tuple(v.value() for v in finder.values), target)
    return Spread(definition, tuple(finder.paths), found)


def _extent(kind: Type, most: Mapping[str, int]) -> int:
    """How many elements the result of a map has, at most."""
    kind = kind.result if isinstance(kind, Function) else kind
    return kind.size.evaluate(most) if isinstance(kind, Array) else 1


Known = Mapping[str, frozenset[int]]
"""Which stored values a variable stands for a part of."""


@dataclass(frozen=True, slots=True)
class _At:
    """Where a term stands: its path, the site around it, what variables are."""

    path: Path
    site: int
    known: Known

    def down(self, *path: int, **known: frozenset[int]) -> _At:
        return _At((*self.path, *path), self.site, {**self.known, **known} if known else self.known)


@dataclass(slots=True)
class _Stored:
    name: str
    memory: str
    scope: int
    writes: dict[int, None] = field(default_factory=dict)
    reads: dict[int, None] = field(default_factory=dict)

    def value(self) -> Value:
        return Value(self.name, self.memory, self.scope, tuple(self.writes), tuple(self.reads))


class _Finder:
    """Walks over a body and collects sites and stored values."""

    def __init__(self, main: str) -> None:
        self.main = main
        self.sites: list[Site] = []
        self.paths: list[Path] = []
        self.values: list[_Stored] = []

    def new(self, name: str, memory: str, scope: int) -> int:
        self.values.append(_Stored(name, memory, scope))
        return len(self.values) - 1

    def store(self, name: str, memory: str, term: Term, at: _At) -> int:
        """``term`` computed into a memory."""
        number = self.new(name, memory, at.site)
        self.nest(term, at, number)
        return number

    def nest(self, term: Term, at: _At, into: int) -> None:
        """What computes the value ``into``: maps down to the work."""
        match term:
            case Pattern("map", _, (function, *data)):
                if is_layout(function):
                    for term in data:
                        self.nest(term, at.down(1), into)
                    return
                inner = replace(at, site=self.site(at, into))
                parts = frozenset().union(*(self.read(term, inner.down(1)) for term in data))
                self.inside(function, inner.down(0), parts, into)
            case Pattern("reduce" | "scan", _, (Lambda() | Pattern(), start, Pattern("map", _, (function, data)))):
                self.read(start, at.down(1))
                self.inside(function, at.down(2, 0), self.read(data, at.down(2, 1)), into)
            case Let(name, value, body):
                bound = {name: frozenset({self.bound(name, value, at.down(0))})}
                self.nest(body, at.down(1, **bound), into)
            case Pattern(name, _, args) if name in LAYOUT:
                for k, arg in enumerate(args):
                    self.nest(arg, at.down(k), into)
            case _:
                self.read(term, at)

    def inside(self, function: Term, at: _At, parts: frozenset[int], into: int) -> None:
        """What a function computes of each of the parts."""
        if isinstance(function, Lambda):
            self.nest(function.body, at.down(0, **dict.fromkeys(function.params, parts)), into)
        else:
            self.nest(function, at, into)

    def site(self, at: _At, into: int) -> int:
        self.sites.append(Site(f"map {len(self.sites)}", at.site))
        self.paths.append(at.path)
        self.values[into].writes[len(self.sites) - 1] = None
        return len(self.sites) - 1

    def bound(self, name: str, value: Term, at: _At) -> int:
        """The value that a ``let`` stores."""
        if isinstance(value, Pattern) and value.name == "to" and isinstance(value.settings[0], str):
            return self.store(name, value.settings[0] or self.main, value.args[0], at.down(0))
        return self.store(name, self.main, value, at)

    def read(self, term: Term, at: _At) -> frozenset[int]:
        """The stored values that a term takes from."""
        match term:
            case Var(name):
                return self.seen(at.known.get(name, frozenset()), at)
            case Pattern("to", (str(memory),), (value,)):
                number = self.store(f"to {memory}", memory or self.main, value, at.down(0))
                return self.seen(frozenset({number}), at)
            case Let(name, value, body):
                bound = {name: frozenset({self.bound(name, value, at.down(0))})}
                return self.read(body, at.down(1, **bound))
            case Pattern("map" | "reduce" | "scan", _, (Lambda(params, body), *others)):
                found = frozenset().union(*(self.read(x, at.down(k + 1)) for k, x in enumerate(others)))
                return found | self.read(body, at.down(0, 0, **dict.fromkeys(params, found)))
        return frozenset().union(*(self.read(child, at.down(k)) for k, child in enumerate(children(term))))

    def seen(self, numbers: frozenset[int], at: _At) -> frozenset[int]:
        for number in numbers:
            if at.site >= 0:
                self.values[number].reads[at.site] = None
        return numbers


def is_layout(function: Term) -> bool:
    """Whether a function only says where elements lie."""
    return not any(
        isinstance(part, Scalar | Call)
        or (isinstance(part, Pattern) and part.name not in LAYOUT and part.name != "map")
        for part in walk(function)
    )


def _named(term: Term, names: Mapping[Path, str], path: Path) -> Term:
    inner = tuple(_named(child, names, (*path, k)) for k, child in enumerate(children(term)))
    term = with_children(term, inner) if inner != children(term) else term
    return replace(term, name=f"map@{names[path]}") if path in names and isinstance(term, Pattern) else term
