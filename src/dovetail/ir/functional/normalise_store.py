"""Statements and temporaries of the program that a term becomes.

A value is stored by running over its elements: a loop for each dimension, a statement for each case. A reduction
becomes one statement for each of its parts; one that is used in arithmetic is stored first, over the loops it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dovetail.base.dtypes import DType, Kind
from dovetail.base.errors import TermError
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Read, names, statement_type, walk
from dovetail.ir.functional.normalise_values import (
    WIDENED,
    Array,
    Case,
    Cell,
    Part,
    Stored,
    Sum,
    Tuple,
    Value,
    default_type,
    fix,
    is_arithmetic,
    is_neutral,
    number,
    opposite,
    widened,
)
from dovetail.ir.index import Access, Condition, Index, variable
from dovetail.ir.index_ranges import NEVER, Ranges, needed_conditions, simplify
from dovetail.ir.program import Combine, Loop, Role, Size, Statement, Tensor
from dovetail.ir.value_forms import exact

Reader = Callable[[int, tuple[Index, ...]], Value]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number inside a value, over the loops of the arrays around it."""

    loops: tuple[Loop, ...]
    cell: Cell


class Store:
    """Collects tensors and statements; knows every loop there is, outer ones before inner ones."""

    def __init__(self, sizes: Iterable[Size]) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.statements: list[Statement] = []
        self.extents: dict[str, Index] = {}
        self.sizes = {size.name: (size.low, size.high) for size in sizes}
        self.seq: tuple[Loop, ...] = ()
        self.assumed: tuple[Condition, ...] = ()
        self.present: dict[str, tuple[tuple[str, ...], tuple[tuple[Condition, ...], ...]]] = {}
        """Tensors that are not written everywhere: names for their indices, and the cases in which they are."""
        self.versions: dict[str, int] = {}
        self.roots: dict[str, str] = {}
        """Later names of numbers that were changed, with the first."""
        self.frozen: dict[str, int] = {}
        """Names under which numbers must not be read any more, from which statement on."""
        self._settled: dict[int, tuple[Sum, Expr]] = {}
        self._dtypes: dict[str, DType] = {}

    # -- loops

    def loop(self, extent: Index) -> Loop:
        loop = Loop(f"%{len(self.extents)}", extent)
        self.extents[loop.name] = extent
        return loop

    @contextmanager
    def assuming(self, where: tuple[Condition, ...]) -> Iterator[None]:
        """Inside, values are only asked for where the conditions hold."""
        before, self.assumed = self.assumed, (*self.assumed, *where)
        yield
        self.assumed = before

    @contextmanager
    def stepping(self, seq: tuple[Loop, ...]) -> Iterator[None]:
        """Inside, statements run step by step."""
        if self.seq and seq:
            raise TermError("steps inside steps", why="a program has one level of them", hint="one loop over both")
        before, self.seq = self.seq, self.seq or seq
        yield
        self.seq = before

    @contextmanager
    def trying(self) -> Iterator[None]:
        """What is written inside is forgotten."""
        statements, tensors, settled = len(self.statements), dict(self.tensors), dict(self._settled)
        yield
        del self.statements[statements:]
        self.tensors, self._settled = tensors, settled

    # -- tensors

    def declare(self, tensor: Tensor) -> None:
        self.tensors[tensor.name] = tensor
        self._dtypes[tensor.name] = tensor.dtype

    def temp(self, dtype: DType, shape: Sequence[Index]) -> str:
        name = f"%t{len(self.tensors)}"
        self.declare(Tensor(Role.TEMP, name, dtype, tuple(shape)))
        return name

    def stored(self, tensor: str, indices: tuple[Index, ...] = (), fresh: bool = False) -> Value:
        """A tensor, or its part at the first indices, as a value; it must not have changed when it is read."""
        return self._stored(tensor, indices, self.versions.get(tensor, 0), fresh)

    def _stored(self, tensor: str, indices: tuple[Index, ...], version: int, fresh: bool) -> Value:
        declared = self.tensors[tensor]
        if len(indices) < len(declared.shape):
            extent = declared.shape[len(indices)]
            at = lambda i: self._stored(tensor, (*indices, i), version, False)  # noqa: E731
            return Stored(lambda: extent, at, tensor=tensor, indices=indices, version=version, fresh=fresh)
        if version != self.versions.get(tensor, 0):
            raise _read_late()
        read = Read(Access(tensor, indices))
        present = self.present.get(tensor)
        if present is None:
            return number(read, declared.dtype)
        values = dict(zip(present[0], indices, strict=True))
        cases = tuple(Case(tuple(c.substitute(values) for c in where), read) for where in present[1])
        return Cell(cases, declared.dtype)

    def whole(self, value: Value) -> Access | None:
        """The tensor that ``value`` is, or the part of it at some indices; None for anything else."""
        if isinstance(value, Stored):
            return Access(value.tensor, value.indices)
        if not isinstance(value, Cell) or len(value.cases) != 1:
            return None
        (case,) = value.cases
        plain = isinstance(case.body, Read) and not case.where and not case.fixed
        return case.body.access if plain and isinstance(case.body, Read) else None

    def changed(self, tensor: str, indices: tuple[Index, ...]) -> Value:
        """A tensor after statements have changed it. What was read of it before must not be read again.

        Arrays are asked for elements when these are read; a number without dimensions gets a new name instead.
        """
        if self.tensors[tensor].shape:
            self.versions[tensor] = self.versions.get(tensor, 0) + 1
            return self.stored(tensor, indices, fresh=True)
        self.frozen[tensor] = len(self.statements)
        new = f"%t{len(self.tensors)}"
        self.declare(replace(self.tensors[tensor], name=new))
        self.roots[new] = self.root(tensor)
        return self.stored(new)

    def root(self, tensor: str) -> str:
        """The tensor's first name."""
        return self.roots.get(tensor, tensor)

    def settled_statements(self) -> list[Statement]:
        """All statements, with each tensor under its first name."""
        for name, count in self.frozen.items():
            if any(access.tensor == name for s in self.statements[count:] for access in s.reads()):
                raise _read_late()
        for name in self.roots:
            del self.tensors[name]
        return [s.rename(self.roots) for s in self.statements] if self.roots else self.statements

    def keep(self, value: Value) -> Value:
        """A stored copy of ``value``; a tensor that nothing else has is one already."""
        if isinstance(value, Stored) and value.fresh:
            return value
        leaves, build = self.leaves(value)
        tensors = [self._keep_leaf(leaf) for leaf in leaves]
        if len(leaves) == 1 and not isinstance(value, Tuple) and not _has_tuples(value, leaves[0]):
            return self.stored(*tensors[0], fresh=True)
        return build(lambda k, indices: self.stored(tensors[k][0], (*tensors[k][1], *indices)), ())

    def leaves(self, value: Value) -> tuple[list[Leaf], Callable[[Reader, tuple[Index, ...]], Value]]:
        """The numbers of ``value`` over loops, and how to build such a value from a reader of numbers."""
        found: list[Leaf] = []

        def visit(part: Value, loops: tuple[Loop, ...]) -> Callable[[Reader, tuple[Index, ...]], Value]:
            if isinstance(part, Cell):
                found.append(Leaf(loops, part))
                k = len(found) - 1
                return lambda read, indices: read(k, indices)
            if isinstance(part, Tuple):
                members = [visit(m, loops) for m in part.members]
                return lambda read, indices: Tuple(tuple(m(read, indices) for m in members))
            if isinstance(part, Array):
                loop = self.loop(part.size)
                inner = visit(part.at(variable(loop.name)), (*loops, loop))
                return lambda read, indices: Array(lambda: loop.extent, lambda i: inner(read, (*indices, i)))
            raise TermError("a function cannot be stored", hint="apply it, or name it where it is used")

        return found, visit(value, ())

    def _keep_leaf(self, leaf: Leaf) -> tuple[str, tuple[Index, ...]]:
        """The tensor that holds ``leaf``, and the indices of the loops around."""
        around = self.around([leaf.cell], leaf.loops)
        outer = (*self.seq, *around)
        dims = (*outer, *leaf.loops)
        dtype = default_type(leaf.cell)
        tensor = self.temp(dtype, [loop.extent for loop in dims])
        indices = tuple(variable(loop.name) for loop in dims)
        self._note_presence(tensor, leaf.cell, dims)
        self.emit(Access(tensor, indices), (*around, *leaf.loops), leaf.cell, dtype)
        return tensor, indices[: len(outer)]

    def around(self, cells: Iterable[Cell], inner: Iterable[Loop]) -> tuple[Loop, ...]:
        """The loops that ``cells`` depend on, outermost first, but for steps and those of the value itself."""
        own = {loop.name for loop in (*inner, *self.seq)}
        used = frozenset().union(*(cell_names(cell) for cell in cells))
        return tuple(Loop(name, extent) for name, extent in self.extents.items() if name in used and name not in own)

    def _note_presence(self, tensor: str, cell: Cell, dims: tuple[Loop, ...]) -> None:
        """Remember where there is nothing, unless that is nowhere."""
        if any(not case.where and not case.fixed for case in cell.cases) or self.is_total(cell):
            return
        wheres = tuple((*case.where, *_fixed_conditions(case)) for case in cell.cases)
        inside = {loop.name for loop in dims}
        if all(c.names() - self.sizes.keys() <= inside for where in wheres for c in where):
            self.present[tensor] = (tuple(loop.name for loop in dims), wheres)

    def is_total(self, cell: Cell) -> bool:
        """Whether some case surely holds everywhere."""
        rest: list[tuple[Condition, ...]] = [()]
        for case in cell.cases:
            where = (*case.where, *_fixed_conditions(case))
            rest = [both for r in rest for o in opposite(where) if self.possible(both := (*r, *o))]
        return not rest

    def possible(self, where: tuple[Condition, ...]) -> bool:
        """False only where the conditions surely exclude one another."""
        needed = needed_conditions(where, self.ranges)
        if needed == (NEVER,):
            return False
        bounds = [c.index for c in needed] + [-c.index for c in needed if c.equal]
        sums = (a + b for k, a in enumerate(bounds) for b in bounds[:k])
        return not any(total.is_constant and total.const < 0 for total in sums)

    @property
    def ranges(self) -> Ranges:
        return Ranges(self.extents, self.sizes)

    # -- statements

    def emit(self, access: Access, loops: tuple[Loop, ...], cell: Cell, dtype: DType) -> None:
        """Statements that make ``access`` at every point of ``loops`` what ``cell`` is there."""
        several = len(cell.cases) > 1
        cases = [fix(c) for c in cell.cases if not several or self.possible(fix(c).where)]
        main = next((c.body.combine for c in cases if isinstance(c.body, Sum) and direct(c.body, dtype)), None)
        for case in cases:
            values = {name: Index((), value) for name, value in case.fixed}
            rest = tuple(loop for loop in loops if loop.name not in values)
            out = access.substitute(values) if values else access
            if isinstance(case.body, Sum) and case.body.combine is main and direct(case.body, dtype):
                self._emit_sum(out, rest, case.body, case.where, dtype)
            else:
                value, source = self.settle(case, cell.dtype), cell.dtype
                self.put(out, rest, Combine.SET, _stored_value(value, source, dtype), case.where)

    def _emit_sum(
        self, out: Access, loops: tuple[Loop, ...], total: Sum, where: tuple[Condition, ...], dtype: DType
    ) -> None:
        if not is_neutral(total.start, total.combine, dtype):
            self._emit_start(out, loops, total, where, dtype)
        for part in total.parts:
            value = widened(part.value, part.dtype, total.own) if _widens(part, total, dtype) else part.value
            self.put(out, (*loops, *part.loops), total.combine, value, (*where, *part.where))

    def _emit_start(
        self, out: Access, loops: tuple[Loop, ...], total: Sum, where: tuple[Condition, ...], dtype: DType
    ) -> None:
        """What the reduction starts from is one more contribution, unless it is there already."""
        for case in map(fix, total.start.cases):
            inside = (*where, *case.where)
            if self._is_there(case.body, out):
                continue
            if isinstance(case.body, Sum) and case.body.combine is total.combine and direct(case.body, dtype):
                self._emit_sum(out, loops, case.body, inside, dtype)
            else:
                self.put(out, loops, total.combine, self.settle(case, total.start.dtype), inside)

    def _is_there(self, body: Expr | Sum, out: Access) -> bool:
        """Whether what a reduction starts from is what the caller's tensor holds at that place."""
        if isinstance(body, Cast) and exact(self._dtypes[out.tensor], body.dtype):
            body = body.arg
        inside = isinstance(body, Read) and self.tensors[out.tensor].role is Role.INOUT
        return inside and isinstance(body, Read) and self.same(body.access, out)

    def same(self, one: Access, other: Access) -> bool:
        """Whether two accesses are to one element, as far as the bounds of loops show."""
        if one.tensor != other.tensor or one == other:
            return one == other
        pairs = zip(one.indices, other.indices, strict=True)
        return all(simplify(a, self.ranges) == simplify(b, self.ranges) for a, b in pairs)

    def put(
        self, out: Access, loops: tuple[Loop, ...], combine: Combine, value: Expr, where: tuple[Condition, ...]
    ) -> None:
        """One statement."""
        own = {loop.name for loop in (*loops, *self.seq)} | self.sizes.keys()
        inside = tuple(c for c in self.assumed if c.names() <= own)
        where = tuple(dict.fromkeys((*where, *inside)))
        value = _settle_marks(value, self._dtypes, self._dtypes[out.tensor])
        self.statements.append(Statement(loops, out, combine, value, where, self.seq))

    def without_sums(self, cell: Cell) -> Cell:
        """``cell`` with its reductions stored, so that an element that none of them reaches is not written at all."""
        cases = tuple(Case(case.where, self.settle(case, cell.dtype), case.fixed) for case in cell.cases)
        return Cell(cases, cell.dtype)

    def settle(self, case: Case, dtype: DType | None) -> Expr:
        """The body as an expression: a reduction is stored, over the loops it depends on, and read."""
        if not isinstance(case.body, Sum):
            return case.body
        key = id(case.body)
        if key not in self._settled:
            cell = Cell((replace(fix(case)),), dtype)
            if dtype is not None and not direct(case.body, dtype):
                inner = self.settle(Case(case.where, replace(case.body), case.fixed), case.body.own)
                self._settled[key] = (case.body, Cast(dtype, inner))
                return self._settled[key][1]
            tensor, outer = self._keep_leaf(Leaf((), Cell((replace(cell.cases[0], fixed=()),), dtype)))
            self.present.pop(tensor, None)
            self._settled[key] = (case.body, Read(Access(tensor, outer)))
        return self._settled[key][1]


def _read_late() -> TermError:
    what = "an array is read after a part of it was changed"
    return TermError(what, why="a program keeps one copy", hint='to("", x) makes another')


def direct(total: Sum, dtype: DType) -> bool:
    """Whether the reduction can be done in a tensor of ``dtype``: as it would be in its own type, then converted."""
    own = total.own
    if dtype == own or (dtype.is_float and own.is_float):
        return True
    if own.is_float or Kind.BOOL in (own.kind, dtype.kind) or dtype.is_float or not exact(dtype, own):
        return False
    return total.combine in (Combine.ADD, Combine.MUL) or is_neutral(total.start, total.combine, dtype)


def cell_names(cell: Cell) -> frozenset[str]:
    """Loops and sizes a number depends on."""
    found: set[str] = set()
    for case in map(fix, cell.cases):
        found.update(*(c.names() for c in case.where))
        if not isinstance(case.body, Sum):
            found |= names(case.body)
            continue
        for part in case.body.parts:
            inside = names(part.value).union(
                *(c.names() for c in part.where), *(lo.extent.names() for lo in part.loops)
            )
            found |= inside - {loop.name for loop in part.loops}
        found |= cell_names(case.body.start)
    return frozenset(found)


def _has_tuples(value: Value, leaf: Leaf) -> bool:
    """Whether there is a tuple on the way to the one number in ``value``."""
    for loop in leaf.loops:
        if not isinstance(value, Array):
            return True
        value = value.at(variable(loop.name))
    return not isinstance(value, Cell)


def _fixed_conditions(case: Case) -> Iterator[Condition]:
    return (Condition(variable(name) - value, equal=True) for name, value in case.fixed)


def _widens(part: Part, total: Sum, dtype: DType) -> bool:
    """Whether a part is of a smaller type than the reduction and the tensor does not say so."""
    return part.dtype != total.own and dtype != total.own


def _stored_value(value: Expr, source: DType | None, target: DType) -> Expr:
    """``value`` in a statement that writes ``target``: arithmetic is done in its own type first."""
    if source is None or source == target:
        return value
    if is_arithmetic(value) and not (source.is_float and target.is_float):
        return Cast(source, value)
    return value


def _settle_marks(value: Expr, dtypes: dict[str, DType], out: DType) -> Expr:
    """Integers used as floats without rounding: plain where the statement's type says so, else cast."""
    if not any(isinstance(node, Apply) and node.function == WIDENED for node in walk(value)):
        return value
    plain, cast = _unmarked(value, True), _unmarked(value, False)
    return plain if statement_type(plain, dtypes, out) == statement_type(cast, dtypes, out) else cast


def _unmarked(e: Expr, plain: bool) -> Expr:
    """``e`` without marks: as they are in what the statement's type reaches, where ``plain``, and cast elsewhere."""
    if isinstance(e, Apply):
        if e.function == WIDENED:
            return _unmarked(e.args[0 if plain else 1], plain)
        inner = plain and is_arithmetic(e)
        skip = 1 if e.function == "select" else 0
        return Apply(e.function, tuple(_unmarked(a, inner and k >= skip) for k, a in enumerate(e.args)))
    return replace(e, arg=_unmarked(e.arg, False)) if isinstance(e, Cast | Bitcast) else e
