"""``dovetail map``: which instructions of a machine fit a program, and why the others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import MappingError
from dovetail.cli.options import AsJson, ProgramPath, ProgramText, TargetName
from dovetail.cli.screen import heading, say, show_json, show_table
from dovetail.cli.source import read_program

if TYPE_CHECKING:
    from dovetail.ir.fit import Fit, MappingResult, Misfit
    from dovetail.ir.program import Program
    from dovetail.mapping.display import FitRow
    from dovetail.targets.model import Target

FITS_SHOWN = 12
MISFITS_SHOWN = 6
WIDENINGS = ("identity", "finite")


def map_verb(
    path: ProgramPath = None,
    text: ProgramText = None,
    target: TargetName = "host",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            help="Widen the search: identity (operands of ones and zeros), finite (no infinities or NaN in the data)."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every fit and misfit, not the nearest.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how the instructions of a machine fit a program.

    \b
    Example:
      dovetail map --text "in a: f32[8,8] in b: f32[8,8] out c: f32[8,8]
                           for i<8, j<8, k<8: c[i,j] += a[i,k] * b[k,j]"

    A fit binds the loops and operands of an instruction to those of a statement. An adapter is what an operand needs
    first: another layout, one value in all lanes, padding. A misfit says the smallest reason, and what would help.
    """
    from dovetail.mapping.display import fit_json, fit_rows
    from dovetail.pipeline import mappings
    from dovetail.targets.load import load_target

    program = read_program(path, text)
    machine = load_target(target)
    result = mappings(program, machine, allow=frozenset(_known(allow)))
    if as_json:
        show_json(fit_json(result, program, machine))
        return
    _show(program, machine, result, fit_rows(result, program, machine), everything)


def _known(allow: list[str] | None) -> list[str]:
    for name in allow or []:
        if name not in WIDENINGS:
            raise MappingError(f"--allow {name} is not known", hint=f"--allow {' or '.join(WIDENINGS)}")
    return allow or []


def _show(program: Program, target: Target, result: MappingResult, rows: tuple[FitRow, ...], everything: bool) -> None:
    say(f"{len(result.fits)} fits of {len(target.by_name)} instructions of '{target.name}'")
    for number, statement in enumerate(program.statements):
        heading(f"statement {number}: {statement}")
        fits = [(fit, row) for fit, row in zip(result.fits, rows, strict=True) if fit.statement == number]
        ranked = fits if everything else _nearest(fits, target)
        if ranked:
            show_table(("instruction", "does", "loops", "adapters", "of the statement"), map(_cells, ranked))
        else:
            say("  no instruction fits")
        _more(len(fits) - len(ranked), "fits")
        _show_misfits([m for m in result.misfits if m.statement == number], everything)
    if result.stopped_by:
        say()
        say(f"the search was stopped: {result.stopped_by}")


def _cells(pair: tuple[Fit, FitRow]) -> tuple[str, ...]:
    fit, row = pair
    adapters: dict[str, list[str]] = {}
    for adapter in fit.adapters:
        adapters.setdefault(adapter.kind, []).append(adapter.operand)
    needed = "; ".join(f"{kind} {', '.join(operands)}" for kind, operands in adapters.items())
    return row.instruction, row.name, row.loops, needed, "all" if fit.node is None else row.covers


def _nearest(fits: list[tuple[Fit, FitRow]], target: Target) -> list[tuple[Fit, FitRow]]:
    """The first few, best first; those that differ in the order of operands alone count as one."""
    found: dict[tuple[str, ...], tuple[Fit, FitRow]] = {}
    for pair in sorted(fits, key=lambda pair: _distance(pair[0], target)):
        found.setdefault(_cells(pair), pair)
    return list(found.values())[:FITS_SHOWN]


def _distance(fit: Fit, target: Target) -> tuple[bool, int, int, int, int]:
    """Whole statements first, without temporaries and fused loops; most loops, most lanes, fewest adapters."""
    detours = sum(fit.transformations.count(name) for name in ("insert temporary", "insert identity", "fuse"))
    bound = sum(bool(loop.loops) for loop in fit.loops)
    return fit.node is not None, detours, -bound, -target.instruction(fit.instruction).lanes, len(fit.adapters)


def _show_misfits(misfits: list[Misfit], everything: bool) -> None:
    if not misfits:
        return
    say()
    shown = misfits if everything else misfits[:MISFITS_SHOWN]
    rows = ((m.instruction, m.reason, m.repair, m.target_field) for m in shown)
    show_table(("does not fit", "because", "try", "in the target file"), rows)
    _more(len(misfits) - len(shown), "misfits")


def _more(count: int, what: str) -> None:
    if count > 0:
        say(f"and {count} more {what}: --all", "dim")
