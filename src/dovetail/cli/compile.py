"""``dovetail compile``: a program as code to look at, or to ship."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import DovetailError, TargetError
from dovetail.cli.model_compile import compile_model
from dovetail.cli.model_run import is_model
from dovetail.cli.options import (
    AlgorithmName,
    PatternFile,
    PlanFile,
    ProgramPath,
    ProgramText,
    Relaxed,
    RuleFile,
    Shapes,
    TargetName,
    Threads,
    read_plan,
    wishes_of,
)
from dovetail.cli.screen import heading, milliseconds, note, say, show_table
from dovetail.cli.source import read_given, stem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dovetail.algorithm import Algorithm, Wishes
    from dovetail.ir.plan import Plan
    from dovetail.ir.program import Program
    from dovetail.targets.model import Target

SHIPPED = "ll,s,o,h"


def compile_verb(
    path: ProgramPath = None,
    text: ProgramText = None,
    target: TargetName = "host",
    threads: Threads = None,
    plan_file: PlanFile = None,
    relaxed: Relaxed = False,
    rules: RuleFile = None,
    algorithm: AlgorithmName = "",
    shape: Shapes = None,
    patterns: PatternFile = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="OUT", help="Write OUT.ll, .s, .o and .h; of a model, OUT itself."),
    ] = None,
    emit: Annotated[str | None, typer.Option(metavar="KINDS", help="What to write: any of ll,s,o,h,plan,nest.")] = None,
) -> None:
    """Compile a program or a model to code you can read or ship.

    \b
    Example:
      dovetail compile matmul.dt --threads 1 -o matmul     matmul.ll .s .o .h
      dovetail compile matmul.dt --target other-machine.toml --emit s
      dovetail compile conv.dt --relaxed                   Winograd's form, if it is the fastest
      dovetail compile resnet.onnx -o resnet.dovetail      a model that loads in no time, without onnx
      dovetail compile resnet.onnx -o resnet.so            a library to call from C, with resnet.h

    Shows the algorithm, the plan, and the reasons behind both. OUT.h says how to call what is in OUT.o. For a simulated
    machine there is no code to write: --emit plan,nest writes what its simulator runs.
    """
    from dovetail.pipeline import compile_chosen
    from dovetail.targets.host import missing_features
    from dovetail.targets.load import load_target

    if path is not None and is_model(path):
        compile_model(path, target, threads, shape, output, patterns)
        return
    program, given = read_given(path, text)
    machine = load_target(target)
    plan = read_plan(plan_file) if plan_file else None
    wishes = wishes_of(relaxed, rules, algorithm, given)
    if machine.llvm is None:
        kinds = emit or ("plan,nest" if output else "")
        _compile_simulated(program, machine, wishes, plan, output or stem(path), kinds)
        return
    missing = missing_features(machine)
    if missing:
        note(f"not run, so not checked on code: this machine lacks {', '.join(missing)}")
        form, plan = _planned(program, plan, machine, threads, wishes)
    else:
        kernel, form = compile_chosen(program, machine, threads, wishes, plan=plan)
        plan = kernel.plan
        say(kernel.explain())
        heading("plan")
        say(kernel.plan)
        _show_seconds(kernel.seconds)
    if output or emit:
        _write(form.program, plan, machine, output or stem(path), emit or SHIPPED)


def _planned(
    program: Program, plan: Plan | None, target: Target, threads: int | None, wishes: Wishes
) -> tuple[Algorithm, Plan]:
    """The algorithm and the plan for a machine whose code cannot run here, shown."""
    from dovetail.artefacts import planned
    from dovetail.explain import explain
    from dovetail.ir.certificate import Certificate
    from dovetail.pipeline import choose
    from dovetail.runtime.threads import thread_count
    from dovetail.schedule.ahead import flat_part

    count = threads or thread_count(None, target)
    form = choose(program, target, count, wishes, plan)
    if str(form):
        say(form)
        say()
    own = "" if form.is_direct else form.name
    plan = plan or replace(planned(form.program, target, count), form=own)
    flat = flat_part(form.program, plan)
    say(explain(flat, plan, target, count, Certificate("", "", "", ())))
    heading("plan")
    say(plan)
    return form, plan


def _compile_simulated(
    program: Program, target: Target, wishes: Wishes, plan: Plan | None, stem: str, kinds: str
) -> None:
    from dovetail.pipeline import compile_chosen
    from dovetail.simulated.kernel import SimulatedKernel

    if program.sizes:
        raise TargetError(
            f"a plan for the simulated machine '{target.name}' needs the values of all run-time sizes",
            hint="dovetail simulate --size NAME=NUMBER, or numbers in the program",
        )
    wanted = _kinds(kinds)
    for kind in wanted:
        if kind not in ("plan", "nest"):
            raise TargetError(f"there is no '{kind}' for a simulated machine", hint="--emit plan,nest")
    kernel, form = compile_chosen(program, target, None, wishes, plan=plan)
    assert isinstance(kernel, SimulatedKernel)
    say(kernel.explain())
    _show_seconds(kernel.seconds)
    own = "" if form.is_direct else form.name
    texts = {"plan": replace(kernel.plan, form=own).to_json(), "nest": f"{kernel.last.nest}\n"}
    _write_files({kind: texts[kind].encode() for kind in wanted}, stem)


def _show_seconds(seconds: Mapping[str, float]) -> None:
    heading("time")
    rows = [(step, milliseconds(took)) for step, took in seconds.items()]
    show_table(("step", "took"), [*rows, ("together", milliseconds(sum(seconds.values())))], right=("took",))


def _write(program: Program, plan: Plan, target: Target, stem: str, kinds: str) -> None:
    from dovetail.artefacts import artefacts

    _write_files(artefacts(program, plan, target, _kinds(kinds)), stem)


def _kinds(text: str) -> list[str]:
    return [kind.strip() for kind in text.split(",") if kind.strip()]


def _write_files(files: Mapping[str, bytes], stem: str) -> None:
    if files:
        say()
    for kind, data in files.items():
        file = Path(f"{stem}.{kind}")
        try:
            file.write_bytes(data)
        except OSError as problem:
            raise DovetailError(f"'{file}' cannot be written", why=problem.strerror) from None
        say(f"wrote {file}, {len(data)} bytes")
