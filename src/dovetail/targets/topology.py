"""Cores and caches of the machine we run on: from the system's files, else from the processor itself.

Cores are physical ones that this process may use: two hardware threads of a core count once, and so does a limit on
processor time that a container sets.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from dovetail.targets.cpuid import cpuid

_CPUS = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST_PER_CORE = 16 << 20
"""Bytes of a shared cache that a core counts on at most: a guest is shown the last cache of a whole socket, of which
the other systems on it use their parts. With 300 MiB shown to two cores, reads of 64 MiB ran at the rate of memory."""


@dataclass(frozen=True, slots=True)
class Cache:
    """One level that holds data. ``sharers`` is how many hardware threads use the same one."""

    level: int
    bytes: int
    line_bytes: int = 64
    sharers: int = 1

    @property
    def name(self) -> str:
        return f"L{self.level}"


def find_cores(cpus: Path = _CPUS, quota: Path = _QUOTA) -> tuple[int, str]:
    """How many physical cores this process may use, and how that is known."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    found = set()
    for number in usable:
        core, package = (_text(cpus / f"cpu{number}/topology/{key}") for key in ("core_id", "physical_package_id"))
        if core is None or package is None:
            count, note = len(usable), "hardware threads counted as cores, the system does not say which share one"
            break
        found.add((package, core))
    else:
        count, note = len(found), f"{len(found)} physical core{'s' if len(found) > 1 else ''}"
    limit = _quota_cores(quota)
    if limit is not None and limit < count:
        return limit, f"{limit} of {count} cores by the container's processor limit"
    return max(count, 1), note


def counted_on(cache: Cache, cores: int) -> Cache:
    """A cache as so many cores see it that share it with systems nobody tells us of."""
    return replace(cache, bytes=min(cache.bytes, cores * _MOST_PER_CORE))


def find_caches(architecture: str, cpus: Path = _CPUS) -> tuple[tuple[Cache, ...], str]:
    """The caches that hold data, innermost first, and how they are known; none when nothing tells."""
    caches = _caches_from_system(cpus)
    if caches:
        return caches, "caches from the system"
    caches = _caches_from_cpuid() if architecture == "x86_64" else ()
    if caches:
        return caches, "caches from cpuid"
    return (), "cache sizes unknown, those of the chosen target stand in"


def _caches_from_system(cpus: Path) -> tuple[Cache, ...]:
    found = []
    for folder in sorted((cpus / "cpu0/cache").glob("index*")):
        texts = [_text(folder / key) for key in ("type", "level", "size")]
        kind, level, size = texts
        if kind not in ("Data", "Unified") or level is None or size is None or not level.isdigit():
            continue
        bytes_ = _bytes(size)
        line = _text(folder / "coherency_line_size") or ""
        sharers = _count_list(_text(folder / "shared_cpu_list") or "")
        if bytes_:
            found.append(Cache(int(level), bytes_, int(line) if line.isdigit() and int(line) > 0 else 64, sharers))
    return tuple(sorted(found, key=lambda cache: cache.level))


def _caches_from_cpuid() -> tuple[Cache, ...]:
    """Intel's leaf 4, or AMD's 0x8000001D, which has the same form: one row per cache until type 0."""
    leaf = 4 if cpuid(0, 0)[0] >= 4 and cpuid(4, 0)[0] & 31 else 0x8000001D
    if leaf != 4 and cpuid(0x80000000, 0)[0] < leaf:
        return ()
    found = []
    for row in range(16):
        a, b, c, _ = cpuid(leaf, row)
        if a & 31 == 0:
            break
        if a & 31 in (1, 3):  # data, unified
            ways, partitions, line, sets = (b >> 22) + 1, ((b >> 12) & 1023) + 1, (b & 4095) + 1, c + 1
            found.append(Cache((a >> 5) & 7, ways * partitions * line * sets, line, ((a >> 14) & 4095) + 1))
    return tuple(sorted(found, key=lambda cache: cache.level))


def _quota_cores(path: Path) -> int | None:
    """Whole cores a control group's limit amounts to; None without a limit."""
    parts = (_text(path) or "").split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts) or int(parts[1]) == 0:
        return None
    return max(1, int(parts[0]) // int(parts[1]))


def _bytes(size: str) -> int:
    """32K, 1M: bytes; 0 when it is neither."""
    unit = _SUFFIX.get(size[-1:].upper(), 1)
    digits = size.rstrip("KMGkmg")
    return int(digits) * unit if digits.isdigit() else 0


def _count_list(text: str) -> int:
    """How many numbers ``0-3,8`` lists; 1 when it cannot be read."""
    total = 0
    for part in text.split(","):
        ends = part.split("-")
        if not all(end.isdigit() for end in ends) or len(ends) > 2:
            return 1
        total += int(ends[-1]) - int(ends[0]) + 1
    return max(total, 1)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
