"""Convolutions one by one, weights constant. Run: python -m benchmarks.conv

With --relaxed: those of 3x3 without stride, in the form that is chosen where rules may round otherwise, against the
direct form. With --forms: every layer in the form that is chosen against the direct one; where they are the same, their
object code must be, too.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import ours
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
from benchmarks.problems import Problem, Table, operands
from benchmarks.shapes import SHAPES, Conv, ShapeFileError, read_shapes
from benchmarks.systems import CONV_PEERS
from dovetail import load_target
from dovetail.artefacts import artefacts

BARS = Bars(geomean=1.10, worst=0.85)
RELAXED_BARS = Bars(geomean=1.25, worst=1.0)
FORMS_BARS = Bars(geomean=1.0, worst=1.0)
DIRECT, RELAXED = "dovetail-direct", "dovetail-relaxed"
RelaxedOption = Annotated[bool, typer.Option("--relaxed", help="3x3 layers, Winograd allowed, against our direct form")]
FormsOption = Annotated[bool, typer.Option("--forms", help="the chosen form against our direct form")]


def main(
    shapes: ShapesOption = SHAPES / "resnet50_convs.json",
    threads: ThreadsOption = 2,
    json: JsonOption = None,
    peers: PeersOption = CONV_PEERS,
    only: OnlyOption = "",
    rounds: RoundsOption = MOST_ROUNDS,
    relaxed: RelaxedOption = False,
    forms: FormsOption = False,
) -> None:
    """Dovetail against the best of all peers on convolutions, float32, NCHW in and out."""
    options = Options(threads, json, peer_names(DIRECT if relaxed or forms else peers), only, rounds)
    if relaxed:
        guarded(lambda: run(windows_of_3(problems(shapes)), options, RELAXED_BARS, RELAXED))
    if forms:
        guarded(lambda: run_forms(problems(shapes), options))
    guarded(lambda: run(problems(shapes), options, BARS))


def windows_of_3(every: list[Problem]) -> list[Problem]:
    """The convolutions that have a Winograd form."""
    convs = [(p, p.shape) for p in every if isinstance(p.shape, Conv)]
    plain = [p for p, s in convs if s.kernel == (3, 3) and s.groups == 1 and {*s.stride, *s.dilation} == {1}]
    if not plain:
        raise ShapeFileError("no convolution of 3x3 without stride, dilation and groups")
    return plain


def run_forms(every: list[Problem], options: Options) -> int:
    """Compare object code where the direct form is chosen, and measure the others."""
    chosen = [problem for problem in every if re.search(options.only, problem.shape.label)]
    others = [problem for problem in chosen if not same_as_direct(problem, options.threads)]
    print(f"{len(chosen) - len(others)} of {len(chosen)} layers: the direct form, with the same object code")
    if not others:
        return 0
    return run(others, replace(options, only=""), FORMS_BARS)


def same_as_direct(problem: Problem, threads: int) -> bool:
    """Whether the direct form is chosen; that its object code is another is an error."""
    inputs = operands(problem.shape)
    known = ours.constants(problem, inputs)
    chosen, direct = (ours.compile_kernel(ours.source(problem), threads, known, False, a) for a in ("", "direct"))
    if chosen.algorithm != direct.algorithm:
        print(f"{problem.shape.label}: {chosen.algorithm}")
        return False
    target = load_target("host")
    first, second = (artefacts(k.program, k.plan, target, ["o"]) for k in (chosen, direct))
    if first != second:
        raise ShapeFileError(f"{problem.shape.label}: the direct form has other object code than without a choice")
    return True


def problems(path: Path) -> list[Problem]:
    """All convolutions of a shape file."""
    convs = read_shapes(path).convs
    if not convs:
        raise ShapeFileError(f"{path}: has no list 'conv' or 'convs'")
    return [Problem(Table.CONV, shape) for shape in convs]


if __name__ == "__main__":
    typer.run(main)
