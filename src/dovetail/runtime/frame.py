"""What one call hands to native code: addresses, sizes, work memory and status words, prepared as far as possible."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dovetail.runtime import pool
from dovetail.runtime.jit import LoadedCode
from dovetail.runtime.pages import new_memory

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)


@dataclass(frozen=True)
class Code:
    """Loaded machine code and the memory it needs beside its arguments."""

    loaded: LoadedCode
    entry: str
    shared_bytes: Callable[[Mapping[str, int]], int]
    private_bytes: Callable[[Mapping[str, int]], int]
    buffers: tuple[str, ...]
    """Names of tensors by the number that a failed index check reports."""
    status_bytes: Callable[[int], int]
    """Bytes behind the status pointer for so many units, zero before each call."""


class Frame:
    """The words of a call: ``arguments`` addresses, then ``sizes`` values, arenas, and where to put a failure.

    One caller at a time; whoever finds it taken makes another one.
    """

    def __init__(self, code: Code, arguments: int, sizes: int, threads: int) -> None:
        self.code, self.threads = code, threads
        self.first_size, self.after = arguments, arguments + sizes
        self.words = (ctypes.c_int64 * (self.after + 4))()
        self.status_bytes = code.status_bytes(threads)
        self.memory = new_memory(self.status_bytes)
        self.memory[:] = 0
        self.status_at = self.memory.ctypes.data
        self.status = (ctypes.c_int64 * 2).from_address(self.status_at)
        self.words[self.after + 3] = self.status_at
        self.place = ctypes.addressof(self.words)
        self.address = code.loaded.address(code.entry)
        self.function = _ENTRY(self.address)
        self.arena = np.empty(0, np.uint8)
        self.settled: tuple[int, ...] | None = None
        """The sizes that the arenas were last laid out for."""

    def settle(self, sizes: Mapping[str, int]) -> bool:
        """Work memory for a call with these sizes; False: the last call had the same ones, there was nothing to do."""
        values = tuple(sizes.values())
        if values == self.settled:
            return False
        shared, private = self.code.shared_bytes(sizes), self.code.private_bytes(sizes)
        wanted = shared + private * self.threads
        if self.arena.size < wanted:
            self.arena = new_memory(wanted)
        start = self.arena.ctypes.data
        for number, value in enumerate(values):
            self.words[self.first_size + number] = value
        self.words[self.after : self.after + 3] = [start, start + shared, private]
        self.settled = values
        return True

    def run(self) -> tuple[int, int]:
        """Run the kernel; what ``failure`` says."""
        if self.threads == 1:
            self.function(0, 1, self.place)
        else:
            ctypes.memset(self.status_at, 0, self.status_bytes)
            pool.run(self.address, self.place, self.threads)
        return self.failure()

    def failure(self) -> tuple[int, int]:
        """What the last run left: (0, 0), or the code and value of an index that left its tensor."""
        if not self.status[0]:
            return 0, 0
        found = (self.status[0], self.status[1])
        self.status[0] = self.status[1] = 0
        return found
