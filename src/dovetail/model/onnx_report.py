"""What became of the nodes of an ONNX model: how many are compiled, and which run on the host, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.base.words import printable
from dovetail.frontends.onnx.convert.attributes import title
from dovetail.frontends.onnx.stage import Stage


@dataclass(frozen=True, slots=True)
class OnnxReport:
    """Counts by operator, over all that has been specialised so far. ``host`` is by operator and reason."""

    compiled: Mapping[str, int]
    host: Mapping[tuple[str, str], int]
    resolved: Mapping[str, int]

    def __str__(self) -> str:
        lines = [f"compiled operators: {sum(self.compiled.values())}"]
        lines += [f"  {count:6} {printable(name)}" for name, count in sorted(self.compiled.items())]
        lines.append(f"operators of which nothing is left: {sum(self.resolved.values())}")
        lines.append(f"operators on the host: {sum(self.host.values())}")
        lines += [f"  {count:6} {printable(name)}: {reason}" for (name, reason), count in sorted(self.host.items())]
        return "\n".join(lines)


@dataclass(slots=True)
class Tally:
    """A report in the making."""

    compiled: Counter[str] = field(default_factory=Counter)
    host: Counter[tuple[str, str]] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)

    def add(self, stage: Stage) -> None:
        self.compiled.update(stage.compiled)
        self.resolved.update(stage.resolved)
        self.host.update((title(hosted.work.node), hosted.reason) for hosted in stage.hosted)

    def report(self) -> OnnxReport:
        return OnnxReport(dict(self.compiled), dict(self.host), dict(self.resolved))
