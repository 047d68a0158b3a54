"""``dovetail simulate``: how many cycles a program takes on a machine that is simulated, and what they go to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import DovetailError, PlanError, TargetError
from dovetail.cli.options import (
    AlgorithmName,
    AsJson,
    PlanFile,
    ProgramPath,
    ProgramText,
    Relaxed,
    RuleFile,
    Seed,
    Sizes,
    numbers,
    read_plan,
    wishes_of,
)
from dovetail.cli.screen import say, show_json
from dovetail.cli.source import read_given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dovetail.algorithm import Algorithm
    from dovetail.compare import Comparison
    from dovetail.ir.plan import Plan
    from dovetail.ir.program import Program
    from dovetail.simulated.kernel import SimulatedKernel
    from dovetail.targets.model import Target


def simulate_verb(
    path: ProgramPath = None,
    text: ProgramText = None,
    target: Annotated[
        str,
        typer.Option("--target", "-t", metavar="NAME|FILE", help="A simulated machine: its name, or its .toml file."),
    ] = "",
    plan_file: PlanFile = None,
    size: Sizes = None,
    relaxed: Relaxed = False,
    rules: RuleFile = None,
    algorithm: AlgorithmName = "",
    timeline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write who does what when, for a trace viewer (JSON).")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", "--functional", help="Run it with data too, and compare; 1 if wrong.")
    ] = False,
    search: Annotated[
        float,
        typer.Option("--search", metavar="SECONDS", min=0, help="Look for a better plan for so long first."),
    ] = 0,
    save_plan: Annotated[str | None, typer.Option(metavar="FILE", help="Write the plan that was used.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Count the cycles of a program on a machine that a file describes.

    \b
    Example:
      dovetail simulate matmul.dt --target my-chip.toml
      dovetail simulate matmul.dt --target my-chip.toml --timeline trace.json     open it in a trace viewer
      dovetail simulate matmul.dt --target my-chip.toml --plan other-plan.json
      dovetail simulate rows.dt --target my-chip.toml --size m=100 --check
      dovetail simulate conv.dt --target my-chip.toml --search 30 --save-plan best.json
      dovetail simulate conv.dt --target my-chip.toml --relaxed

    `dovetail targets` lists the simulated machines that come with the package; they are given by name.

    Shows the simulated cycles beside those that the analytic model predicted, how busy every instruction, unit and
    memory was, and the statements that no instruction fits, which the machine's host runs, with the reason.
    For a recurrence (`seq`) also the cycles of one step and how busy each unit is in it: weights, states and
    temporaries stay in the machine's memories as far as they fit.
    The plan that is used can be had from `dovetail compile --target T --emit plan`.

    For a convolution the algorithm with the fewest predicted cycles is taken: its loops as they are, windows that are
    stored first, or with --relaxed Winograd's; all that were looked at are listed.
    """
    from dovetail.cli.inputs import bind
    from dovetail.pipeline import choose
    from dovetail.simulated.kernel import SimulatedKernel

    machine = simulated_machine(target)
    program, given = read_given(path, text)
    sizes = bind(program, {}, numbers(size))
    if search and plan_file:
        raise PlanError("a plan is given, and one is to be searched for", hint="--plan FILE or --search SECONDS")
    plan = read_plan(plan_file) if plan_file else None
    form = choose(program, machine, None, wishes_of(relaxed, rules, algorithm, given), plan)
    plan = _searched(form.program, machine, sizes, search) if search else plan
    kernel = SimulatedKernel(form.program, machine, plan, form=str(form), finite=not form.is_direct)
    kernel.at(sizes)
    if save_plan is not None:
        _write_plan(kernel, form, save_plan)
    found = _compared(program, kernel, form, sizes, seed) if check else None
    if timeline is not None:
        _write_timeline(kernel, timeline)
    if as_json:
        show_json(_json(kernel, form, sizes, found))
    else:
        show_cycles(kernel)
        if found is not None:
            say()
            say(f"check: {found.verdict}", "green" if found.agrees else "bold red")
        if timeline is not None:
            say(f"wrote {timeline}")
    if found is not None and not found.agrees:
        raise typer.Exit(1)


def simulated_machine(name: str) -> Target:
    """The target of that name; an error when code is made for it instead of cycles."""
    from dovetail.targets.files import shipped_targets
    from dovetail.targets.load import load_target

    known = [t for t in shipped_targets() if load_target(t).llvm is None]
    if not name:
        raise TargetError("no machine is given", hint=f"--target with a .toml file, or one of {', '.join(known)}")
    target = load_target(name)
    if target.llvm is not None:
        raise TargetError(
            f"'{target.name}' is not simulated: its file has an [llvm] table, so code is made for it",
            hint=f"dovetail run --target {name}, or a simulated machine: {', '.join(known)}",
        )
    return target


def show_cycles(kernel: SimulatedKernel) -> None:
    """Cycles, predicted and simulated; what they went to; and what runs on the host."""
    from dovetail.sim.report import table

    unit = kernel.last.unit_at_work
    say(f"on {kernel.target}, simulated; {unit.name or 'the machine'} at work {unit.utilisation:.1%} of the time")
    if kernel.form:
        say()
        say(kernel.form)
    say()
    say(table(kernel.timing, kernel.predicted_cycles))
    for step in kernel.step_times:
        say()
        say(step)
    for statement in kernel.on_host:
        say()
        say(statement)


def _compared(
    program: Program, kernel: SimulatedKernel, form: Algorithm, sizes: Mapping[str, int], seed: int
) -> Comparison:
    from dovetail.cli.inputs import gather
    from dovetail.cli.run import call
    from dovetail.pipeline import compared

    arrays, bound = gather(program, {}, sizes, seed)
    return compared(program, kernel, form, arrays, bound, call(kernel, arrays, bound))


def _searched(program: Program, machine: Target, sizes: Mapping[str, int], seconds: float) -> Plan:
    """The best plan found in the time, with a bar that says how far it is and what it has."""
    from dovetail.cli.screen import progress_bar
    from dovetail.ir.bind import with_sizes
    from dovetail.simulated.search import searched_plan
    from dovetail.tune.search import Budget

    with progress_bar("searching plans") as advance:
        found = searched_plan(
            with_sizes(program, sizes),
            machine,
            Budget(seconds),
            lambda p: advance(p.spent, f"{p.measured} plans" + (f", {p.best:,.0f} cycles" if p.best else "")),
        )
    gain = found.first_cost / found.cost
    say(f"searched {found.measured} plans ({found.stopped_by}): {gain:.2f} times as fast as the default plan")
    return found.best


def _write_plan(kernel: SimulatedKernel, form: Algorithm, path: str) -> None:
    plan = kernel.plan if form.is_direct else replace(kernel.plan, form=form.name)
    try:
        Path(path).write_text(plan.to_json(), encoding="utf-8")
    except OSError as problem:
        raise DovetailError(f"'{path}' cannot be written", why=problem.strerror) from None


def _write_timeline(kernel: SimulatedKernel, path: str) -> None:
    from dovetail.sim.report import write_chrome_trace

    try:
        write_chrome_trace(kernel.timing, Path(path), kernel.machine.frequency_hz)
    except OSError as problem:
        raise DovetailError(f"'{path}' cannot be written", why=problem.strerror) from None


def _json(
    kernel: SimulatedKernel, form: Algorithm, sizes: Mapping[str, int], found: Comparison | None
) -> dict[str, object]:
    timing = kernel.timing
    return {
        "target": kernel.target,
        "algorithm": {"name": form.name, "kind": form.kind, "costs": form.costs.splitlines(), "error": form.error},
        "sizes": dict(sizes),
        "cycles": timing.cycles,
        "predicted_cycles": kernel.predicted_cycles,
        "utilisation": kernel.utilisation,
        "steps": [{"steps": s.steps, "cycles": s.cycles, "busy_cycles": dict(s.busy)} for s in kernel.step_times],
        "instructions": [{"name": i.name, "calls": i.calls, "busy_cycles": i.busy_cycles} for i in timing.instructions],
        "units": [
            {
                "name": u.name,
                "copies": u.is_engine,
                "count": u.count,
                "busy_cycles": u.busy_cycles,
                "utilisation": u.utilisation,
            }
            for u in timing.units
        ],
        "memories": [
            {
                "name": m.name,
                "count": m.count,
                "bytes": m.bytes,
                "busy_cycles": m.busy_cycles,
                "utilisation": m.utilisation,
                "peak_bytes": m.peak_bytes,
            }
            for m in timing.memories
        ],
        "on_host": [{"statement": h.statement, "text": h.text, "reason": h.reason} for h in kernel.on_host],
        "plan": str(kernel.plan),
        **({} if found is None else {"agrees": found.agrees, "exact": found.is_exact}),
    }
