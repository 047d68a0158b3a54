"""``dovetail bench``: how fast a program runs, and how near that is to what the machine can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import ProgramError, TargetError
from dovetail.cli.model_bench import bench_model
from dovetail.cli.model_run import is_model
from dovetail.cli.options import (
    AlgorithmName,
    AsJson,
    ProgramPath,
    ProgramText,
    Relaxed,
    RuleFile,
    Shapes,
    Sizes,
    TargetName,
    Threads,
    numbers,
    wishes_of,
)
from dovetail.cli.screen import milliseconds, percent, say, show_json, show_table
from dovetail.cli.source import read_program, stem
from dovetail.cli.timing import latency

if TYPE_CHECKING:
    from dovetail.algorithm import Wishes
    from dovetail.ir.program import Program
    from dovetail.targets.model import Target

PEAK_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One program, measured. ``share`` is the part reached of the time the machine needs at least."""

    label: str
    algorithm: str
    compile_seconds: float
    seconds: float
    flops_per_second: float
    bytes_per_second: float
    fma_share: float | None
    bandwidth_share: float
    share: float


def bench(
    path: ProgramPath = None,
    text: ProgramText = None,
    shapes: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON lists 'gemm' and 'conv' or 'convs' instead of a program.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="SYSTEMS", help="With a model: onnxruntime,openvino,torch; in turns.")
    ] = None,
    size: Sizes = None,
    shape: Shapes = None,
    target: TargetName = "host",
    threads: Threads = None,
    relaxed: Relaxed = False,
    rules: RuleFile = None,
    algorithm: AlgorithmName = "",
    as_json: AsJson = False,
) -> None:
    """Time a program against what the machine can do, or a model against other systems.

    \b
    Example:
      dovetail bench matmul.dt --threads 1
      dovetail bench --shapes benchmarks/shapes/resnet50_convs.json --relaxed
      dovetail bench resnet.onnx --against onnxruntime,openvino,torch

    The limits are measured first: float32 multiply-adds in registers, and reads from memory. `share` is the part
    reached of the slower of the two, when each operand is read once; more than 100 % means that data stayed in a cache.
    """
    from dovetail.cli.shapes import read_shapes
    from dovetail.pipeline import program
    from dovetail.runtime.threads import thread_count
    from dovetail.targets.load import load_target

    if path is not None and is_model(path):
        bench_model(path, target, threads, shape, against, as_json)
        return
    if against is not None:
        raise ProgramError("--against compares models", hint="an .onnx file")
    machine = load_target(target)
    if machine.llvm is None:
        raise TargetError(
            f"'{machine.name}' is simulated: it counts cycles, and has no time to measure",
            hint=f"dovetail simulate --target {target}",
        )
    count = threads or thread_count(None, machine)
    if shapes is not None:
        if path is not None or text is not None:
            raise ProgramError("a program and --shapes are given", hint="one of the two")
        problems = [(label, program(source, label)) for label, source in read_shapes(shapes)]
    else:
        problems = [(stem(path), read_program(path, text))]
    peak = _peak(machine, count)
    wishes = wishes_of(relaxed, rules, algorithm)
    rows = [_measured(label, problem, machine, count, numbers(size), peak, wishes) for label, problem in problems]
    if as_json:
        limits = {"fma_flops_per_second": peak[0], "read_bytes_per_second": peak[1]}
        show_json({"target": machine.name, "threads": count, **limits, "rows": [asdict(row) for row in rows]})
    else:
        _show(machine, count, peak, rows)


def _peak(target: Target, threads: int) -> tuple[float, float]:
    """The best of a few rounds of FLOP/s and bytes/s."""
    from dovetail.runtime.peak import Peak, vectors_of

    limits = Peak(vectors_of(target), threads)
    found = [limits.measure() for _ in range(PEAK_ROUNDS)]
    return max(flops for flops, _ in found), max(read for _, read in found)


def _measured(
    label: str,
    program: Program,
    target: Target,
    threads: int,
    sizes: Mapping[str, int],
    peak: tuple[float, float],
    wishes: Wishes,
) -> Row:
    from dovetail.cli.inputs import gather
    from dovetail.ir.program import Role
    from dovetail.ir.work import work
    from dovetail.pipeline import compile_chosen

    arrays, bound = gather(program, {}, sizes, seed=0)
    constants = {t.name: arrays[t.name] for t in program.inputs if t.role is Role.CONST}
    kernel, form = compile_chosen(program, target, threads, wishes, constants)
    given = [arrays[t.name] for t in program.inputs if t.name not in constants]
    first = kernel(*given, sizes=bound or None)
    timed = latency(lambda: kernel(*given, out=first, sizes=bound or None))
    done = work(program, bound)
    floats = {t.dtype.name for t in program.tensors}
    least = max(done.operations / peak[0] if floats == {"f32"} else 0.0, done.bytes / peak[1])
    return Row(
        label,
        form.name,
        sum(kernel.seconds.values()) - kernel.packing_seconds,
        timed.median,
        done.operations / timed.median,
        done.bytes / timed.median,
        done.operations / timed.median / peak[0] if floats == {"f32"} else None,
        done.bytes / timed.median / peak[1],
        least / timed.median,
    )


def _show(target: Target, threads: int, peak: tuple[float, float], rows: list[Row]) -> None:
    noun = "thread" if threads == 1 else "threads"
    say(f"{target.name}, {threads} {noun}: {peak[0] / 1e9:.0f} GFLOP/s, {peak[1] / 1e9:.1f} GB/s measured")
    say()
    names = ("program", "algorithm", "compile", "call", "GFLOP/s", "of FMA peak", "GB/s", "of bandwidth", "share")
    cells = (
        (
            row.label,
            row.algorithm,
            milliseconds(row.compile_seconds),
            milliseconds(row.seconds),
            f"{row.flops_per_second / 1e9:.1f}",
            "-" if row.fma_share is None else percent(row.fma_share),
            f"{row.bytes_per_second / 1e9:.2f}",
            percent(row.bandwidth_share),
            percent(row.share),
        )
        for row in rows
    )
    show_table(names, cells, right=names[2:])
