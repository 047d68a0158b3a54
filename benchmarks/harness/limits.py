"""What the machine can do at best, from the features LLVM reports and not from any description of the machine."""

from pathlib import Path

import llvmlite.binding as llvm

from dovetail.runtime.peak import Peak, Vectors


class Limits(Peak):
    """``measure`` is one block of multiply-adds and one of reads on ``threads`` threads.

    Reads are from memory, or of the same ``read_bytes`` each time, each thread its part.
    """

    def __init__(self, threads: int, read_bytes: int | None = None) -> None:
        super().__init__(host_vectors(), threads, read_bytes)


def host_vectors() -> Vectors:
    """From the features LLVM reports: 32 registers of 16 lanes, 16 of 8, else 4 lanes in 16 or more."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return Vectors(16, 24, last_cache_bytes())
    if features.get("avx2") and features.get("fma"):
        return Vectors(8, 12, last_cache_bytes())
    return Vectors(4, 12, last_cache_bytes())


def last_cache_bytes() -> int:
    """Size of the largest cache the kernel reports; 0 where it reports none."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    texts = (path.read_text().strip() for path in sizes)
    return max((int(text[:-1]) * units[text[-1]] for text in texts if text[-1:] in units), default=0)
