"""A program as plans for a machine are made of it: the same meaning, more statements that its instructions fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dovetail.ir.ahead import split_ahead
from dovetail.ir.program import Program, Role
from dovetail.schedule.empty import without_empty_statements
from dovetail.schedule.placed.space import works
from dovetail.schedule.placed.units import with_unit_loops
from dovetail.simulated.digits import with_digits_apart
from dovetail.simulated.lowered import all_fits
from dovetail.simulated.split import split_values
from dovetail.simulated.tables import with_tables
from dovetail.simulated.temp_order import with_ordered_loops, with_ordered_temps
from dovetail.targets.model import Target


@dataclass(frozen=True, slots=True)
class Prepared:
    """``main`` is what the machine runs; what it finds in its constants is made before by ``ahead``, in this order."""

    ahead: tuple[Program, ...]
    main: Program
    finite: frozenset[str] = frozenset()
    """Arguments that must be finite, since they are multiplied with zeros of a table."""


def prepared(program: Program, target: Target) -> Program:
    """What the machine runs of ``program`` each time."""
    return prepare(program, target).main


def prepare(program: Program, target: Target) -> Prepared:
    """``program`` in two parts: what needs no input, and the rest, with more statements that instructions fit."""

    def suits(found: Program, number: int) -> bool:
        return not _unfitting(replace(found, statements=(found.statements[number],)), target)

    program = without_empty_statements(program)
    if any(index.is_indirect for s in program.statements for a in (s.out, *s.reads()) for index in a.indices):
        first, main = split_ahead(program)
        tables = None
    else:
        early, _ = split_ahead(program)
        first, main = split_ahead(with_ordered_temps(program, {t.name for t in early.tensors} if early else set()))
        tables, joined = with_tables(main, suits)
        ordered = with_ordered_temps(with_digits_apart(joined))
        main = main if ordered == main else with_ordered_loops(ordered)
    last, main = split_ahead(_fitted(main, target))
    finite = {t.name for t in main.tensors if tables is not None and t.role is Role.IN and t.dtype.is_float}
    return Prepared(tuple(part for part in (first, tables, last) if part is not None), main, frozenset(finite))


def _fitted(program: Program, target: Target) -> Program:
    """Values split into operations, and loops to spare, where that makes a fit."""

    def fits(found: Program, number: int) -> bool:
        return number not in _unfitting(found, target)

    missing = _unfitting(program, target)
    if not missing:
        return program
    program = split_values(program, missing, fits)
    missing = _unfitting(program, target)
    spare = with_unit_loops(program, missing)
    return with_unit_loops(program, missing - _unfitting(spare, target))


def _unfitting(program: Program, target: Target) -> frozenset[int]:
    """Statements that no single instruction can do in tiles."""
    fits = all_fits(program, target)
    numbers = range(len(program.statements))
    return frozenset(n for n in numbers if not any(True for _ in works(program, target, fits, n)))
