"""Mutated model files. Run: python -m benchmarks.hostile --count 100000 --seed 0"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from typing import Annotated

import typer

from benchmarks.hostile.driver import Task, run
from benchmarks.hostile.worker import one, work

SHOWN = 60


def main(
    count: Annotated[int, typer.Option(help="How many files.")] = 100_000,
    start: Annotated[int, typer.Option(help="Which one is the first.")] = 0,
    seed: Annotated[int, typer.Option(help="The same files every time.")] = 0,
    stage: Annotated[str, typer.Option(help="How far each is taken: read, import or run.")] = "import",
    jobs: Annotated[int, typer.Option(help="Processes.")] = len(os.sched_getaffinity(0)),
    only: Annotated[int, typer.Option(help="Take this one file alone, and show what it raises.")] = -1,
    worker: Annotated[int, typer.Option(hidden=True)] = -1,
) -> None:
    """Each file ends in success or a typed error; the last line counts them. Exits with 1 if one did not."""
    if only >= 0:
        one(only, seed, stage)
        return
    if worker >= 0:
        work(worker, count, jobs, seed, stage, lambda line: print(line, flush=True))
        return
    began = time.monotonic()
    counts = run(Task(start, start + count, seed, stage, jobs), _shown())
    print(f"stage={stage} seconds={time.monotonic() - began:.0f} peak_mib={counts.memory >> 20}")
    print(counts)
    if counts.bad:
        raise typer.Exit(1)


def _shown() -> Callable[[str], None]:
    """Prints the first lines it hears."""
    heard = itertools.count()
    return lambda line: print(line, flush=True) if next(heard) < SHOWN else None


if __name__ == "__main__":
    typer.run(main)
