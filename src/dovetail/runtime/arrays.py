"""The arguments of a kernel: other people's arrays in, addresses out, without a copy.

A kernel reads and writes dense row-major memory aligned to its elements. NumPy arrays and CPU tensors of any library
with DLPack are used where they lie. An *input* that is strided or misaligned is copied once, by the call; an *output*
must be written in place, so there the same is an error. Outputs may share memory with no other argument.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import dtype as dtype_named
from dovetail.base.dtypes import from_numpy
from dovetail.base.errors import CallError
from dovetail.runtime import dlpack
from dovetail.runtime.pages import new_memory

ALIGNMENT_BYTES = 64  # a cache line, and the widest vector register of any CPU we know

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a kernel expects: an extent of None is any (a run-time size, which the caller solves and checks)."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    writable: bool
    numpy: np.dtype[np.generic] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numpy", dtype_named(self.dtype).numpy)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join('?' if n is None else str(n) for n in self.shape)}]"


class Argument(NamedTuple):
    """What the kernel gets: ``address`` is good as long as ``array`` lives."""

    address: int
    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
        return self.array.strides

    @property
    def dtype(self) -> str:
        return _dtype_name(self.array)


def bind(parameters: Sequence[Parameter], values: Sequence[object]) -> list[Argument]:
    """One argument for each parameter, checked alone and for shared memory."""
    if len(parameters) != len(values):
        names = ", ".join(p.name for p in parameters)
        raise CallError(f"the kernel takes {len(parameters)} arguments ({names}), got {len(values)}")
    arguments = list(map(argument, parameters, values))
    for parameter, mine in zip(parameters, arguments, strict=True):
        if parameter.writable:
            _check_alone(mine, parameters, arguments)
    return arguments


def argument(parameter: Parameter, value: object) -> Argument:
    """``value`` checked against ``parameter``: the array itself, or for an input in poor order a dense copy of it."""
    if type(value) is np.ndarray and value.dtype is parameter.numpy and value.shape == parameter.shape:
        flags = value.flags
        if flags.carray or (flags.c_contiguous and flags.aligned and not parameter.writable):
            return Argument(_address(value), value)
    array = _checked(parameter, value)
    return Argument(_address(array), array)


def empty_aligned(shape: Sequence[int], dtype: str) -> Array:
    """A new dense array of ``shape`` whose first element lies on a cache line; its values are whatever was there."""
    element = dtype_named(dtype).numpy
    return np.ndarray(tuple(shape), element, new_memory(math.prod(shape) * element.itemsize))


def _checked(parameter: Parameter, value: object) -> Array:
    """The slow way: an array that fits ``parameter``, or the reason why there is none."""
    array = _array(parameter, value)
    if array.dtype != parameter.numpy:
        raise _mismatch(parameter, array, "dtype", hint=f"convert it: a.astype({parameter.numpy.name!r})")
    if not _shape_fits(parameter.shape, array.shape):
        raise _mismatch(parameter, array, "shape", hint=None)
    if parameter.writable and not array.flags.writeable:
        raise CallError(f"argument '{parameter.name}' is read-only, and the kernel writes to it", hint="pass a copy")
    return array if array.flags.c_contiguous and array.flags.aligned else _dense(parameter, array)


def _array(parameter: Parameter, value: object) -> Array:
    """Anything that is not plainly a NumPy array, as one."""
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        return dlpack.view(cast(dlpack.Exporter, value), parameter.name)
    if isinstance(value, np.ma.MaskedArray):
        raise CallError(
            f"argument '{parameter.name}' is a masked array, and the kernel would not see its mask",
            hint="fill it first: a.filled(0)",
        )
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    raise CallError(
        f"argument '{parameter.name}' is a {type(value).__name__}, expected an array {parameter}",
        hint="a NumPy array, or a CPU tensor of any library with DLPack",
    )


def _dense(parameter: Parameter, array: Array) -> Array:
    if not parameter.writable:
        return np.array(array, order="C", copy=True)
    if not array.flags.c_contiguous:
        raise CallError(
            f"argument '{parameter.name}' is not contiguous: shape {array.shape}, strides {array.strides} bytes",
            why="the kernel writes its outputs in place, in dense row-major order",
            hint="pass a contiguous array and copy from it afterwards",
        )
    raise CallError(
        f"argument '{parameter.name}' is misaligned: address {_address(array):#x} is no multiple of {array.itemsize}",
        why="the kernel writes its outputs in place, element by element",
        hint="allocate it with numpy.empty",
    )


def _check_alone(mine: Argument, parameters: Sequence[Parameter], arguments: Sequence[Argument]) -> None:
    """No other argument shares memory with the output ``mine``."""
    start = mine.address
    end = start + mine.array.nbytes
    for other in arguments:
        if other.address < end and other is not mine and start < other.address + other.array.nbytes:
            names = {id(a): p.name for a, p in zip(arguments, parameters, strict=True)}
            raise CallError(
                f"argument '{names[id(mine)]}' shares memory with '{names[id(other)]}'",
                why="the kernel may write an output before it has read all of its inputs",
                hint="pass a separate output array",
            )


def _mismatch(parameter: Parameter, array: Array, what: str, hint: str | None) -> CallError:
    got = f"{_dtype_name(array)}[{','.join(map(str, array.shape))}]"
    return CallError(f"argument '{parameter.name}' has the wrong {what}: expected {parameter}, got {got}", hint=hint)


def _shape_fits(expected: tuple[int | None, ...], got: tuple[int, ...]) -> bool:
    return len(expected) == len(got) and all(e is None or e == g for e, g in zip(expected, got, strict=True))


def _dtype_name(array: Array) -> str:
    known = from_numpy(array.dtype)
    return str(array.dtype) if known is None else known.name


def _read_address(array: Array) -> int:
    """``array.ctypes.data`` in a tenth of its time: the data pointer is the first field after the object's header.

    Compiled extensions read it there through NumPy's macros, so its place is part of NumPy's binary interface.
    """
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


def _ask_address(array: Array) -> int:
    return int(array.ctypes.data)


_PROBE = np.arange(4)[1:]
_address = _read_address if _read_address(_PROBE) == _ask_address(_PROBE) else _ask_address
