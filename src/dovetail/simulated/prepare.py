"""A program as plans for a machine are made of it: the same meaning, more statements that its instructions fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from dovetail.ir.ahead import split_ahead
from dovetail.ir.program import Program, Role
from dovetail.schedule.empty import without_empty_statements
from dovetail.schedule.placed.resident import Resident, resident_groups
from dovetail.schedule.placed.space import works
from dovetail.schedule.placed.units import with_unit_loops
from dovetail.schedule.placed.zeros import zero_target
from dovetail.simulated.digits import with_digits_apart
from dovetail.simulated.gates import with_gates_apart, with_rows_apart
from dovetail.simulated.lowered import all_fits
from dovetail.simulated.split import split_values
from dovetail.simulated.tables import with_tables
from dovetail.simulated.temp_order import with_ordered_loops, with_ordered_temps
from dovetail.simulated.turned import with_weights_turned
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
    turned, main = _in_steps(main, target)
    finite = {t.name for t in main.tensors if tables is not None and t.role is Role.IN and t.dtype.is_float}
    return Prepared(tuple(part for part in (first, tables, last, turned) if part is not None), main, frozenset(finite))


def _in_steps(program: Program, target: Target) -> tuple[Program | None, Program]:
    """Sequences taken apart and put in order where all of their steps can then be kept on the machine; and what makes
    their weights as its instructions want them, if that helps."""
    if not any(s.seq for s in program.statements):
        return None, program
    ahead, turned = split_ahead(with_weights_turned(program))
    forms: list[tuple[Program | None, Program]] = [(None, _taken_apart(program, target))]
    forms += [(ahead, _taken_apart(turned, target))] if ahead is not None else []
    costs = [_cost(form, target) for _, form in forms]
    best = min(range(len(forms)), key=lambda n: costs[n])
    return forms[best] if costs[best] < inf else (None, program)


def _cost(program: Program, target: Target) -> float:
    """About the cycles of the steps of all sequences; infinite where one of them is not kept."""
    found = _resident(program, target)
    groups = {group for group in program.groups() if program.statements[group[0]].seq}
    return sum(found[group].cost for group in groups) if groups <= found.keys() else inf


def _taken_apart(program: Program, target: Target) -> Program:
    """Gates by themselves; of weights that do not fit, those rows that do."""
    apart = with_gates_apart(program)
    found = _resident(apart, target)
    parts = [one.part for one in found.values() if one.part is not None]
    for number, loop, count in sorted(parts, reverse=True):
        cut = with_rows_apart(apart, number, loop, count)
        apart = cut if len(_resident(cut, target)) == len(found) else apart
    return apart


def _resident(program: Program, target: Target) -> dict[tuple[int, ...], Resident]:
    return {one.group: one for one in resident_groups(program, zero_target(target), all_fits(program, target))}


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
