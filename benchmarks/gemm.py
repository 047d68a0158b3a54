"""Matrix multiplication: (i) both operands at run time, (ii) A constant. Run: python -m benchmarks.gemm"""

from pathlib import Path

import typer

from benchmarks.harness.ratios import MOST_ROUNDS
from benchmarks.harness.report import Bars
from benchmarks.harness.session import (
    JsonOption,
    OnlyOption,
    Options,
    PeersOption,
    RoundsOption,
    ShapesOption,
    ThreadsOption,
    guarded,
    peer_names,
    run,
)
from benchmarks.problems import Problem, Table
from benchmarks.shapes import FLOAT_BYTES, SHAPES, Gemm, ShapeFileError, read_shapes
from benchmarks.systems import GEMM_PEERS

BARS = Bars(geomean=1.00, worst=0.80, wins=0.60)
LARGEST_CONSTANT_BYTES = 512_000_000


def main(
    shapes: ShapesOption = SHAPES / "deepbench.json",
    threads: ThreadsOption = 2,
    json: JsonOption = None,
    peers: PeersOption = GEMM_PEERS,
    only: OnlyOption = "",
    rounds: RoundsOption = MOST_ROUNDS,
) -> None:
    """Dovetail against the best of all peers on matrix products, float32."""
    guarded(lambda: run(problems(shapes), Options(threads, json, peer_names(peers), only, rounds), BARS))


def problems(path: Path) -> list[Problem]:
    """Both tables of all products in a shape file; constants over LARGEST_CONSTANT_BYTES are left out of (ii)."""
    gemms = read_shapes(path).gemms
    if not gemms:
        raise ShapeFileError(f"{path}: has no list 'gemm'")
    run_time = [Problem(Table.RUN_TIME, shape) for shape in gemms]
    return run_time + [
        Problem(Table.CONSTANT, shape) for shape in gemms if _constant_bytes(shape) <= LARGEST_CONSTANT_BYTES
    ]


def _constant_bytes(shape: Gemm) -> int:
    return FLOAT_BYTES * shape.m * shape.k


if __name__ == "__main__":
    typer.run(main)
