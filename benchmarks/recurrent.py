"""Recurrent models, float32. Run: python -m benchmarks.recurrent

unrolled    LSTM cells written by hand in PyTorch, flattened by the ONNX exporter: ours, ONNX Runtime and OpenVINO get
            the same file, PyTorch runs the module. The ratio is to the best of ONNX Runtime and OpenVINO; eager PyTorch
            has a ratio of its own.
deepbench   the LSTM and GRU layers of DeepBench's inference set, one node each; PyTorch runs nn.LSTM and nn.GRU and
            counts among the rivals. Cases that differ only beyond --max-steps are one.
compile     seconds from a file to its first result, in a fresh process with an empty cache: 25 and 1500 steps of a
            loop, and 100 steps that were unrolled.

The floor of a case is what the machine allows: its multiply-adds at the measured peak, or the weights of the state read
in every step at the rate measured for an array of their size, from whichever cache holds it. "ceiling" is the ratio
that the floor would give, "share" the part of it we reached. Where the ceiling is under a bar, the bar of that case is
95 % of its ceiling. Outputs are compared with a float64 run.
"""

import json as json_text
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Annotated

import typer

from benchmarks.harness.limits import Limits
from benchmarks.harness.machine import commit, cpu_model
from benchmarks.harness.ratios import MOST_ROUNDS, per_round, summarise
from benchmarks.harness.report import Setting, notes, record
from benchmarks.harness.rounds import Contest, Row
from benchmarks.harness.session import FAILED, JsonOption, RoundsOption, ThreadsOption, guarded
from benchmarks.model_costs import costs
from benchmarks.recurrent_cases import (
    CELLS,
    LSTM,
    UNROLLED,
    Case,
    deepbench_cases,
    make,
    remove,
    unrolled_cases,
)
from benchmarks.shapes import SHAPES, ShapeFileError
from benchmarks.zoo import ModelProblem

SUBJECT, TORCH = "model/dovetail", "model/torch"
PEERS = (TORCH, "model/onnxruntime", "model/openvino")
RIVALS = {"unrolled": PEERS[1:], "deepbench": PEERS}
GEOMEAN_BARS, WORST_BARS = {"unrolled": 1.2, "deepbench": 1.15}, {"unrolled": 0.0, "deepbench": 0.9}
EAGER_GEOMEAN_BAR, EAGER_WORST_BAR = 6.0, 2.5
OF_CEILING = 0.95
LONGER_SECONDS_BAR, UNROLLED_SECONDS_BAR = 0.5, 10.0
COMPILED_HIDDEN, SHORT, LONG = 128, 25, 1500
QUICK_ROUNDS, QUICK_STEPS, QUICK_EACH = 3, 10, 5
PROBES = 6
CELL, NAME = 13, 24

SectionOption = Annotated[str, typer.Option("--only", help="regular expression: sections or names of cases")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help=f"every {QUICK_EACH}th layer, {QUICK_STEPS} steps, {QUICK_ROUNDS} rounds")
]
StepsOption = Annotated[int, typer.Option("--max-steps", min=1, help="longest sequence of a layer, for every system")]
ShapesOption = Annotated[Path, typer.Option("--shapes", help="JSON file with a list 'rnn'")]


@dataclass(frozen=True, slots=True)
class Measured:
    """One case: its row, and the least seconds the machine allows."""

    case: Case
    row: Row
    floor: float
    bandwidth: float

    @property
    def ratio(self) -> float:
        return self.row.ratio or 0.0

    @property
    def ceiling(self) -> float:
        """The ratio of a run at the floor; infinite where no rival works."""
        best = self.row.outcomes[self.row.best].seconds if self.row.best else ()
        return median(best) / self.floor if best else float("inf")

    @property
    def eager(self) -> float:
        """How many times as fast as PyTorch; 0 where either did not work."""
        return self.against(TORCH)

    def against(self, name: str) -> float:
        ours, theirs = self.row.outcomes.get(SUBJECT), self.row.outcomes.get(name)
        if ours is None or theirs is None or not ours.works or not theirs.works:
            return 0.0
        return median(per_round(ours.seconds, theirs.seconds))

    def bar(self, wanted: float) -> float:
        return min(wanted, OF_CEILING * self.ceiling)


def main(
    threads: ThreadsOption = 2,
    json: JsonOption = None,
    only: SectionOption = "",
    rounds: RoundsOption = MOST_ROUNDS,
    quick: QuickOption = False,
    max_steps: StepsOption = 50,
    shapes: ShapesOption = SHAPES / "deepbench.json",
) -> None:
    """Recurrent models against PyTorch, ONNX Runtime and OpenVINO: hand-written cells, DeepBench, compile times.

    python -m benchmarks.recurrent --only unrolled
    python -m benchmarks.recurrent --only 'gru.*h2048' --max-steps 187
    python -m benchmarks.recurrent --quick
    """
    if quick:
        rounds, max_steps = min(rounds, QUICK_ROUNDS), min(max_steps, QUICK_STEPS)
    layers = deepbench_cases(shapes, max_steps)[:: QUICK_EACH if quick else 1]
    sections = {"unrolled": unrolled_cases(), "deepbench": layers}
    guarded(lambda: run(sections, only, threads, rounds, json))


def run(sections: Mapping[str, Sequence[Case]], only: str, threads: int, rounds: int, json: Path | None) -> int:
    """Every section that has chosen cases, and a line for each bar; the exit code is 1 where one is missed."""
    chosen = {name: [c for c in cases if re.search(only, f"{name} {c.name}")] for name, cases in sections.items()}
    timed = re.search(only, "compile") is not None
    if not timed and not any(chosen.values()):
        known = ", ".join([*sections, "compile", *(c.name for cases in sections.values() for c in cases)])
        raise ShapeFileError(f"nothing is called {only!r}; there are: {known}")
    verdicts: list[tuple[str, bool]] = []
    for name, cases in chosen.items():
        if cases:
            verdicts += _verdicts(name, _section(name, cases, threads, rounds, json))
    if timed:
        verdicts += _compile_times(threads)
    print()
    for text, met in verdicts:
        print(f"{'met' if met else 'MISSED':8}{text}")
    return 0 if all(met for _, met in verdicts) else FAILED


def _section(name: str, cases: Sequence[Case], threads: int, rounds: int, json: Path | None) -> list[Measured]:
    found: list[Measured] = []
    with Contest(SUBJECT, PEERS, threads, rounds, RIVALS[name]) as contest:
        setting = Setting(commit(), cpu_model(), threads, contest.versions)
        print(f"\n{setting.machine}; {setting.threads} threads; commit {setting.commit}")
        print("; ".join(contest.versions.values()))
        for missing, reason in contest.missing.items():
            print(f"skipped: {missing} is not here ({reason})")
        print(_heading(list(contest.versions)))
        for case in cases:
            with _files(case) as problem:
                flops, read = _limits(case, threads)
                row = contest.measure(problem, WORST_BARS[name])
            found.append(Measured(case, row, case.floor(flops, read), read))
            print("\n".join([_line(found[-1], list(contest.versions)), *notes(row)]), flush=True)
            if json is not None:
                with json.open("a", encoding="utf-8") as out:
                    more = {"floor_seconds": found[-1].floor, "weight_bytes_per_second": read}
                    out.write(json_text.dumps({**record(row, setting), **more}) + "\n")
    return found


@contextmanager
def _files(case: Case) -> Iterator[ModelProblem]:
    """The case as files that are gone afterwards: a layer can have hundreds of megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        model = make(Path(folder), case)
        yield ModelProblem(model, "recurrent models")
        remove(model)


def _limits(case: Case, threads: int) -> tuple[float, float]:
    """FLOP/s, and bytes/s of reading as many bytes as the state has weights again and again: the best of a few."""
    limits = Limits(threads, case.weight_bytes)
    probes = [limits.measure() for _ in range(PROBES)]
    return max(flops for flops, _ in probes), max(read for _, read in probes)


def _heading(systems: Sequence[str]) -> str:
    cells = "".join(f"{name.removeprefix('model/')} ms".rjust(CELL + 2) for name in systems)
    more = f"{'ratio':>7}{'eager':>7}{'ceiling':>9}{'floor ms':>10}{'share':>7}{'GB/s':>7}{'rounds':>8}"
    return f"{'case':{NAME}}{cells}  {'best':<12}{more}"


def _line(found: Measured, systems: Sequence[str]) -> str:
    """Milliseconds of each system, the best rival, our ratio to it and to PyTorch, and what the machine allows."""
    row, ours = found.row, found.row.outcomes.get(SUBJECT)
    cells = "".join(_cell(row, name).rjust(CELL + 2) for name in systems)
    share = f"{100 * found.floor / median(ours.seconds):.0f}%" if ours is not None and ours.works else "-"
    best = (row.best or "-").removeprefix("model/")
    more = f"{found.ratio:>7.2f}{found.eager:>7.2f}{found.ceiling:>9.2f}{1e3 * found.floor:>10.3f}"
    again = f" of {', '.join(f'{r:.3f}' for r in row.tries)}" if row.tries else ""
    limits = f"{share:>7}{found.bandwidth / 1e9:>7.0f}{row.rounds:>8}"
    return f"{found.case.name:{NAME}}{cells}  {best:<12}{more}{limits}{again}"


def _cell(row: Row, name: str) -> str:
    outcome = row.outcomes.get(name)
    if outcome is None or not outcome.works:
        return {"wrong": "WRONG", "failed": "FAILED"}.get(outcome.status, "-") if outcome is not None else "-"
    return f"{1e3 * median(outcome.seconds):.3f}"


def _verdicts(name: str, found: Sequence[Measured]) -> list[tuple[str, bool]]:
    """Each bar of a section, and whether it is met."""
    ratios, wanted, least = [m.ratio for m in found], GEOMEAN_BARS[name], WORST_BARS[name]
    summary = summarise(ratios)
    print(f"{name}: {summary}")
    bars = [m.bar(wanted) for m in found]
    limited = sum(bar < wanted for bar in bars)
    text = f"{name}: {summary.geomean:.3f} of the best rival, bar {wanted}"
    if limited:
        text += f"; {geometric_mean(bars):.3f} with {limited} cases at {OF_CEILING:.0%} of their ceiling"
    verdicts = [(text, summary.geomean >= geometric_mean(bars))]
    if least:
        under = [m.case.name for m in found if m.ratio < m.bar(least)]
        verdicts.append((f"{name}: worst {summary.worst:.3f}, bar {least}{_named(under)}", not under))
    if name == "unrolled":
        eager = summarise([m.eager for m in found])
        verdicts.append(
            (
                f"{name}: {eager.geomean:.2f} of eager PyTorch, bar {EAGER_GEOMEAN_BAR}",
                eager.geomean >= EAGER_GEOMEAN_BAR,
            )
        )
        slow = [m.case.name for m in found if m.eager < EAGER_WORST_BAR]
        verdicts.append((f"{name}: worst {eager.worst:.2f} of eager, bar {EAGER_WORST_BAR}{_named(slow)}", not slow))
    return verdicts


def _named(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if names else ""


def _compile_times(threads: int) -> list[tuple[str, bool]]:
    """A loop of two lengths, and one that was unrolled."""
    cases = [Case(LSTM, steps, 1, COMPILED_HIDDEN) for steps in (SHORT, LONG)]
    cases.append(Case(CELLS, *UNROLLED[0]))
    seconds: list[float] = []
    print(f"\n{'case':{NAME}}{'cold s':>{CELL}}")
    for case in cases:
        with _files(case) as problem:
            found = costs(problem.shape, threads, ("cold",))
        for why in found.failures.values():
            print(f"{case.name:{NAME}}{'FAILED':>{CELL}}  {why}")
        seconds.append(found.steps["cold"].seconds if "cold" in found.steps else float("inf"))
        print(f"{case.name:{NAME}}{seconds[-1]:>{CELL}.2f}", flush=True)
    short, long, unrolled = seconds
    more = f"compile: {LONG} steps take {long - short:.2f} s more than {SHORT}, bar {LONGER_SECONDS_BAR}"
    flat = f"compile: {UNROLLED[0][0]} unrolled steps take {unrolled:.1f} s, bar {UNROLLED_SECONDS_BAR}"
    return [(more, long - short <= LONGER_SECONDS_BAR), (flat, unrolled <= UNROLLED_SECONDS_BAR)]


if __name__ == "__main__":
    typer.run(main)
