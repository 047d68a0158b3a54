"""``dovetail compile``: a program as code to look at, or to ship."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import DovetailError, PlanError
from dovetail.cli.options import ProgramPath, ProgramText, TargetName, Threads
from dovetail.cli.screen import heading, milliseconds, note, say, show_table
from dovetail.cli.source import read_program, stem

if TYPE_CHECKING:
    from dovetail.ir.plan import Plan
    from dovetail.ir.program import Program
    from dovetail.runtime.kernel import Kernel
    from dovetail.targets.model import Target

SHIPPED = "ll,s,o,h"


def compile_verb(
    path: ProgramPath = None,
    text: ProgramText = None,
    target: TargetName = "host",
    threads: Threads = None,
    plan_file: Annotated[
        str | None, typer.Option("--plan", metavar="FILE", help="Use this plan (JSON) instead of the default one.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="OUT", help="Write OUT.ll, OUT.s, OUT.o and OUT.h.")
    ] = None,
    emit: Annotated[str | None, typer.Option(metavar="KINDS", help="What to write: any of ll,s,o,h,plan,nest.")] = None,
) -> None:
    """Compile a program to code you can read or ship.

    \b
    Example:
      dovetail compile matmul.dt --threads 1 -o matmul     matmul.ll .s .o .h
      dovetail compile matmul.dt --target x86-64-v4 --emit s

    Shows the plan and the reasons behind it. OUT.h says how to call what is in OUT.o.
    """
    from dovetail.pipeline import compile, default_threads
    from dovetail.targets.host import missing_features
    from dovetail.targets.load import load_target

    program = read_program(path, text)
    machine = load_target(target)
    plan = _read_plan(plan_file) if plan_file else None
    missing = missing_features(machine)
    if missing:
        note(f"not run, so not checked on code: this machine lacks {', '.join(missing)}")
        plan = _planned(program, plan, machine, threads or default_threads(machine))
    else:
        kernel = compile(program, machine, threads, plan=plan)
        plan = kernel.plan
        _show(kernel)
    if output or emit:
        _write(program, plan, machine, output or stem(path), emit or SHIPPED)


def _planned(program: Program, plan: Plan | None, target: Target, threads: int) -> Plan:
    """The plan for a machine whose code cannot run here, shown."""
    from dovetail.artefacts import planned
    from dovetail.explain import explain
    from dovetail.ir.certificate import Certificate
    from dovetail.schedule.collapse import collapse

    plan = plan or planned(program, target, threads)
    say(explain(collapse(program), plan, target, threads, Certificate("", "", "", ())))
    heading("plan")
    say(plan)
    return plan


def _read_plan(path: str) -> Plan:
    from dovetail.ir.plan import plan_from_json

    try:
        return plan_from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise PlanError(f"the plan '{path}' cannot be read", why=str(problem)) from None


def _show(kernel: Kernel) -> None:
    say(kernel.explain())
    heading("plan")
    say(kernel.plan)
    heading("time")
    total = sum(kernel.seconds.values())
    rows = [(step, milliseconds(seconds)) for step, seconds in kernel.seconds.items()]
    show_table(("step", "took"), [*rows, ("together", milliseconds(total))], right=("took",))


def _write(program: Program, plan: Plan, target: Target, stem: str, kinds: str) -> None:
    from dovetail.artefacts import artefacts

    wanted = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    say()
    for kind, data in artefacts(program, plan, target, wanted).items():
        file = Path(f"{stem}.{kind}")
        try:
            file.write_bytes(data)
        except OSError as problem:
            raise DovetailError(f"'{file}' cannot be written", why=problem.strerror) from None
        say(f"wrote {file}, {len(data)} bytes")
