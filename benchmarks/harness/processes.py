"""The parent's side of one child process: started fresh, stopped unless asked, restarted after a crash."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.harness.child import Message
from benchmarks.problems import Task

ROOT = Path(__file__).parents[2]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "DOVETAIL_THREADS")
ANSWER_SECONDS = 1200.0
LAST_WORDS = 160


class Crashed(Exception):
    """The child ended, or gave no answer in time; the message is its last words."""


class Child:
    """One system in a process of its own. Use as a context manager; between requests the process is stopped."""

    def __init__(self, system: str, threads: int) -> None:
        self.system, self._threads = system, threads
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.version = self.missing = ""

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()
        self._errors.close()

    def prepare(self, problem: Task) -> Message:
        """Build ``problem``; starts the child again if it crashed on an earlier one."""
        if self._process is None:
            self._start()
        if self.missing:
            raise Crashed(self.missing)
        return self._ask({"do": "prepare", "problem": problem.to_json()})

    def time(self) -> Message:
        return self._ask({"do": "time"})

    def release(self) -> None:
        """Let the child free the problem; one that crashes over it has freed it as well."""
        if self._process is not None:
            with contextlib.suppress(Crashed):
                self._ask({"do": "release"})

    def _start(self) -> None:
        environment = dict(os.environ, **dict.fromkeys(THREAD_VARIABLES, str(self._threads)))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "benchmarks.harness.child", self.system, str(self._threads)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, env=environment)
        try:
            hello = self._read()
        except Crashed as crash:
            hello = {"missing": str(crash)}
        self.version, self.missing = str(hello.get("version", "")), str(hello.get("missing", ""))
        if self.missing:
            self._end()
        else:
            self._signal(signal.SIGSTOP)

    def _ask(self, request: Message) -> Message:
        """Wake the child, ask, read the answer, stop it again."""
        assert self._process is not None and self._process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Crashed(self._end()) from None
        answer = self._read()
        self._signal(signal.SIGSTOP)
        return answer

    def _read(self) -> Message:
        assert self._process is not None and self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(ANSWER_SECONDS):
                raise Crashed(f"no answer in {ANSWER_SECONDS:.0f} s; {self._end()}".removesuffix("; "))
        line = self._process.stdout.readline()
        if not line:
            raise Crashed(self._end())
        answer: Message = json.loads(line)
        return answer

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            os.kill(self._process.pid, number)
            if number is signal.SIGSTOP:  # on a busy machine a signal takes a while to arrive
                os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _end(self) -> str:
        """Kill the child, if it is there; return its last words."""
        if self._process is None:
            return ""
        self._process.kill()
        code = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._process = None
        return self._last_words() or f"ended with code {code}"

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        self._errors.truncate(0)
        self._errors.seek(0)
        return next((line.strip()[:LAST_WORDS] for line in reversed(lines) if line.strip()), "")
