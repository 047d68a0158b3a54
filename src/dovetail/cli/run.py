"""``dovetail run``: compile a program and run it once, timed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import CallError
from dovetail.cli.model_run import is_model, run_model
from dovetail.cli.options import (
    AlgorithmName,
    PatternFile,
    ProgramPath,
    ProgramText,
    Relaxed,
    RuleFile,
    Seed,
    Shapes,
    Sizes,
    TargetName,
    Threads,
    numbers,
    pairs,
    wishes_of,
)
from dovetail.cli.screen import heading, milliseconds, say, show_table
from dovetail.cli.simulate import show_cycles
from dovetail.cli.source import read_given
from dovetail.cli.timing import latency

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dovetail.algorithm import Algorithm
    from dovetail.cli.inputs import Array
    from dovetail.cli.timing import Latency
    from dovetail.ir.program import Program
    from dovetail.runtime.kernel import Kernel
    from dovetail.simulated.kernel import SimulatedKernel


def run(
    path: ProgramPath = None,
    text: ProgramText = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="[NAME=]FILE", help="An input from a .npy file; the others are made up."),
    ] = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--output", metavar="NAME=FILE", help="Write an output to a .npy file.")
    ] = None,
    size: Sizes = None,
    shape: Shapes = None,
    seed: Seed = 0,
    target: TargetName = "host",
    threads: Threads = None,
    relaxed: Relaxed = False,
    rules: RuleFile = None,
    algorithm: AlgorithmName = "",
    patterns: PatternFile = None,
    check: Annotated[bool, typer.Option("--check", help="Compare the result with the reference; 1 if wrong.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Of a model: which steps take the time.")] = False,
    dynamic: Annotated[
        bool, typer.Option("--dynamic", help="Of a model: code that takes the sizes it leaves open at run time.")
    ] = False,
) -> None:
    """Compile a program or a model and run it: time, result, check.

    \b
    Example:
      dovetail run matmul.dt --check
      dovetail run matmul.dt --input a=left.npy --input b=right.npy --output c=product.npy
      dovetail run rows.dt --size m=7
      dovetail run conv.dt --relaxed --check
      dovetail run resnet.onnx --profile
      dovetail run bert.onnx --patterns mine.toml
      dovetail run bert.onnx --shape input_ids=1x128 --input attention_mask=mask.npy

    The algorithm that is estimated to be the fastest is taken: for a convolution its loops as they are, windows that
    are stored first, or with --relaxed Winograd's.

    A model is an .onnx file, or a .dovetail file that was compiled before. What it takes is made up where no file is
    given; --shape says what the model leaves open, and with --dynamic one code serves all of it. Operators that run on
    the host are listed.

    Inputs of a program that are not given are small whole numbers, so that every sum is exact. A simulated machine
    computes the result in its own memories, slowly, and shows cycles instead of time.
    """
    from dovetail.cli.inputs import gather, save
    from dovetail.ir.program import Role
    from dovetail.pipeline import compile_chosen
    from dovetail.runtime.kernel import Kernel

    if path is not None and is_model(path):
        run_model(path, target, threads, inputs, outputs, shape, seed, profile, patterns, dynamic or None)
        return
    program, given = read_given(path, text)
    files = pairs(outputs, "--output")
    _check_outputs(program, files)
    arrays, sizes = gather(program, pairs(inputs, "--input"), numbers(size), seed)
    constants = {t.name: arrays[t.name] for t in program.inputs if t.role is Role.CONST}
    kernel, form = compile_chosen(program, target, threads, wishes_of(relaxed, rules, algorithm, given), constants)
    results = call(kernel, arrays, sizes)
    if isinstance(kernel, Kernel):
        _show_latency(kernel, sizes, latency(lambda: call(kernel, arrays, sizes)))
        if str(form):
            say()
            say(form)
    else:
        show_cycles(kernel)
    heading("outputs")
    show_table(("name", "dtype", "shape", "least", "largest", "mean", "first elements"), _summaries(program, results))
    for name, file in files.items():
        save(file, results[name])
        say(f"wrote {name} to {file}")
    if check:
        _check(program, kernel, form, arrays, sizes, results, whole=not inputs)


def call(kernel: Kernel | SimulatedKernel, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """The outputs of one call, by name. Inputs stay as they are: what is written is a copy."""
    given = [arrays[t.name] for t in kernel.program.inputs if t.name not in kernel.constants]
    found = kernel(*given, sizes=sizes or None)
    several = found if isinstance(found, tuple) else (found,)
    return {t.name: array for t, array in zip(kernel.program.outputs, several, strict=True)}


def _check_outputs(program: Program, files: Mapping[str, str]) -> None:
    known = [tensor.name for tensor in program.outputs]
    for name in files:
        if name not in known:
            raise CallError(f"'{name}' is not an output of the program", why=f"its outputs: {', '.join(known)}")


def _show_latency(kernel: Kernel, sizes: Mapping[str, int], timed: Latency) -> None:
    from dovetail.ir.work import work

    done = work(kernel.program, sizes)
    shown = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    noun = "thread" if kernel.threads == 1 else "threads"
    say(f"on {kernel.target} with {kernel.threads} {noun}" + (f", {shown}" if shown else ""))
    heading("latency")
    compiled = sum(kernel.seconds.values()) - kernel.packing_seconds
    rows = [
        ("compile", milliseconds(compiled), ""),
        *([("lay out constants", milliseconds(kernel.packing_seconds), "")] if kernel.constants else []),
        ("call, median", milliseconds(timed.median), f"{done.operations / timed.median / 1e9:.3g} GFLOP/s"),
        ("call, fastest", milliseconds(timed.fastest), f"{done.operations / timed.fastest / 1e9:.3g} GFLOP/s"),
        ("call, slowest", milliseconds(timed.slowest), f"{timed.blocks} x {timed.calls} calls"),
    ]
    show_table(("", "time", ""), rows, right=("time",))


def _summaries(program: Program, results: Mapping[str, Array]) -> list[tuple[str, ...]]:
    import numpy as np

    rows: list[tuple[str, ...]] = []
    for tensor in program.outputs:
        array = results[tensor.name]
        shape = " x ".join(map(str, array.shape)) or "scalar"
        if not array.size:
            rows.append((tensor.name, str(tensor.dtype), shape, "", "", "", ""))
            continue
        wide = array.astype(np.float64)
        first = ", ".join(f"{value:g}" for value in wide.ravel()[:4]) + (" ..." if array.size > 4 else "")
        numbers = (f"{wide.min():g}", f"{wide.max():g}", f"{wide.mean():g}")
        rows.append((tensor.name, str(tensor.dtype), shape, *numbers, first))
    return rows


def _check(
    program: Program,
    kernel: Kernel | SimulatedKernel,
    form: Algorithm,
    arrays: Mapping[str, Array],
    sizes: Mapping[str, int],
    results: Mapping[str, Array],
    whole: bool,
) -> None:
    from dovetail.pipeline import compared

    found = compared(program, kernel, form, arrays, sizes, results, whole)
    say()
    say(f"check: {found.verdict}", "green" if found.agrees else "bold red")
    if not found.agrees:
        say(next(f"{c.tensor}{c.first} ({c.name})" for c in found.classes if c.wrong))
        raise typer.Exit(1)
