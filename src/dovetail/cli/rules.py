"""``dovetail rules``: the rewrite rules there are, and whether a user's own are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.options import AsJson
from dovetail.cli.screen import heading, say, show_json, show_table

if TYPE_CHECKING:
    from dovetail.rewrite.check.rules import Report
    from dovetail.rewrite.rule import Rule
    from dovetail.rewrite.rules import Rules

NEVER = "it never fires"
"""What a report says of a rule that fired on none of the terms that were tried."""
LONGEST = 160
"""Characters of one side of a rule in the list; ``show`` has all of it."""
rules_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, subcommand_metavar="[COMMAND]")


@rules_app.callback()
def rules(
    context: typer.Context,
    level: Annotated[str | None, typer.Option(help="One level: dsl, algorithmic or hardware.")] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="NAME|FILE", help="Whose instructions are rules, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List rewrite rules, and check your own.

    \b
    Example:
      dovetail rules
      dovetail rules --target my-chip.toml --level hardware
      dovetail rules show map-fusion
      dovetail rules check mine.toml

    A rule is bit-exact, reassociating (another order of a sum), or relaxed (other values within its stated error).
    """
    if context.invoked_subcommand is not None:
        return
    found = _known(target)
    if level is not None:
        found = found.of_level(level)
    if as_json:
        show_json([_rule_json(rule) for rule in found])
        return
    for name in dict.fromkeys(rule.level for rule in found):
        heading(name)
        rows = (
            (rule.name, rule.kind, f"{_short(rule.before)}\n-> {_short(rule.after)}") for rule in found.of_level(name)
        )
        show_table(("rule", "class", "before -> after"), rows)


@rules_app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A rule's name.")],
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="NAME|FILE", help="Whose instructions are rules, too.")
    ] = None,
) -> None:
    """Show one rule in full.

    \b
    Example:
      dovetail rules show map-fusion
    """
    rule = _known(target)[name]
    say(f"{rule.name}: {rule.doc}" if rule.doc else rule.name)
    for key, value in _rule_json(rule).items():
        lines = value if isinstance(value, list) else [value]
        for line in lines if key not in ("name", "doc") else ():
            if line:
                say(f"  {key:<7} {line}")


@rules_app.command()
def check(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A .toml file with [[rule]] tables.")],
    examples: Annotated[int, typer.Option(min=1, help="How many random inputs each rule is tried on.")] = 1000,
    as_json: AsJson = False,
) -> None:
    """Check the rules of a file: their types, and their values on random terms and inputs.

    \b
    Example:
      dovetail rules check mine.toml

    Exits with 1 when a rule changes a value more than its class allows.
    """
    from dovetail.rewrite.check.rules import Effort, check_rule
    from dovetail.rewrite.user_rules import read_rules

    reports = [check_rule(rule, Effort(examples=examples)) for rule in read_rules(path)]
    if as_json:
        show_json([_report_json(report) for report in reports])
    else:
        for report in reports:
            _show_report(report)
    if not all(report.ok for report in reports):
        raise typer.Exit(1)


def _known(target: str | None) -> Rules:
    """The rules there are; with those of a machine's instructions, where one is named."""
    from dovetail.rewrite.built_in import built_in_rules
    from dovetail.targets.load import load_target

    return built_in_rules(None if target is None else load_target(target))


def _show_report(report: Report) -> None:
    if report.ok:
        say(f"{report.rule.name}: right on {report.examples} examples ({report.rule.kind})")
    else:
        say(f"{report.rule.name}: {'not tried' if report.failure == NEVER else 'wrong'}", "bold red")
        say("\n".join(f"  {line}" for line in (report.failure or "").splitlines()))


def _report_json(report: Report) -> dict[str, object]:
    kind = report.rule.kind
    return {"rule": report.rule.name, "class": kind, "examples": report.examples, "failure": report.failure}


def _short(side: object) -> str:
    text = str(side)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _rule_json(rule: Rule) -> dict[str, object]:
    return {
        "name": rule.name,
        "level": rule.level,
        "class": rule.kind,
        "before": str(rule.before),
        "after": str(rule.after),
        "types": list(rule.types),
        "when": list(rule.when),
        "choose": list(rule.choose),
        "error": rule.error,
        "doc": rule.doc,
    }
