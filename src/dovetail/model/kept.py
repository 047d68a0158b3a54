"""Whole models kept on disk, by all that decides what they are: graph, data, target, threads and this package.

A model that is found has its constants laid out already and needs neither passes nor plans; see ``container``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import LimitError, ModelError, TargetError
from dovetail.base.limits import ModelLimits
from dovetail.ir.graph.bound import BoundGraph
from dovetail.model.container import read, write
from dovetail.model.finished import Finished
from dovetail.model.packed import digest
from dovetail.runtime.cache import Cache
from dovetail.stored import target_key
from dovetail.targets.model import Target

Array = npt.NDArray[np.generic]
SHARE = 2
"""One model takes at most this part of the cache."""
_TRIM_SHARE = 64
"""A file that takes more than this part of it may have made the cache too large."""
_KIND = "model"
_THREADS = 4


def model_key(
    bound: BoundGraph, target: Target, threads: int, limits: ModelLimits, digest: Callable[[Array], str] = digest
) -> dict[str, str]:
    names = sorted(bound.data)
    with ThreadPoolExecutor(_THREADS) as pool:
        digests = list(pool.map(digest, [bound.data[name] for name in names]))
    data = "\n".join(f"{name} {digest}" for name, digest in zip(names, digests, strict=True))
    words = "\n".join(f"{name} {word!r}" for name, word in sorted(bound.names.items()))
    return {
        **target_key(target),
        "graph": sha256(str(bound.graph).encode()).hexdigest(),
        "data": sha256(data.encode()).hexdigest(),
        "names": sha256(words.encode()).hexdigest(),
        "threads": str(threads),
        "limits": f"{limits.tensor_bytes} {limits.memory_bytes}",
    }


def find(store: Cache, key: Mapping[str, str], limits: ModelLimits) -> Finished | None:
    """The model that was kept under ``key``; None where there is none, or it is not whole."""
    path = store.file(_KIND, key)
    if path is None or not path.exists():
        return None
    try:
        found = read(path, limits)
        os.utime(path)
    except (ModelError, TargetError, LimitError, OSError):
        return None
    return found


def keep(store: Cache, key: Mapping[str, str], finished: Finished) -> None:
    """A model that cannot leave its process, or would crowd out all others, is not kept."""
    if finished.beside or finished.report.constant_bytes > store.limit_bytes // SHARE:
        return
    path = store.file(_KIND, key)
    if path is not None:
        with suppress(OSError):
            write(finished, path)
            if path.stat().st_size > store.limit_bytes // _TRIM_SHARE:
                store.trim()
