"""Equations between types and between sizes, solved for what is unknown.

    ?a[?n] = f32[8, m]          ?a is f32[m], ?n is 8
    4 * ?k = 12                 ?k is 3
    ?m - 2 = ?p                 ?m is ?p + 2

An equation that has no solution is a ``Clash``, which says where the two sides part. One that cannot be solved yet,
such as ``(?m - 3) // 2 = 8``, waits and is tried again when more is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.ir.functional.sizes import divided, factors_of, is_unknown, monomial, names_in, product, substitute
from dovetail.ir.functional.types import Array, Function, Scalar, Tuple, Type, Unknown
from dovetail.ir.index import Index, affine, constant, variable

_DIGITS = "0123456789"
"""A prefix that ended with one could meet another's number: b1, 2 and b, 12."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Two types or sizes that cannot be equal."""

    left: Type | Index
    right: Type | Index

    def __str__(self) -> str:
        return f"{self.left} and {self.right}"


class Equations:
    """What is known of each unknown type and size. Names that it makes begin with ``_``."""

    def __init__(self) -> None:
        self.types: dict[str, Type] = {}
        self.sizes: dict[str, Index] = {}
        self.numbers: dict[str, bool] = {}
        """Unknown types of literals, which take the type of what they meet; whether one is written as a float."""
        self.nothing: set[str] = set()
        """Unknown types of ``none``."""
        self.waiting: list[tuple[Index, Index]] = []
        self.news: list[str] = []
        """Unknown types of which more is known since somebody looked."""
        self.count = 0

    def fresh_type(self, prefix: str = "a") -> Unknown:
        self.count += 1
        return Unknown(f"_{prefix.rstrip(_DIGITS)}{self.count}")

    def fresh_size(self, prefix: str = "n") -> Index:
        self.count += 1
        return variable(f"?_{prefix.rstrip(_DIGITS)}{self.count}")

    def known(self, kind: Type) -> Type:
        """``kind`` as far as its outermost part is known; chains of unknowns are shortened on the way."""
        if not isinstance(kind, Unknown):
            return kind
        passed = []
        while isinstance(kind, Unknown) and kind.name in self.types:
            passed.append(kind.name)
            kind = self.types[kind.name]
        for name in passed[:-1]:
            self.types[name] = kind
        return kind

    def resolve(self, kind: Type) -> Type:
        """``kind`` with everything that is known put in."""
        kind = self.known(kind)
        match kind:
            case Array(size, element):
                return Array(self.resolve_size(size), self.resolve(element))
            case Tuple(members):
                return Tuple(tuple(map(self.resolve, members)))
            case Function(params, result):
                return Function(tuple(map(self.resolve, params)), self.resolve(result))
        return kind

    def resolve_size(self, size: Index) -> Index:
        """``size`` with everything that is known put in."""
        while size.terms and is_unknown(size):
            new = substitute(size, self.sizes)
            if new == size:
                break
            size = new
        return size

    def equate(self, a: Type, b: Type) -> Clash | None:
        """Make two types equal; where they cannot be, the parts that differ."""
        a, b = self.known(a), self.known(b)
        if a == b:
            return None
        if isinstance(a, Unknown):
            return self._bind(a, b)
        if isinstance(b, Unknown):
            return self._bind(b, a)
        match a, b:
            case Array(), Array():
                return self.equate_sizes(a.size, b.size) or self.equate(a.element, b.element)
            case Tuple(), Tuple() if len(a.members) == len(b.members):
                return self._each(a.members, b.members)
            case Function(), Function():
                return self._equate_functions(a, b)
        return Clash(self.resolve(a), self.resolve(b))

    def equate_sizes(self, a: Index, b: Index) -> Clash | None:
        """Make two sizes equal, by solving for one unknown."""
        if a == b:
            return None
        a, b = self.resolve_size(a), self.resolve_size(b)
        for name, other in ((_new_name(a), b), (_new_name(b), a)):
            if name and not _mentions(other, name):
                self.sizes[name] = other
                return None
        difference = a - b
        if difference.is_constant:
            return Clash(a, b) if difference.const else None
        if not is_unknown(difference):
            return Clash(a, b)
        for name, value in _solutions(difference):
            if value is not None:
                self.sizes[name] = value
                return None
            return Clash(a, b)
        self.waiting.append((a, b))
        return None

    def retry(self) -> Clash | None:
        """Try the equations that wait once more."""
        waiting, self.waiting = self.waiting, []
        for a, b in waiting:
            clash = self.equate_sizes(a, b)
            if clash is not None:
                return clash
        return None

    def _bind(self, unknown: Unknown, kind: Type) -> Clash | None:
        name = unknown.name
        if name in self.nothing and isinstance(kind, Unknown):
            self._learn(name, kind)
            return None
        if name in self.numbers:
            if isinstance(kind, Unknown):
                if kind.name in self.numbers:
                    self.numbers[kind.name] |= self.numbers[name]
                    self._learn(name, kind)
                else:
                    self._learn(kind.name, unknown)
                return None
            if not isinstance(kind, Scalar):
                return Clash(self.resolve(unknown), self.resolve(kind))
        if self._occurs(name, kind):
            return Clash(unknown, self.resolve(kind))
        if isinstance(kind, Unknown) and not name.startswith("_") and kind.name.startswith("_"):
            name, kind = kind.name, unknown
        self._learn(name, kind)
        return None

    def _learn(self, name: str, kind: Type) -> None:
        self.types[name] = kind
        self.news.append(name)

    def _occurs(self, name: str, kind: Type) -> bool:
        kind = self.known(kind)
        match kind:
            case Unknown(other):
                return other == name
            case Array(_, element):
                return self._occurs(name, element)
            case Tuple(members):
                return any(self._occurs(name, m) for m in members)
            case Function(params, result):
                return any(self._occurs(name, p) for p in (*params, result))
        return False

    def _equate_functions(self, a: Function, b: Function) -> Clash | None:
        """A function of several values also takes the tuple of them."""
        if len(a.params) == len(b.params):
            clash = self._each(a.params, b.params)
        elif len(a.params) == 1:
            clash = self.equate(a.params[0], Tuple(b.params))
        elif len(b.params) == 1:
            clash = self.equate(Tuple(a.params), b.params[0])
        else:
            clash = Clash(self.resolve(a), self.resolve(b))
        return clash or self.equate(a.result, b.result)

    def _each(self, a: tuple[Type, ...], b: tuple[Type, ...]) -> Clash | None:
        for left, right in zip(a, b, strict=True):
            clash = self.equate(left, right)
            if clash is not None:
                return clash
        return None


def _solutions(difference: Index) -> list[tuple[str, Index | None]]:
    """Values of one unknown each for which ``difference`` is 0; None where there cannot be one.

    Unknowns with a factor of one come first, then those made here, before those of a rule.
    """
    found: list[tuple[bool, bool, str, Index | None]] = []
    for atom, c in difference.terms:
        if not isinstance(atom, str) or "?" not in atom:
            continue
        rest = difference - affine(((atom, c),))
        factors = factors_of(atom)
        for name in factors:
            others = [factor for factor in factors if factor != name]
            if "?" not in name or " " in name or len(others) != len(factors) - 1 or _mentions(rest, name):
                continue
            value = divided(rest, product(constant(-c), variable(monomial(others)) if others else constant(1)))
            if value is not None or not (is_unknown(rest) or any("?" in other for other in others)):
                found.append((abs(c) != 1 or bool(others), not name.startswith("?_"), name, value))
    return [(name, value) for *_, name, value in sorted(found, key=lambda f: f[:3])]


def plain_unknown(size: Index) -> str | None:
    """The name of a size that is one unknown and nothing else."""
    if len(size.terms) != 1 or size.const:
        return None
    ((atom, factor),) = size.terms
    return atom if factor == 1 and isinstance(atom, str) and atom.startswith("?") and " " not in atom else None


def _new_name(size: Index) -> str | None:
    """The name of a size that is one unknown, made here, and nothing else."""
    name = plain_unknown(size)
    return name if name is not None and name.startswith("?_") else None


def _mentions(index: Index, name: str) -> bool:
    """Whether ``name`` occurs in it, also in a product or quotient."""
    return any(name in names_in(other) for other in index.names())
