"""``dovetail rules``: the rewrite rules there are, and whether a user's own are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.options import AsJson
from dovetail.cli.screen import heading, say, show_json, show_table

if TYPE_CHECKING:
    from dovetail.rewrite.check.report import Verdict
    from dovetail.rewrite.rule import Rule

rules_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, subcommand_metavar="[COMMAND]")


@rules_app.callback()
def rules(
    context: typer.Context,
    level: Annotated[str | None, typer.Option(help="One level: dsl, algorithmic or hardware.")] = None,
    as_json: AsJson = False,
) -> None:
    """List rewrite rules, and check your own.

    \b
    Example:
      dovetail rules
      dovetail rules show map-map
      dovetail rules check mine.toml

    A rule is bit-exact, reassociating (another order of a sum), or relaxed (other values within its stated error).
    """
    from dovetail.rewrite.tables import built_in_rules

    if context.invoked_subcommand is not None:
        return
    found = built_in_rules() if level is None else built_in_rules().of_level(level)
    if as_json:
        show_json([_rule_json(rule) for rule in found])
        return
    for name in dict.fromkeys(rule.level for rule in found):
        heading(name)
        rows = ((rule.name, rule.kind, f"{rule.before}\n-> {rule.after}") for rule in found.of_level(name))
        show_table(("rule", "class", "before -> after"), rows)


@rules_app.command()
def show(name: Annotated[str, typer.Argument(metavar="NAME", help="A rule's name.")]) -> None:
    """Show one rule in full.

    \b
    Example:
      dovetail rules show map-map
    """
    from dovetail.rewrite.tables import built_in_rules

    rule = built_in_rules()[name]
    say(f"{rule.name}: {rule.doc}" if rule.doc else rule.name)
    rows = [(key, value) for key, value in _rule_json(rule).items() if value and key not in ("name", "doc")]
    show_table(("", ""), [(key, "\n".join(value) if isinstance(value, list) else value) for key, value in rows])


@rules_app.command()
def check(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A .toml file with [[rule]] tables.")],
    examples: Annotated[int, typer.Option(min=1, help="How many random terms each rule is tried on.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Check the rules of a file: their types, and their values on random terms and inputs.

    \b
    Example:
      dovetail rules check mine.toml

    Exits with 1 when a rule changes a value more than its class allows.
    """
    from dovetail.rewrite.check.report import check_rule
    from dovetail.rewrite.user_rules import read_rules

    verdicts = [check_rule(rule, examples) for rule in read_rules(path)]
    if as_json:
        show_json([_verdict_json(verdict) for verdict in verdicts])
    else:
        show_table(("rule", "class", "tried", "result"), map(_cells, verdicts), right=("tried",))
    if any(verdict.fault for verdict in verdicts):
        raise typer.Exit(1)


def _cells(verdict: Verdict) -> tuple[object, ...]:
    return verdict.rule.name, verdict.rule.kind, verdict.tried, verdict.fault or "right"


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    return {"rule": verdict.rule.name, "tried": verdict.tried, "fault": verdict.fault}


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
