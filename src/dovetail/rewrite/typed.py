"""A term together with the types of all its parts, kept up to date while parts are replaced.

A rule keeps the type of what it replaces, so that only the new part is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dovetail.base.errors import TermError
from dovetail.ir.functional.infer import infer, typing_of
from dovetail.ir.functional.inference import Inference, Seen
from dovetail.ir.functional.term import Definition, Lambda, Let, Pattern, Term, Var, children, free_names, with_children
from dovetail.ir.functional.types import Array, Function, Tuple, Type, Unknown
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.program import Size
from dovetail.rewrite.match import match_size
from dovetail.rewrite.shape import Value

Path = tuple[int, ...]


class Typed:
    """A term over ``names`` and run-time ``sizes``, and the types of all its parts by place.

    Types are worked out when they are first asked for; a ``TermError`` then says where the term is wrong.
    """

    def __init__(
        self,
        term: Term,
        types: Mapping[Path, Type] | None,
        names: Mapping[str, Type],
        sizes: tuple[Size, ...] = (),
        kind: Type | None = None,
    ) -> None:
        self.term, self.names, self.sizes = term, names, sizes
        self._types, self._kind = types, kind
        self._parts: dict[Path, Term] = {}

    @staticmethod
    def of(definition: Definition) -> Typed:
        """The body of a definition; a TermError says where it is wrong."""
        names = {param.name: param.type for param in definition.params}
        return Typed(definition.body, typing_of(definition).at, names, definition.sizes)

    @property
    def types(self) -> Mapping[Path, Type]:
        """The type of every part, by place."""
        if self._types is None:
            self._types = self._inferred(self.term, self.names, self._kind)
        return self._types

    @property
    def kind(self) -> Type:
        """The type of the whole."""
        return self.types[()] if self._kind is None else self._kind

    def at(self, path: Path) -> Term:
        """The part at a place."""
        if not self._parts:
            self._parts.update(_parts(self.term, ()))
        return self._parts[path]

    def paths(self) -> Iterator[Path]:
        """All places, outermost first."""
        return _paths(self.term, ())

    def type_inside(self, path: Path, part: Term) -> Type | None:
        """The type of something that was found at or below a place, or made of variables that are known there."""
        if isinstance(part, Var):  # one object may stand for variables of several functions: the name decides
            return self.names_at(path).get(part.name)
        for below, term in _parts(self.at(path), path):
            if term is part:
                return self.types[below]
        try:
            return infer(part, self.names_at(path), self.sizes)
        except TermError:
            return None

    def names_at(self, path: Path) -> dict[str, Type]:
        """The variables that are bound around a place, and their types."""
        names = dict(self.names)
        term = self.term
        for depth, step in enumerate(path):
            kind = self.types[path[:depth]]
            if isinstance(term, Lambda) and isinstance(kind, Function):
                names |= zip(term.params, kind.params, strict=True)
            elif isinstance(term, Let) and step == 1:
                names[term.name] = self.types[(*path[:depth], 0)]
            term = children(term)[step]
        return names

    def replaced(self, path: Path, new: Term) -> Typed:
        """The term with another part at a place; a TermError where the part has another type."""
        names, expected = self.names_at(path), self.types[path]
        try:
            found = self._inferred(new, names, expected, self._seen(path))
        except TermError:  # a number in a part that is still there may take another type in the new one
            found = self._inferred(new, names, expected)
        depth = len(path)
        types = {place: kind for place, kind in self.types.items() if place[:depth] != path}
        types |= {(*path, *place): kind for place, kind in found.items()}
        return Typed(with_part(self.term, path, new), types, self.names, self.sizes)

    def supposed(self, path: Path, new: Term) -> Typed:
        """The term with another part of the same type at a place; whether it has it is seen later."""
        return Typed(with_part(self.term, path, new), None, self.names, self.sizes, self.kind)

    def _seen(self, path: Path) -> Seen:
        """What is known of parts below a place that may be parts of its replacement as well.

        Only parts whose type follows from the names in them: no functions, no tuples that could hold mere numbers.
        """
        below = {id(term): place for place, term in _parts(self.at(path), path) if isinstance(term, Pattern)}

        def seen(term: Term) -> tuple[Mapping[str, Type], Callable[[], Mapping[Path, Type]]] | None:
            place = below.get(id(term))
            if place is None or not isinstance(self.types[place], Number | Array):
                return None
            used = free_names(term)
            if not used:
                return None
            around, depth = self.names_at(place), len(place)

            def parts() -> Mapping[Path, Type]:
                return {(*p[depth:],): kind for p, kind in self.types.items() if p[:depth] == place}

            return {name: around[name] for name in used}, parts

        return seen

    def _inferred(
        self, term: Term, names: Mapping[str, Type], expected: Type | None, seen: Seen | None = None
    ) -> Mapping[Path, Type]:
        inference = Inference(self.sizes, seen)
        found = inference.infer(term, names)
        if expected is not None:
            inference.demand(found, expected, "the type changes")
        inference.settle()
        return inference.typing(found).at


def match_type(pattern: Type, given: Type, types: dict[str, Type], sizes: dict[str, Value]) -> bool:
    """Whether a type is the one wanted; what its unknowns stand for is added to ``types`` and ``sizes``."""
    match pattern, given:
        case Unknown(name), _:
            return types.setdefault(name, given) == given
        case Array(), Array():
            return match_size(pattern.size, given.size, sizes) and match_type(
                pattern.element, given.element, types, sizes
            )
        case Tuple(), Tuple():
            return _match_all(pattern.members, given.members, types, sizes)
        case Function(), Function():
            wanted, found = (*pattern.params, pattern.result), (*given.params, given.result)
            return _match_all(wanted, found, types, sizes)
    return pattern == given


def _match_all(
    patterns: tuple[Type, ...], given: tuple[Type, ...], types: dict[str, Type], sizes: dict[str, Value]
) -> bool:
    return len(patterns) == len(given) and all(
        match_type(pattern, kind, types, sizes) for pattern, kind in zip(patterns, given, strict=True)
    )


def _paths(term: Term, above: Path) -> Iterator[Path]:
    return (path for path, _ in _parts(term, above))


def _parts(term: Term, above: Path) -> list[tuple[Path, Term]]:
    """``term``, which stands at ``above``, and every term inside it, outermost first."""
    found, waiting = [], [(above, term)]
    while waiting:
        path, part = waiting.pop()
        found.append((path, part))
        inner = children(part)
        for step in range(len(inner) - 1, -1, -1):
            waiting.append(((*path, step), inner[step]))
    return found


def with_part(term: Term, path: Path, new: Term) -> Term:
    """The term with another part at a place; nothing is renamed."""
    if not path:
        return new
    inner = children(term)
    part = with_part(inner[path[0]], path[1:], new)
    return with_children(term, (*inner[: path[0]], part, *inner[path[0] + 1 :]))
