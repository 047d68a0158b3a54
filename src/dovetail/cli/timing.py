"""How long a call takes: the median of blocks long enough for the clock."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

LEAST_BLOCK_SECONDS = 0.02
BLOCKS = 7


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of one call, over ``blocks`` blocks of ``calls`` calls each."""

    median: float
    fastest: float
    slowest: float
    calls: int
    blocks: int


def latency(call: Callable[[], object], blocks: int = BLOCKS, least_seconds: float = LEAST_BLOCK_SECONDS) -> Latency:
    """Times ``call`` after it has run once."""
    call()
    calls = 1
    while (seconds := _block(call, calls)) < least_seconds:
        calls = max(2 * calls, math.ceil(1.2 * calls * least_seconds / max(seconds, 1e-7)))
    times = sorted(_block(call, calls) / calls for _ in range(blocks))
    return Latency(statistics.median(times), times[0], times[-1], calls, blocks)


def _block(call: Callable[[], object], calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - begun
