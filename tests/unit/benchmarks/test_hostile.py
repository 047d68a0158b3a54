"""The harness of mutated files sees what it looks for: crashes, hangs, errors without a type, memory."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.hostile import worker
from benchmarks.hostile.bases import bases
from benchmarks.hostile.driver import Task, run
from benchmarks.hostile.worker import mutant, outcome
from dovetail.base.errors import ModelError
from dovetail.frontends.onnx.file import read

CRASHING = """
import os, sys, time
first, end, jobs = int(sys.argv[2]), int(sys.argv[4]), int(sys.argv[10])
for index in range(first, end, jobs):
    if index == 3:
        os.abort()
    if index == 5:
        time.sleep(60)
    print(index, "untyped ValueError" if index == 4 else "typed", flush=True)
print("memory 12345", flush=True)
"""


@pytest.fixture
def alarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker, "SECONDS", 0.05)
    monkeypatch.setattr(worker, "WAITING_SECONDS", 0.3)
    before = {number: signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGPROF)}
    worker.watch_time()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _typed(path: Path) -> None:
    raise ModelError("no")


class RawError(ModelError):
    """One that shows what a file says as it is."""

    def __str__(self) -> str:
        return "no node 'a\x1b[2Jb'"


def _raw(path: Path) -> None:
    raise RawError("no node")


def _untyped(path: Path) -> None:
    raise KeyError("oh")


def _waits(path: Path) -> None:
    time.sleep(5)


def _works(path: Path) -> None:
    while True:
        pass


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(
    ("take", "word"),
    [
        (lambda path: None, "accepted"),
        (_typed, "typed"),
        (_untyped, "untyped"),
        (_raw, "untyped"),
        (_waits, "hung"),
        (_works, "hung"),
    ],
)
def test_every_end_has_its_word(take: Callable[[Path], None], word: str, tmp_path: Path) -> None:
    assert outcome(take, b"", tmp_path).split()[0] == word


@pytest.mark.parametrize("jobs", [1, 2])
def test_crashes_and_hangs_are_counted_and_the_rest_goes_on(jobs: int, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(CRASHING)
    counts = run(Task(0, 10, 0, "read", jobs, silence_seconds=1.5, command=(sys.executable, str(script))))
    assert str(counts) == "typed=7 accepted=0 untyped=1 crashed=1 hung=1 n=10"
    assert sorted(line.split()[0] for line in counts.bad) == ["3", "4", "5"]
    assert counts.memory == 12345


def test_files_are_the_same_every_time_and_differ(tmp_path: Path) -> None:
    models = bases(tmp_path)
    files = [mutant(models, 0, index) for index in range(40)]
    assert files == [mutant(models, 0, index) for index in range(40)]
    assert len(set(files)) == 40


def test_what_mutations_begin_with_is_valid(tmp_path: Path) -> None:
    for base in bases(tmp_path):
        (tmp_path / "model.onnx").write_bytes(base.content)
        read(tmp_path / "model.onnx")
