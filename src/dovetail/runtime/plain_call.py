"""The plain call: exact NumPy arrays in and out, checked and handed to the kernel by native code (``call.ll``).

A call from Python through ``arrays`` costs some ten microseconds, as much as a small product itself; this way costs
one or two. It takes only what needs no second thought, says so when something else came, and then nothing has
happened: the general way takes over, with its conversions and its errors.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from dovetail.runtime import pool
from dovetail.runtime.arrays import Parameter
from dovetail.runtime.frame import Frame

DONE, REFUSED, FAILED = 0, 2, 3  # as dt_call returns them
_NEVER = -1  # the extent of no array
_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400  # of NumPy's binary interface


class _Header(ctypes.Structure):
    """How NumPy lays out an array object."""

    _fields_ = (
        ("references", ctypes.c_int64),
        ("type", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int32),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("base", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
        ("flags", ctypes.c_int32),
    )


class Wanted(ctypes.Structure):
    """``%parameter`` of call.ll."""

    _fields_ = (
        ("type", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
        ("rank", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("extents", ctypes.c_void_p),
        ("bytes", ctypes.c_int64),
        ("slot", ctypes.c_int64),
    )


class Request(ctypes.Structure):
    """``%request`` of call.ll."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("written", ctypes.c_int64),
        ("parameters", ctypes.c_void_p),
        ("objects", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("threads", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        ("status", ctypes.c_void_p),
        ("status_bytes", ctypes.c_int64),
    )


@cache
def layout_is_known() -> bool:
    """Whether arrays lie in memory as ``_Header`` says: tried on one whose every field is known."""
    if object.__basicsize__ != _Header.data.offset:
        return False
    probe = np.arange(24, dtype=np.float32).reshape(4, 6)[1:3]
    probe.flags.writeable = False
    seen = _Header.from_address(id(probe))
    return (
        seen.type == id(np.ndarray)
        and seen.data == probe.ctypes.data
        and seen.rank == 2
        and tuple(seen.extents[:2]) == probe.shape
        and tuple(seen.strides[:2]) == probe.strides
        and seen.base == id(probe.base)
        and seen.dtype == id(np.dtype(np.float32))
        and seen.flags & (_C_CONTIGUOUS | _ALIGNED | _WRITEABLE) == _C_CONTIGUOUS | _ALIGNED
    )


class PlainCall:
    """Calls of one kernel with the words of ``frame``, which ``lock`` protects.

    ``parameters``: what is wanted of each argument, the result last, and its place among the words. Where extents
    are known at run time only, nothing is plain until ``expect`` has said which ones the frame is settled for.
    """

    def __init__(
        self,
        frame: Frame,
        lock: threading.Lock,
        index_error: Callable[[int, int], Exception],
        parameters: Sequence[tuple[Parameter, int]],
    ) -> None:
        self._frame, self._index_error = frame, index_error
        self._acquire, self._release = lock.acquire, lock.release
        self._items = [p.numpy.itemsize for p, _ in parameters]
        self._extents = [(ctypes.c_int64 * len(p.shape))() for p, _ in parameters]
        self._wanted = (Wanted * len(parameters))(
            *(wanted(p, slot, ctypes.addressof(e)) for (p, slot), e in zip(parameters, self._extents, strict=True))
        )
        self._objects = (ctypes.c_int64 * len(parameters))()
        self._request = Request(
            count=len(parameters),
            written=1,
            parameters=ctypes.addressof(self._wanted),
            objects=ctypes.addressof(self._objects),
            words=frame.place,
            kernel=frame.address,
            threads=frame.threads,
            status=frame.status_at,
            status_bytes=frame.status_bytes,
        )
        self.expect([p.shape for p, _ in parameters])
        self._native = pool.plain_call()
        self._place = ctypes.c_void_p(ctypes.addressof(self._request))

    def expect(self, shapes: Sequence[Sequence[int | None]]) -> None:
        """From now on arrays of these shapes are plain; with None for an extent, none are."""
        for wanted, place, item, shape in zip(self._wanted, self._extents, self._items, shapes, strict=True):
            place[:] = [_NEVER if n is None else n for n in shape]
            wanted.bytes = math.prod(place) * item

    def __call__(self, arrays: tuple[object, ...], out: object) -> bool:
        """Whether the kernel ran; it did not where the arguments are not plain, or another caller is inside."""
        if len(arrays) + 1 != len(self._objects) or not self._acquire(False):
            return False
        try:
            self._objects[:] = [*map(id, arrays), id(out)]
            status = self._native(self._place)
            if status == DONE:
                return True
            if status == REFUSED:
                pool.check(self._request.reason)
            if status == FAILED:
                raise self._index_error(*self._frame.failure())
            return False
        finally:
            self._release()


def wanted(parameter: Parameter, slot: int, extents: int) -> Wanted:
    """``extents``: where they lie."""
    return Wanted(
        type=id(np.ndarray),
        dtype=id(parameter.numpy),
        rank=len(parameter.shape),
        flags=_C_CONTIGUOUS | _ALIGNED | (_WRITEABLE if parameter.writable else 0),
        extents=extents,
        slot=slot,
    )
