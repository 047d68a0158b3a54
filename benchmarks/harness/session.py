"""A benchmark from its problems to its last line; what the command lines of all benchmarks share."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.harness.machine import commit, cpu_model
from benchmarks.harness.ratios import LEAST_ROUNDS, MOST_ROUNDS, summarise
from benchmarks.harness.report import Bars, Setting, heading, line, notes, record
from benchmarks.harness.rounds import Contest, Row
from benchmarks.problems import Problem
from benchmarks.shapes import ShapeFileError
from benchmarks.systems import MODULES

USAGE_ERROR, FAILED = 2, 1
ASSUMED_FLOPS_PER_SECOND, LEAST_CALL_SECONDS, PREPARE_SECONDS = 1e11, 0.025, 0.5

ShapesOption = Annotated[Path, typer.Option("--shapes", help="JSON file of shapes")]
ThreadsOption = Annotated[int, typer.Option("--threads", min=1, help="threads of every system")]
JsonOption = Annotated[Path | None, typer.Option("--json", help="append one JSON line per row to this file")]
PeersOption = Annotated[str, typer.Option("--peers", help="names, separated by commas")]
OnlyOption = Annotated[str, typer.Option("--only", help="regular expression that labels of shapes must contain")]
RoundsOption = Annotated[int, typer.Option("--rounds", min=1, help="most rounds per shape")]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a benchmark, as given."""

    threads: int = 2
    json: Path | None = None
    peers: tuple[str, ...] = ()
    only: str = ""
    rounds: int = MOST_ROUNDS


def run(problems: Sequence[Problem], options: Options, bars: Bars, subject: str = "dovetail") -> int:
    """Measure all problems, print their tables and the last line; the exit code is 1 where we failed on a shape."""
    chosen = [problem for problem in problems if re.search(options.only, problem.shape.label)]
    if not chosen:
        raise ShapeFileError(f"no shape has a label that contains {options.only!r}")
    with Contest(subject, options.peers, options.threads, options.rounds) as contest:
        setting = Setting(commit(), cpu_model(), options.threads, contest.versions)
        _introduce(contest, setting)
        rows = _measure(contest, chosen, setting, options.json, bars)
    ratios = [row.ratio for row in rows if row.ratio is not None]
    print(summarise(ratios))
    return FAILED if not ratios or min(ratios) == 0.0 else 0


def guarded(body: Callable[[], int]) -> None:
    """Run a benchmark; mistakes of the user end it with code 2 and a message, without a traceback."""
    try:
        code = body()
    except ShapeFileError as error:
        print(f"error: {error}", file=sys.stderr)
        code = USAGE_ERROR
    raise typer.Exit(code)


def peer_names(text: str) -> tuple[str, ...]:
    """``"numpy,torch"`` -> names that exist."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        raise ShapeFileError(f"no peer is called {unknown[0]!r}; there are: {', '.join(MODULES)}")
    return names


def _introduce(contest: Contest, setting: Setting) -> None:
    print(f"{setting.machine}; {setting.threads} threads; commit {setting.commit}")
    print("; ".join(f"{name}: {version}" for name, version in contest.versions.items()))
    for name, reason in contest.missing.items():
        print(f"skipped: {name} is not here ({reason})")


def _measure(
    contest: Contest, problems: Sequence[Problem], setting: Setting, json_path: Path | None, bars: Bars
) -> list[Row]:
    rows: list[Row] = []
    systems = list(contest.versions)
    with _progress() as progress:
        task = progress.add_task("", total=sum(_cost(problem) for problem in problems), count=f"0/{len(problems)}")
        for problem in problems:
            if not rows or rows[-1].problem.title != problem.title:
                _close_table(rows, bars)
                print(f"\n{problem.title}; systems in GFLOP/s\n{heading(systems)}")
            progress.update(task, description=problem.shape.label, count=f"{len(rows) + 1}/{len(problems)}")
            row = contest.measure(problem, bars.worst)
            rows.append(row)
            _show(row, systems, setting, json_path)
            progress.advance(task, _cost(problem))
    _close_table(rows, bars)
    return rows


def _show(row: Row, systems: Sequence[str], setting: Setting, json_path: Path | None) -> None:
    print("\n".join([line(row, systems), *notes(row)]), flush=True)
    if json_path is not None:
        with json_path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record(row, setting)) + "\n")


def _close_table(rows: Sequence[Row], bars: Bars) -> None:
    """The summary of the table that the last row belongs to."""
    ratios = [row.ratio for row in rows if row.ratio is not None and row.problem.title == rows[-1].problem.title]
    if ratios:
        summary = summarise(ratios)
        print(f"{rows[-1].problem.title}: {summary}; {bars.verdict(summary)}")


def _cost(problem: Problem) -> float:
    """Expected seconds per system, by which the progress bar weighs a shape."""
    call = problem.shape.flops / ASSUMED_FLOPS_PER_SECOND
    return PREPARE_SECONDS + (LEAST_ROUNDS + 2) * max(LEAST_CALL_SECONDS, call)


def _progress() -> Progress:
    """On stderr; rows go through it only where both are the same terminal."""
    columns = (TextColumn("{task.fields[count]}"), TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), redirect_stdout=sys.stdout.isatty(), transient=True)
