"""Rows as people read them, and as JSON lines."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.harness.ratios import Summary
from benchmarks.harness.rounds import Outcome, Row

LABEL_WIDTH, CELL_WIDTH = 60, 12


@dataclass(frozen=True, slots=True)
class Bars:
    """What a table has to reach. ``worst`` also says which shapes are measured again."""

    geomean: float
    worst: float
    wins: float = 0.0

    def verdict(self, summary: Summary) -> str:
        """ "met", or which bars are not."""
        checks = {
            f"geomean >= {self.geomean:.2f}": summary.geomean >= self.geomean,
            f"worst >= {self.worst:.2f}": summary.worst >= self.worst,
            f"wins >= {100 * self.wins:.0f}%": summary.wins >= self.wins,
        }
        missed = [text for text, holds in checks.items() if not holds]
        return "bars met" if not missed else "bars missed: " + ", ".join(missed)


@dataclass(frozen=True, slots=True)
class Setting:
    """What all rows of a run have in common."""

    commit: str
    machine: str
    threads: int
    versions: Mapping[str, str]


def heading(systems: Sequence[str]) -> str:
    """The line above the rows; systems in GFLOP/s."""
    cells = "".join(name[: CELL_WIDTH - 1].rjust(CELL_WIDTH) for name in systems)
    return f"{'shape':{LABEL_WIDTH}}{cells}  {'best':<12}{'ratio':>7}{'share':>7}{'FMA':>8}{'GB/s':>7}{'rounds':>8}"


def line(row: Row, systems: Sequence[str]) -> str:
    """One row: GFLOP/s of each system, the best peer, our ratio to it, our share of min(FMA, bandwidth)."""
    cells = "".join(_cell(row, name).rjust(CELL_WIDTH) for name in systems)
    ours = row.outcomes.get(row.subject)
    judged = row.subject if ours is not None and ours.works else row.best
    share = f"{100 * row.share(judged):.0f}%" if judged else "-"
    ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
    limits = f"{row.flops_per_second / 1e9:8.1f}{row.bytes_per_second / 1e9:7.1f}"
    label = row.problem.shape.label[: LABEL_WIDTH - 1]
    again = f" of {', '.join(f'{r:.3f}' for r in row.tries)}" if row.tries else ""
    return f"{label:{LABEL_WIDTH}}{cells}  {row.best or '-':<12}{ratio:>7}{share:>7}{limits}{row.rounds:>8}{again}"


def notes(row: Row) -> list[str]:
    """A line for each system that gave no time, with the reason."""
    return [f"    {name}: {o.status}: {o.how}" for name, o in row.outcomes.items() if not o.works]


def record(row: Row, setting: Setting) -> dict[str, object]:
    """One self-contained JSON line."""
    shape = row.problem.shape
    return {
        **asdict(setting),
        "table": row.problem.title,
        "label": shape.label,
        "shape": row.problem.to_json()["shape"],
        "flops": shape.flops,
        "bytes": shape.bytes,
        "systems": {name: _outcome(outcome) for name, outcome in row.outcomes.items()},
        "best": row.best,
        "ratio": row.ratio,
        "tries": list(row.tries),
        "spread": None if math.isnan(row.spread) else row.spread,
        "rounds": row.rounds,
        "fma_flops_per_second": row.flops_per_second,
        "read_bytes_per_second": row.bytes_per_second,
        "share": {name: row.share(name) for name, outcome in row.outcomes.items() if outcome.works},
    }


def _outcome(outcome: Outcome) -> dict[str, object]:
    seconds = median(outcome.seconds) if outcome.works else None
    return {"status": outcome.status, "how": outcome.how, "seconds": seconds, "rounds": list(outcome.seconds)}


def _cell(row: Row, name: str) -> str:
    outcome = row.outcomes.get(name)
    if outcome is None:
        return "-"
    if not outcome.works:
        return {"wrong": "WRONG", "failed": "FAILED"}.get(outcome.status, "-")
    return f"{row.problem.shape.flops / median(outcome.seconds) / 1e9:.1f}"
