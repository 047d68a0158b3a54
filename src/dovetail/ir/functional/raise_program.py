"""Program -> definition: every program without indirect access as a term. ``normalise`` gives the program back.

    in a: f32[8, 16]; in b: f32[16, 4]; out y: f32[8, 4]
    for i<8, j<4, k<16: y[i, j] += a[i, k] * b[k, j]
      ->  def program(a: f32[8, 16], b: f32[16, 4]) -> y =
            map(\\a0 -> map(\\b0 -> reduce(add, 0, map(mul, zip(a0, b0))), transpose(b)), a)

A tensor that is written element by element in order is a nest of maps (``raise_nests``), named by ``let`` where it is
read again. What is written in parts, out of order or step by step is ``scatter`` or ``steps``.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.base.dtypes import compute_type
from dovetail.base.errors import RewriteError
from dovetail.ir.canonical import canonicalise
from dovetail.ir.functional.patterns import WORDS
from dovetail.ir.functional.raise_arrange import Names, function
from dovetail.ir.functional.raise_nests import Nest
from dovetail.ir.functional.term import Definition, Let, Literal, Param, Pattern, Scalar, Setting, Term, Var
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.functional.types import array
from dovetail.ir.index import constant
from dovetail.ir.index_ranges import Ranges
from dovetail.ir.program import Combine, Program, Role, Statement, Tensor


def raise_program(program: Program, name: str = "program") -> Definition:
    """A definition that computes what ``program`` does; a RewriteError where data decides what is read or written."""
    for statement in program.statements:
        _check_direct(statement)
    return _Raised(canonicalise(program), name).definition()


def _check_direct(statement: Statement) -> None:
    indices = [i for access in (statement.out, *statement.reads()) for i in access.indices]
    for index in (*indices, *(c.index for c in statement.where)):
        if index.is_indirect:
            raise RewriteError(
                f"index {index} is read from a tensor",
                where=statement.place,
                why="a term says where elements lie before it runs",
                hint="compile the program as it is",
            )


class _Raised:
    """Terms for the tensors of a canonical program, statement by statement."""

    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.name = name
        self.tensors = {t.name: t for t in program.tensors}
        self.ranges = Ranges({}, {size.name: (size.low, size.high) for size in program.sizes})
        interface = {t.name for t in program.tensors if t.role is not Role.TEMP}
        self.names = Names({*WORDS, *interface, *self.ranges.sizes})
        self.arrays: dict[str, Term] = {t.name: Var(t.name) for t in program.inputs}
        self.lets: list[tuple[str, Term]] = []
        self.results: dict[str, Term] = {}
        self.writers: dict[str, list[int]] = {}
        self.readers: dict[str, list[int]] = {}
        for number, s in enumerate(program.statements):
            self.writers.setdefault(s.out.tensor, []).append(number)
            for access in s.reads():
                self.readers.setdefault(access.tensor, []).append(number)

    def definition(self) -> Definition:
        for group in self.program.groups():
            statements = [self.program.statements[n] for n in group]
            if statements[0].seq:
                self._steps(statements)
            elif not self._whole(group[0], statements[0]):
                self._part(statements[0])
        params = tuple(Param(t.role, t.name, array(t.shape, Number(t.dtype))) for t in self.program.inputs)
        found = tuple(self.results.get(t.name) or self.arrays[t.name] for t in self.program.outputs)
        body = found[0] if len(found) == 1 else Pattern("tuple", (), found)
        for bound, term in reversed(self.lets):
            body = Let(bound, term, body)
        return Definition(self.name, params, tuple(t.name for t in self.program.outputs), body, self.program.sizes)

    # -- whole tensors

    def _whole(self, number: int, s: Statement) -> bool:
        """The tensor as a nest of maps; False where the statement does not write all of it in order, or not alone."""
        tensor = self.tensors[s.out.tensor]
        last = self._is_last(number, s)
        if tensor.role is Role.INOUT:
            if not last or any(
                a.tensor == tensor.name and (a != s.out or s.combine is not Combine.SET) for a in s.reads()
            ):
                return False
        elif tensor.name in self.arrays:
            return False
        start = self.arrays.get(tensor.name) if s.combine is not Combine.SET else None
        term = self._nest(s).whole(start)
        if term is None:
            return False
        named = tensor.role is Role.TEMP or not last
        if tensor.role is Role.INOUT:
            if term == self.arrays[tensor.name]:
                return False
        elif term in self.arrays.values() or (named and not tensor.shape):
            term = Pattern("to", ("",), (term,))
        if named:
            self._bind(tensor, term)
        else:
            self.results[tensor.name] = term
        return True

    def _is_last(self, number: int, s: Statement) -> bool:
        """Whether nothing else writes the tensor, nothing later reads it, and nothing later changes what it reads."""
        name = s.out.tensor
        changed = (n for access in s.reads() for n in self.writers.get(access.tensor, ()))
        alone = self.writers[name] == [number] and all(n <= number for n in self.readers.get(name, ()))
        return alone and all(n <= number for n in changed)

    def _bind(self, tensor: Tensor, term: Term) -> None:
        bound = self.names.new(tensor.name) if tensor.name in self.names.taken else tensor.name
        if tensor.role is Role.OUT and tensor.name not in self.arrays and tensor.name not in WORDS:
            bound = tensor.name
        self.names.taken.add(bound)
        self.lets.append((bound, term))
        self.arrays[tensor.name] = Var(bound)

    def _nest(self, s: Statement) -> Nest:
        return Nest(s, self.tensors, self.arrays, self.ranges, self.names)

    # -- parts, and steps

    def _part(self, s: Statement) -> None:
        """A statement that writes a part of a tensor, or a part first."""
        tensor = self.tensors[s.out.tensor]
        combined = s.combine is Combine.SET or tensor.dtype == compute_type(tensor.dtype)
        if tensor.name in self.arrays or not combined or self._own_type(s) != tensor.dtype:
            self._steps([s])
            return
        nest = self._nest(s)
        settings: tuple[Setting, ...] = (s.combine.value, *tensor.shape, nest.places())
        self._bind(tensor, Pattern("scatter", settings, (nest.contributions(),)))

    def _own_type(self, s: Statement) -> object:
        return self._nest(s).own if s.combine is not Combine.SET else self.tensors[s.out.tensor].dtype

    def _steps(self, statements: Sequence[Statement]) -> None:
        """Statements that run step by step, or one that changes what is there."""
        written = [self.tensors[name] for name in dict.fromkeys(s.out.tensor for s in statements)]
        place = {tensor.name: k for k, tensor in enumerate(written)}
        starts = tuple(self.arrays.get(t.name) or _nothing(t) for t in written)
        params = tuple(self.names.new(t.name) for t in written)
        before = dict(self.arrays)
        self.arrays.update({t.name: Var(p) for t, p in zip(written, params, strict=True)})
        settings: list[Setting] = [constant(len(statements[0].seq))]
        values: list[Term] = []
        for s in statements:
            nest = self._nest(s)
            settings += [s.combine.value, constant(place[s.out.tensor]), nest.places()]
            values.append(nest.contributions())
        self.arrays = before
        body = values[0] if len(values) == 1 else Pattern("tuple", (), tuple(values))
        start = starts[0] if len(starts) == 1 else Pattern("tuple", (), starts)
        term = Pattern("steps", tuple(settings), (function(params, body), start))
        if len(written) == 1:
            self._bind(written[0], term)
            return
        bound = self.names.new("states")
        self.lets.append((bound, term))
        for k, tensor in enumerate(written):
            self.arrays[tensor.name] = Pattern("get", (constant(k),), (Var(bound),))


def _nothing(tensor: Tensor) -> Term:
    """An array of which nothing is there yet."""
    term: Term = Scalar(tensor.dtype.name, (Literal(None),))
    for extent in reversed(tensor.shape):
        term = Pattern("repeat", (extent,), (term,))
    return term
