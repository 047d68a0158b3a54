"""``dovetail bench model.onnx --against onnxruntime,openvino``: side by side, in turns.

Every system runs in a process of its own. All but the one whose turn it is are stopped: thread pools spin while they
wait, and would take a core from the others.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.base.errors import DovetailError
from dovetail.cli.model_run import ready
from dovetail.cli.screen import milliseconds, note, progress_bar, say, show_json, show_table

if TYPE_CHECKING:
    from dovetail.frontends.onnx.entries import HostValue

OURS = "dovetail"
ROUNDS = 9
BLOCK_SECONDS = 0.05


def bench_model(
    path: str,
    target: str,
    threads: int | None,
    shapes: list[str] | None,
    against: str | None,
    as_json: bool,
) -> None:
    """Time the model in ``path`` in turns with the systems named in ``against``."""
    from dovetail.runtime.threads import thread_count
    from dovetail.targets.load import load_target

    names = _systems(against)
    if target != "host" and len(names) > 1:
        raise DovetailError("--against compares on this machine", hint="without --target")
    count = threads or thread_count(None, load_target(target))
    _, feeds = ready(path, target, count, None, shapes, seed=0)
    times = in_turns(names, path, count, feeds)
    ours = statistics.median(times[OURS])
    ratios = {n: statistics.median([b / a for a, b in zip(times[OURS], t, strict=True)]) for n, t in times.items()}
    if as_json:
        rows = [{"system": n, "seconds": statistics.median(t), "ratio": ratios[n]} for n, t in times.items()]
        show_json({"model": path, "threads": count, "rows": rows})
        return
    say(f"{Path(path).name}, {count} {'thread' if count == 1 else 'threads'}, {ROUNDS} rounds in turns")
    say()
    cells = [
        (n, milliseconds(statistics.median(t)), milliseconds(min(t)), "" if n == OURS else f"{ratios[n]:.2f}x")
        for n, t in times.items()
    ]
    show_table(("system", "median", "fastest", "takes, of ours"), cells, right=("median", "fastest", "takes, of ours"))
    if len(times) > 1:
        best = min((statistics.median(t), n) for n, t in times.items() if n != OURS)
        say(f"best of the others: {best[1]}, {best[0] / ours:.2f}x our time")


def _systems(against: str | None) -> list[str]:
    from dovetail.cli.peer import SYSTEMS

    wanted = [name.strip() for name in (against or "").split(",") if name.strip()]
    found = [OURS]
    for name in wanted:
        if name not in SYSTEMS:
            raise DovetailError(f"there is no system '{name}'", hint=", ".join(n for n in SYSTEMS if n != OURS))
        if find_spec(name) is None:
            note(f"{name} is not installed and left out: pip install {name}")
        elif name not in found:
            found.append(name)
    return found


def in_turns(names: Sequence[str], path: str, threads: int, feeds: Mapping[str, HostValue]) -> dict[str, list[float]]:
    """Seconds of one call in each round, by system."""
    with tempfile.TemporaryDirectory() as folder:
        return _measured(names, path, threads, _written(feeds, Path(folder) / "inputs.npz"))


def _written(feeds: Mapping[str, HostValue], file: Path) -> Path:
    import numpy as np

    arrays = {name: array for name, array in feeds.items() if isinstance(array, np.ndarray)}
    numbered = {f"input{number}": array for number, array in enumerate(arrays.values())}  # a name may be any text
    np.savez(file, allow_pickle=False, names=np.array(list(arrays), np.str_), **numbered)
    return file


def _measured(names: Sequence[str], path: str, threads: int, inputs: Path) -> dict[str, list[float]]:
    with progress_bar("measure") as show:
        systems: list[_System] = []
        try:
            for name in names:
                systems.append(_System(name, path, threads, inputs))
                show(0.0, name)
            found: dict[str, list[float]] = {system.name: [] for system in systems}
            for turn in range(ROUNDS):
                for place in range(len(systems)):
                    system = systems[(place + turn) % len(systems)]
                    found[system.name].append(system.seconds())
                show((turn + 1) / ROUNDS, "")
            return found
        finally:
            for system in systems:
                system.end()


class _System:
    """A stopped process, but for its turns."""

    def __init__(self, name: str, path: str, threads: int, inputs: Path) -> None:
        self.name = name
        command = [sys.executable, "-m", "dovetail.cli.peer", name, path, str(threads), str(inputs)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        if self._line() != "ready":
            raise DovetailError(f"{name} cannot run the model")
        self.calls = 1
        while (took := self._run()) < BLOCK_SECONDS:
            self.calls = max(2 * self.calls, round(1.2 * self.calls * BLOCK_SECONDS / max(took, 1e-6)))
        self._signal(signal.SIGSTOP)

    def seconds(self) -> float:
        """Of one call, in a turn of its own."""
        self._signal(signal.SIGCONT)
        try:
            return self._run() / self.calls
        finally:
            self._signal(signal.SIGSTOP)

    def end(self) -> None:
        self._signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def _run(self) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self.calls}\n")
        self.process.stdin.flush()
        line = self._line()
        if not line:
            raise DovetailError(f"{self.name} ended while it was measured")
        return float(line)

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def _signal(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
