"""Units that help each other: every iteration runs once a round, however the work falls out."""

import ctypes
import re

import numpy as np
import pytest

from dovetail.codegen.shares import MOST_SHARES, STRETCH, TAKE, status_bytes
from dovetail.runtime import pool
from dovetail.runtime.jit import LoadedCode, compile_ir, load_object

# arg: status, extent, rounds, share, counts, 1 where odd rounds go backward; unit 0 is slow, so that others help it
_DRIVER = (
    TAKE
    + f"""
declare void @dt_barrier(i32)

define void @drive(i32 %u, i32 %n, ptr %arg) {{
entry:
  %unit = zext i32 %u to i64
  %units = zext i32 %n to i64
  %status = load ptr, ptr %arg
  %extent.at = getelementptr i64, ptr %arg, i64 1
  %extent = load i64, ptr %extent.at
  %rounds.at = getelementptr i64, ptr %arg, i64 2
  %rounds = load i64, ptr %rounds.at
  %share.at = getelementptr i64, ptr %arg, i64 3
  %share = load i64, ptr %share.at
  %counts.at = getelementptr i64, ptr %arg, i64 4
  %counts = load ptr, ptr %counts.at
  %turning.at = getelementptr i64, ptr %arg, i64 5
  %turning = load i64, ptr %turning.at
  %slow = icmp eq i64 %unit, 0
  %pause = select i1 %slow, i64 20000, i64 1
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %r.next, %over ]
  %back = and i64 %r, %turning
  br label %ask
ask:
  %last = phi i64 [ -1, %round ], [ %begin, %done ]
  %got = call {STRETCH} @take(ptr %status, i64 %share, i64 %unit, i64 %units, i64 %extent, i64 %back, i64 %last)
  %begin = extractvalue {STRETCH} %got, 0
  %end = extractvalue {STRETCH} %got, 1
  %some = icmp sge i64 %begin, 0
  br i1 %some, label %work, label %over
work:
  %i = phi i64 [ %begin, %ask ], [ %i.next, %counted ]
  br label %wait
wait:
  %w = phi i64 [ 0, %work ], [ %w.next, %wait ]
  call void asm sideeffect "", ""()
  %w.next = add i64 %w, 1
  %waiting = icmp ult i64 %w.next, %pause
  br i1 %waiting, label %wait, label %counted
counted:
  %at = getelementptr i64, ptr %counts, i64 %i
  %old = atomicrmw add ptr %at, i64 1 monotonic
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %end
  br i1 %more, label %work, label %done
done:
  br label %ask
over:
  call void @dt_barrier(i32 %n)
  %r.next = add i64 %r, 1
  %again = icmp ult i64 %r.next, %rounds
  br i1 %again, label %round, label %out
out:
  ret void
}}

define i64 @begin(ptr %status, i64 %unit, i64 %units, i64 %extent, i64 %back, i64 %last) {{
  %got = call {STRETCH} @take(ptr %status, i64 0, i64 %unit, i64 %units, i64 %extent, i64 %back, i64 %last)
  %begin = extractvalue {STRETCH} %got, 0
  ret i64 %begin
}}
"""
)


@pytest.fixture(scope="module")
def driver() -> LoadedCode:
    return load_object(compile_ir(_DRIVER), pool.symbols())


@pytest.mark.parametrize("turning", [0, 1])
@pytest.mark.parametrize("units", [1, 2, 3, 4])
@pytest.mark.parametrize("extent", [0, 1, 2, 5, 31, 64, 65, 1000])
def test_every_iteration_runs_once_a_round(driver: LoadedCode, units: int, extent: int, turning: int) -> None:
    drive = driver.address("drive")
    counts = np.zeros(max(1, extent), np.int64)
    status = np.zeros(status_bytes(units) // 8, np.int64)
    rounds = 3
    words = np.array([status.ctypes.data, extent, rounds, MOST_SHARES - 1, counts.ctypes.data, turning], np.int64)
    if units == 1:
        ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)(drive)(0, 1, words.ctypes.data)
    else:
        pool.run(drive, words.ctypes.data, units)
    assert counts[:extent].tolist() == [rounds] * extent
    assert status[:2].tolist() == [0, 0]


def test_one_unit_touches_nothing_behind_the_status_words() -> None:
    alone = re.search(r"alone:\n(.*?)\nshared:", TAKE, re.DOTALL)
    assert alone is not None and "ptr" not in alone.group(1)
    assert status_bytes(1) == 64


def test_backward_each_unit_begins_at_the_end_of_its_own_part(driver: LoadedCode) -> None:
    def begins(unit: int, units: int, back: int, count: int) -> list[int]:
        status = np.zeros(status_bytes(units) // 8, np.int64)
        found = [-1]
        for _ in range(count):
            found.append(begin(status.ctypes.data, unit, units, 64, back, found[-1]))
        return found[1:]

    words = (ctypes.c_void_p, *[ctypes.c_int64] * 5)
    begin = ctypes.CFUNCTYPE(ctypes.c_int64, *words)(driver.address("begin"))
    assert begins(0, 2, 0, 33) == list(range(33))
    assert begins(0, 2, 1, 33) == [*range(31, -1, -1), 63]
    assert begins(1, 2, 1, 33) == [*range(63, 31, -1), 31]
    assert begins(0, 1, 0, 2) == [0, -1]
    assert begins(0, 1, 1, 65) == [*range(63, -1, -1), -1]
