"""Rules that take a part out of a computation, made for the place at hand.

A definition is a chain of passes over arrays when every part that computes has been taken out of the pass it is in:

    map-fission   map(\\a b -> max(a + b, 0), zip(x, y))   ->   map(\\v -> max(v, 0), map(\\a b -> a + b, zip(x, y)))
    store         map(relu, map(add, zip(x, y)))          ->   let v = map(add, zip(x, y)) in map(relu, v)
    broadcast     map(\\v -> v * 2, x)                    ->   map(mul, zip(x, repeat(n, 2)))

How many operands a pass has and how deep the part lies differs from place to place. The rules differ in nothing else:
what lies on the way to the part stays, what lies beside the way is a meta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dovetail.ir.functional.term import (
    Call,
    Lambda,
    Let,
    Meta,
    Pattern,
    Scalar,
    Term,
    Var,
    children,
    free_names,
    fresh,
    walk,
    with_children,
)
from dovetail.ir.index import variable
from dovetail.rewrite.layouts import mapped
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.run import all_names, written_out

Path = tuple[int, ...]


def store(term: Term, part: Path, name: str) -> Rule:
    """The part at ``part`` of ``term`` stored before it; it depends on nothing that ``term`` binds."""
    around = _Around()
    before = around.pattern(term, part, ())
    return Rule(
        "store",
        before,
        Let(name, Meta("part"), filled(before, part, Var(name))),
        doc="A part gets a pass of its own, and what it computes is stored.",
    )


def fission(term: Pattern, part: Path) -> Rule | None:
    """The part of a function that is mapped computed in a pass before.

    None where elements are no plain tuple, or the part is the same for all of them."""
    if len(term.args) != 2 or not isinstance(function := term.args[0], Lambda) or not part or part[0] != 0:
        return None
    data = term.args[1]
    operands = data.args if isinstance(data, Pattern) and data.name == "zip" else (data,)
    if len(operands) != len(function.params):
        return None
    around = _Around()
    inner = around.pattern(function.body, part[2:], function.params)
    used = around.used
    if not used:
        return None
    arrays = {param: Meta(f"x{k}") for k, param in enumerate(function.params)}
    before = mapped(Lambda(function.params, inner), list(arrays.values()))
    name = fresh("v", all_names(inner) | set(function.params))
    outer = filled(inner, part[2:], Var(name))
    still = tuple(param for param in function.params if param in free_names(outer))
    made = mapped(Lambda(used, around.part), [arrays[param] for param in used])
    params = _in_order(outer, (*still, name))
    after = mapped(Lambda(params, outer), [made if param == name else arrays[param] for param in params])
    return Rule("map-fission", before, after, doc="A part of a function gets a pass of its own.")


def broadcast(term: Pattern, part: Path, dtype: str) -> Rule | None:
    """A number in a function that is mapped as a row of it, which is one more operand, of the dtype computed in."""
    function, data = written_out(term.args[0]), term.args[1]
    operands = data.args if isinstance(data, Pattern) and data.name == "zip" else (data,)
    if not isinstance(function, Lambda) or len(operands) != len(function.params):
        return None
    around = _Around()
    inner = around.pattern(function.body, part[2:], function.params)
    arrays = {param: Meta(f"x{k}") for k, param in enumerate(function.params)}
    name = fresh("v", all_names(inner) | set(function.params))
    outer = filled(inner, part[2:], Var(name))
    row = Pattern("repeat", (variable("?n"),), (Scalar(dtype, (around.part,)),))
    params = _in_order(outer, (*function.params, name))
    return Rule(
        "broadcast",
        mapped(Lambda(function.params, inner), list(arrays.values())),
        mapped(Lambda(params, outer), [row if param == name else arrays[param] for param in params]),
        types=("x0: ?t[?n]",),
        doc="A number that a function is given is a row of it.",
    )


def _in_order(term: Term, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names in the order in which a term mentions them."""
    met = [part.name for part in walk(term) if isinstance(part, Var)]
    return tuple(sorted(names, key=lambda name: met.index(name) if name in met else len(met)))


@dataclass(slots=True)
class _Around:
    """What lies around a part, with metas for all that does not lie on the way to it."""

    count: int = 0
    used: tuple[str, ...] = ()
    """The bound variables that the part mentions."""
    part: Term = field(default_factory=lambda: Meta("part"))

    def pattern(self, term: Term, way: Path, scope: tuple[str, ...]) -> Term:
        if not way:
            self.used = tuple(name for name in scope if name in free_names(term))
            self.part = _meta("part", self.used)
            return self.part
        inner = scope
        if isinstance(term, Lambda):
            inner = (*scope, *term.params)
        new: list[Term] = []
        for k, child in enumerate(children(term)):
            below = (*scope, term.name) if isinstance(term, Let) and k == 1 else inner
            new.append(self.pattern(child, way[1:], below) if k == way[0] else self.beside(child, below))
        return with_children(term, tuple(new))

    def beside(self, term: Term, scope: tuple[str, ...]) -> Term:
        if isinstance(term, Var) and term.name in scope:
            return term
        self.count += 1
        return _meta(f"m{self.count}", tuple(name for name in scope if name in free_names(term)))


def _meta(name: str, scope: tuple[str, ...]) -> Term:
    return Call(Meta(name), tuple(map(Var, scope))) if scope else Meta(name)


def filled(term: Term, way: Path, new: Term) -> Term:
    """A term with another part at ``way``."""
    if not way:
        return new
    inner = list(children(term))
    inner[way[0]] = filled(inner[way[0]], way[1:], new)
    return with_children(term, tuple(inner))


def binders(term: Term, way: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The functions on the way to a part, outermost first: where each stands, and what it binds."""
    for depth in range(len(way)):
        if isinstance(term, Lambda):
            yield way[:depth], term.params
        elif isinstance(term, Let) and way[depth] == 1:
            yield way[:depth], (term.name,)
        term = children(term)[way[depth]]
