"""``dovetail verify``: every element of a compiled program against the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import typer

from dovetail.cli.options import (
    AlgorithmName,
    AsJson,
    ProgramPath,
    ProgramText,
    Relaxed,
    RuleFile,
    Seed,
    Sizes,
    TargetName,
    Threads,
    numbers,
    wishes_of,
)
from dovetail.cli.run import call
from dovetail.cli.screen import heading, note, say, show_json, show_table
from dovetail.cli.source import read_given

if TYPE_CHECKING:
    from dovetail.algorithm import Algorithm
    from dovetail.compare import Comparison
    from dovetail.ir.program import Program

MOSTLY_ZERO = 0.7
"""Of a result with more zeros than this a match says little."""
MOST_OPERATIONS = 1 << 36
"""Run-time sizes beyond this are left out unless they are asked for: the reference would take minutes."""


def verify(
    path: ProgramPath = None,
    text: ProgramText = None,
    size: Sizes = None,
    seed: Seed = 0,
    target: TargetName = "host",
    threads: Threads = None,
    relaxed: Relaxed = False,
    rules: RuleFile = None,
    algorithm: AlgorithmName = "",
    as_json: AsJson = False,
) -> None:
    """Compare every computed element with the reference.

    \b
    Example:
      dovetail verify matmul.dt --threads 2
      dovetail verify conv.dt --relaxed

    Inputs are whole numbers small enough for every sum to be exact, so nothing may differ. Functions such as exp are
    not exact; where a program has one, the error allowed is shown. Elements are told apart by the tile they come from:
    interior, edges, corners. A program with run-time sizes runs at the ends and the middle of their ranges.

    Whatever algorithm is chosen, the reference is the program as it is written. Where a relaxed rule gave the algorithm
    (--relaxed), the error that the rule states is allowed, and shown.

    Exits with 1 when an element differs.
    """
    from dovetail.cli.inputs import gather
    from dovetail.pipeline import compared, compile_chosen

    program, given = read_given(path, text)
    kernel, form = compile_chosen(program, target, threads, wishes_of(relaxed, rules, algorithm, given))
    found: list[tuple[dict[str, int], Comparison]] = []
    for chosen in _choices(program, numbers(size)):
        arrays, sizes = gather(program, {}, chosen, seed)
        results = call(kernel, arrays, sizes)
        found.append((sizes, compared(program, kernel, form, arrays, sizes, results)))
    good = all(comparison.agrees for _, comparison in found)
    if as_json:
        show_json(_json(found, kernel.target, kernel.threads, form))
    else:
        if not form.is_direct:
            say(f"computed as {form.name} ({form.kind}), compared with the program as it is")
        for sizes, comparison in found:
            _show(sizes, comparison)
    if not good:
        raise typer.Exit(1)


def _choices(program: Program, given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Values for all sizes together: the lows, the middles, the highs; those given stay."""
    from dovetail.ir.work import work

    free = [s for s in program.sizes if s.name not in given]
    seen: list[dict[str, int]] = []
    for part in (0, 1, 2):
        chosen = {**given, **{s.name: s.low + (s.high - s.low) * part // 2 for s in free}}
        if chosen in seen:
            continue
        if seen and work(program, chosen).operations > MOST_OPERATIONS:
            note(f"left out, it would take too long: {_shown(chosen)}; ask for it with --size")
            continue
        seen.append(chosen)
        yield chosen
        if not free:
            return


def _show(sizes: Mapping[str, int], found: Comparison) -> None:
    if sizes:
        heading(_shown(sizes))
    rows = ((c.tensor, c.name, c.elements, c.wrong, c.first or "-") for c in found.classes)
    show_table(("output", "tiles", "elements", "wrong", "first wrong element"), rows, right=("elements", "wrong"))
    say(found.verdict, "green" if found.agrees else "bold red")
    if found.zeros > MOSTLY_ZERO:
        say(f"mistrusted: {found.zeros:.0%} of the expected values are zero", "yellow")


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def _json(
    found: list[tuple[dict[str, int], Comparison]], target: str, threads: int, form: Algorithm
) -> dict[str, object]:
    runs = [
        {
            "sizes": sizes,
            "agrees": comparison.agrees,
            "exact": comparison.is_exact,
            "inexact_function": comparison.inexact,
            "error_allowed": comparison.bound,
            "zeros": comparison.zeros,
            "classes": [
                {"output": c.tensor, "tiles": c.name, "elements": c.elements, "wrong": c.wrong, "first": c.first}
                for c in comparison.classes
            ],
        }
        for sizes, comparison in found
    ]
    algorithm = {"name": form.name, "kind": form.kind, "error": form.error}
    agrees = all(comparison.agrees for _, comparison in found)
    return {"target": target, "threads": threads, "algorithm": algorithm, "agrees": agrees, "runs": runs}
