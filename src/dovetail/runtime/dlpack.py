"""Other libraries' CPU tensors as NumPy arrays over the same memory, through the DLPack protocol.

NumPy's own reader knows no bfloat16 and makes arrays from older producers read-only, so the capsule is read here. It is
kept, unconsumed, as long as the array lives; its own destructor then tells the producer.
https://dmlc.github.io/dlpack/latest/c_api.html
"""

from __future__ import annotations

import ctypes
from typing import Protocol, TypedDict, cast

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import CallError

_HOST_DEVICES = frozenset({1, 3, 11})  # kDLCPU, and memory pinned for CUDA and ROCm
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_CODES = {0: "i", 1: "u", 2: "f", 4: "bf", 6: "bool", 10: "f8e4m3fn"}  # DLDataTypeCode


class Exporter(Protocol):
    """Any object of the protocol."""

    def __dlpack__(self, **options: object) -> object: ...


def view(value: Exporter, name: str) -> npt.NDArray[np.generic]:
    """``value`` as an array over its own memory; ``name`` is the argument's, for messages."""
    capsule = _export(value, name)
    tensor, read_only = _contents(capsule)
    if tensor.device_type not in _HOST_DEVICES:
        raise CallError(
            f"argument '{name}' is not in this machine's main memory (DLPack device type {tensor.device_type})",
            hint="copy it to the CPU first",
        )
    dtype = _dtype(tensor)
    if dtype is None:
        raise CallError(
            f"argument '{name}' has an element type that Dovetail does not know",
            why=f"DLPack type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes",
            hint=f"one of {', '.join(DTYPES)}",
        )
    return _array(capsule, tensor, dtype, read_only)


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_size_t),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned. The older DLManagedTensor starts with the tensor itself."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_capsule_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)


def _export(value: Exporter, name: str) -> object:
    try:
        try:
            return value.__dlpack__(max_version=(1, 0))
        except TypeError:  # a producer from before versions
            return value.__dlpack__()
    except (BufferError, RuntimeError, ValueError) as error:
        raise CallError(f"argument '{name}' cannot be shared by its library", why=str(error)) from error


def _contents(capsule: object) -> tuple[_Tensor, bool]:
    if _capsule_is(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        return cast(_Tensor, managed.tensor), bool(managed.flags & _READ_ONLY)
    return _Tensor.from_address(_capsule_pointer(capsule, b"dltensor")), False


def _dtype(tensor: _Tensor) -> DType | None:
    stem = _CODES.get(tensor.code, "")
    found = DTYPES.get(stem) or DTYPES.get(f"{stem}{tensor.bits}")
    return found if found is not None and found.bits == tensor.bits and tensor.lanes == 1 else None


class _Interface(TypedDict):
    """NumPy's array interface, version 3."""

    version: int
    data: tuple[int, bool]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    typestr: str


class _Memory:
    """Memory of a capsule, as NumPy asks for it; the array made from it keeps this, and so the capsule."""

    __slots__ = ("__array_interface__", "capsule")

    def __init__(self, capsule: object, interface: _Interface) -> None:
        self.capsule = capsule
        self.__array_interface__ = interface


def _array(capsule: object, tensor: _Tensor, dtype: DType, read_only: bool) -> npt.NDArray[np.generic]:
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    if 0 in shape:
        return np.empty(shape, dtype.numpy)
    strides = tuple(s * dtype.bytes for s in tensor.strides[: tensor.ndim]) if tensor.strides and tensor.ndim else None
    interface = _Interface(
        version=3,
        data=(tensor.data + tensor.byte_offset, read_only),
        shape=shape,
        strides=strides,
        typestr=f"|u{dtype.bytes}" if dtype.bytes == 1 else f"=u{dtype.bytes}",
    )
    return np.asarray(_Memory(capsule, interface)).view(dtype.numpy)
