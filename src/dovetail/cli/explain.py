"""``dovetail explain``: how a program or a term runs on a machine, and by which rules it got there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import RewriteError
from dovetail.cli.model_explain import explain_model
from dovetail.cli.model_run import is_model
from dovetail.cli.options import (
    AlgorithmName,
    AsJson,
    PatternFile,
    ProgramPath,
    ProgramText,
    Relaxed,
    RuleFile,
    Shapes,
    TargetName,
    Threads,
    wishes_of,
)
from dovetail.cli.screen import heading, say, show_json
from dovetail.cli.source import read_source, stem

if TYPE_CHECKING:
    from dovetail.algorithm import Algorithm, Wishes
    from dovetail.ir.functional.term import Definition
    from dovetail.ir.program import Program
    from dovetail.rewrite.derivation import Derivation
    from dovetail.rewrite.explore import Exploration
    from dovetail.rewrite.rule import Rule
    from dovetail.targets.model import Target

AS_IT_IS = "the program runs as it is"


def explain_verb(
    path: ProgramPath = None,
    text: ProgramText = None,
    target: TargetName = "host",
    derivation: Annotated[
        bool, typer.Option("--derivation", help="Show the chain of rules from the definition to the machine.")
    ] = False,
    explore: Annotated[
        float,
        typer.Option(
            "--explore", metavar="SECONDS", min=0, help="Try all rules in any order for so long; show the best."
        ),
    ] = 0,
    rules: RuleFile = None,
    relaxed: Relaxed = False,
    algorithm: AlgorithmName = "",
    threads: Threads = None,
    shape: Shapes = None,
    patterns: PatternFile = None,
    as_json: AsJson = False,
) -> None:
    """Explain how a program, a term or a model runs on a machine, and by which rules.

    \b
    Example:
      dovetail explain matmul.dt
      dovetail explain conv.dt --relaxed --derivation              which algorithm, and how it follows
      dovetail explain layer.dt --target my-chip.toml --derivation
      dovetail explain layer.dt --derivation --rules mine.toml
      dovetail explain layer.dt --explore 8
      dovetail explain model.onnx --patterns mine.toml             what matched, what nearly did, which operand parted

    A term is a definition: def f(x: f32[8]) -> y = map(exp, x). A derivation begins with the rules of FILE, wherever
    they fire, until none does. On a simulated machine those follow that lead to its instructions. A processor runs the
    program that the term stands for, in the form that is estimated to be the fastest: what each form would cost is
    shown, and the rule that gave the one that was taken.

    --explore keeps all that the rules make of a term, and shows the fastest of it, by the same estimate (needs the
    extra: pip install 'dovetail[explore]').
    """
    from dovetail.targets.load import load_target

    if path is not None and is_model(path):
        explain_model(path, target, threads, shape, patterns, as_json)
        return
    source = read_source(path, text)
    machine = load_target(target)
    wishes = wishes_of(relaxed, rules, algorithm)
    if explore:
        if derivation or algorithm:
            raise RewriteError("exploration and another question", hint="--explore by itself shows a derivation, too")
        _show_exploration(_explored(source, machine, threads, explore, wishes), machine, as_json)
    elif derivation:
        _show_derivation(source, stem(path), machine, threads, wishes, as_json)
    else:
        words = _explained(source, machine, threads, wishes)
        show_json({"target": machine.name, "explanation": words}) if as_json else say(words)


def _explained(source: Program | Definition, machine: Target, threads: int | None, wishes: Wishes) -> str:
    from dovetail.pipeline import compile_chosen

    return compile_chosen(source, machine, threads, wishes)[0].explain()


# -- derivations


def _show_derivation(
    source: Program | Definition, name: str, machine: Target, threads: int | None, wishes: Wishes, as_json: bool
) -> None:
    from dovetail.pipeline import choose

    found, notes = _derived(source, name, machine, wishes)
    form = choose(source, machine, threads, wishes) if machine.llvm is not None else None
    if as_json:
        chosen = {} if form is None else {"algorithm": _algorithm_json(form)}
        show_json({"target": machine.name, **found.to_json(), "notes": notes, **chosen})
        return
    if form is None or found.steps or not form.derivation:
        say(found)
    if form is not None:
        _show_algorithm(form, bool(found.steps) or not form.derivation)
    if notes:
        heading("operations" if machine.llvm is None else "left out")
        for line in notes:
            say(f"  {line}")


def _show_algorithm(form: Algorithm, is_second: bool) -> None:
    """What the forms cost, and the derivation of the one that was taken."""
    if is_second:
        heading("then")
    if not form.is_direct:
        say(form.derivation)
        say()
    say(form if str(form) else f"{AS_IT_IS}: no rule gives it another form that is worth a look")
    if form.is_direct and form.costs:
        say(f"{AS_IT_IS}: no other form is estimated to be faster")


def _derived(source: Program | Definition, name: str, machine: Target, wishes: Wishes) -> tuple[Derivation, list[str]]:
    """The derivation by the user's rules and to the machine's instructions, and what became of each operation."""
    from dovetail.ir.functional.raise_program import raise_program
    from dovetail.ir.functional.term import Definition
    from dovetail.rewrite.calls import readable_derivation
    from dovetail.rewrite.mapped import map_definition
    from dovetail.rewrite.strategy import derive, exhaust

    definition = source if isinstance(source, Definition) else raise_program(source, name)
    allowed, skipped = _allowed(wishes)
    first = derive(definition, exhaust(allowed)).finished()
    if machine.llvm is not None:
        return first, skipped
    mapped = map_definition(first.end, machine, wishes.relaxed)
    return readable_derivation(first + mapped.derivation), [*skipped, *map(str, mapped.operations)]


def _allowed(wishes: Wishes) -> tuple[list[Rule], list[str]]:
    """The user's rules that may be used, and words about the others."""
    allowed = [rule for rule in wishes.rules if wishes.relaxed or rule.kind != "relaxed"]
    return allowed, [f"{rule.name} is relaxed: --relaxed" for rule in wishes.rules if rule not in allowed]


def _algorithm_json(form: Algorithm) -> dict[str, object]:
    return {
        "name": form.name,
        "kind": form.kind,
        "error": form.error,
        "costs": form.costs.splitlines(),
        "derivation": form.derivation,
    }


# -- exploration


def _explored(
    source: Program | Definition, machine: Target, threads: int | None, seconds: float, wishes: Wishes
) -> Exploration:
    from dovetail.pipeline import explore

    return explore(source, machine, threads, seconds, wishes.relaxed, wishes.rules)


def _show_exploration(found: Exploration, machine: Target, as_json: bool) -> None:
    if not as_json:
        say(found)
        return
    counts = {"stopped": found.stopped, "nodes": found.nodes, "iterations": found.iterations}
    costs = {"cost_before": found.start_cost, "cost": found.cost, "estimates": found.estimates}
    show_json({"target": machine.name, **costs, **counts, "derivation": found.derivation.to_json()})
