"""What patterns do to a model: what matched, what nearly matched, and which operand parted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.base.errors import UnsupportedError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.frontends.onnx.file import read
from dovetail.ir.graph.bound import BoundGraph
from dovetail.model.mapped import mapped, plain_graph
from dovetail.model.onnx_session import Session, reference
from dovetail.model.onnx_stages import RunGraph
from dovetail.rewrite.patterns.apply import Step
from dovetail.rewrite.patterns.near import NearMiss, near_misses
from dovetail.rewrite.patterns.pattern import Pattern
from dovetail.targets.model import Target

if TYPE_CHECKING:
    from dovetail.frontends.onnx.entries import HostValue


@dataclass(frozen=True, slots=True)
class Explained:
    """Of one graph of a model: how many operators it has, what was put in place, and what came near."""

    operators: int
    steps: tuple[Step, ...]
    near: tuple[NearMiss, ...]
    checks: int


def graphs_of(
    path: Path, feeds: Mapping[str, HostValue], limits: ModelLimits = DEFAULT_MODEL_LIMITS
) -> tuple[BoundGraph, ...]:
    """The graphs that a model is compiled as, for inputs like these: one, unless values decide about shapes."""
    found: list[BoundGraph] = []

    def note(bound: BoundGraph) -> RunGraph:
        found.append(bound)
        return reference(bound)

    session = Session(read(path, limits), note, limits)
    try:
        session.whole(feeds)
    except UnsupportedError:
        session.run(feeds)
    return tuple(found)


def explained(bound: BoundGraph, patterns: tuple[Pattern, ...], target: Target) -> Explained:
    """What ``patterns`` do to a graph; what came near is looked for where nothing was put in place yet."""
    plain = plain_graph(bound)
    done = mapped(bound, patterns, target)
    return Explained(len(plain.graph.nodes), done.steps, near_misses(plain, patterns), done.checks)
