"""Convolutions one by one, weights constant. Run: python -m benchmarks.conv"""

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
from benchmarks.shapes import SHAPES, ShapeFileError, read_shapes
from benchmarks.systems import CONV_PEERS

BARS = Bars(geomean=1.10, worst=0.85)


def main(
    shapes: ShapesOption = SHAPES / "resnet50_convs.json",
    threads: ThreadsOption = 2,
    json: JsonOption = None,
    peers: PeersOption = CONV_PEERS,
    only: OnlyOption = "",
    rounds: RoundsOption = MOST_ROUNDS,
) -> None:
    """Dovetail against the best of all peers on convolutions, float32, NCHW in and out."""
    guarded(lambda: run(problems(shapes), Options(threads, json, peer_names(peers), only, rounds), BARS))


def problems(path: Path) -> list[Problem]:
    """All convolutions of a shape file."""
    convs = read_shapes(path).convs
    if not convs:
        raise ShapeFileError(f"{path}: has no list 'conv' or 'convs'")
    return [Problem(Table.CONV, shape) for shape in convs]


if __name__ == "__main__":
    typer.run(main)
