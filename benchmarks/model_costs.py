"""What a model costs before it runs, and the memory it takes: each figure from a fresh process.

cold       read the file, compile with an empty cache, first run; then the artefact is saved
cached     the same with the cache that has left
artefact   load the artefact, first run; nothing of onnx is imported
onnxruntime   a session, first run
bare       an interpreter with NumPy and the model's inputs
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness.processes import ROOT, THREAD_VARIABLES
from benchmarks.zoo import Model

STEPS = ("bare", "cold", "cached", "artefact", "onnxruntime")
PEAK_UNIT_BYTES = 1024
ARTEFACT = "model.dovetail"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one step without imports, and the most memory its process held."""

    seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Costs:
    """Of all steps; those that failed are not there, and ``failures`` say why."""

    steps: dict[str, Cost]
    failures: dict[str, str]

    @property
    def memory_ratio(self) -> float | None:
        """What a process that runs the artefact takes over a bare one, in parts of what ONNX Runtime takes."""
        if not {"bare", "artefact", "onnxruntime"} <= self.steps.keys():
            return None
        bare, ours, theirs = (self.steps[name].peak_bytes for name in ("bare", "artefact", "onnxruntime"))
        return (ours - bare) / (theirs - bare)


def costs(model: Model, threads: int, wanted: Sequence[str] = STEPS) -> Costs:
    """Every step in its own process, with a cache and an artefact that are gone afterwards."""
    steps: dict[str, Cost] = {}
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_CACHE_HOME=folder, **dict.fromkeys(THREAD_VARIABLES, str(threads)))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        for step in wanted:
            given = [step, json.dumps(asdict(model)), str(threads), folder]
            command = [sys.executable, "-m", "benchmarks.model_costs", *given]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode == 0:
                steps[step] = Cost(**json.loads(done.stdout.splitlines()[-1]))
            else:
                failures[step] = (done.stderr.splitlines() or ["no message"])[-1]
    return Costs(steps, failures)


def main(step: str, model: Model, threads: int, folder: Path) -> None:
    """One step; the last line on stdout is its cost."""
    seconds = {"bare": _bare, "onnxruntime": _onnxruntime, "artefact": _artefact}.get(step, _compiled)(
        model, threads, folder / ARTEFACT
    )
    print(json.dumps(asdict(Cost(seconds, _peak_bytes()))))


def _peak_bytes() -> int:
    """The most this process has held; what ``getrusage`` says begins with what its parent held."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * PEAK_UNIT_BYTES for line in lines if line.startswith("VmHWM:"))


def _bare(model: Model, threads: int, artefact: Path) -> float:
    model.inputs()
    return 0.0


def _compiled(model: Model, threads: int, artefact: Path) -> float:
    from benchmarks.model_systems.ours import compile_model

    begun = time.perf_counter()
    _, compiled = compile_model(model, threads)
    seconds = time.perf_counter() - begun
    if compiled is not None and not artefact.exists():
        compiled.save(artefact)
    return seconds


def _artefact(model: Model, threads: int, artefact: Path) -> float:
    from benchmarks.model_systems.ours_artefact import run_artefact

    begun = time.perf_counter()
    run_artefact(artefact, model)
    return time.perf_counter() - begun


def _onnxruntime(model: Model, threads: int, artefact: Path) -> float:
    from benchmarks.model_systems.onnxruntime_cpu import prepare

    begun = time.perf_counter()
    prepare(model, threads)[0].run()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main(sys.argv[1], Model(**json.loads(sys.argv[2])), int(sys.argv[3]), Path(sys.argv[4]))
