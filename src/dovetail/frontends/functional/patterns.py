"""The patterns of the functional language as Python functions; ``ir/functional/patterns`` says what each means."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from dovetail.frontends.functional.value import Extent, Function, Operand, Value, function_of, index_of, term_of
from dovetail.ir.functional.term import Pattern, Setting, Term
from dovetail.ir.functional.text import TermReader
from dovetail.ir.index import as_index
from dovetail.ir.tokens import Source

Size = Extent | int


def map(f: Function, x: Value) -> Value:
    """``f`` of every element; of several parameters, it takes the members of each element of ``zip(x, y)``."""
    return _pattern("map", function_of(f), x.term)


def reduce(f: Function, start: Operand, x: Value) -> Value:
    """All elements combined by ``f``, from ``start`` on."""
    return _pattern("reduce", function_of(f), term_of(start), x.term)


def scan(f: Function, start: Operand, x: Value) -> Value:
    """The state after each element: ``f(state, element)``, in order."""
    return _pattern("scan", function_of(f), term_of(start), x.term)


def zip(*arrays: Value) -> Value:
    """Arrays of one size as an array of tuples."""
    return _pattern("zip", *(array.term for array in arrays))


def slide(n: Size, step: Size, x: Value) -> Value:
    """Windows of ``n`` elements, ``step`` apart."""
    return _with_sizes("slide", (n, step), x.term)


def split(n: Size, x: Value) -> Value:
    """Parts of ``n`` elements each."""
    return _with_sizes("split", (n,), x.term)


def join(x: Value) -> Value:
    """An array of arrays, end to end."""
    return _pattern("join", x.term)


def transpose(x: Value) -> Value:
    """The two outermost dimensions swapped."""
    return _pattern("transpose", x.term)


def pad(left: Size, right: Size, fill: Operand, x: Value) -> Value:
    """``fill`` before and after the elements; ``NONE`` is skipped by sums."""
    return _with_sizes("pad", (left, right), term_of(fill), x.term)


def to(memory: str, x: Value) -> Value:
    """A stored copy in a memory of the machine; "" is its main memory."""
    return Value(Pattern("to", (memory,), (x.term,)))


def tuple(*members: Operand) -> Value:
    """Several values side by side."""
    return _pattern("tuple", *(term_of(member) for member in members))


def get(k: int, t: Value) -> Value:
    """Member ``k`` of a tuple."""
    return Value(Pattern("get", (as_index(k),), (t.term,)))


def array(*elements: Operand) -> Value:
    """Values of one type as an array."""
    return _pattern("array", *(term_of(element) for element in elements))


def iota(n: Size) -> Value:
    """0, 1, ... n - 1."""
    return _with_sizes("iota", (n,))


def repeat(n: Size, x: Operand) -> Value:
    """``n`` copies of a value."""
    return _with_sizes("repeat", (n,), term_of(x))


def slice(start: Size, count: Size, step: Size, x: Value) -> Value:
    """``count`` elements from ``start`` on, ``step`` apart."""
    return _with_sizes("slice", (start, count, step), x.term)


def view(places: str, x: Value) -> Value:
    """Elements at places: ``view("[i<4, j<3 where i + j < 5: i + j]", x)``; none where a condition is false."""
    return Value(Pattern("view", (_places(places),), (x.term,)))


def scatter(combine: str, sizes: Sequence[Size], places: str, x: Value) -> Value:
    """An array of ``sizes`` whose elements at ``places`` get those of ``x``, combined by ``=``, ``+=``, ``max=`` ..."""
    extents = (index_of(size) for size in sizes)
    return Value(Pattern("scatter", (combine, *extents, _places(places)), (x.term,)))


def _pattern(name: str, *args: Term) -> Value:
    return Value(Pattern(name, (), args))


def _with_sizes(name: str, sizes: Sequence[Size], *args: Term) -> Value:
    return Value(Pattern(name, builtins.tuple(index_of(size) for size in sizes), args))


def _places(text: str) -> Setting:
    reader = TermReader(Source(text, "places"))
    return reader.whole_text(reader.places)
