"""Indices and conditions -> LLVM values of type i64 and i1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from dovetail.codegen.bounds import Bounds
from dovetail.codegen.function_text import LOCAL, FunctionText
from dovetail.ir.index import Access, Atom, Condition, Index, Quotient, Remainder

ReadIndex = Callable[[Access], str]


class Arithmetic:
    """Computes indices in one function. ``variables`` holds the LLVM values of loops and sizes in force."""

    def __init__(self, function: FunctionText, variables: Mapping[str, str], read: ReadIndex) -> None:
        self.function = function
        self.bounds = Bounds()
        self.variables = dict(variables)
        self.replaced: dict[str, Index] = {}
        """Loops of one iteration, and the index their variable stands for."""
        self._read = read

    def moved(self, function: FunctionText, variables: Mapping[str, str], read: ReadIndex) -> Arithmetic:
        """The same knowledge, in another function."""
        other = Arithmetic(function, variables, read)
        other.bounds = self.bounds.copy()
        other.replaced = dict(self.replaced)
        return other

    def index(self, index: Index) -> Index:
        """``index`` without loops of one iteration."""
        return index.substitute(self.replaced) if self.replaced else index

    def value(self, index: Index) -> str:
        """``index`` as i64. Outer loops' parts are summed first, so that they move out of inner ones."""
        plain = self.index(index)
        return self.sum([(self.atom(atom), c) for atom, c in plain.terms], plain.const)

    def sum(self, terms: list[tuple[str, int]], const: int = 0) -> str:
        """``const + sum(c * value)``."""
        total = ""
        for value, c in sorted(terms, key=lambda term: self.function.level(term[0])) if len(terms) > 1 else terms:
            part = self.scaled(value, c)
            total = self.add(total, part) if total else part
        if not total:
            return str(const)
        return self.add(total, str(const)) if const else total

    def add(self, a: str, b: str) -> str:
        return self.function.pure(f"add {self._flag(a, b)}i64 {a}, {b}", a, b)

    def scaled(self, value: str, factor: int) -> str:
        return value if factor == 1 else self.multiply(value, str(factor))

    def multiply(self, a: str, b: str) -> str:
        if a == "1" or b == "1":
            return b if a == "1" else a
        return self.function.pure(f"mul {self._flag(a, b)}i64 {a}, {b}", a, b)

    def _flag(self, a: str, b: str) -> str:
        """Loops and sizes never overflow; what was read from a tensor may be any number, and wraps."""
        return "" if LOCAL in (self.function.level(a), self.function.level(b)) else "nsw "

    def product(self, factors: tuple[Index, ...]) -> str:
        return reduce(self.multiply, map(self.value, factors), "1")

    def smallest(self, values: tuple[Index, ...]) -> str:
        return self._extreme("smin", self.bounds.smallest(tuple(map(self.index, values))))

    def largest(self, values: tuple[Index, ...]) -> str:
        return self._extreme("smax", self.bounds.largest(tuple(map(self.index, values))))

    def _extreme(self, name: str, values: tuple[Index, ...]) -> str:
        return self.extreme(name, [self.value(v) for v in values])

    def extreme(self, name: str, values: list[str]) -> str:
        """``smin`` or ``smax`` of i64 values."""
        call = f"call i64 @llvm.{name}.i64"
        return reduce(lambda a, b: self.function.pure(f"{call}(i64 {a}, i64 {b})", a, b), values)

    def decide(self, condition: Condition) -> bool | None:
        return self.bounds.decide(Condition(self.index(condition.index), condition.equal))

    def holds(self, condition: Condition) -> str:
        """``condition`` as i1."""
        value = self.value(condition.index)
        return self.function.pure(f"icmp {'eq' if condition.equal else 'sge'} i64 {value}, 0", value)

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, str):
            return self.variables[atom]
        if isinstance(atom, Access):
            return self._read(atom)
        if isinstance(atom, Quotient):
            return self._quotient(atom)
        return self._remainder(atom)

    def _quotient(self, atom: Quotient) -> str:
        """Rounded down: an unsigned division where nothing is negative, a shift for powers of two."""
        value, d = self.value(atom.index), atom.divisor
        if self.bounds.not_negative(atom.index):
            return self.function.pure(f"udiv i64 {value}, {d}", value)
        if d & (d - 1) == 0:
            return self.function.pure(f"ashr i64 {value}, {d.bit_length() - 1}", value)
        towards_zero = self.function.pure(f"sdiv i64 {value}, {d}", value)
        rest = self.function.pure(f"srem i64 {value}, {d}", value)
        sign = self.function.pure(f"ashr i64 {rest}, 63", rest)
        return self.add(towards_zero, sign)

    def _remainder(self, atom: Remainder) -> str:
        value, d = self.value(atom.index), atom.divisor
        if d & (d - 1) == 0:
            return self.function.pure(f"and i64 {value}, {d - 1}", value)
        if self.bounds.not_negative(atom.index):
            return self.function.pure(f"urem i64 {value}, {d}", value)
        rest = self.function.pure(f"srem i64 {value}, {d}", value)
        sign = self.function.pure(f"ashr i64 {rest}, 63", rest)
        turn = self.function.pure(f"and i64 {sign}, {d}", sign)
        return self.add(rest, turn)
