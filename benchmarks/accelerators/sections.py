"""The bars, one section each: which cases are run, what is said about them, and whether the bar is met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Protocol, TypeVar

from benchmarks.accelerators.cases import (
    Case,
    array_products,
    convolutions,
    counted,
    forms_of,
    fully_connected,
    layers,
    npu_cells,
    npu_products,
)
from benchmarks.accelerators.choice import Chosen, chosen
from benchmarks.accelerators.exact import Verdict, check, exact_cases
from benchmarks.accelerators.recurrence import LARGE, MOST_STEPS, Stepped, recurrences, stepped
from benchmarks.accelerators.scale_sim import run_again, stored
from benchmarks.accelerators.subject import Row, measured

T = TypeVar("T")
SAMPLE = 8
"""With --quick every so many-th case is run."""
SECTIONS = ("exact", "sw26010", "npu-mv", "systolic16", "scale-sim", "prediction", "speed", "forms", "recurrence")
BATCHES = (128, 32, 1)


@dataclass(frozen=True, slots=True)
class Bar:
    """A number that has to reach another, or to stay below it."""

    text: str
    value: float
    limit: float
    at_most: bool = False
    unit: str = ""

    @property
    def is_met(self) -> bool:
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        verdict = "met" if self.is_met else "MISSED"
        return f"{self.text}: {self.value:.4g}{self.unit} (bar {sign} {self.limit:g}{self.unit}) {verdict}"


@dataclass(slots=True)
class Section:
    """One section's results."""

    name: str
    rows: list[Row] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Track(Protocol):
    """Goes over cases and shows how far it is."""

    def __call__(self, cases: Sequence[T], name: str) -> Iterable[T]: ...


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs sections; ``track`` shows progress over cases."""

    track: Track
    seen: Callable[[str, Row | Verdict], None]
    """Told of every result as it comes, with the name of its part."""
    quick: bool = False
    scale_sim: Path | None = None
    budget: float = 0.0
    """Seconds of search for each case; 0 takes the default plan."""
    certify: bool = False
    """Whether the plans that are timed are certified as well, which runs a part of each with data."""

    def run(self, wanted: Sequence[str]) -> Iterator[Section]:
        """The sections of ``wanted``, in their order; some are judged on the rows of those before them."""
        rows: list[Row] = []
        for name in (n for n in SECTIONS if n in wanted):
            if name in JUDGED:
                rows = rows or [row for run in TIMED.values() for row in run(self).rows]
                yield JUDGED[name](rows)
                continue
            if name in APART:
                yield APART[name](self)
                continue
            section = self.exact() if name == "exact" else TIMED[name](self)
            rows += section.rows
            yield section

    def exact(self) -> Section:
        cases = self.sample(list(exact_cases()))
        found = []
        for case in self.track(cases, "exact"):
            found.append(check(case))
            self.seen("exact", found[-1])
        right = sum(v.is_exact for v in found)
        bars = [Bar("cases that are exact", 100 * right / len(found), 100, unit=" %")]
        return Section("exact", verdicts=found, bars=bars)

    def rows(self, cases: Iterable[Case], name: str) -> list[Row]:
        found = []
        for case in self.track(self.sample(list(cases)), name):
            found.append(measured(case, self.budget, self.certify))
            self.seen(name, found[-1])
        return found

    def sample(self, cases: list[T]) -> list[T]:
        return cases[::SAMPLE] if self.quick else cases


def sunway(runner: Runner) -> Section:
    """Convolutions and fully connected layers at three batch sizes, against the hand-written plan where it runs."""
    many = runner.rows((*convolutions(128), *fully_connected(128)), "sw26010, batch 128")
    some = [r for b in (32, 1) for r in runner.rows((*convolutions(b), *fully_connected(b)), f"sw26010, batch {b}")]
    judged = [r for r in many if r.peer]
    wins = sum(r.gain >= 1 / 0.95 for r in judged)
    section = Section("sw26010", [*many, *some])
    section.bars = [
        Bar("cases with 5 % fewer cycles than by hand", 100 * wins / max(1, len(judged)), 88, unit=" %"),
        Bar("batch 1 and 32 that run", 100 * sum(r.works for r in some) / max(1, len(some)), 100, unit=" %"),
        Bar("longest search", max(r.search_seconds for r in section.rows), 60, at_most=True, unit=" s"),
    ]
    section.notes = [
        f"gain over the hand-written plan: geomean {geomean([r.gain for r in judged]):.2f} over {len(judged)} cases",
        *(f"batch {b}: utilisation {_shares(rows)}" for b, rows in ((128, many), ("32 and 1", some))),
    ]
    return section


def choice_of_forms(runner: Runner) -> Section:
    """Convolutions as they are, with stored windows, and after Winograd: whether the estimate takes the fastest."""
    found: list[Chosen] = []
    for batch in BATCHES:
        sample = runner.sample(list(layers(batch)))
        for label, conv in runner.track(sample, f"forms, batch {batch}"):
            several = forms_of(label, conv)
            if len(several) == 1:
                continue
            found.append(chosen(several, runner.budget))
            for row in found[-1].rows:
                runner.seen(f"forms, batch {batch}", row)
    right = sum(c.is_right for c in found)
    section = Section("forms", [row for c in found for row in c.rows])
    section.bars = [Bar("choices that are the fastest form", 100 * right / max(1, len(found)), 90, unit=" %")]
    fastest = ", ".join(f"{n} {name}" for name, n in Counter(c.fastest for c in found).most_common())
    gains = [c.cycles("implicit") / c.cycles(c.name) for c in found]
    section.notes = [
        f"{len(found)} convolutions with more than one form; fastest: {fastest}",
        f"gain of the choice over implicit: geomean {geomean(gains):.2f}, at most {max(gains, default=0.0):.2f}",
        *(str(c) for c in found if not c.is_right),
    ]
    return section


def recurrence(runner: Runner) -> Section:
    """DeepBench's GRUs with their weights on the machine: steps."""
    found: list[Stepped] = []
    for one in runner.track(runner.sample(list(recurrences())), "recurrence"):
        found.append(stepped(one))
        runner.seen("recurrence", found[-1].row)
        runner.seen("recurrence, with data", found[-1].exact)
    judged = [100 * one.utilisation for one in found if one.recurrence.is_judged]
    right = sum(one.exact.is_exact for one in found)
    section = Section("recurrence", [one.row for one in found], [one.exact for one in found])
    section.bars = [
        Bar("cases that run right", 100 * right / max(1, len(found)), 100, unit=" %"),
        Bar(f"least utilisation of a step, h >= {LARGE}, weights fit", min(judged, default=0.0), 80, unit=" %"),
    ]
    section.notes = [f"{len(judged)} of {len(found)} cases are judged; up to {MOST_STEPS} steps", *map(str, found)]
    return section


def matrix_vector(runner: Runner) -> Section:
    """DeepBench's products and GRUs against one hand plan per operator."""
    products, cells = runner.rows(npu_products(), "npu-mv, products"), runner.rows(npu_cells(), "npu-mv, GRU")
    gains = [geomean([r.gain for r in rows]) for rows in (products, cells)]
    section = Section("npu-mv", [*products, *cells])
    section.bars = [Bar("gain on products", gains[0], 1.3), Bar("gain on GRU", gains[1], 2.0)]
    section.notes = [f"{len(products)} products, {len(cells)} GRUs; geometric means"]
    return section


def systolic(runner: Runner) -> Section:
    """Large products on the array."""
    rows = runner.rows(array_products(), "systolic16")
    return Section(
        "systolic16", rows, bars=[Bar("least utilisation", 100 * min(r.utilisation for r in rows), 90, unit=" %")]
    )


def against_scale_sim(runner: Runner) -> Section:
    """Compute cycles of the array without overlap against SCALE-Sim's."""
    known = run_again(runner.scale_sim) if runner.scale_sim else stored()
    rows = runner.rows(map(counted, known), "scale-sim")
    worst = max((abs(r.busy - r.peer) / r.peer if r.works and r.peer else 1.0 for r in rows), default=0.0)
    return Section("scale-sim", rows, bars=[Bar("largest difference of compute cycles", 100 * worst, 3, True, " %")])


def speed(rows: Sequence[Row]) -> Section:
    """How long timed simulation takes; nothing is said about machines of which no case was run."""
    cubes = [r.simulation_seconds for r in rows if r.case.machine == "systolic16" and r.case.macs == 1024**3]
    others = [r.simulation_seconds for r in rows if r.case.machine == "sw26010"]
    named = (("1024^3 on systolic16", cubes, 2), ("slowest case on sw26010", others, 1))
    bars = [Bar(text, max(seconds), limit, at_most=True, unit=" s") for text, seconds, limit in named if seconds]
    return Section("speed", bars=bars, notes=[f"{len(cubes)} and {len(others)} cases"])


def prediction(rows: Sequence[Row]) -> Section:
    """The analytic model against simulated cycles."""
    errors = [100 * r.prediction_error for r in rows if r.works] or [0.0]
    bars = [Bar("median error", median(errors), 10, True, " %"), Bar("worst error", max(errors), 25, True, " %")]
    worst = sorted((r for r in rows if r.works), key=lambda r: -r.prediction_error)[:5]
    notes = [f"{r.case.machine} {r.case.label}: predicted {r.predicted:.0f}, simulated {r.cycles:.0f}" for r in worst]
    return Section("prediction", bars=bars, notes=[f"{len(errors)} cases; the worst:", *notes])


TIMED: dict[str, Callable[[Runner], Section]] = {
    "sw26010": sunway,
    "npu-mv": matrix_vector,
    "systolic16": systolic,
    "scale-sim": against_scale_sim,
}
APART: dict[str, Callable[[Runner], Section]] = {"forms": choice_of_forms, "recurrence": recurrence}
JUDGED: dict[str, Callable[[Sequence[Row]], Section]] = {"prediction": prediction, "speed": speed}


def geomean(values: Sequence[float]) -> float:
    """0 where any value is."""
    return exp(sum(map(log, values)) / len(values)) if values and min(values) > 0 else 0.0


def _shares(rows: Sequence[Row]) -> str:
    shares = [100 * r.utilisation for r in rows] or [0.0]
    return f"median {median(shares):.0f} %, {min(shares):.0f} to {max(shares):.0f} %"
