"""Two programs that differ in some of their numbers as one program with run-time sizes, and back.

    in x: f32[128, 768] ...  for i<128 ...        size n0 in 1..16777216 about 96
    in x: f32[96, 768]  ...  for i<96  ...   ->   in x: f32[n0, 768] ...  for i<n0 ...

Extents and constants of indices may differ; the form of a program is all else, and must be the same. Every pair of
numbers that differ is an affine function of sizes: extents that change by the least are sizes, others follow from one
of them (``2*n + 2``) or are the sum of two, and an extent for which there is no such function is a size of its own.
``instance`` is the guard: it gives values of the sizes for which a general program becomes exactly the one at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from dovetail.base.errors import LimitError, VerifyError
from dovetail.ir.bind import with_sizes
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Position, Read
from dovetail.ir.index import Access, Atom, Condition, Index, Quotient, Remainder, affine, variable
from dovetail.ir.program import Loop, Program, Size, Statement
from dovetail.ir.verify import verify

HIGHEST = (1 << 24, 1 << 16, 1 << 12)
"""What a size may be: the first with which all tensors can be addressed."""
MOST_SIZES = 6
"""A program with more is too loose to plan for."""
_LARGEST_REST = 8
"""``3*n + 40`` is more likely to be chance than ``3*n + 2``."""


@dataclass(frozen=True, slots=True)
class Form:
    """A program apart: what cannot change, and the numbers that can, in the order of the text."""

    text: str
    numbers: tuple[Index, ...]
    """Functions of the program's sizes; plain numbers where it has none."""
    are_extents: tuple[bool, ...]


def form_of(program: Program) -> Form:
    """Programs of the same form have the same ``text``; their numbers stand for each other, one by one."""
    reader = _Reader({size.name for size in program.sizes})
    reader.program(program)
    return Form(" ".join(reader.words), tuple(reader.numbers), tuple(reader.are_extents))


def generalise(a: Program, b: Program) -> Program | None:
    """The program with run-time sizes that ``a`` and ``b`` are instances of; None where there is none that is sound.

    Neither has sizes. The result is verified for every value of its sizes: from 1, else from what was seen, upwards.
    Sizes are usually what they are in ``b``.
    """
    first, second = form_of(a), form_of(b)
    if a.sizes or b.sizes or first.text != second.text or first.numbers == second.numbers:
        return None
    pairs = [(x.const, y.const) for x, y in zip(first.numbers, second.numbers, strict=True)]
    solved = _Sizes(_free_names(a)).solve(pairs, first.are_extents)
    if solved is None:
        return None
    sizes, numbers = solved
    made = _Writer(numbers).program(a)
    for low in (1, 0):
        for high in HIGHEST:
            ranged = tuple(Size(n, low or min(pair), max(high, *pair), pair[1]) for n, pair in sizes.items())
            try:
                verify(general := replace(made, sizes=ranged))
            except LimitError:
                continue
            except VerifyError:
                break
            return general
    return None


def instance(general: Program, program: Program) -> dict[str, int] | None:
    """The values of ``general``'s sizes for which it becomes ``program``, number by number; None where it cannot."""
    return instance_of(general, form_of(general), program, form_of(program))


def instance_of(general: Program, form: Form, program: Program, other: Form) -> dict[str, int] | None:
    """``instance`` for programs whose forms are known."""
    if form.text != other.text or program.sizes:
        return None
    values: dict[str, int] = {}
    for number, found in zip(form.numbers, other.numbers, strict=True):
        if len(number.terms) == 1 and number.const == 0 and number.terms[0][1] == 1:
            values.setdefault(str(number.terms[0][0]), found.const)
    ranges = {size.name: (size.low, size.high) for size in general.sizes}
    if values.keys() != ranges.keys() or any(not ranges[n][0] <= v <= ranges[n][1] for n, v in values.items()):
        return None
    return values if with_sizes(general, values) == program else None


def differences(a: Form, b: Form) -> int:
    """In how many numbers two programs of the same form differ."""
    return sum(x != y for x, y in zip(a.numbers, b.numbers, strict=True))


def _free_names(program: Program) -> str:
    """A prefix that no name of the program begins with."""
    taken = {t.name for t in program.tensors} | {loop.name for s in program.statements for loop in s.all_loops}
    prefix = "n"
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "_"
    return prefix


# -- numbers -> sizes


@dataclass(slots=True)
class _Sizes:
    """Sizes that have been found: a name and its two values each."""

    prefix: str
    found: dict[str, tuple[int, int]] = field(default_factory=dict)

    def solve(
        self, pairs: Sequence[tuple[int, int]], are_extents: Sequence[bool]
    ) -> tuple[dict[str, tuple[int, int]], list[Index]] | None:
        """The sizes, and each number as a function of them."""
        differing = {pair for pair, extent in zip(pairs, are_extents, strict=True) if extent and pair[0] != pair[1]}
        for pair in sorted(differing, key=lambda p: (abs(p[1] - p[0]), p)):
            if min(pair) > 0 and self.expressed(pair, positive=True) is None:
                self.found[f"{self.prefix}{len(self.found)}"] = pair
        if not 1 <= len(self.found) <= MOST_SIZES:
            return None
        known: dict[tuple[tuple[int, int], bool], Index | None] = {}
        for key in zip(pairs, are_extents, strict=True):
            if key not in known:
                known[key] = self.expressed(key[0], positive=key[1])
        numbers = [known[key] for key in zip(pairs, are_extents, strict=True)]
        return None if any(n is None for n in numbers) else (self.found, [n for n in numbers if n is not None])

    def expressed(self, pair: tuple[int, int], positive: bool) -> Index | None:
        """``pair`` as a number, a function of one size, or the sum of two."""
        if pair[0] == pair[1]:
            return Index((), pair[0])
        functions = [one for name in self.found if (one := self._of_one(pair, name, positive)) is not None]
        if functions:
            return min(functions, key=lambda f: (abs(f.const), abs(f.terms[0][1])))
        for (m, x), (n, y) in combinations(self.found.items(), 2):
            if (x[0] + y[0], x[1] + y[1]) == pair:
                return variable(m) + variable(n)
        return None

    def _of_one(self, pair: tuple[int, int], name: str, positive: bool) -> Index | None:
        """``factor * size + rest``."""
        low, high = self.found[name]
        factor, remainder = divmod(pair[1] - pair[0], high - low)
        rest = pair[0] - factor * low
        if remainder or abs(rest) > _LARGEST_REST or (positive and (factor < 0 or factor + rest < 1)):
            return None
        return affine(((name, factor),), rest)


# -- programs -> words and numbers, in the order of the text


@dataclass(slots=True)
class _Reader:
    sizes: set[str]
    words: list[str] = field(default_factory=list)
    numbers: list[Index] = field(default_factory=list)
    are_extents: list[bool] = field(default_factory=list)

    def program(self, program: Program) -> None:
        for tensor in program.tensors:
            self.words.append(f"{tensor.role.value} {tensor.name} {tensor.dtype} {len(tensor.shape)}")
            for extent in tensor.shape:
                self.index(extent, is_extent=True)
        for statement in program.statements:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        for word, loops in (("seq", statement.seq), ("for", statement.loops)):
            for loop in loops:
                self.words.append(f"{word} {loop.name}")
                self.index(loop.extent, is_extent=True)
        for condition in statement.where:
            self.words.append("where ==" if condition.equal else "where >=")
            self.index(condition.index)
        self.access(statement.out)
        self.words.append(statement.combine.value)
        self.value(statement.value)

    def value(self, e: Expr) -> None:
        if isinstance(e, Read):
            self.access(e.access)
        elif isinstance(e, Position):
            self.words.append("at")
            self.index(e.index)
        elif isinstance(e, Literal):
            self.words.append(repr(e.value))
        elif isinstance(e, Apply):
            self.words.append(f"{e.function} {len(e.args)}")
            for arg in e.args:
                self.value(arg)
        else:
            self.words.append(f"{'bits' if isinstance(e, Bitcast) else 'cast'} {e.dtype}")
            self.value(e.arg)

    def access(self, access: Access) -> None:
        self.words.append(f"{access.tensor}[{len(access.indices)}]")
        for index in access.indices:
            self.index(index)

    def index(self, index: Index, is_extent: bool = False) -> None:
        own = tuple((atom, c) for atom, c in index.terms if isinstance(atom, str) and atom in self.sizes)
        self.numbers.append(Index(own, index.const))
        self.are_extents.append(is_extent)
        for atom, c in index.terms:
            if isinstance(atom, str):
                if atom not in self.sizes:
                    self.words.append(f"{c}*{atom}")
            elif isinstance(atom, Access):
                self.words.append(f"{c}*")
                self.access(atom)
            else:
                word = "//" if isinstance(atom, Quotient) else "%"
                self.words.append(f"{c}*({word}{atom.divisor}")
                self.index(atom.index)
        self.words.append(";")


class _Writer:
    """A program without sizes, written again with other numbers, in the order in which ``_Reader`` reads them."""

    def __init__(self, numbers: Iterable[Index]) -> None:
        self.numbers = iter(numbers)

    def program(self, program: Program) -> Program:
        tensors = tuple(replace(t, shape=tuple(self.index(e) for e in t.shape)) for t in program.tensors)
        return Program(tensors, tuple(self.statement(s) for s in program.statements))

    def statement(self, s: Statement) -> Statement:
        seq, loops = (tuple(Loop(x.name, self.index(x.extent)) for x in several) for several in (s.seq, s.loops))
        where = tuple(Condition(self.index(c.index), c.equal) for c in s.where)
        out = self.access(s.out)
        return Statement(loops, out, s.combine, self.value(s.value), where, seq, s.line)

    def value(self, e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(self.access(e.access))
        if isinstance(e, Position):
            return Position(self.index(e.index))
        if isinstance(e, Apply):
            return Apply(e.function, tuple(self.value(arg) for arg in e.args))
        if isinstance(e, Cast):
            return Cast(e.dtype, self.value(e.arg))
        return Bitcast(e.dtype, self.value(e.arg)) if isinstance(e, Bitcast) else e

    def access(self, access: Access) -> Access:
        return Access(access.tensor, tuple(self.index(i) for i in access.indices))

    def index(self, index: Index) -> Index:
        number = next(self.numbers)
        terms = [*number.terms, *((self.atom(atom), c) for atom, c in index.terms)]
        return affine(terms, number.const)

    def atom(self, atom: Atom) -> Atom:
        if isinstance(atom, str):
            return atom
        if isinstance(atom, Access):
            return self.access(atom)
        inner = self.index(atom.index)
        return Quotient(inner, atom.divisor) if isinstance(atom, Quotient) else Remainder(inner, atom.divisor)
