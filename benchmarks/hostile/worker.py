"""A child process that reads mutated files one after another, under bounds on memory and time.

It says one line for each file, so that whoever started it knows which one killed it.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from benchmarks.hostile.bases import Base, bases
from benchmarks.hostile.mutate_bytes import mutate_bytes
from benchmarks.hostile.mutate_structure import mutate_structure
from benchmarks.hostile.stages import STAGES
from dovetail.base.errors import DovetailError

SECONDS = 2.0
"""Of work on one file, so that a busy machine is no hang; one that waits without working is given longer."""
WAITING_SECONDS = 10.0
MEMORY_BYTES = 1 << 30
LONGEST_MESSAGE = 4000
SMALL_BYTES = 1 << 20
"""What a file is cut to: mutations double parts."""


class Hang(BaseException):
    """A file took longer than it may."""


def work(first: int, end: int, step: int, seed: int, stage: str, say: Callable[[str], None]) -> None:
    """Files ``first``, ``first + step``, ... before ``end``; ``say`` gets "<index> <outcome> <detail>" for each."""
    watch_time()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        models = _prepared(directory)
        take = STAGES[stage]
        outcome(take, mutant(models, seed, 0), directory)  # what loads on first use is no part of a file's memory
        _bound_memory()
        for index in range(first, end, step):
            say(f"{index} {outcome(take, mutant(models, seed, index), directory)}")
        say(f"memory {_most_memory()}")


def watch_time() -> None:
    """From now on a file that takes too long ends in Hang."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.signal(signal.SIGPROF, _alarm)


def one(index: int, seed: int, stage: str) -> None:
    """A single file without bounds; whatever it raises goes on."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        path = directory / "model.onnx"
        path.write_bytes(mutant(_prepared(directory), seed, index))
        STAGES[stage](path)


def mutant(models: tuple[Base, ...], seed: int, index: int) -> bytes:
    """File ``index`` of all that ``seed`` gives: even ones have damaged bytes, odd ones damaged meaning."""
    rng = random.Random(f"{seed} {index}")
    own = [base for base in models if not base.name.startswith("test_")]
    base = rng.choice(own if rng.random() < 0.4 else models)
    mutate = mutate_structure if index % 2 else mutate_bytes
    return mutate(base.content, rng.choice(models).content, rng)[:SMALL_BYTES]


def outcome(take: Callable[[Path], None], content: bytes, directory: Path) -> str:
    """What became of one file, in a word, and a detail where that is bad."""
    path = directory / "model.onnx"
    path.write_bytes(content)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WAITING_SECONDS)
    try:
        take(path)
    except DovetailError as refusal:
        return "typed" if _fit_to_print(str(refusal)) else f"untyped words of the file in {str(refusal)[:200]!r}"
    except Hang:
        return "hung"
    except BaseException as problem:  # noqa: BLE001 - what escapes is what is looked for
        last = traceback.extract_tb(problem.__traceback__)[-1]
        return f"untyped {type(problem).__name__}: {str(problem)[:200]!r} at {Path(last.filename).name}:{last.lineno}"
    else:
        return "accepted"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _fit_to_print(message: str) -> bool:
    """Nothing in it steers a terminal, and it is no flood."""
    return len(message) <= LONGEST_MESSAGE and all(line.isprintable() for line in message.split("\n"))


def _prepared(directory: Path) -> tuple[Base, ...]:
    """The models, and things in their directory that no tensor may be read from."""
    models = bases(directory)
    (directory / "link").symlink_to("weights.bin")
    os.mkfifo(directory / "pipe")
    return models


def _most_memory() -> int:
    """Bytes; what the system counts for a process by itself may be its parent's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def _alarm(number: int, frame: FrameType | None) -> None:
    raise Hang
