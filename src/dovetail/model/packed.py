"""Constants that several models of one function share: known by their contents, in memory once for each layout.

A packed array lives as long as a model uses it. What an array holds is looked at once where nobody can write to it.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from weakref import WeakValueDictionary, ref

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


def digest(array: Array) -> str:
    """A name for what ``array`` holds, its dtype and its shape."""
    dense = np.ascontiguousarray(array)
    head = f"{dense.dtype} {dense.shape}".encode()
    return sha256(head + sha256(dense.reshape(-1).view(np.uint8).data).digest()).hexdigest()


class Packed:
    """What the models of one function have made of their constants."""

    def __init__(self) -> None:
        self._made: WeakValueDictionary[object, Array] = WeakValueDictionary()
        self._digests: dict[int, tuple[ref[Array], str]] = {}

    def digest(self, array: Array) -> str:
        """``digest``, remembered for arrays that cannot be written."""
        if not _is_fixed(array):
            return digest(array)
        known = self._digests.get(id(array))
        if known is None or known[0]() is not array:
            number = id(array)
            known = ref(array, lambda _: self._digests.pop(number, None)), digest(array)
            self._digests[number] = known
        return known[1]

    def shared(self, key: object, make: Callable[[], Array]) -> Array:
        """The array that is kept under ``key``, made where no model has it; ``key`` says all that it depends on."""
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found


def _is_fixed(array: Array) -> bool:
    """Whether neither it nor what it is a view of can be written: then it stays what it is."""
    base: object = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None or isinstance(base, bytes) or (isinstance(base, memoryview) and base.readonly)
