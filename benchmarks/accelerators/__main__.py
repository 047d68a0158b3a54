"""All bars of the simulated machines. Run: python -m benchmarks.accelerators [--only SECTION] [--quick] [--json OUT]"""

from __future__ import annotations

import json as json_lines
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.accelerators.exact import Verdict
from benchmarks.accelerators.sections import SECTIONS, Runner, Section
from benchmarks.accelerators.subject import Row

OnlyOption = Annotated[str, typer.Option("--only", help=f"one or more of {', '.join(SECTIONS)}, with commas")]
JsonOption = Annotated[
    Path | None, typer.Option("--json", help="append one JSON line per case to this file, as it is done")
]
QuickOption = Annotated[bool, typer.Option("--quick", help="run a sample of each section")]
ScaleSimOption = Annotated[
    Path | None, typer.Option("--scalesim", help="the Python of a venv with SCALE-Sim, to run it")
]
BudgetOption = Annotated[float, typer.Option("--budget", help="seconds of search for each case; 0: the default plan")]
CertifyOption = Annotated[bool, typer.Option("--certify", help="certify the plans that are timed, too")]
PIPE_COLUMNS = 140
T = TypeVar("T")


def main(
    only: OnlyOption = "",
    json: JsonOption = None,
    quick: QuickOption = False,
    scalesim: ScaleSimOption = None,
    budget: BudgetOption = 5.0,
    certify: CertifyOption = False,
) -> None:
    """Exit with 1 where a bar is missed."""
    wanted = [name for name in only.split(",") if name] or list(SECTIONS)
    unknown = [name for name in wanted if name not in SECTIONS]
    if unknown:
        raise typer.BadParameter(f"no section '{unknown[0]}'; there are {', '.join(SECTIONS)}", param_hint="--only")
    console, sections = Console(highlight=False), []
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_COLUMNS)

    def seen(name: str, found: Row | Verdict) -> None:
        if json is not None:
            with json.open("a", encoding="utf-8") as file:
                file.write(json_lines.dumps({"part": name, **json_row(found)}) + "\n")

    for section in Runner(_progress, seen, quick, scalesim, budget, certify).run(wanted):
        sections.append(section)
        show(section, console)
    console.print()
    for section in sections:
        for bar in section.bars:
            console.print(f"{section.name:12}{bar}", soft_wrap=True)
    raise typer.Exit(0 if all(bar.is_met for s in sections for bar in s.bars) else 1)


def show(section: Section, console: Console) -> None:
    """The section's table, notes and bars."""
    console.print(f"\n== {section.name}")
    if section.rows:
        console.print(_table(section.rows))
    for verdict in section.verdicts:
        if not verdict.is_exact:
            what = verdict.error or f"{verdict.wrong} of {verdict.elements} elements differ"
            console.print(f"{verdict.case.machine} {verdict.case.label}: {what}", soft_wrap=True, markup=False)
    for line in (*section.notes, *section.bars):
        console.print(str(line), soft_wrap=True, markup=False)


def json_row(found: Row | Verdict) -> dict[str, object]:
    """One case as a JSON object."""
    about: dict[str, object] = {"machine": found.case.machine, "case": found.case.label, "error": found.error}
    if isinstance(found, Verdict):
        return {**about, "elements": found.elements, "wrong": found.wrong}
    return {
        **about,
        "cycles": found.cycles,
        "predicted": found.predicted,
        "peer": found.peer,
        "busy": found.busy,
        "utilisation": found.utilisation,
        "search_seconds": found.search_seconds,
        "simulation_seconds": found.simulation_seconds,
    }


def _table(rows: Sequence[Row]) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    drawn.add_column("case", overflow="fold")
    for name in ("cycles", "predicted", "peer", "gain", "busy", "used", "search s", "sim s"):
        drawn.add_column(name, justify="right")
    for row in rows:
        if not row.works:
            drawn.add_row(row.case.label, row.error)
            continue
        compared = (f"{row.peer:.0f}", f"{row.gain:.2f}") if row.peer else ("", "")
        shares = (f"{100 * row.busy / row.cycles:.0f} %", f"{100 * row.utilisation:.1f} %")
        seconds = (f"{row.search_seconds:.1f}", f"{row.simulation_seconds:.2f}")
        drawn.add_row(row.case.label, f"{row.cycles:.0f}", f"{row.predicted:.0f}", *compared, *shares, *seconds)
    return drawn


def _progress(cases: Sequence[T], name: str) -> Iterable[T]:
    return track(cases, name, console=Console(stderr=True), transient=True)


if __name__ == "__main__":
    typer.run(main)
