"""The threads that kernels run on: native, started on first use, shared by all kernels of the process.

The pool itself is ``pool.ll``, what starts a run from plain arrays ``call.ll``, the run of a whole model ``model.ll``;
no Python runs in its threads and none of them holds the interpreter's lock. A kernel calls it by name; ``symbols()``
says where those names are:

    i32  dt_pool_run(ptr fn, ptr arg, i32 n)   fn(i32 thread, i32 n, ptr arg) on n threads; 0 when all are done
    void dt_barrier(i32 n)                     inside fn: wait for all n threads of this run

Every thread of a run must pass the same barriers. Runs from several Python threads queue up; a run inside a run is
refused. The child of a fork starts with a pool of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from types import MappingProxyType

from dovetail.base.errors import CallError
from dovetail.runtime.cache import Cache
from dovetail.runtime.jit import LoadedCode, compile_ir, compiler_identity, load_object

MAX_THREADS = 512  # of pool.ll: the caller and 511 workers
SPIN_SECONDS = 100e-6  # longer than the gap between two kernel calls from Python, far shorter than a time slice

_REFUSALS = {
    -1: "it was started from inside another run on the same threads",
    -2: f"more than {MAX_THREADS} threads were asked for",
}


def symbols(relax: str = "", cache: Cache | None = None) -> Mapping[str, int]:
    """Name -> address of what kernels may call. The pool is compiled, or loaded from ``cache``, by the first caller.

    ``relax`` is the machine's instruction for a waiting loop, in its assembler's words; the first caller's counts.
    """
    return _pool(relax, cache).symbols


def run(fn: int, arg: int, threads: int) -> None:
    """Runs the native ``fn(i32 thread, i32 threads, ptr arg)`` at address ``fn`` on ``threads`` threads."""
    check(_pool().run(fn, arg, threads))


def plain_call() -> Callable[[ctypes.c_void_p], int]:
    """``dt_call`` of call.ll."""
    return _pool().plain_call


def model_call() -> Callable[[ctypes.c_void_p], int]:
    """``dt_model_call`` of model.ll."""
    return _pool().model_call


def model_run() -> Callable[[ctypes.c_void_p], int]:
    """``dt_model_run`` of model.ll."""
    return _pool().model_run


def workers() -> int:
    """How many threads the pool holds now, callers not counted."""
    return int(_pool().workers())


def check(status: int) -> None:
    """Raises when ``status``, as returned by ``dt_pool_run``, says that the run was refused."""
    if status:
        raise CallError(
            "the kernel did not run: its threads could not be had",
            why=_REFUSALS.get(status) or f"the system refused to start a thread: {os.strerror(status)}",
            hint="fewer threads (argument `threads`, or DOVETAIL_THREADS)",
        )


class _Pool:
    """The compiled pool and its entry points."""

    def __init__(self, relax: str, cache: Cache | None) -> None:
        code = load_object(object_code(relax, cache), {})
        self.symbols: Mapping[str, int] = MappingProxyType({n: code.address(n) for n in ("dt_pool_run", "dt_barrier")})
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)(
            code.address("dt_pool_run")
        )
        self.plain_call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address("dt_call"))
        self.model_call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address("dt_model_call"))
        self.model_run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address("dt_model_run"))
        self.workers = ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("dt_pool_workers"))
        self._reset = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32)(code.address("dt_pool_reset"))
        self._spins = _spins_per(SPIN_SECONDS, code)
        code.keep_for_ever()
        self.reset()

    def reset(self) -> None:
        """No workers, all locks free. Only while no other thread can be in the pool."""
        self._reset(int(signal.SIG_SETMASK), self._spins)


_the_pool: _Pool | None = None
_making = threading.Lock()


def _pool(relax: str = "", cache: Cache | None = None) -> _Pool:
    global _the_pool
    if _the_pool is None:
        with _making:
            if _the_pool is None:
                _the_pool = _Pool(relax, cache)
    return _the_pool


def _after_fork_in_child() -> None:
    """A fork copies the pool's memory but none of its threads; only the forking thread exists here."""
    global _making
    _making = threading.Lock()
    if _the_pool is not None:
        _the_pool.reset()


os.register_at_fork(after_in_child=_after_fork_in_child)


def object_code(relax: str, cache: Cache | None) -> bytes:
    """The pool as an object file of its own."""
    text = _module_text(relax)
    key = {"text": text, **compiler_identity()}
    known = cache.get("runtime", key) if cache else None
    if known is not None:
        return known
    made = compile_ir(text)
    if cache:
        cache.put("runtime", key, made)
    return made


def _module_text(relax: str) -> str:
    escaped = "".join(c if c.isalnum() or c in " ,.#" else f"\\{ord(c):02X}" for c in relax)
    hint = (
        f'define internal void @relax() {{\n  call void asm sideeffect "{escaped}", "~{{memory}}"()\n  ret void\n}}\n'
    )
    own, names = files(__package__), ("pool.ll", "call.ll", "model.ll")
    return "".join(own.joinpath(name).read_text(encoding="utf-8") for name in names) + hint


def _spins_per(seconds: float, code: LoadedCode) -> int:
    """How many turns of the waiting loop take ``seconds``: the fastest of a few trials, the others were disturbed."""
    turns, trials = 500, 5
    spin = ctypes.CFUNCTYPE(None, ctypes.c_int32)(code.address("dt_pool_spin"))
    fastest = min(_timed(spin, turns) for _ in range(trials))
    return max(1, min(int(turns * seconds / fastest), 2**31 - 1))


def _timed(spin: Callable[[int], None], turns: int) -> float:
    start = time.perf_counter()
    spin(turns)
    return time.perf_counter() - start
