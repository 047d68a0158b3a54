"""Runs of statements that work row by row: softmax, layer norm. One tile over the rows holds them all.

for i<m, j<n: t[i] max= x[i, j]
for i<m, j<n: e[i, j] = exp(x[i, j] - t[i])      ->   tile over i of all four, t, s in registers, e in a row's scratch
for i<m, j<n: s[i] += e[i, j]
for i<m, j<n: y[i, j] = e[i, j] / s[i]
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.ir.index import Access, variable
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.schedule.facts import facts_of, is_contraction


@dataclass(frozen=True, slots=True)
class RowRun:
    """Neighbouring statements and, for each, the loop that is its row."""

    rows: tuple[tuple[int, str], ...]
    scalars: tuple[str, ...]
    """Temporaries with one element a row."""
    scratch: tuple[str, ...]
    """Temporaries with several elements a row."""


def row_run(program: Program, start: int, done: set[int]) -> RowRun | None:
    """The longest run of at least two statements from ``start`` on, with a temporary between them."""
    first = program.statements[start]
    for loop in first.loops:
        dims: dict[str, int] = {}
        rows: list[tuple[int, str]] = []
        for number in range(start, len(program.statements)):
            found = None if number in done else _row(program, number, loop.name if number == start else "", dims, rows)
            if found is None:
                break
            rows.append((number, found))
        while len(rows) > 1 and not _closed(program, rows, dims):
            rows.pop()
        if len(rows) > 1:
            return _run(program, tuple(rows), dims)
    return None


def _row(program: Program, number: int, wanted: str, dims: dict[str, int], rows: list[tuple[int, str]]) -> str | None:
    """The loop that walks the same rows in this statement; None when it has none."""
    statement = program.statements[number]
    if statement.seq or statement.where:
        return None
    if any(a.tensor in dims for used in (statement.out, *statement.reads()) for a in used.reads()):
        return None  # a place is read from memory
    facts = facts_of(program, number)
    if not facts.is_plain:
        return None
    if statement.combine is not Combine.SET and len(facts.kept) != 1:
        return None
    if sum(s.out.tensor == statement.out.tensor for s in program.statements) > 1:
        return None
    for name in [wanted] if wanted else list(facts.kept):
        if name not in facts.kept or (rows and _extent(statement, name) != _first_extent(program, rows)):
            continue
        mine = {a.tensor: _dimension(a, name) for a in (statement.out, *statement.reads())}
        known = [t for t in mine if t in dims]
        if (rows and not known) or (is_contraction(statement) and None in mine.values()):
            continue  # a product with what all rows share is better done with several rows at once
        if all(mine[t] == dims[t] for t in known) and _dimension(statement.out, name) is not None:
            dims[statement.out.tensor] = _dimension(statement.out, name) or 0
            return name
    return None


def _dimension(access: Access, loop: str) -> int | None:
    found = [d for d, i in enumerate(access.indices) if loop in i.names()]
    return found[0] if len(found) == 1 and access.indices[found[0]] == variable(loop) else None


def _extent(statement: Statement, loop: str) -> object:
    return next(x.extent for x in statement.loops if x.name == loop)


def _first_extent(program: Program, rows: list[tuple[int, str]]) -> object:
    return _extent(program.statements[rows[0][0]], rows[0][1])


def _closed(program: Program, rows: list[tuple[int, str]], dims: dict[str, int]) -> bool:
    """Every access inside to what the run writes stays in its own row."""
    written = {program.statements[n].out.tensor for n, _ in rows}
    for number, loop in rows:
        for access in program.statements[number].reads():
            if access.tensor in written and _dimension(access, loop) != dims[access.tensor]:
                return False
    return True


def _run(program: Program, rows: tuple[tuple[int, str], ...], dims: dict[str, int]) -> RowRun:
    inside = {n for n, _ in rows}
    outside = {a.tensor for n, s in enumerate(program.statements) if n not in inside for a in s.reads()}
    outside |= {s.out.tensor for n, s in enumerate(program.statements) if n not in inside}
    scalars, scratch = [], []
    for number, _ in rows:
        tensor = program.tensor(program.statements[number].out.tensor)
        writers = sum(s.out.tensor == tensor.name for s in program.statements)
        if tensor.role is not Role.TEMP or tensor.name in outside or writers != 1:
            continue
        if len(facts_of(program, number).kept) == 1:
            scalars.append(tensor.name)
        elif program.statements[number].combine is Combine.SET:
            scratch.append(tensor.name)
    return RowRun(rows, tuple(scalars), tuple(scratch))
