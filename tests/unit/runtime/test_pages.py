"""Memory that begins on a line of the caches, side by side in large pages."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

from dovetail.runtime import pages
from dovetail.runtime.pages import CHUNK_BYTES, LARGE_PAGE_BYTES, LEAST_BYTES, LINE_BYTES, Bytes, new_memory

LENGTHS = (0, 1, 63, LEAST_BYTES - 1, LEAST_BYTES, LEAST_BYTES + 1, LARGE_PAGE_BYTES + 5, CHUNK_BYTES, 3 * CHUNK_BYTES)


@pytest.mark.parametrize("large", [True, False])
def test_memory_has_its_length_and_begins_on_a_line(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not large:
        monkeypatch.setattr(pages, "_LARGE_PAGES", None)
    for length in LENGTHS:
        memory = new_memory(length)
        assert memory.size == length
        assert memory.ctypes.data % LINE_BYTES == 0
        memory[:] = 1


def test_no_two_pieces_share_a_byte() -> None:
    pieces = [new_memory(length) for length in LENGTHS * 3]
    for number, piece in enumerate(pieces):
        piece[:] = number
    assert all((piece == number).all() for number, piece in enumerate(pieces))


def test_threads_get_pieces_of_their_own() -> None:
    found: list[list[Bytes]] = [[] for _ in range(4)]

    def take(number: int) -> None:
        for _ in range(200):
            memory = new_memory(LEAST_BYTES)
            memory[:] = number
            found[number].append(memory)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((memory == number).all() for number, own in enumerate(found) for memory in own)


def test_memory_goes_back_to_the_system_when_nobody_holds_it() -> None:
    before = resident_bytes()
    for _ in range(8):
        memory = new_memory(16 * CHUNK_BYTES)
        memory[:: LARGE_PAGE_BYTES // 512] = 1
        assert resident_bytes() - before > 8 * CHUNK_BYTES
        del memory
        gc.collect()
    assert resident_bytes() - before < 8 * CHUNK_BYTES


def test_a_part_of_memory_keeps_it() -> None:
    part = new_memory(2 * CHUNK_BYTES)[5:9]
    part[:] = 7
    gc.collect()
    assert np.array_equal(part, [7, 7, 7, 7])


def resident_bytes() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024
