"""Programs compiled by several processes at once: LLVM is behind one lock in each of them.

A process is handed the name of a target and programs as text, and gives back parts as bytes; see ``worker``. Processes
are started where there is enough to do, and ended before this returns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

from dovetail.base import errors
from dovetail.base.errors import CodegenError, DovetailError
from dovetail.ir.program import Program
from dovetail.model.parts import Part, from_bytes, part_of
from dovetail.model.worker import receive, send
from dovetail.runtime.cache import Cache
from dovetail.targets.model import Target

ENOUGH = 4
"""So many programs are worth the second that a process takes to start."""
_LAST_WORDS = 2000


@dataclass(frozen=True, slots=True)
class Setting:
    """For what programs are compiled. ``name`` finds the target again; empty where only this process can."""

    target: Target
    name: str
    threads: int
    store: Cache | None


def compiled_parts(programs: Mapping[str, Program], setting: Setting, jobs: int | None) -> Iterator[tuple[str, Part]]:
    """Each program's part as it is done, by the key that it has in ``programs``. Long ones are begun first."""
    with closing(parts_or_errors(programs, setting, jobs)) as answers:
        for key, found in answers:
            if isinstance(found, DovetailError):
                raise found
            yield key, found


def parts_or_errors(
    programs: Mapping[str, Program], setting: Setting, jobs: int | None
) -> Generator[tuple[str, Part | DovetailError], None, None]:
    """``compiled_parts`` that goes on where a program cannot be compiled, and says why."""
    order = sorted(programs, key=lambda key: (-_length(programs[key]), key))
    count = min(jobs if jobs is not None else len(os.sched_getaffinity(0)), len(order))
    if count < 2 or len(order) < ENOUGH or not setting.name or not sys.executable:
        for key in order:
            yield key, _part_or_error(programs[key], setting)
        return
    yield from _Crew(setting, count, [(key, str(programs[key])) for key in order]).answers()


def _part_or_error(program: Program, setting: Setting) -> Part | DovetailError:
    try:
        return part_of(program, setting.target, setting.threads, setting.store)
    except DovetailError as error:
        return error


def _length(program: Program) -> int:
    """Compiling takes about as long as there is to say."""
    return len(str(program))


class _Crew:
    """Processes, each with a thread here that hands it the next program when it is done with one."""

    def __init__(self, setting: Setting, count: int, work: Sequence[tuple[str, str]]) -> None:
        self._work, self._setting, self._count = work, setting, count
        self._waiting: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self._answers: SimpleQueue[tuple[str, Part | DovetailError]] = SimpleQueue()
        for item in work:
            self._waiting.put(item)

    def answers(self) -> Generator[tuple[str, Part | DovetailError], None, None]:
        """In the order in which they are done; nothing is left running, however this ends."""
        processes: list[_Process] = []
        threads: list[threading.Thread] = []
        try:
            for _ in range(self._count):
                processes.append(_Process(self._setting))
                threads.append(threading.Thread(target=self._attend, args=(processes[-1],), daemon=True))
                threads[-1].start()
            for _ in self._work:
                yield self._answers.get()
        finally:
            self._stop(processes, threads)

    def _attend(self, process: _Process) -> None:
        while True:
            try:
                key, text = self._waiting.get_nowait()
            except Empty:
                return
            self._answers.put((key, process.ask(text)))

    def _stop(self, processes: Sequence[_Process], threads: Sequence[threading.Thread]) -> None:
        while not self._waiting.empty():
            self._waiting.get()
        for process in processes:
            process.kill()
        for thread in threads:
            thread.join()
        for process in processes:
            process.close()


class _Process:
    """One child, spoken to over its pipes."""

    def __init__(self, setting: Setting) -> None:
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by ``close``
        command = [sys.executable, "-P", "-m", "dovetail.model.worker"]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._words, env=_environment())
        hello = {
            "target": setting.name,
            "digest": setting.target.digest,
            "threads": setting.threads,
            "cache": setting.store is not None,
        }
        self._exchange(json.dumps(hello).encode(), answered=False)

    def ask(self, text: str) -> Part | DovetailError:
        """The part of a program, or what went wrong."""
        answer = self._exchange(text.encode())
        if answer is None:
            return self._gone()
        head, _, rest = answer.partition(b"\n")
        found = json.loads(head)
        if "error" in found:
            return _error(str(found["error"]), found["parts"])
        return from_bytes(rest) or CodegenError("a process that compiles sent something that is no part")

    def kill(self) -> None:
        """Whatever it is doing: it writes nothing that cannot be left half done."""
        self._child.kill()
        self._child.wait()

    def close(self) -> None:
        for stream in (self._child.stdin, self._child.stdout, self._words):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()

    def _exchange(self, message: bytes, answered: bool = True) -> bytes | None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            send(self._child.stdin, message)
            return receive(self._child.stdout) if answered else None
        except OSError:
            return None

    def _gone(self) -> CodegenError:
        status = self._child.wait()
        self._words.seek(0)
        last = self._words.read()[-_LAST_WORDS:].decode(errors="replace").strip()
        return CodegenError(
            f"a process that compiles has ended with status {status}",
            why=last or None,
            hint="jobs=1 compiles in this process; a status of -9 often means that memory ran out",
        )


def _environment() -> dict[str, str]:
    """This process's, where the package that runs here is found first."""
    here = str(Path(__file__).parents[2])
    before = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (here, before)))}


def _error(name: str, parts: Sequence[str | None]) -> DovetailError:
    """The error that the other process met, of the same class where that takes the usual parts."""
    what, where, why, hint = parts
    kind = getattr(errors, name, DovetailError)
    if not isinstance(kind, type) or not issubclass(kind, DovetailError) or kind.__init__ is not DovetailError.__init__:
        kind = DovetailError
    return kind(what or "", where=where, why=why, hint=hint)
