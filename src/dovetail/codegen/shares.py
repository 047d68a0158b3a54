"""How units share the iterations of a parallel loop: each has a stretch of its own, and who is done helps the others.

A machine whose cores are not all free would otherwise wait for the slowest. Which unit runs an iteration changes no
result, and while all keep pace each works on its own contiguous part, as if nothing were shared.

Behind the two status words, from byte 64 on, each share has one line per unit: the pieces of the unit's part that
have been taken so far (by anyone), and, for the unit alone, how often it has finished this loop and whom it is
helping. Pieces are counted on from round to round: everyone who finds a part used up has counted one too many, so
after a round of n pieces and u units the count stands n + u higher.
"""

from __future__ import annotations

STRETCH = "{ i64, i64 }"
"""First iteration and the one after the last; -1 when none is left."""
MOST_SHARES = 16
"""Parallel loops of a kernel that have counters; further ones are split evenly."""
LINE_BYTES = 64
PIECES = 32
"""A unit's part is taken in at most about this many pieces."""


def status_bytes(units: int) -> int:
    """Bytes behind the status pointer, all 0 before a call."""
    return LINE_BYTES + (MOST_SHARES * units * LINE_BYTES if units > 1 else 0)


TAKE = f"""\
; %last: where the stretch before began, -1 at first; %backward: 1 to take each part from its end, 0 from its beginning
define internal {STRETCH} @take(ptr %status, i64 %share, i64 %unit, i64 %units, i64 %extent, i64 %backward, i64 %last)
    noinline nounwind {{
entry:
  %from.end = icmp ne i64 %backward, 0
  %several = icmp ugt i64 %units, 1
  br i1 %several, label %shared, label %alone
alone:
  ; all at once, or from the end one by one
  %fresh = icmp slt i64 %last, 0
  %any = icmp sgt i64 %extent, 0
  %whole = and i1 %fresh, %any
  %only = select i1 %whole, i64 0, i64 -1
  %below = select i1 %fresh, i64 %extent, i64 %last
  %below.less = sub i64 %below, 1
  %only.start = select i1 %from.end, i64 %below.less, i64 %only
  %only.stop = select i1 %from.end, i64 %below, i64 %extent
  %only0 = insertvalue {STRETCH} poison, i64 %only.start, 0
  %only1 = insertvalue {STRETCH} %only0, i64 %only.stop, 1
  ret {STRETCH} %only1
shared:
  %lines = getelementptr i8, ptr %status, i64 {LINE_BYTES}
  %row = mul i64 %share, %units
  %own.number = add i64 %row, %unit
  %own.offset = mul i64 %own.number, {LINE_BYTES}
  %own = getelementptr i8, ptr %lines, i64 %own.offset
  %rounds.at = getelementptr i8, ptr %own, i64 8
  %helping.at = getelementptr i8, ptr %own, i64 16
  %rounds = load i64, ptr %rounds.at
  %helping.first = load i64, ptr %helping.at
  br label %look
look:
  %helping = phi i64 [ %helping.first, %shared ], [ %helping.next, %empty ]
  %sum = add i64 %unit, %helping
  %owner = urem i64 %sum, %units
  %before = mul i64 %extent, %owner
  %after = add i64 %before, %extent
  %first = udiv i64 %before, %units
  %end = udiv i64 %after, %units
  %count = sub i64 %end, %first
  %share.of = udiv i64 %count, {PIECES}
  %piece = call i64 @llvm.umax.i64(i64 %share.of, i64 1)
  %padded = add i64 %count, %piece
  %padded.less = sub i64 %padded, 1
  %pieces = udiv i64 %padded.less, %piece
  %round = add i64 %pieces, %units
  %base = mul i64 %rounds, %round
  %line.number = add i64 %row, %owner
  %line.offset = mul i64 %line.number, {LINE_BYTES}
  %line = getelementptr i8, ptr %lines, i64 %line.offset
  %ticket = atomicrmw add ptr %line, i64 1 monotonic
  %number = sub i64 %ticket, %base
  %there = icmp ult i64 %number, %pieces
  br i1 %there, label %found, label %empty
found:
  store i64 %helping, ptr %helping.at
  %last.number = sub i64 %pieces, 1
  %number.back = sub i64 %last.number, %number
  %number.taken = select i1 %from.end, i64 %number.back, i64 %number
  %offset = mul i64 %number.taken, %piece
  %start = add i64 %first, %offset
  %stop = add i64 %start, %piece
  %stop.real = call i64 @llvm.umin.i64(i64 %stop, i64 %end)
  %got0 = insertvalue {STRETCH} poison, i64 %start, 0
  %got1 = insertvalue {STRETCH} %got0, i64 %stop.real, 1
  ret {STRETCH} %got1
empty:
  %helping.next = add i64 %helping, 1
  %more = icmp ult i64 %helping.next, %units
  br i1 %more, label %look, label %done
done:
  store i64 0, ptr %helping.at
  %rounds.next = add i64 %rounds, 1
  store i64 %rounds.next, ptr %rounds.at
  ret {STRETCH} {{ i64 -1, i64 -1 }}
}}"""
