"""Terms as labelled trees, for the e-graph.

Every bound name becomes its depth and its type, ``%1:f32[8]``, counted from the names that are free in the function:
terms that differ in bound names only are one tree, and two trees that are equal somewhere are equal wherever the names
in them have these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dovetail.ir.functional.term import (
    Call,
    Definition,
    Lambda,
    Let,
    Literal,
    Pattern,
    Scalar,
    Term,
    Var,
    children,
    free_names,
    with_children,
)
from dovetail.ir.functional.types import Function, Type
from dovetail.rewrite.typed import Path, Typed


@dataclass(frozen=True, slots=True)
class Tree:
    """A label over trees."""

    label: str
    operands: tuple[Tree, ...] = ()


@dataclass(slots=True)
class Names:
    """Numbered names and their types; labels and the terms they stand for, whose operands are to be replaced."""

    types: dict[str, Type] = field(default_factory=dict)
    terms: dict[str, Term] = field(default_factory=dict)

    def closed(self, typed: Typed) -> Term:
        """The term with numbered names."""
        return self._numbered(typed.term, (), typed.types, {})

    def tree(self, term: Term) -> Tree:
        """A term with numbered names as a tree."""
        label = label_of_tree(term)
        self.terms.setdefault(label, term)
        return Tree(label, tuple(self.tree(child) for child in children(term)))

    def term(self, label: str, operands: tuple[Term, ...]) -> Term:
        """The term that a label stands for, over other operands."""
        return with_children(self.terms[label], operands)

    def typed(self, term: Term, definition: Definition) -> Typed:
        """A term with numbered names by itself; its types are found when they are first asked for."""
        free = {name: self.types[name] for name in free_names(term) if name in self.types}
        params = {param.name: param.type for param in definition.params}
        return Typed(term, None, params | free, definition.sizes)

    def _numbered(self, term: Term, path: Path, types: Mapping[Path, Type], bound: Mapping[str, str]) -> Term:
        match term:
            case Var(name):
                return Var(bound.get(name, name))
            case Lambda(params, body):
                kind = types[path]
                assert isinstance(kind, Function)
                new = self._new(term, bound, kind.params)
                inner = {**bound, **dict(zip(params, new, strict=True))}
                return Lambda(new, self._numbered(body, (*path, 0), types, inner))
            case Let(name, value, body):
                (new_name,) = self._new(replace(term, value=Literal(0)), bound, (types[*path, 0],))
                first = self._numbered(value, (*path, 0), types, bound)
                return Let(new_name, first, self._numbered(body, (*path, 1), types, {**bound, name: new_name}))
        inner_terms = children(term)
        new_terms = tuple(self._numbered(child, (*path, k), types, bound) for k, child in enumerate(inner_terms))
        return with_children(term, new_terms) if new_terms else term

    def _new(self, binder: Term, bound: Mapping[str, str], kinds: tuple[Type, ...]) -> tuple[str, ...]:
        """Names for what a binder binds: their numbers follow those of the names that are free in it."""
        above = [_number(bound.get(name, name)) for name in free_names(binder)]
        first = 1 + max(above, default=-1)
        names = tuple(f"%{first + k}:{kind}" for k, kind in enumerate(kinds))
        self.types.update(zip(names, kinds, strict=True))
        return names


def readable(term: Term, prefix: str = "v") -> Term:
    """A whole term with numbered names under short ones, by their depth: no name hides another."""
    return _readable(term, prefix, {}, 0)


def _readable(term: Term, prefix: str, names: Mapping[str, str], depth: int) -> Term:
    match term:
        case Var(name):
            return Var(names.get(name, name))
        case Lambda(params, body):
            new = tuple(f"{prefix}{depth + k}" for k in range(len(params)))
            inner = {**names, **dict(zip(params, new, strict=True))}
            return Lambda(new, _readable(body, prefix, inner, depth + len(new)))
        case Let(name, value, body):
            own = f"{prefix}{depth}"
            first = _readable(value, prefix, names, depth)
            return Let(own, first, _readable(body, prefix, {**names, name: own}, depth + 1))
    parts = tuple(_readable(child, prefix, names, depth) for child in children(term))
    return with_children(term, parts) if parts else term


def _number(name: str) -> int:
    return int(name[1 : name.index(":")]) if name.startswith("%") else -1


def label_of_tree(term: Term) -> str:
    """What a term does to its operands: operation and settings, or the name it is or binds."""
    match term:
        case Var(name):
            return name
        case Literal(value):
            return f"{type(value).__name__} {value!r}"
        case Lambda(params, _):
            return f"\\ {' '.join(params)}"
        case Scalar(function, _):
            return f"scalar {function}"
        case Pattern(name, settings, _):
            return f"{name} {', '.join(map(repr, settings))}"
        case Let(name, _, _):
            return f"let {name}"
        case Call():
            return "call"
    raise AssertionError(f"a meta is no part of a definition: {term}")
