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


@dataclass(frozen=True, slots=True)
class Task:
    """Files ``start`` to ``end`` of ``seed`` through ``stage``, in ``jobs`` processes that ``command`` starts."""

    start: int
    end: int
    seed: int
    stage: str
    jobs: int
    silence_seconds: float = SILENCE_SECONDS
    command: tuple[str, ...] = (sys.executable, "-m", "benchmarks.hostile")

    def arguments(self, first: int) -> list[str]:
        """What starts a worker at file ``first``."""
        words = (
            "--worker",
            first,
            "--count",
            self.end,
            "--seed",
            self.seed,
            "--stage",
            self.stage,
            "--jobs",
            self.jobs,
        )
        return [*self.command, *map(str, words)]


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


def run(task: Task, tell: Callable[[str], None] = lambda line: None) -> Counts:
    """What became of each file; ``tell`` hears of those that ended badly, at once."""
    counts = Counts()
    with selectors.DefaultSelector() as watch:
        for first in range(task.start, min(task.start + task.jobs, task.end)):
            _start(watch, first, task)
        while watch.get_map():
            for key, _ in watch.select(timeout=1.0):
                worker: _Worker = key.data
                line = worker.lines.readline()
                if line:
                    _hear(worker, line.strip(), counts, task.jobs, tell)
                else:
                    _ended(watch, worker, counts, task, tell)
            for key in list(watch.get_map().values()):
                if time.monotonic() - key.data.heard > task.silence_seconds:
                    key.data.killed = True
                    key.data.process.kill()
    return counts


def _start(watch: selectors.BaseSelector, first: int, task: Task) -> None:
    process = subprocess.Popen(
        task.arguments(first), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
    )
    worker = _Worker(process, first, time.monotonic())
    watch.register(worker.lines, selectors.EVENT_READ, worker)


def _hear(worker: _Worker, line: str, counts: Counts, jobs: int, tell: Callable[[str], None]) -> None:
    worker.heard = time.monotonic()
    index, _, rest = line.partition(" ")
    if index == "memory":
        counts.memory = max(counts.memory, int(rest))
        return
    _count(counts, rest.partition(" ")[0], line, tell)
    worker.at = int(index) + jobs


def _ended(
    watch: selectors.BaseSelector, worker: _Worker, counts: Counts, task: Task, tell: Callable[[str], None]
) -> None:
    """A worker that ended before its last file was killed by the one it was at; another goes on behind it."""
    watch.unregister(worker.lines)
    status = worker.process.wait()
    worker.lines.close()
    if worker.at < task.end:
        kind = "hung" if worker.killed else "crashed"
        _count(counts, kind, f"{worker.at} {kind} status {status}", tell)
        if worker.at + task.jobs < task.end:
            _start(watch, worker.at + task.jobs, task)


def _count(counts: Counts, kind: str, line: str, tell: Callable[[str], None]) -> None:
    counts.outcomes[kind] += 1
    if kind not in ("typed", "accepted"):
        counts.bad.append(line)
        tell(line)
