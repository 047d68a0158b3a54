"""Neighbouring linear combinations as one sum of products with a table of numbers, which matrix instructions do.

    for i<4: v[0,i] = x[2*i] - x[2*i+2]            t[0,0] = 1.0  t[0,1] = 0.0  t[0,2] = -1.0       (done ahead)
    for i<4: v[1,i] = x[2*i+1] + x[2*i+2]    ->    t[1,0] = 0.0  t[1,1] = 1.0  t[1,2] = 1.0
                                                   for i<4, e0<2, e1<3: v[e0,i] += t[e0,e1] * x[2*i+e1]

Two of them, one after the other, are one with the product of their tables; so is one that reads what was only moved.
What an element is multiplied with by 0 must be finite, as where zeros pad.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from dovetail.ir.expr import Apply, Expr, Literal, Read
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.interval import interval
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor
from dovetail.schedule.placed.copying import moved_access

Suits = Callable[[Program, int], bool]
"""Whether a statement of a program can be done by an instruction."""
MOST_ENTRIES = 4096
"""Of a table."""


@dataclass(frozen=True, slots=True)
class _Tabled:
    """``program`` with tables among its constants; ``sums`` are the tensors that are sums of products with one."""

    program: Program
    sums: frozenset[str] = frozenset()
    tables: tuple[Tensor, ...] = ()
    entries: tuple[Statement, ...] = ()
    """What writes the tables, in order."""


def with_tables(program: Program, suits: Suits) -> tuple[Program | None, Program]:
    """``program`` with linear combinations as sums of products, wherever an instruction ``suits`` those.

    And before it what makes the tables, which are constants of the other; None where there are none."""
    found = _Tabled(program)
    for name in dict.fromkeys(s.out.tensor for s in program.statements):
        found = _joined(found, name, suits)
    while (composed := _composed(found, suits)) is not None:
        found = composed
    used = {access.tensor for s in found.program.statements for access in s.reads()}
    wanted = {table.name for table in found.tables} & used
    if not wanted:
        return None, program
    tables = tuple(replace(t, role=Role.OUT if t.name in wanted else Role.TEMP) for t in found.tables)
    tensors = tuple(t for t in found.program.tensors if t not in found.tables or t.name in wanted)
    return Program(tables, found.entries), replace(found.program, tensors=tensors)


# -- several statements as one


@dataclass(frozen=True, slots=True)
class _Combination:
    """A statement whose loops go by the places they have in its result, and what each element read counts."""

    loops: tuple[Loop, ...]
    out: Access
    where: frozenset[Condition]
    weights: tuple[tuple[Access, float], ...]


def _joined(known: _Tabled, name: str, suits: Suits) -> _Tabled:
    """All statements that write a tensor as one, if that can be done."""
    program = known.program
    numbers = [n for n, s in enumerate(program.statements) if s.out.tensor == name]
    found = [_combination(program.statements[n]) for n in numbers]
    combinations = [c for c in found if c is not None]
    if len(numbers) < 2 or len(combinations) < len(numbers) or program.tensor(name).role is Role.INOUT:
        return known
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        return known
    made = _sum_of_products(program, combinations)
    if made is None:
        return known
    statement, table, entries = made
    statements = (*program.statements[: numbers[0]], statement, *program.statements[numbers[-1] + 1 :])
    result = replace(program, tensors=(*program.tensors, table), statements=statements)
    if not suits(result, numbers[0]):
        return known
    return _Tabled(result, known.sums | {name}, (*known.tables, table), (*known.entries, *entries))


def _sum_of_products(
    program: Program, combinations: Sequence[_Combination]
) -> tuple[Statement, Tensor, tuple[Statement, ...]] | None:
    """The one statement, its table, and what writes that."""
    first = combinations[0]
    reads = [access for c in combinations for access, _ in c.weights]
    rows, columns = _steps([c.out for c in combinations]), _steps(reads)
    if rows is None or columns is None or any(c.loops != first.loops for c in combinations):
        return None
    if rows.count != len(combinations) or rows.count * columns.count > MOST_ENTRIES or columns.count < 2:
        return None
    row, column, name = _fresh(program, first.loops)
    out, read = rows.access(variable(row)), columns.access(variable(column))
    loops = (*first.loops, Loop(row, constant(rows.count)), Loop(column, constant(columns.count)))
    where = _common_guards(program, combinations, out, rows, row)
    if where is None:
        return None
    shape = (constant(rows.count), constant(columns.count))
    table = Tensor(Role.CONST, name, program.tensor(first.out.tensor).dtype, shape)
    numbers = [[0.0] * columns.count for _ in range(rows.count)]
    for c in combinations:
        for access, weight in c.weights:
            numbers[rows.place(c.out)][columns.place(access)] += weight
    value = Apply("mul", (Read(Access(name, (variable(row), variable(column)))), Read(read)))
    entries = tuple(
        Statement((), Access(name, (constant(i), constant(j))), Combine.SET, _number(v, table))
        for i, line in enumerate(numbers)
        for j, v in enumerate(line)
    )
    return Statement(loops, out, Combine.ADD, value, where), table, entries


def _number(value: float, table: Tensor) -> Literal:
    return Literal(value if table.dtype.is_float else int(value))


def _common_guards(
    program: Program, combinations: Sequence[_Combination], out: Access, rows: _Steps, row: str
) -> tuple[Condition, ...] | None:
    """Conditions that say for every row what its statement said; only where the result ends may they differ."""
    shared = frozenset.intersection(*(c.where for c in combinations))
    if all(c.where == shared for c in combinations):
        return tuple(sorted(shared, key=str))
    end = Condition(program.tensor(out.tensor).shape[rows.dimension] - 1 - out.indices[rows.dimension])
    for c in combinations:
        ranges = {loop.name: (0, loop.extent.const - 1) for loop in c.loops}
        said = _tight(end.substitute({row: constant(rows.place(c.out))}))
        if c.where - shared != (frozenset() if _always(said, ranges) else frozenset({said})):
            return None
    return (*sorted(shared, key=str), end)


def _tight(condition: Condition) -> Condition:
    """The same condition with the smallest numbers: ``11 - 4 * i >= 0`` is ``2 - i >= 0``."""
    step = gcd(*(c for _, c in condition.index.terms))
    if step <= 1 or condition.equal:
        return condition
    return Condition(Index(tuple((a, c // step) for a, c in condition.index.terms), condition.index.const // step))


def _always(condition: Condition, ranges: dict[str, tuple[int, int]]) -> bool:
    found = interval(condition.index, ranges)
    return found is not None and found[0] >= 0 and not condition.equal


@dataclass(frozen=True, slots=True)
class _Steps:
    """Accesses that differ in one dimension only, by multiples of ``step`` from the ``first`` on."""

    first: Access
    dimension: int
    step: int
    count: int

    def place(self, access: Access) -> int:
        return (access.indices[self.dimension].const - self.first.indices[self.dimension].const) // self.step

    def access(self, number: Index) -> Access:
        """The access at a place that a loop counts."""
        indices = list(self.first.indices)
        indices[self.dimension] += Index(tuple((a, c * self.step) for a, c in number.terms), 0)
        return Access(self.first.tensor, tuple(indices))


def _steps(accesses: Sequence[Access]) -> _Steps | None:
    first = accesses[0]
    apart: set[int] = set()
    for access in accesses:
        if access.tensor != first.tensor:
            return None
        for dimension, (a, b) in enumerate(zip(access.indices, first.indices, strict=True)):
            if a.terms != b.terms:
                return None
            apart |= {dimension} if a.const != b.const else set()
    if len(apart) != 1:
        return None
    dimension = apart.pop()
    places = sorted({access.indices[dimension].const for access in accesses})
    step = gcd(*(place - places[0] for place in places))
    lowest = min(accesses, key=lambda access: access.indices[dimension].const)
    return _Steps(lowest, dimension, step, (places[-1] - places[0]) // step + 1)


def _combination(statement: Statement) -> _Combination | None:
    """A statement that sets each element to a linear combination of elements; None for any other."""
    if statement.combine is not Combine.SET or statement.seq or statement.reduced:
        return None
    if any(True for _ in statement.out.reads()) or not all(i.is_affine for i in statement.out.indices):
        return None
    names: dict[str, Index] = {}
    for index in statement.out.indices:
        for atom, _ in sorted(index.terms, key=lambda term: (-term[1], str(term[0]))):
            names.setdefault(str(atom), variable(f"i{len(names)}"))
    weights = _weights(statement.value)
    if weights is None or not weights or not all(i.is_affine for a in weights for i in a.indices):
        return None
    extents = {str(names[loop.name].terms[0][0]): loop.extent for loop in statement.loops}
    return _Combination(
        tuple(Loop(name, extents[name]) for name in sorted(extents, key=lambda x: int(x[1:]))),
        statement.out.substitute(names),
        frozenset(_tight(c.substitute(names)) for c in statement.where),
        tuple((access.substitute(names), weight) for access, weight in weights.items()),
    )


def _weights(e: Expr) -> dict[Access, float] | None:
    """What each element of a linear combination counts."""
    if isinstance(e, Read):
        return {e.access: 1.0}
    if not isinstance(e, Apply) or e.function not in ("add", "sub", "mul", "neg"):
        return None
    if e.function == "mul":
        numbers = [arg.value for arg in e.args if isinstance(arg, Literal)]
        others = [arg for arg in e.args if not isinstance(arg, Literal)]
        inner = _weights(others[0]) if len(numbers) == 1 else None
        return None if inner is None else {access: weight * numbers[0] for access, weight in inner.items()}
    parts = [_weights(arg) for arg in e.args]
    signs = {"add": (1.0, 1.0), "sub": (1.0, -1.0), "neg": (-1.0,)}[e.function]
    total: dict[Access, float] = {}
    for part, sign in zip(parts, signs, strict=True):
        if part is None:
            return None
        for access, weight in part.items():
            total[access] = total.get(access, 0.0) + sign * weight
    return total


# -- one after the other


def _composed(known: _Tabled, suits: Suits) -> _Tabled | None:
    """The first sum of products that reads what another table made, or what was only moved, with that put into it."""
    program = known.program
    for number, statement in enumerate(program.statements):
        if statement.out.tensor not in known.sums:
            continue
        _, read = _factors(statement)
        writers = [n for n, s in enumerate(program.statements) if s.out.tensor == read.tensor]
        readers = [n for n, s in enumerate(program.statements) for a in s.reads() if a.tensor == read.tensor]
        if program.tensor(read.tensor).role is not Role.TEMP or len(writers) != 1 or readers != [number]:
            continue
        made = _put_into(known, number, writers[0])
        if made is not None and suits(made.program, number - 1):
            return made
    return None


def _put_into(known: _Tabled, number: int, writer: int) -> _Tabled | None:
    """Statement ``number`` with what ``writer``, before it, computes in the place of the element it reads."""
    program = known.program
    statement, inner = program.statements[number], program.statements[writer]
    table, read = _factors(statement)
    values = _found_at(inner.out, read)
    if values is None:
        return None
    taken = {loop.name for loop in statement.loops} | {t.name for t in program.tensors}
    own = tuple(loop for loop in inner.loops if loop.name not in values)
    names = {loop.name: _unused(f"e{n}", taken) for n, loop in enumerate(own)}
    values |= {old: variable(new) for old, new in names.items()}
    added = tuple(Loop(names[loop.name], loop.extent) for loop in own)
    kept = tuple(loop for loop in statement.loops if loop not in statement.reduced)
    loops = (*kept, *added, *statement.reduced)
    where = _needed((*statement.where, *(c.substitute(values) for c in inner.where)), loops)
    new = replace(statement, loops=loops, where=where)
    if inner.out.tensor in known.sums:
        other, source = (access.substitute(values) for access in _factors(inner))
        return _with_product(known, (writer, number), new, (table, other), source)
    moved = moved_access(program, writer)
    if moved is None:
        return None
    new = replace(new, value=Apply("mul", (Read(table), Read(moved.substitute(values)))))
    return replace(known, program=_without(program, writer, number, new))


def _found_at(out: Access, read: Access) -> dict[str, Index] | None:
    """The loops that write an element, in terms of where it is read; None where they do not follow from that."""
    found: dict[str, Index] = {}
    for index, at in zip(out.indices, read.indices, strict=True):
        if index.is_constant:
            if at != index:
                return None
        elif index == variable(str(index.terms[0][0])):
            found[str(index.terms[0][0])] = at
        else:
            return None
    return found


def _with_product(
    known: _Tabled, numbers: tuple[int, int], statement: Statement, tables: tuple[Access, Access], source: Access
) -> _Tabled | None:
    """Both tables multiplied into one."""
    writer, number = numbers
    program = known.program
    used = tables[0].names() | tables[1].names()
    walked = tuple(loop for loop in statement.loops if loop.name in used)
    if prod(loop.extent.const for loop in walked) > MOST_ENTRIES:
        return None
    name = _unused("table", {t.name for t in program.tensors})
    at = Access(name, tuple(variable(loop.name) for loop in walked))
    dtype = program.tensor(tables[0].tensor).dtype
    tensor = Tensor(Role.CONST, name, dtype, tuple(loop.extent for loop in walked))
    entry = Statement(walked, at, Combine.SET, Apply("mul", (Read(tables[0]), Read(tables[1]))))
    new = replace(statement, value=Apply("mul", (Read(at), Read(source))))
    made = _without(replace(program, tensors=(*program.tensors, tensor)), writer, number, new)
    sums = known.sums - {program.statements[writer].out.tensor}
    return _Tabled(made, sums, (*known.tables, tensor), (*known.entries, entry))


def _without(program: Program, writer: int, number: int, new: Statement) -> Program:
    """Statement ``number`` as ``new``, which needs neither ``writer`` nor what that writes."""
    name = program.statements[writer].out.tensor
    statements = [new if n == number else s for n, s in enumerate(program.statements) if n != writer]
    return replace(program, tensors=tuple(t for t in program.tensors if t.name != name), statements=tuple(statements))


def _needed(where: Sequence[Condition], loops: Sequence[Loop]) -> tuple[Condition, ...]:
    ranges = {loop.name: (0, loop.extent.const - 1) for loop in loops}
    return tuple(sorted({c for c in where if not _always(c, ranges)}, key=str))


def _factors(statement: Statement) -> tuple[Access, Access]:
    """Table and element of a sum of products made here."""
    assert isinstance(statement.value, Apply)
    table, element = statement.value.args
    assert isinstance(table, Read) and isinstance(element, Read)
    return table.access, element.access


def _fresh(program: Program, loops: Sequence[Loop]) -> tuple[str, str, str]:
    taken = {t.name for t in program.tensors} | {loop.name for loop in loops}
    return _unused("e0", taken), _unused("e1", taken | {"e0"}), _unused("table", taken)


def _unused(name: str, taken: set[str]) -> str:
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found
