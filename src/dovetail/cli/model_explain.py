"""``dovetail explain model.onnx --patterns mine.toml``: what matched, what nearly matched, and which operand parted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.base.errors import ModelError, UnsupportedError
from dovetail.cli.model_run import ready, shapes_of
from dovetail.cli.screen import heading, say, show_json, show_table

if TYPE_CHECKING:
    from dovetail.model.explained import Explained
    from dovetail.rewrite.patterns.pattern import Pattern

_MOST_SHOWN = 12
"""Matches that are shown in full."""


def explain_model(
    path: str,
    target: str,
    threads: int | None,
    shapes: list[str] | None,
    patterns: str | None,
    as_json: bool,
) -> None:
    """Show what patterns do to the model in ``path``; without patterns, what became of its operators."""
    if patterns is None:
        lines = _report(path, target, threads, shapes)
        show_json({"model": path, "report": lines}) if as_json else say("\n".join(lines))
        return
    found, wanted = _explained(path, target, shapes, patterns)
    if as_json:
        show_json(_as_json(path, found, wanted))
        return
    _show(path, patterns, found, wanted)


def _report(path: str, target: str, threads: int | None, shapes: list[str] | None) -> list[str]:
    """What became of the operators of a model, its regions and what passes did; of one in stages, the first."""
    model, feeds = ready(path, target, threads, None, shapes, seed=0)
    try:
        return [*model.report.splitlines(), "", *str(model.compiled(feeds).report).splitlines()]
    except UnsupportedError as problem:
        return [*model.report.splitlines(), "", f"not one function: {problem}"]


def _explained(
    path: str, target: str, shapes: list[str] | None, patterns: str
) -> tuple[list[Explained], tuple[Pattern, ...]]:
    from dovetail.model.explained import explained, graphs_of
    from dovetail.model.opened import ONNX, made_up, open_model
    from dovetail.rewrite.patterns.file import read_patterns
    from dovetail.targets.load import load_target

    if Path(path).suffix != ONNX:
        raise ModelError(f"'{path}' was compiled already", why="what is in it is code, not operators", hint="the .onnx")
    wanted = read_patterns(patterns)
    machine = load_target(target)
    inputs = open_model(path, machine, 1).inputs
    graphs = graphs_of(Path(path), made_up(inputs, shapes_of(shapes, inputs)))
    return [explained(graph, wanted, machine) for graph in graphs], wanted


def _show(path: str, patterns: str, found: list[Explained], wanted: tuple[Pattern, ...]) -> None:
    steps = [step for one in found for step in one.steps]
    times = Counter(step.pattern for step in steps)
    checks = sum(one.checks for one in found)
    say(f"{Path(path).name}: {sum(one.operators for one in found)} operators, {patterns}: {len(wanted)} patterns")
    heading("matched")
    show_table(("pattern", "times"), [(one.name, times[one.name]) for one in wanted], right=("times",))
    for step in steps[:_MOST_SHOWN]:
        say()
        say(step)
    if len(steps) > _MOST_SHOWN:
        say()
        say(f"and {len(steps) - _MOST_SHOWN} more")
    if steps:
        say()
        say(f"both sides were evaluated and agree; matches that differ in types or attributes: {checks}")
    near = [miss for one in found for miss in one.near]
    if near:
        heading("nearly matched")
        for miss in near:
            say(miss)


def _as_json(path: str, found: list[Explained], wanted: tuple[Pattern, ...]) -> dict[str, object]:
    steps = [
        {"pattern": step.pattern, "values": step.sinks, "before": step.before, "after": step.after, "gain": step.gain}
        for one in found
        for step in one.steps
    ]
    near = [
        {
            "pattern": miss.pattern,
            "sink": miss.sink,
            "matched": miss.matched,
            "operations": miss.operations,
            "parted": miss.value,
            "why": miss.why,
        }
        for one in found
        for miss in one.near
    ]
    return {"model": path, "patterns": [one.name for one in wanted], "matched": steps, "near": near}
