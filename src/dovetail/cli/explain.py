"""``dovetail explain``: how a program or a term runs on a machine, and by which rules it got there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.options import AsJson, ProgramPath, ProgramText, Relaxed, RuleFile, TargetName, Threads
from dovetail.cli.screen import heading, say, show_json
from dovetail.cli.source import read_source, stem

if TYPE_CHECKING:
    from dovetail.ir.functional.term import Definition
    from dovetail.ir.program import Program
    from dovetail.rewrite.derivation import Derivation
    from dovetail.rewrite.rules import Rules
    from dovetail.targets.model import Target


def explain_verb(
    path: ProgramPath = None,
    text: ProgramText = None,
    target: TargetName = "host",
    derivation: Annotated[
        bool, typer.Option("--derivation", help="Show the chain of rules from the definition to the machine.")
    ] = False,
    rules: RuleFile = None,
    relaxed: Relaxed = False,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Explain how a program or a term runs on a machine, and by which rules.

    \b
    Example:
      dovetail explain matmul.dt
      dovetail explain layer.dt --target my-chip.toml --derivation
      dovetail explain layer.dt --derivation --rules mine.toml

    A term is a definition: def f(x: f32[8]) -> y = map(exp, x). A derivation begins with the rules of FILE, wherever
    they fire, until none does; then come those that lead to the instructions of the machine, if it is one that is
    simulated. A processor runs the program that the term stands for.
    """
    from dovetail.rewrite.user_rules import read_rules
    from dovetail.targets.load import load_target

    source = read_source(path, text)
    machine = load_target(target)
    own = read_rules(rules) if rules else None
    if not derivation and own is None:
        words = _explained(source, machine, threads)
        show_json({"target": machine.name, "explanation": words}) if as_json else say(words)
        return
    found, notes = _derived(source, stem(path), machine, own, relaxed)
    if as_json:
        show_json({"target": machine.name, **found.to_json(), "notes": notes})
        return
    say(found)
    if notes:
        heading("operations" if machine.llvm is None else "then")
        for line in notes:
            say(f"  {line}")


def _explained(source: Program | Definition, machine: Target, threads: int | None) -> str:
    from dovetail.pipeline import compile

    return compile(source, machine, threads).explain()


def _derived(
    source: Program | Definition, name: str, machine: Target, own: Rules | None, relaxed: bool
) -> tuple[Derivation, list[str]]:
    """The derivation, and what became of each operation."""
    from dovetail.ir.functional.raise_program import raise_program
    from dovetail.ir.functional.term import Definition
    from dovetail.rewrite.calls import readable_derivation
    from dovetail.rewrite.mapped import map_definition
    from dovetail.rewrite.strategy import derive, exhaust

    definition = source if isinstance(source, Definition) else raise_program(source, name)
    allowed = [] if own is None else [rule for rule in own if relaxed or rule.kind != "relaxed"]
    skipped = [] if own is None else [f"{rule.name} is relaxed: --relaxed" for rule in own if rule not in allowed]
    first = derive(definition, exhaust(allowed)).finished()
    if machine.llvm is not None:
        return first, [*skipped, "a processor runs the program of the term: dovetail explain without --derivation"]
    mapped = map_definition(first.end, machine, relaxed)
    return readable_derivation(first + mapped.derivation), [*skipped, *map(str, mapped.operations)]
