"""Memory for constants, work space and results, in pages as large as the system gives.

Ordinary pages lie anywhere: those of one buffer can drive each other out of a cache by chance, and each needs an entry
of its own where addresses are translated. A convolution of 1024 channels ran at four fifths of its speed in one
process of three because of it, whatever it was given. So buffers lie side by side in large pages; a chunk of them is
given back when the last buffer in it is gone.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

LINE_BYTES = 64
LARGE_PAGE_BYTES = 2 << 20
CHUNK_BYTES = 8 * LARGE_PAGE_BYTES
LEAST_BYTES = 4096
"""What is smaller lies in ordinary memory: it fits in a page, and would keep a large one alive."""

_LARGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
_lock = threading.Lock()
_rest: Bytes = np.empty(0, np.uint8)


def new_memory(length: int) -> Bytes:
    """``length`` bytes from a multiple of ``LINE_BYTES`` on; their values are whatever was there."""
    global _rest
    taken = -(-length // LINE_BYTES) * LINE_BYTES
    if length < LEAST_BYTES or _LARGE_PAGES is None:
        return _from_multiple(LINE_BYTES, np.empty(taken + LINE_BYTES, np.uint8))[:length]
    if taken > CHUNK_BYTES // 2:
        return _chunk(taken, _LARGE_PAGES)[:length]
    with _lock:
        if _rest.size < taken:
            _rest = _chunk(CHUNK_BYTES, _LARGE_PAGES)
        memory, _rest = _rest[:length], _rest[taken:]
    return memory


def _chunk(length: int, advice: int) -> Bytes:
    """At least ``length`` bytes of large pages, or of ordinary ones where the system has no others."""
    pages = -(-length // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES
    mapped = mmap.mmap(-1, pages + LARGE_PAGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = np.frombuffer(mapped, np.uint8)
    memory = _from_multiple(LARGE_PAGE_BYTES, whole)[:pages]
    with contextlib.suppress(OSError):  # a system may know of them and have none
        mapped.madvise(advice, memory.ctypes.data - whole.ctypes.data, pages)
    return memory


def _from_multiple(unit: int, memory: Bytes) -> Bytes:
    return memory[-memory.ctypes.data % unit :]


def _after_fork_in_child() -> None:
    """The thread that held the lock does not exist in the child."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)
