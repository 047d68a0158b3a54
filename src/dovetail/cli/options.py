"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.base.errors import DovetailError, PlanError

if TYPE_CHECKING:
    from dovetail.algorithm import Wishes
    from dovetail.ir.functional.term import Definition
    from dovetail.ir.plan import Plan
    from dovetail.rewrite.rule import Rule

ProgramPath = Annotated[
    str | None, typer.Argument(metavar="PROGRAM", help="File with a program; - reads standard input.")
]
ProgramText = Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The program itself.")]
TargetName = Annotated[
    str, typer.Option("--target", "-t", metavar="NAME|FILE", help="A machine: a target's name, or its .toml file.")
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, max=512, help="Default: one per physical core.")]
Sizes = Annotated[
    list[str] | None, typer.Option("--size", metavar="NAME=NUMBER", help="Value of a run-time size; repeat for more.")
]
Shapes = Annotated[
    list[str] | None, typer.Option("--shape", metavar="NAME=NxN", help="Shape of a model's input; repeat for more.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Which inputs are made up.")]
PlanFile = Annotated[
    str | None, typer.Option("--plan", metavar="FILE", help="Use this plan (JSON) instead of the default one.")
]
RuleFile = Annotated[
    str | None, typer.Option("--rules", metavar="FILE", help="Rewrite rules of your own: a .toml file with [[rule]].")
]
PatternFile = Annotated[
    str | None,
    typer.Option("--patterns", metavar="FILE", help="Of a model: patterns of your own, a .toml file with [[pattern]]."),
]
Relaxed = Annotated[
    bool, typer.Option("--relaxed", help="Allow rules that change values within their stated error, such as Winograd.")
]
AlgorithmName = Annotated[
    str, typer.Option("--algorithm", metavar="RULE", help="Instead of the fastest: direct, im2col, or another rule.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for another program instead of tables.")]


def read_plan(path: str) -> Plan:
    """The plan in a file."""
    from dovetail.ir.plan import plan_from_json

    try:
        return plan_from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise PlanError(f"the plan '{path}' cannot be read", why=str(problem)) from None


def wishes_of(relaxed: bool, rules: str | None, algorithm: str, given: Definition | None = None) -> Wishes:
    """What --relaxed, --rules and --algorithm say of a program that was ``given`` as a definition, perhaps."""
    from dovetail.algorithm import Wishes

    return Wishes(relaxed, own_rules(rules), algorithm, given=given)


def own_rules(path: str | None) -> tuple[Rule, ...]:
    """The rules in a file; none where no file is given."""
    if path is None:
        return ()
    from dovetail.rewrite.user_rules import read_rules

    return tuple(read_rules(path))


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """``["m=7"]`` -> ``{"m": "7"}``."""
    found: dict[str, str] = {}
    for item in given or []:
        name, equals, value = item.partition("=")
        if not (name and equals and value):
            raise DovetailError(f"{option} {item} is not NAME=VALUE")
        if name in found:
            raise DovetailError(f"{option} {name} is given twice")
        found[name] = value
    return found


def numbers(given: list[str] | None, option: str = "--size") -> dict[str, int]:
    """``["m=7"]`` -> ``{"m": 7}``."""
    found: dict[str, int] = {}
    for name, value in pairs(given, option).items():
        if not (value.isascii() and value.isdigit() and len(value) < 20):
            raise DovetailError(f"{option} {name}={value} is not a whole number")
        found[name] = int(value)
    return found
