"""The thread pool, driven by small native functions."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dovetail.base.errors import CallError
from dovetail.runtime import pool
from dovetail.runtime.jit import LoadedCode, compile_ir, load_object

FUNCTIONS = """
declare i32 @dt_pool_run(ptr, ptr, i32)
declare void @dt_barrier(i32)

; arg[thread] += n, without an atomic operation: a part run twice at once, or for the wrong thread, shows
define void @count(i32 %thread, i32 %n, ptr %arg) {
  %at = getelementptr i32, ptr %arg, i32 %thread
  %old = load i32, ptr %at
  %new = add i32 %old, %n
  store i32 %new, ptr %at
  ret void
}

; 1000 phases of: arg[thread] = phase; barrier; whoever sees another value than phase in any slot counts it in
; arg[n + thread]; barrier
define void @phases(i32 %thread, i32 %n, ptr %arg) {
entry:
  %mine = getelementptr i32, ptr %arg, i32 %thread
  %bad_index = add i32 %n, %thread
  %bad = getelementptr i32, ptr %arg, i32 %bad_index
  br label %phase
phase:
  %p = phi i32 [ 1, %entry ], [ %p1, %end ]
  store i32 %p, ptr %mine
  call void @dt_barrier(i32 %n)
  br label %look
look:
  %i = phi i32 [ 0, %phase ], [ %i1, %look ]
  %at = getelementptr i32, ptr %arg, i32 %i
  %seen = load i32, ptr %at
  %wrong = icmp ne i32 %seen, %p
  %one = zext i1 %wrong to i32
  %old = load i32, ptr %bad
  %new = add i32 %old, %one
  store i32 %new, ptr %bad
  %i1 = add i32 %i, 1
  %more = icmp slt i32 %i1, %n
  br i1 %more, label %look, label %end
end:
  call void @dt_barrier(i32 %n)
  %p1 = add i32 %p, 1
  %again = icmp sle i32 %p1, 1000
  br i1 %again, label %phase, label %out
out:
  ret void
}

; arg[thread] = status of a run inside the run
define void @nest(i32 %thread, i32 %n, ptr %arg) {
  %at = getelementptr i32, ptr %arg, i32 %thread
  %status = call i32 @dt_pool_run(ptr @count, ptr %arg, i32 2)
  store i32 %status, ptr %at
  ret void
}

define i32 @run_many(ptr %fn, ptr %arg, i32 %n, i32 %times) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i1, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum1, %loop ]
  %status = call i32 @dt_pool_run(ptr %fn, ptr %arg, i32 %n)
  %sum1 = or i32 %sum, %status
  %i1 = add i32 %i, 1
  %more = icmp slt i32 %i1, %times
  br i1 %more, label %loop, label %end
end:
  ret i32 %sum1
}
"""


@pytest.fixture(scope="module")
def code() -> LoadedCode:
    return load_object(compile_ir(FUNCTIONS), pool.symbols())


def run(code: LoadedCode, name: str, slots: int, threads: int, times: int = 1) -> list[int]:
    """The contents of a zeroed ``slots``-element array after ``times`` runs of the function called ``name``."""
    array = np.zeros(slots, np.int32)
    run_many = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)(
        code.address("run_many")
    )
    assert run_many(code.address(name), array.ctypes.data, threads, times) == 0
    return [int(n) for n in array]


@pytest.mark.parametrize("threads", [0, 1, 2, 3, 5, 8])
def test_every_index_is_run_exactly_once(code: LoadedCode, threads: int) -> None:
    assert run(code, "count", 9, threads) == [threads] * threads + [0] * (9 - threads)


def test_ten_thousand_runs_lose_no_part(code: LoadedCode) -> None:
    assert run(code, "count", 2, threads=2, times=10_000) == [20_000, 20_000]


def test_runs_of_changing_width_lose_no_part(code: LoadedCode) -> None:
    array = np.zeros(4, np.int32)
    for i in range(600):
        pool.run(code.address("count"), array.ctypes.data, 1 + i % 4)
    assert array.tolist() == [150 * (1 + 2 + 3 + 4), 150 * (2 + 3 + 4), 150 * (3 + 4), 150 * 4]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_no_thread_passes_a_barrier_before_all_have_come(code: LoadedCode, threads: int) -> None:
    assert run(code, "phases", 2 * threads, threads) == [1000] * threads + [0] * threads


def test_sleeping_workers_wake_up(code: LoadedCode) -> None:
    array = np.zeros(2, np.int32)
    for _ in range(40):
        time.sleep(20 * pool.SPIN_SECONDS)
        pool.run(code.address("count"), array.ctypes.data, 2)
    assert array.tolist() == [80, 80]


def test_callers_from_several_python_threads_take_turns(code: LoadedCode) -> None:
    arrays = [np.zeros(6, np.int32) for _ in range(4)]

    def call(array: np.ndarray[tuple[int], np.dtype[np.int32]], threads: int) -> None:
        for _ in range(5):
            pool.run(code.address("phases"), array.ctypes.data, threads)

    callers = [threading.Thread(target=call, args=(a, 2 + i % 2)) for i, a in enumerate(arrays)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
        assert not caller.is_alive()
    assert [a.tolist() for a in arrays] == [[1000, 1000, 0, 0, 0, 0], [1000, 1000, 1000, 0, 0, 0]] * 2


def test_a_run_inside_a_run_is_refused_by_every_thread(code: LoadedCode) -> None:
    assert run(code, "nest", 3, threads=3) == [-1, -1, -1]
    assert run(code, "count", 3, threads=3) == [3, 3, 3]


def test_more_threads_than_the_pool_holds_are_refused(code: LoadedCode) -> None:
    with pytest.raises(CallError) as raised:
        pool.run(code.address("count"), 0, pool.MAX_THREADS + 1)
    assert str(raised.value) == (
        "the kernel did not run: its threads could not be had\n"
        "  more than 512 threads were asked for\n"
        "  try: fewer threads (argument `threads`, or DOVETAIL_THREADS)"
    )


def test_a_refused_thread_is_reported_in_the_systems_words() -> None:
    with pytest.raises(CallError, match="the system refused to start a thread: Resource temporarily unavailable"):
        pool.check(11)


def test_workers_leave_signals_to_the_program(code: LoadedCode) -> None:
    run(code, "count", 2, threads=2)
    blocked = []
    for task in Path("/proc/self/task").iterdir():
        fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        blocked.append(int(fields["SigBlk"], 16) & 0b10 != 0)  # SIGINT
    assert sum(blocked) >= pool.workers() >= 1
    assert not all(blocked)


def test_the_child_of_a_fork_gets_threads_of_its_own(code: LoadedCode) -> None:
    assert run(code, "count", 2, threads=2) == [2, 2]
    assert exit_code_of_fork(code) == 0
    assert run(code, "count", 2, threads=2) == [2, 2]


def test_a_fork_during_another_threads_run_leaves_the_child_a_free_pool(code: LoadedCode) -> None:
    stop = threading.Event()

    def keep_busy() -> None:
        array = np.zeros(4, np.int32)
        while not stop.is_set():
            pool.run(code.address("phases"), array.ctypes.data, 2)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        assert [exit_code_of_fork(code) for _ in range(5)] == [0] * 5
    finally:
        stop.set()
        busy.join()


def exit_code_of_fork(code: LoadedCode) -> int:
    """0 when a forked child starts without workers, runs on two threads, and ends.

    A child that has not ended after a minute hangs, and its threads are shown. Ten seconds were too few: two thousand
    barriers, each of which may cost a time slice where ten threads want two cores.
    """
    child = os.fork()
    if child == 0:
        fresh = pool.workers() == 0
        right = run(code, "phases", 4, threads=2) == [1000, 1000, 0, 0]
        os._exit(0 if fresh and right and pool.workers() == 1 else 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    threads = "\n".join((task / "stat").read_text() for task in Path(f"/proc/{child}/task").iterdir())
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError(f"the child of a fork has not ended after a minute; its threads:\n{threads}")


SCRIPT = """
import sys, threading
from pathlib import Path
from dovetail.runtime import pool
from dovetail.runtime.cache import Cache
from dovetail.runtime.jit import compile_ir, load_object
cache = Cache(Path(sys.argv[1]))
code = load_object(compile_ir("define void @f(i32 %t, i32 %n, ptr %a) {\\n ret void\\n}"), pool.symbols("", cache))
def forever():
    while True:
        pool.run(code.address("f"), 0, 3)
threading.Thread(target=forever, daemon=True).start()
for _ in range(100):
    pool.run(code.address("f"), 0, 3)
print(cache.stats().hits)
"""


def test_the_process_ends_cleanly_while_workers_run_and_the_next_loads_the_pool_from_the_cache(tmp_path: Path) -> None:
    for hits in ("0\n", "1\n"):
        done = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, hits, "")
