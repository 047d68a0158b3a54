"""Starts workers, watches them, and counts what became of each file."""

from __future__ import annotations

import selectors
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

SILENCE_SECONDS = 60.0
"""How long a worker may say nothing: loading, or a hang that its own alarm cannot end."""
KINDS = ("typed", "accepted", "untyped", "crashed", "hung")


@dataclass(slots=True)
class Counts:
    """How many files ended how; ``memory`` is the most any worker took."""

    outcomes: Counter[str] = field(default_factory=Counter)
    memory: int = 0
    bad: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{' '.join(f'{kind}={self.outcomes[kind]}' for kind in KINDS)} n={self.outcomes.total()}"


@dataclass(slots=True)
class _Worker:
    """One child and the file it is at."""

    process: subprocess.Popen[str]
    at: int
    heard: float
    killed: bool = False

    @property
    def lines(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout


def run(
    count: int, seed: int, stage: str, jobs: int, tell: Callable[[str], None] = lambda line: None, start: int = 0
) -> Counts:
    """Take ``count`` files from ``start`` on through ``stage`` in ``jobs`` processes; ``tell`` hears of bad ends."""
    counts = Counts()
    with selectors.DefaultSelector() as watch:
        for first in range(start, start + min(jobs, count)):
            _start(watch, first, start + count, seed, stage, jobs)
        while watch.get_map():
            for key, _ in watch.select(timeout=1.0):
                worker: _Worker = key.data
                line = worker.lines.readline()
                if line:
                    _hear(worker, line.strip(), counts, jobs, tell)
                else:
                    _ended(watch, worker, counts, (start + count, seed, stage, jobs), tell)
            for key in list(watch.get_map().values()):
                if time.monotonic() - key.data.heard > SILENCE_SECONDS:
                    key.data.killed = True
                    key.data.process.kill()
    return counts


def _start(watch: selectors.BaseSelector, first: int, end: int, seed: int, stage: str, jobs: int) -> None:
    command = [sys.executable, "-m", "benchmarks.hostile", "--worker", str(first), "--count", str(end)]
    command += ["--seed", str(seed), "--stage", stage, "--jobs", str(jobs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1)
    worker = _Worker(process, first, time.monotonic())
    watch.register(worker.lines, selectors.EVENT_READ, worker)


def _hear(worker: _Worker, line: str, counts: Counts, jobs: int, tell: Callable[[str], None]) -> None:
    worker.heard = time.monotonic()
    index, _, rest = line.partition(" ")
    if index == "memory":
        counts.memory = max(counts.memory, int(rest))
        return
    kind = rest.partition(" ")[0]
    _count(counts, kind, line, tell)
    worker.at = int(index) + jobs


def _ended(
    watch: selectors.BaseSelector,
    worker: _Worker,
    counts: Counts,
    given: tuple[int, int, str, int],
    tell: Callable[[str], None],
) -> None:
    """A worker that ended before its last file was killed by the one it was at; another goes on behind it."""
    watch.unregister(worker.lines)
    status = worker.process.wait()
    worker.lines.close()
    end, seed, stage, jobs = given
    if worker.at < end:
        kind = "hung" if worker.killed else "crashed"
        _count(counts, kind, f"{worker.at} {kind} status {status}", tell)
        if worker.at + jobs < end:
            _start(watch, worker.at + jobs, end, seed, stage, jobs)


def _count(counts: Counts, kind: str, line: str, tell: Callable[[str], None]) -> None:
    counts.outcomes[kind] += 1
    if kind not in ("typed", "accepted"):
        counts.bad.append(line)
        tell(line)
