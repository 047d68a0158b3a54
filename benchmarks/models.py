"""Whole models, batch 1, float32. Run: python -m benchmarks.models

ResNet-50, ViT-base, BERT-base (128 tokens), GPT-2 (64 tokens) and MobileNetV2 as ``transformers`` makes them, with
random weights, exported to ONNX on the spot. The ratio is to the best of ONNX Runtime and OpenVINO; PyTorch, as it is
and compiled, is measured beside them and must be slower. Outputs are compared with a float64 run of the same weights.
"""

import json as json_text
import re
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.harness.machine import commit, cpu_model
from benchmarks.harness.ratios import MOST_ROUNDS, per_round, summarise
from benchmarks.harness.report import Bars, Setting, notes, record
from benchmarks.harness.rounds import Contest, Outcome, Row
from benchmarks.harness.session import (
    FAILED,
    JsonOption,
    OnlyOption,
    Options,
    PeersOption,
    RoundsOption,
    ThreadsOption,
    guarded,
)
from benchmarks.model_costs import Costs, costs
from benchmarks.model_systems import MODEL_MODULES
from benchmarks.shapes import ShapeFileError
from benchmarks.zoo import RECIPES, Model, ModelProblem, model_in

BARS = Bars(geomean=1.0, worst=0.85)
PREFIX = "model/"
SUBJECT, RIVALS = "dovetail", ("onnxruntime", "openvino")
PEERS = ",".join(name.removeprefix(PREFIX) for name in MODEL_MODULES if name != PREFIX + SUBJECT)
COLD_BARS = {"resnet-50": 15.0, "bert-base": 10.0}
KEPT_BAR, MEMORY_BAR = 0.5, 1.2
CELL, NAME = 13, 14

FolderOption = Annotated[Path | None, typer.Option("--models", help="keep the exported models in this folder")]
CostsOption = Annotated[bool, typer.Option("--costs/--no-costs", help="compile times and memory as well")]


def main(
    threads: ThreadsOption = 2,
    json: JsonOption = None,
    peers: PeersOption = PEERS,
    only: OnlyOption = "",
    rounds: RoundsOption = MOST_ROUNDS,
    models: FolderOption = None,
    with_costs: CostsOption = True,
) -> None:
    """Dovetail against the best of ONNX Runtime and OpenVINO, model by model."""
    guarded(lambda: run(Options(threads, json, _peers(peers), only, rounds), models, with_costs))


def run(options: Options, folder: Path | None, with_costs: bool) -> int:
    """Measure all models, print a line each and the last line; the exit code is 1 where ours failed."""
    names = [name for name in RECIPES if re.search(options.only, name)]
    if not names:
        raise ShapeFileError(f"no model has a name that contains {options.only!r}; there are: {', '.join(RECIPES)}")
    with ExitStack() as stack:
        folder = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chosen = [model_in(folder, name) for name in names]
        rows = _rows(chosen, options)
        if with_costs:
            _costs(chosen, options)
    ratios = [row.ratio for row in rows if row.ratio is not None]
    summary = summarise(ratios)
    print(f"{BARS.verdict(summary)}; {_beside(rows)}")
    print(summary)
    return FAILED if not ratios or min(ratios) == 0.0 else 0


def _rows(chosen: Sequence[Model], options: Options) -> list[Row]:
    rivals = [PREFIX + name for name in RIVALS]
    rows: list[Row] = []
    with Contest(PREFIX + SUBJECT, options.peers, options.threads, options.rounds, rivals) as contest:
        setting = Setting(commit(), cpu_model(), options.threads, contest.versions)
        print(f"{setting.machine}; {setting.threads} threads; commit {setting.commit}")
        print("; ".join(contest.versions.values()))
        for name, reason in contest.missing.items():
            print(f"skipped: {name} is not here ({reason})")
        systems = list(contest.versions)
        print(_heading(systems))
        for model in chosen:
            rows.append(contest.measure(ModelProblem(model), BARS.worst))
            print("\n".join([_line(rows[-1], systems), *notes(rows[-1])]), flush=True)
            _append(options.json, record(rows[-1], setting))
    return rows


def _heading(systems: Sequence[str]) -> str:
    cells = "".join(f"{name.removeprefix(PREFIX)} ms"[: CELL + 2].rjust(CELL + 3) for name in systems)
    return f"{'model':{NAME}}{cells}  {'best':<12}{'ratio':>7}{'share':>7}{'error':>9}{'rounds':>8}"


def _line(row: Row, systems: Sequence[str]) -> str:
    """Milliseconds of each system, the best rival, our ratio to it, our share of min(FMA, bandwidth), our error."""
    cells = "".join(_cell(row, name).rjust(CELL + 3) for name in systems)
    ours = row.outcomes.get(row.subject)
    works = ours is not None and ours.works
    share = f"{100 * row.share(row.subject):.0f}%" if works else "-"
    error = ours.how.rpartition(" ")[2] if works and ours is not None else "-"
    ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
    again = f" of {', '.join(f'{r:.3f}' for r in row.tries)}" if row.tries else ""
    best = (row.best or "-").removeprefix(PREFIX)
    return f"{row.problem.shape.label:{NAME}}{cells}  {best:<12}{ratio:>7}{share:>7}{error:>9}{row.rounds:>8}{again}"


def _cell(row: Row, name: str) -> str:
    outcome = row.outcomes.get(name)
    if outcome is None or not outcome.works:
        return {"wrong": "WRONG", "failed": "FAILED"}.get(outcome.status, "-") if outcome is not None else "-"
    return f"{1e3 * median(outcome.seconds):.2f}"


def _beside(rows: Sequence[Row]) -> str:
    """A word on the peers that are no rivals."""
    if not any(_others(row) for row in rows):
        return "PyTorch was not measured"
    slower = [row.problem.shape.label for row in rows if not _faster_than_torch(row)]
    return f"PyTorch is faster on {', '.join(slower)}" if slower else "PyTorch is slower on each"


def _others(row: Row) -> list[Outcome]:
    names = [PREFIX + name for name in (SUBJECT, *RIVALS)]
    return [outcome for name, outcome in row.outcomes.items() if name not in names and outcome.works]


def _faster_than_torch(row: Row) -> bool:
    """Round by round, than every system that is no rival."""
    ours = row.outcomes.get(row.subject)
    if ours is None or not ours.works:
        return False
    return all(median(per_round(ours.seconds, other.seconds)) >= 1.0 for other in _others(row))


def _costs(chosen: Sequence[Model], options: Options) -> None:
    """A table of compile times and memory."""
    columns = ("cold s", "cached s", "artefact s", "memory MB", "ORT MB", "memory ratio")
    print(f"\n{'model':{NAME}}" + "".join(column.rjust(CELL) for column in columns))
    for model in chosen:
        found = costs(model, options.threads)
        print(_costs_line(model, found), flush=True)
        for step, why in found.failures.items():
            print(f"    {step}: {why}")
        _append(options.json, {"costs": model.name, **{n: [c.seconds, c.peak_bytes] for n, c in found.steps.items()}})


def _costs_line(model: Model, found: Costs) -> str:
    times = {step: f"{cost.seconds:.2f}" for step, cost in found.steps.items()}
    bare = found.steps["bare"].peak_bytes if "bare" in found.steps else 0
    sizes = {step: f"{(cost.peak_bytes - bare) / 2**20:.0f}" for step, cost in found.steps.items()}
    ratio = found.memory_ratio
    cells = [times.get(step, "-") for step in ("cold", "cached", "artefact")]
    cells += [sizes.get(step, "-") for step in ("artefact", "onnxruntime")]
    cells.append("-" if ratio is None else f"{ratio:.2f}")
    missed = _missed(model, found)
    return (
        f"{model.name:{NAME}}" + "".join(cell.rjust(CELL) for cell in cells) + (f"  over: {missed}" if missed else "")
    )


def _missed(model: Model, found: Costs) -> str:
    """The bars this model does not meet."""
    bars = {"cold": COLD_BARS.get(model.name, float("inf")), "cached": KEPT_BAR, "artefact": KEPT_BAR}
    over = [step for step, bar in bars.items() if step in found.steps and found.steps[step].seconds > bar]
    if found.memory_ratio is not None and found.memory_ratio > MEMORY_BAR:
        over.append("memory")
    return ", ".join(over)


def _append(path: Path | None, data: dict[str, object]) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as out:
            out.write(json_text.dumps(data) + "\n")


def _peers(text: str) -> tuple[str, ...]:
    """``"onnxruntime,torch"`` -> names of the harness."""
    names = tuple(PREFIX + name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in MODEL_MODULES]
    if unknown:
        raise ShapeFileError(f"no peer is called {unknown[0].removeprefix(PREFIX)!r}; there are: {PEERS}")
    return names


if __name__ == "__main__":
    typer.run(main)
