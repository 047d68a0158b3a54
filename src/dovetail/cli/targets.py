"""``dovetail targets``: the machines there are, what one can do, and whether its file is right."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import TargetError
from dovetail.cli.options import AsJson
from dovetail.cli.screen import heading, note, say, show_json, show_table

if TYPE_CHECKING:
    from dovetail.codegen.instruction_check import Checked
    from dovetail.targets.model import Instruction, Memory, Target

TargetArgument = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A target's name, or its .toml file.")]
targets_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, subcommand_metavar="[COMMAND]")


@targets_app.callback()
def targets(context: typer.Context, as_json: AsJson = False) -> None:
    """List, show, check and begin descriptions of machines.

    \b
    Example:
      dovetail targets
      dovetail targets show host
      dovetail targets new my-chip
      dovetail targets check my-chip.toml
    """
    if context.invoked_subcommand is None:
        _list(as_json)


@targets_app.command()
def show(
    name: TargetArgument,
    instruction: Annotated[str | None, typer.Argument(help="One instruction, in full.")] = None,
) -> None:
    """Show a machine: units, memories, instructions and what each computes.

    \b
    Example:
      dovetail targets show host
      dovetail targets show generic fma.f32x1
    """
    from dovetail.targets.load import load_target

    target = load_target(name)
    if instruction is None:
        _show_target(target)
    elif instruction in target.by_name:
        _show_instruction(target.instruction(instruction))
    else:
        hint = f"dovetail targets show {name} lists them"
        raise TargetError(f"target '{target.name}' has no instruction '{instruction}'", hint=hint)


@targets_app.command()
def check(
    name: TargetArgument,
    inherited: Annotated[bool, typer.Option("--inherited", help="Run what a file inherits too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run what every instruction emits against what it says it computes.

    \b
    Example:
      dovetail targets check my_chip.toml

    A target file with `emit` or `call` is trusted code: it runs on this machine. Exits with 1 when one differs.
    """
    from dovetail.codegen.instruction_check import check_instructions
    from dovetail.runtime.beside import symbols_beside
    from dovetail.runtime.jit import load_object
    from dovetail.targets.host import missing_features
    from dovetail.targets.load import load_target

    target = load_target(name)
    missing = missing_features(target) if target.llvm else ()
    if missing:
        note(f"the file is well formed; nothing was run, since this machine lacks {', '.join(missing)}")
        raise typer.Exit
    wanted = target.instructions if inherited else _own(target, name)
    beside = symbols_beside(wanted)
    found = list(check_instructions(wanted, target, lambda code: load_object(code, beside)))
    faults = [checked for checked in found if checked.fault]
    if as_json:
        show_json(_check_json(target, found))
    else:
        _show_checked(target, found)
    if faults:
        raise typer.Exit(1)


@targets_app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the machine is called.")],
) -> None:
    """Write NAME.toml, the description of a small machine with comments, to be changed into yours.

    \b
    Example:
      dovetail targets new my-chip
    """
    from dovetail.targets.new import new_target

    text, path = new_target(name), Path(f"{name}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        hint = "another name, or move that file away"
        raise TargetError(f"there is a file '{path}' already", hint=hint) from None
    except OSError as problem:
        raise TargetError(f"'{path}' cannot be written: {problem.strerror}") from None
    say(f"wrote {path}")
    say(f"next: change it, then  dovetail targets check {path}")


def _list(as_json: bool) -> None:
    from dovetail.targets.files import shipped_targets
    from dovetail.targets.host import missing_features
    from dovetail.targets.load import load_target

    found = [load_target(name) for name in ("host", *shipped_targets())]
    if as_json:
        lines = [{"name": t.name, "doc": t.doc, "missing": list(missing_features(t))} for t in found]
        show_json(lines)
        return
    rows = []
    for target in found:
        missing = missing_features(target)
        lacking = f"no: lacks {missing[0]}" + (" and more" if len(missing) > 1 else "") if missing else "yes"
        rows.append((target.name, len(target.by_name), lacking if target.llvm else "simulated", target.doc))
    show_table(("target", "instructions", "runs here", "what it is"), rows, right=("instructions",))


# -- show


def _show_target(target: Target) -> None:
    lineage = f" (inherits {', '.join(target.parents)})" if target.parents else ""
    say(f"{target.name}{lineage}: {target.doc}")
    heading("units, outermost first")
    show_table(("unit", "count"), ((u.name, " x ".join(map(str, u.count))) for u in target.units), right=("count",))
    heading("memories")
    columns = ("memory", "kind", "size", "per", "bytes per cycle")
    show_table(columns, map(_memory, target.memories), right=("size", "bytes per cycle"))
    heading(f"{len(target.by_name)} instructions, by family")
    rows = [_family(list(members)) for _, members in groupby(target.instructions, lambda i: i.family or i.name)]
    show_table(("family", "members", "one of them", "computes", "cycles"), rows, right=("members",))


def _memory(memory: Memory) -> tuple[str, str, str, str, str]:
    size = f"{memory.count} x {memory.bytes // memory.count} bytes" if memory.count else f"{memory.bytes:,} bytes"
    rate = f"{memory.bytes_per_cycle:g}" if memory.bytes_per_cycle else "-"
    return memory.name, memory.kind.value, size, memory.per or "all", rate


def _family(members: list[Instruction]) -> tuple[str, str, str, str, str]:
    widest = max(members, key=lambda i: i.lanes)
    computes = " ".join(map(str, widest.program.statements))
    return widest.family or widest.name, str(len(members)), widest.name, computes, widest.cycles


def _show_instruction(instruction: Instruction) -> None:
    say(f"{instruction.name}  ({instruction.source})" if instruction.source else instruction.name)
    heading("computes")
    say(instruction.program)
    heading("operands")
    rows = [(o.name, o.dtype, o.memory, o.layout or "-") for o in instruction.operands]
    show_table(("operand", "dtype", "memory", "layout"), rows)
    heading("costs")
    say(f"{instruction.cycles} cycles, latency {instruction.latency}")
    if instruction.emit:
        heading("emits")
        say(instruction.emit)
    elif instruction.call:
        heading("calls")
        say(instruction.call)


# -- check


def _own(target: Target, name: str) -> tuple[Instruction, ...]:
    """The instructions that the file itself describes; all of them for a target that is shipped."""
    own = tuple(i for i in target.instructions if i.source.startswith(f"{Path(name)}:"))
    return own or target.instructions


def _show_checked(target: Target, found: list[Checked]) -> None:
    counts: dict[str, Counter[str]] = {}
    for checked in found:
        state = "wrong" if checked.fault else "not run" if checked.skipped else "right"
        counts.setdefault(checked.instruction.family or checked.instruction.name, Counter())[state] += 1
    states = ("right", "wrong", "not run")
    show_table(("family", *states), ((f, *(c[state] for state in states)) for f, c in counts.items()), right=states)
    for checked in found:
        if checked.fault:
            say()
            say(f"{checked.instruction.name}: {checked.fault}", "bold red")
            say(f"  computes {checked.instruction.program.statements[0]}")
            say(f"  in {checked.instruction.source}")
    for reason, number in Counter(c.skipped for c in found if c.skipped).items():
        say(f"{number} not run: {reason}", "dim")
    wrong = sum(bool(c.fault) for c in found)
    run = sum(not c.skipped for c in found)
    say()
    say(
        f"{wrong} of {run} instructions of '{target.name}' do not do what they say"
        if wrong
        else _all_right(target, run)
    )


def _all_right(target: Target, run: int) -> str:
    if target.llvm is None and run == 0:
        return f"'{target.name}' is well formed: all {len(target.by_name)} instructions are simulated, none is run here"
    return f"all {run} instructions of '{target.name}' that were run do what they say"


def _check_json(target: Target, found: list[Checked]) -> dict[str, object]:
    faults = [{"instruction": c.instruction.name, "fault": c.fault} for c in found if c.fault]
    skipped = [{"instruction": c.instruction.name, "reason": c.skipped} for c in found if c.skipped]
    return {"target": target.name, "run": len(found) - len(skipped), "faults": faults, "not_run": skipped}
