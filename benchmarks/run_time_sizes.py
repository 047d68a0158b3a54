"""One object for all row counts of a product against an object for each. Run: python -m benchmarks.run_time_sizes"""

import typer

from benchmarks.harness.ratios import MOST_ROUNDS
from benchmarks.harness.report import Bars
from benchmarks.harness.session import (
    JsonOption,
    OnlyOption,
    Options,
    RoundsOption,
    ShapesOption,
    ThreadsOption,
    guarded,
    run,
)
from benchmarks.problems import Problem, Table
from benchmarks.shapes import SHAPES, read_shapes

BARS = Bars(geomean=0.90, worst=0.0)


def main(
    shapes: ShapesOption = SHAPES / "rows.json",
    threads: ThreadsOption = 2,
    json: JsonOption = None,
    only: OnlyOption = "",
    rounds: RoundsOption = MOST_ROUNDS,
) -> None:
    """The only peer is Dovetail itself, compiled for the very shape."""
    options = Options(threads, json, ("dovetail",), only, rounds)
    guarded(lambda: run(_problems(shapes), options, BARS, subject="dovetail-sized"))


def _problems(path: ShapesOption) -> list[Problem]:
    return [Problem(Table.RUN_TIME, shape) for shape in read_shapes(path).gemms]


if __name__ == "__main__":
    typer.run(main)
