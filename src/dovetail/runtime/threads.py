"""How many threads a kernel or a model runs on."""

from __future__ import annotations

import os

from dovetail.base.errors import CallError
from dovetail.runtime.pool import MAX_THREADS
from dovetail.targets.model import Target


def thread_count(wanted: int | None, target: Target) -> int:
    """``wanted``, else ``DOVETAIL_THREADS``, else the cores of the target; what is no such number is refused."""
    stated = os.environ.get("DOVETAIL_THREADS", "")
    if wanted is None and not stated:
        return max(1, target.units[0].count[0])
    number = int(stated) if wanted is None and stated.isdigit() else wanted
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_THREADS:
        what = f"DOVETAIL_THREADS={stated}" if wanted is None else f"threads = {wanted!r}"
        raise CallError(f"{what} is no number of threads", hint=f"a whole number from 1 to {MAX_THREADS}")
    return number
