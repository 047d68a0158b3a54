"""The child process of one system: reads one request a line, answers one line.

    {"do": "prepare", "problem": {...}}  ->  {"status": "exact" | "close" | "wrong" | "unsupported", "how": text}
    {"do": "time"}                       ->  {"seconds": per call}   or, of the machine's limits, {"flops", "bytes"}
    {"do": "release"}                    ->  {}
    end of input                             the process ends

The first line it writes says what it is: {"version": text}, or {"missing": text} where the package is not installed.
Failures are not caught: they end the process, and its last words on stderr are the message.
"""

import ctypes
import gc
import importlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TextIO, TypeVar, cast

from benchmarks.harness.limits import Limits
from benchmarks.model_systems import BOUND, MODEL_MODULES, ModelModule, ModelRun, worst_error
from benchmarks.problems import check, operands, problem_from_json
from benchmarks.systems import MODULES, Candidate, SystemModule, Unsupported
from benchmarks.zoo import model_from_json

LIMITS = "limits"
BLOCK_SECONDS = 0.02
WARM_UP_SECONDS = 0.004
LONG_CALL_SECONDS = 0.2
TRIALS = 3
PR_SET_PDEATHSIG = 1

Message = dict[str, object]
Timed = TypeVar("Timed", Candidate, ModelRun)


class Worker(Protocol):
    """What answers the requests."""

    def prepare(self, problem: Message) -> Message: ...
    def time(self) -> Message: ...
    def release(self) -> Message: ...


def main(system: str, threads: int) -> None:
    """Serve requests on stdin until it ends; stdout belongs to the protocol, so libraries print to stderr."""
    _end_with_parent()
    out = _claim_stdout()
    try:
        worker, version = _open_worker(system, threads)
    except ImportError as error:
        _send(out, {"missing": str(error)})
        return
    _send(out, {"version": version})
    for request in _requests():
        _send(out, _answer(worker, request))


def _answer(worker: Worker, request: Message) -> Message:
    if request["do"] == "prepare":
        return worker.prepare(cast(Message, request["problem"]))
    if request["do"] == "time":
        return worker.time()
    assert request["do"] == "release", request
    return worker.release()


def _open_worker(system: str, threads: int) -> tuple[Worker, str]:
    if system == LIMITS:
        return LimitsWorker(threads), "measured here"
    if system in MODEL_MODULES:
        models = cast(ModelModule, importlib.import_module(MODEL_MODULES[system]))
        return ModelWorker(models, threads), models.VERSION
    module = cast(SystemModule, importlib.import_module(MODULES[system]))
    return SystemWorker(module, threads), module.VERSION


class TimedWorker:
    """Times what was chosen, until it is released."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._chosen: Candidate | ModelRun | None = None
        self._seconds = 0.0

    def time(self) -> Message:
        assert self._chosen is not None
        _warm_up(self._chosen.run, self._seconds)
        self._seconds = _block(self._chosen.run, self._seconds)
        return {"seconds": self._seconds}

    def release(self) -> Message:
        """Give the memory of the problem back to the system before the next one is built elsewhere."""
        self._chosen = None
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
        return {}


class SystemWorker(TimedWorker):
    """Runs one problem at a time by the fastest way the system has."""

    def __init__(self, module: SystemModule, threads: int) -> None:
        super().__init__(threads)
        self._module = module

    def prepare(self, problem: Message) -> Message:
        """Build the problem, choose among its candidates, check the result."""
        parsed = problem_from_json(problem)
        inputs = operands(parsed.shape)
        try:
            candidates = self._module.prepare(parsed, inputs, self._threads)
        except Unsupported as reason:
            return {"status": "unsupported", "how": str(reason)}
        chosen, self._seconds = _fastest(candidates)
        verdict = check(parsed.shape, inputs, chosen.result())
        self._chosen = chosen
        if not verdict.accepted(self._module.EXACT):
            return {"status": "wrong", "how": f"{chosen.name}: off by {verdict.error:g} of {verdict.scale:g}"}
        return {"status": "exact" if verdict.error == 0 else "close", "how": chosen.name}


class ModelWorker(TimedWorker):
    """Runs one model at a time by the fastest way the system has, checked against a float64 run."""

    def __init__(self, module: ModelModule, threads: int) -> None:
        super().__init__(threads)
        self._module = module

    def prepare(self, problem: Message) -> Message:
        model = model_from_json(problem)
        try:
            runs = self._module.prepare(model, self._threads)
        except Unsupported as reason:
            return {"status": "unsupported", "how": str(reason)}
        chosen, self._seconds = _fastest(runs)
        error = worst_error(chosen.results(), model.reference())
        self._chosen = chosen
        return {"status": "close" if error <= BOUND else "wrong", "how": f"{chosen.name}, off by {error:.1e}"}


class LimitsWorker:
    """Measures the machine; problems do not matter to it."""

    def __init__(self, threads: int) -> None:
        self._limits = Limits(threads)

    def prepare(self, problem: Message) -> Message:
        return {"status": "exact", "how": ""}

    def time(self) -> Message:
        flops, read_bytes = self._limits.measure()
        return {"flops": flops, "bytes": read_bytes}

    def release(self) -> Message:
        return {}


def _fastest(candidates: tuple[Timed, ...]) -> tuple[Timed, float]:
    """The candidate with the least time of a call in TRIALS blocks, and that time."""
    timed = []
    for candidate in candidates:
        begun = time.perf_counter()
        candidate.run()
        seconds = time.perf_counter() - begun
        if len(candidates) > 1 or seconds < LONG_CALL_SECONDS:
            trials = 1 if seconds > LONG_CALL_SECONDS else TRIALS
            seconds = min(_block(candidate.run, seconds) for _ in range(trials))
        timed.append((seconds, candidate))
    best = min(timed, key=lambda pair: pair[0])
    return best[1], best[0]


def _block(run: Callable[[], object], estimate: float) -> float:
    """Seconds per call over a block of at least BLOCK_SECONDS."""
    calls = _calls_for(BLOCK_SECONDS, estimate)
    while True:
        begun = time.perf_counter()
        for _ in range(calls):
            run()
        elapsed = time.perf_counter() - begun
        if elapsed >= BLOCK_SECONDS:
            return elapsed / calls
        calls = max(calls + 1, _calls_for(1.1 * BLOCK_SECONDS, elapsed / calls))


def _warm_up(run: Callable[[], object], estimate: float) -> None:
    """Wake the threads and fill the caches after the other systems had them."""
    if estimate < LONG_CALL_SECONDS:
        for _ in range(_calls_for(WARM_UP_SECONDS, estimate)):
            run()


def _calls_for(seconds: float, estimate: float) -> int:
    return max(1, math.ceil(seconds / max(estimate, 1e-8)))


def _requests() -> Iterator[Message]:
    for line in sys.stdin:
        yield json.loads(line)


def _send(out: TextIO, message: Message) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _claim_stdout() -> TextIO:
    """The real stdout for the protocol; file descriptor 1 goes to stderr for everyone else."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _end_with_parent() -> None:
    """A stopped child would outlive a killed parent for ever: let the kernel end it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
