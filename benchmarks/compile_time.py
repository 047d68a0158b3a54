"""How long compiling takes: cold, warm (from the cache on disk, in another process), and importing the package.

Run: python -m benchmarks.compile_time
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks import conv, gemm
from benchmarks.harness.machine import commit, cpu_model
from benchmarks.harness.processes import ROOT
from benchmarks.harness.session import FAILED, JsonOption, ThreadsOption, guarded
from benchmarks.problems import Problem, Table
from benchmarks.shapes import SHAPES, Gemm, read_shapes

DEFAULT_FILES = ("deepbench.json", "resnet50_convs.json", "small.json")
SMALL_OPERATIONS = 100_000
IMPORTS = 5
REPEATS = 3
"""Times of a few milliseconds are the middle of so many: one turn of another process is longer than they are."""
FIRST = Problem(Table.RUN_TIME, Gemm(2, 3, 5))
BARS = {"cold_median": 0.5, "cold_worst": 1.5, "small_worst": 0.05, "warm_worst": 0.02, "import": 0.5}

FilesOption = Annotated[list[Path] | None, typer.Option("--shapes", help="JSON file of shapes; may be repeated")]
EveryOption = Annotated[int, typer.Option("--every", min=1, help="take every n-th shape only")]


def main(
    shapes: FilesOption = None, threads: ThreadsOption = 2, json: JsonOption = None, every: EveryOption = 1
) -> None:
    """Cold and warm compile times of every benchmark shape, no measurement, no cache at first."""
    files = shapes or [SHAPES / name for name in DEFAULT_FILES]
    guarded(lambda: run([p for path in files for p in problems(path)][::every], threads, json))


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds to compile one problem, packing of constants apart; None where it did not compile."""

    seconds: float | None
    packing_seconds: float = 0.0


def problems(path: Path) -> list[Problem]:
    """All tables a file has problems for; the convolutions of a file of products are left out, as the benchmarks do."""
    found = read_shapes(path)
    products = gemm.problems(path) if found.gemms else []
    wanted = not found.gemms or all(p.shape.flops < SMALL_OPERATIONS for p in products)
    return products + (conv.problems(path) if found.convs and wanted else [])


def run(chosen: Sequence[Problem], threads: int, json_path: Path | None) -> int:
    """Print a line per problem and the last line; the exit code is 1 where one did not compile."""
    print(f"{cpu_model()}; {threads} threads; commit {commit()}")
    with tempfile.TemporaryDirectory() as cache:
        cold = cold_times(chosen, threads, Path(cache))
        warm = middle([compile_all(chosen, threads, Path(cache)) for _ in range(REPEATS)])
    print(f"{'table':32}{'shape':60}{'cold ms':>12}{'warm ms':>12}{'packing ms':>12}")
    for problem, first, second in zip(chosen, cold, warm, strict=True):
        cells = "".join(f"{_milliseconds(t):>12}" for t in (first, second))
        print(f"{problem.table.value:32}{problem.shape.label:60}{cells}{1e3 * first.packing_seconds:>12.1f}")
    figures = summary(chosen, cold, warm) | {"import": import_seconds()}
    _record(json_path, figures, threads, len(chosen))
    print(_bars(figures))
    print(" ".join(f"{name}={seconds:.3f}s" for name, seconds in figures.items()) + f" n={len(chosen)}")
    return FAILED if _failed((*cold, *warm)) else 0


def cold_times(chosen: Sequence[Problem], threads: int, cache: Path) -> list[Times]:
    """Every problem with the empty ``cache``; small ones again, each time in a process with an empty one of its own."""
    first = compile_all(chosen, threads, cache)
    places = [n for n, problem in enumerate(chosen) if problem.shape.flops < SMALL_OPERATIONS]
    runs = [[first[n] for n in places]]
    while places and len(runs) < REPEATS:
        with tempfile.TemporaryDirectory() as other:
            runs.append(compile_all([chosen[n] for n in places], threads, Path(other)))
    for n, times in zip(places, middle(runs), strict=True):
        first[n] = times
    return first


def middle(runs: Sequence[Sequence[Times]]) -> list[Times]:
    """For each problem the run that took the middle time; a failure in any run is a failure."""
    return [sorted(times, key=_rank)[-1 if _failed(times) else len(times) // 2] for times in zip(*runs, strict=True)]


def compile_all(chosen: Sequence[Problem], threads: int, cache: Path) -> list[Times]:
    """Compile all problems in a fresh process whose caches are under ``cache``.

    The process compiles FIRST before them, so that loading the compiler's modules is no part of any problem's time.
    A problem that ends the process is a failure of its own; where FIRST does, all are.
    """
    times: list[Times] = []
    while len(times) < len(chosen):
        rest = "".join(json.dumps(problem.to_json()) + "\n" for problem in (FIRST, *chosen[len(times) :]))
        done = _python("-m", "benchmarks.compile_worker", str(threads), text=rest, cache=cache)
        lines = done.stdout.splitlines()
        times += [Times(**json.loads(line)) for line in lines[1:]]
        if len(times) < len(chosen):
            failed = chosen[len(times)].shape.label if lines else "everything"
            print(f"failed: {failed}: {(done.stderr.splitlines() or ['no message'])[-1]}")
            times += [Times(None)] * (1 if lines else len(chosen) - len(times))
    return times


def summary(chosen: Sequence[Problem], cold: Sequence[Times], warm: Sequence[Times]) -> dict[str, float]:
    """The figures the bars are stated in; NaN where nothing was compiled."""
    colds = [t.seconds for t in cold if t.seconds is not None]
    warms = [t.seconds for t in warm if t.seconds is not None]
    small = [
        t.seconds
        for problem, t in zip(chosen, cold, strict=True)
        if t.seconds is not None and problem.shape.flops < SMALL_OPERATIONS
    ]
    nothing = float("nan")
    return {
        "cold_median": median(colds) if colds else nothing,
        "cold_worst": max(colds, default=nothing),
        "small_worst": max(small, default=nothing),
        "warm_median": median(warms) if warms else nothing,
        "warm_worst": max(warms, default=nothing),
    }


def import_seconds() -> float:
    """Median of ``import dovetail`` in fresh processes."""
    source = "import time; t = time.perf_counter(); import dovetail; print(time.perf_counter() - t)"
    return median(float(_python("-c", source, check=True).stdout) for _ in range(IMPORTS))


def _python(
    *arguments: str, text: str = "", cache: Path | None = None, check: bool = False
) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    if cache is not None:
        environment["XDG_CACHE_HOME"] = str(cache)
    command = [sys.executable, *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=check, env=environment)


def _bars(figures: dict[str, float]) -> str:
    missed = [f"{name} <= {bar}s" for name, bar in BARS.items() if not figures[name] <= bar]
    return "bars missed: " + ", ".join(missed) if missed else "bars met"


def _record(path: Path | None, figures: dict[str, float], threads: int, count: int) -> None:
    if path is None:
        return
    with path.open("a", encoding="utf-8") as out:
        context = {"commit": commit(), "machine": cpu_model(), "threads": threads, "table": "compile time", "n": count}
        out.write(json.dumps(context | figures) + "\n")


def _failed(runs: Sequence[Times]) -> bool:
    return any(t.seconds is None for t in runs)


def _rank(times: Times) -> float:
    return float("inf") if times.seconds is None else times.seconds


def _milliseconds(times: Times) -> str:
    return "FAILED" if times.seconds is None else f"{1e3 * times.seconds:.1f}"


if __name__ == "__main__":
    typer.run(main)
