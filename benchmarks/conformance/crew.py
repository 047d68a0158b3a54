"""Processes that run cases: a case that ends its process, or takes too long, is counted and the others go on."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from benchmarks.conformance.cases import Case

Outcome = dict[str, object]


def run_all(cases: Sequence[Case], evaluate: bool, jobs: int, seconds: float, done: Callable[[Outcome], None]) -> None:
    """Calls ``done`` for every case, as they end."""
    waiting: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in cases:
        waiting.put(case)
    threads = [threading.Thread(target=_attend, args=(waiting, evaluate, seconds, done)) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _attend(waiting: queue.SimpleQueue[Case], evaluate: bool, seconds: float, done: Callable[[Outcome], None]) -> None:
    worker: _Worker | None = None
    while True:
        try:
            case = waiting.get_nowait()
        except queue.Empty:
            break
        worker = worker or _Worker(evaluate)
        outcome = worker.ask(case, seconds)
        if outcome["outcome"] == "crashed":
            worker.close()
            worker = None
        done(outcome)
    if worker is not None:
        worker.close()


class _Worker:
    def __init__(self, evaluate: bool) -> None:
        command = [sys.executable, "-m", "benchmarks.conformance.worker", *(["--evaluate"] if evaluate else [])]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._errors: list[str] = []
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    def ask(self, case: Case, seconds: float) -> Outcome:
        folder = str(case.folder) if case.folder else None
        asked = {"name": case.name, "model": str(case.model), "folder": folder, "rtol": case.rtol, "atol": case.atol}
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        late = threading.Timer(seconds, process.kill)
        late.start()
        try:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        alive = late.is_alive()
        late.cancel()
        if line:
            found: Outcome = json.loads(line)
            return found
        process.wait()
        self._reader.join(5)
        said = "".join(self._errors).strip().splitlines()
        why = (
            said[-1]
            if said and alive
            else f"no answer after {seconds:g} s"
            if not alive
            else f"exit {process.returncode}"
        )
        return {"name": case.name, "outcome": "crashed", "why": why, "trace": said[-12:]}

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line)
            del self._errors[:-200]
