"""Index expressions: quasi-affine in loops and sizes, or read from a tensor.

    index     = int | term ("+" | "-") index
    term      = [int "*"] atom
    atom      = name | index "//" int | index "%" int | access
    access    = name "[" index, ... "]"
    condition = index ">= 0" | index "== 0"

An ``Index`` is kept in normal form, a constant and sorted (atom, coefficient) pairs, so that the
spelling of a sum does not matter: ``2*(i + 1) - i`` and ``i + 2`` are the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Access:
    """An element of a tensor: ``x[n, c, p + r, q + s]``."""

    tensor: str
    indices: tuple[Index, ...]

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(map(str, self.indices))}]"

    def substitute(self, values: Mapping[str, Index]) -> Access:
        return Access(self.tensor, tuple(i.substitute(values) for i in self.indices))

    def names(self) -> frozenset[str]:
        """Loops and sizes that occur in it."""
        return frozenset().union(*(i.names() for i in self.indices))

    def reads(self) -> Iterator[Access]:
        """Accesses inside the indices (indirect addressing), innermost first."""
        for index in self.indices:
            yield from index.reads()

    def rename(self, tensors: Mapping[str, str]) -> Access:
        """The same element of renamed tensors."""
        return Access(tensors.get(self.tensor, self.tensor), tuple(i.rename(tensors) for i in self.indices))


@dataclass(frozen=True, slots=True)
class Quotient:
    """``index // divisor``, rounded down."""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"{_tight(self.index)} // {self.divisor}"


@dataclass(frozen=True, slots=True)
class Remainder:
    """``index % divisor``, never negative."""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"{_tight(self.index)} % {self.divisor}"


Atom = str | Quotient | Remainder | Access


@dataclass(frozen=True, slots=True)
class Index:
    """``const + sum(coefficient * atom)``, terms sorted and without zeros. Build it with ``affine`` or operators."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0

    def __str__(self) -> str:
        positive = [(a, c) for a, c in self.terms if c > 0]
        negative = [(a, c) for a, c in self.terms if c < 0]
        lead = self.const > 0 and not positive and bool(negative)
        text = str(self.const) if lead else ""
        for atom, c in (*positive, *negative):
            bare = c == -1 and not text and isinstance(atom, Quotient | Remainder)
            text += (" + " if c > 0 else " - ") if text else ("" if c > 0 else "-")
            text += f"({atom})" if bare else _term(atom, abs(c))
        if not text:
            return str(self.const)
        if self.const and not lead:
            text += f" {'+' if self.const > 0 else '-'} {abs(self.const)}"
        return text

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.const + other) if other else self
        if not other.terms:
            return Index(self.terms, self.const + other.const)
        if not self.terms:
            return Index(other.terms, self.const + other.const)
        return affine((*self.terms, *other.terms), self.const + other.const)

    def __sub__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.const - other) if other else self
        if not other.terms:
            return Index(self.terms, self.const - other.const) if other.const else self
        if self.terms == other.terms:
            return Index((), self.const - other.const)
        return affine((*self.terms, *((a, -c) for a, c in other.terms)), self.const - other.const)

    def __neg__(self) -> Index:
        return self * -1

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Index(tuple([(a, c * factor) for a, c in self.terms]), self.const * factor)

    def __floordiv__(self, divisor: int) -> Index:
        """``(d*a + b) // d`` becomes ``a + b // d``."""
        assert divisor > 0
        if divisor == 1:
            return self
        whole = Index(tuple((a, c // divisor) for a, c in self.terms if c % divisor == 0), self.const // divisor)
        rest = Index(tuple((a, c) for a, c in self.terms if c % divisor), self.const % divisor)
        return whole + (affine(((Quotient(rest, divisor), 1),)) if rest.terms else 0)

    def __mod__(self, divisor: int) -> Index:
        """``(d*a + b) % d`` becomes ``b % d``."""
        assert divisor > 0
        rest = Index(tuple((a, c % divisor) for a, c in self.terms if c % divisor), self.const % divisor)
        return affine(((Remainder(rest, divisor), 1),)) if rest.terms else rest

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def is_affine(self) -> bool:
        """Only loops and sizes: no quotient, remainder or indirect read."""
        return not self.terms or isinstance(self.terms[-1][0], str)  # other atoms come after names

    @property
    def is_indirect(self) -> bool:
        """Whether data decides its value: a tensor is read in it, at any depth."""
        return not self.is_affine and any(True for _ in self.reads())

    def coefficient(self, atom: Atom) -> int:
        for found, c in self.terms:
            if found == atom:
                return c
        return 0

    def names(self) -> frozenset[str]:
        """Loops and sizes that occur in it, at any depth."""
        if not self.terms:
            return _NOTHING
        if len(self.terms) == 1 and isinstance(self.terms[0][0], str):
            return _alone(self.terms[0][0])
        found: set[str] = set()
        for atom, _ in self.terms:
            if isinstance(atom, str):
                found.add(atom)
            elif isinstance(atom, Access):
                found |= atom.names()
            else:
                found |= atom.index.names()
        return frozenset(found)

    def reads(self) -> Iterator[Access]:
        """Indirect reads in it, innermost first."""
        for atom, _ in self.terms:
            if isinstance(atom, Access):
                yield from atom.reads()
                yield atom
            elif not isinstance(atom, str):
                yield from atom.index.reads()

    def substitute(self, values: Mapping[str, Index]) -> Index:
        """Every name in ``values`` replaced."""
        if not values or not self.terms:
            return self
        if not self.is_affine:
            return self.map_atoms(lambda atom: values.get(atom) if isinstance(atom, str) else None)
        terms: list[tuple[Atom, int]] = []
        const, met = self.const, False
        for atom, c in self.terms:
            new = values.get(str(atom))
            if new is None:
                terms.append((atom, c))
            else:
                met = True
                const += c * new.const
                terms += [(a, c * factor) for a, factor in new.terms]
        if not met:
            return self
        return affine(terms, const) if len(terms) > 1 else Index(tuple(terms), const)

    def rename(self, tensors: Mapping[str, str]) -> Index:
        """Tensors of indirect reads renamed."""
        if self.is_affine:
            return self
        return self.map_atoms(lambda atom: affine(((atom.rename(tensors), 1),)) if isinstance(atom, Access) else None)

    def map_atoms(self, change: Callable[[Atom], Index | None]) -> Index:
        """Every atom for which ``change`` gives an index replaced by it, from the outside in."""
        total = Index((), self.const)
        kept: list[tuple[Atom, int]] = []
        for atom, c in self.terms:
            new = change(atom)
            if new is not None:
                total += new * c
            elif isinstance(atom, str):
                kept.append((atom, c))
            elif isinstance(atom, Quotient):
                total += (atom.index.map_atoms(change) // atom.divisor) * c
            elif isinstance(atom, Remainder):
                total += (atom.index.map_atoms(change) % atom.divisor) * c
            else:
                inner = Access(atom.tensor, tuple(i.map_atoms(change) for i in atom.indices))
                total += affine(((inner, c),))
        return total + Index(tuple(kept), 0) if kept else total

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Its number; there must be no indirect read in it."""
        total = self.const
        for atom, c in self.terms:
            if isinstance(atom, str):
                total += c * values[atom]
            elif isinstance(atom, Quotient):
                total += c * (atom.index.evaluate(values) // atom.divisor)
            elif isinstance(atom, Remainder):
                total += c * (atom.index.evaluate(values) % atom.divisor)
            else:
                raise AssertionError(f"indirect index {atom} has no static value")
        return total


@lru_cache(maxsize=4096)
def _alone(name: str) -> frozenset[str]:
    return frozenset((name,))


ZERO = Index()
ONE = Index((), 1)
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Condition:
    """``index >= 0``, or ``index == 0`` when ``equal``. A point where it is false is not there."""

    index: Index
    equal: bool = False

    def __str__(self) -> str:
        left = Index(tuple((a, c) for a, c in self.index.terms if c > 0))
        right = Index(tuple((a, -c) for a, c in self.index.terms if c < 0), -self.index.const)
        if left.terms or not right.terms:
            return f"{left} {'==' if self.equal else '>='} {right}"
        flipped, number = right - right.const, -right.const
        return f"{number} == {flipped}" if self.equal else f"{flipped} <= {number}"

    def substitute(self, values: Mapping[str, Index]) -> Condition:
        return Condition(self.index.substitute(values), self.equal)

    def names(self) -> frozenset[str]:
        return self.index.names()

    def holds(self, values: Mapping[str, int]) -> bool:
        value = self.index.evaluate(values)
        return value == 0 if self.equal else value >= 0


def affine(terms: Iterable[tuple[Atom, int]], const: int = 0) -> Index:
    """The normal form of a sum of terms."""
    total: dict[Atom, int] = {}
    for atom, c in terms:
        total[atom] = total.get(atom, 0) + c
    kept = [(a, c) for a, c in total.items() if c]
    if len(kept) > 1:
        kept.sort(key=_order)
    return Index(tuple(kept), const)


def variable(name: str) -> Index:
    return Index(((name, 1),), 0)


def constant(value: int) -> Index:
    return Index((), value)


def as_index(value: Index | int | str) -> Index:
    if isinstance(value, int):
        return Index((), value)
    return variable(value) if isinstance(value, str) else value


def _order(term: tuple[Atom, int]) -> tuple[int, str]:
    atom = term[0]
    return (0, atom) if isinstance(atom, str) else (1, str(atom))


def _term(atom: Atom, factor: int) -> str:
    text = str(atom)
    if factor == 1:
        return text
    return f"{factor} * ({text})" if isinstance(atom, Quotient | Remainder) else f"{factor} * {text}"


def _tight(index: Index) -> str:
    single = len(index.terms) == 1 and not index.const and index.terms[0][1] == 1
    return str(index) if single and isinstance(index.terms[0][0], str | Access) else f"({index})"
