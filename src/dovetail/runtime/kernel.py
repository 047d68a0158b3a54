"""A compiled program, ready to call.

    kernel(x, y)              -> the output, or a tuple of outputs
    kernel(x, y, out=z)       -> writes into z
    kernel(x, sizes={"m": 7}) -> where no input's shape tells a run-time size
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import CallError, IndexRangeError
from dovetail.ir.bind import bind_sizes, extents
from dovetail.ir.certificate import Certificate
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role, Tensor
from dovetail.runtime import pool
from dovetail.runtime.arrays import Argument, Parameter, argument, empty_aligned
from dovetail.runtime.jit import LoadedCode
from dovetail.runtime.layout import laid_out

Array = npt.NDArray[np.generic]
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)
ALIGNMENT = 64


@dataclass(frozen=True)
class Code:
    """Loaded machine code and the memory it needs beside its arguments."""

    loaded: LoadedCode
    entry: str
    shared_bytes: Callable[[Mapping[str, int]], int]
    private_bytes: Callable[[Mapping[str, int]], int]
    buffers: tuple[str, ...]
    """Names of tensors by the number that a failed index check reports."""


@dataclass
class Kernel:
    """A program compiled for one target and number of threads."""

    program: Program
    plan: Plan
    target: str
    threads: int
    code: Code
    certificate: Certificate
    explanation: Callable[[], str]
    views: Mapping[str, tuple[int, ...]]
    """The shapes in which the plan sees constants that are laid out ahead of time."""
    constants: dict[str, Array] = field(default_factory=dict)
    """Bound constants, already in the layout the code wants."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each step of compilation took."""

    def __post_init__(self) -> None:
        self._address = self.code.loaded.address(self.code.entry)
        self._function = _ENTRY(self._address)
        self._lock = threading.Lock()
        self._arena = np.empty(0, np.uint8)
        self._ahead = {h.tensor: h.digits for h in self.plan.holds if h.ahead}
        self._given = tuple(t for t in self.program.inputs if t.name not in self.constants)
        self._static = not self.program.sizes
        self._parameters = {t.name: self._parameter(t) for t in (*self.program.inputs, *self.program.outputs)}

    @property
    def packing_seconds(self) -> float:
        """Time spent laying out constants."""
        return self.seconds.get("constants", 0.0)

    def __call__(
        self, *arrays: object, out: object = None, sizes: Mapping[str, int] | None = None
    ) -> Array | tuple[Array, ...]:
        given = self._bind(arrays)
        bound = self._sizes(given, sizes)
        outputs = self._outputs(out, bound, given)
        words: list[int] = []
        keep: list[Array] = []
        for tensor in self.program.tensors:
            if tensor.role is Role.TEMP:
                continue
            array = outputs.get(tensor.name)
            if array is None:
                array = self._input(tensor, given)
            keep.append(array.array if isinstance(array, Argument) else array)
            words.append(array.address if isinstance(array, Argument) else array.ctypes.data)
        words += [bound[s.name] for s in self.program.sizes]
        self._run(words, bound)
        results = tuple(outputs[t.name].array for t in self.program.outputs)
        return results[0] if len(results) == 1 else results

    def explain(self) -> str:
        """What was chosen, and why."""
        return self.explanation()

    def bind(self, constants: Mapping[str, object]) -> None:
        """Lay out constants once; they are no longer arguments."""
        for name, value in constants.items():
            tensor = next((t for t in self.program.tensors if t.name == name), None)
            if tensor is None or tensor.role is not Role.CONST:
                raise CallError(f"'{name}' is not a constant of the program", hint="declare it: const ...")
            self.constants[name] = self._laid_out(tensor, argument(self._parameters[name], value).array)
        self._given = tuple(t for t in self.program.inputs if t.name not in self.constants)

    # -- arguments

    def _parameter(self, tensor: Tensor) -> Parameter:
        shape = tuple(e.const if e.is_constant else None for e in tensor.shape)
        writable = tensor.role is Role.OUT
        return Parameter(tensor.name, tensor.dtype.name, shape, writable)

    def _bind(self, arrays: Sequence[object]) -> dict[str, Argument]:
        if len(arrays) != len(self._given):
            names = ", ".join(t.name for t in self._given)
            raise CallError(f"the kernel takes {len(self._given)} arguments ({names}), got {len(arrays)}")
        return {t.name: argument(self._parameters[t.name], a) for t, a in zip(self._given, arrays, strict=True)}

    def _sizes(self, given: Mapping[str, Argument], sizes: Mapping[str, int] | None) -> dict[str, int]:
        if self._static and not sizes:
            return {}
        return bind_sizes(self.program, {n: a.array.shape for n, a in given.items()}, sizes)

    def _outputs(self, out: object, sizes: Mapping[str, int], given: Mapping[str, Argument]) -> dict[str, Argument]:
        wanted = self.program.outputs
        if out is None:
            fresh = {t.name: empty_aligned(extents(t, sizes), t.dtype.name) for t in wanted}
            found = {name: Argument(array.ctypes.data, array) for name, array in fresh.items()}
        else:
            found = self._given_outputs(out, sizes, given)
        for tensor in wanted:
            if tensor.role is Role.INOUT and found[tensor.name].array is not given[tensor.name].array:
                np.copyto(found[tensor.name].array, given[tensor.name].array)
        return found

    def _given_outputs(
        self, out: object, sizes: Mapping[str, int], given: Mapping[str, Argument]
    ) -> dict[str, Argument]:
        wanted = self.program.outputs
        several = list(out) if isinstance(out, list | tuple) else [out]
        if len(several) != len(wanted):
            raise CallError(f"out has {len(several)} arrays, the program has {len(wanted)} outputs")
        found = {}
        for tensor, value in zip(wanted, several, strict=True):
            parameter = Parameter(tensor.name, tensor.dtype.name, extents(tensor, sizes), True)
            found[tensor.name] = argument(parameter, value)
        for tensor in wanted:
            mine = found[tensor.name].array
            for name, other in given.items():
                own = tensor.role is Role.INOUT and name == tensor.name
                if not own and np.may_share_memory(mine, other.array) and np.shares_memory(mine, other.array, 1):
                    raise CallError(f"output '{tensor.name}' shares memory with input '{name}'", hint="pass a copy")
        return found

    def _input(self, tensor: Tensor, given: Mapping[str, Argument]) -> Argument | Array:
        if tensor.name in self.constants:
            return self.constants[tensor.name]
        mine = given[tensor.name]
        return self._laid_out(tensor, mine.array) if tensor.name in self._ahead else mine

    def _laid_out(self, tensor: Tensor, array: Array) -> Array:
        digits = self._ahead.get(tensor.name)
        if digits is None:
            return np.ascontiguousarray(array)
        return laid_out(array.reshape(self.views[tensor.name]), digits, tensor.dtype.name)

    # -- running

    def _run(self, words: list[int], sizes: Mapping[str, int]) -> None:
        shared = self.code.shared_bytes(sizes)
        private = self.code.private_bytes(sizes)
        mine = self._lock.acquire(blocking=False)
        try:
            arena = self._memory(shared + private * self.threads, mine)
            start = arena.ctypes.data + (-arena.ctypes.data % ALIGNMENT)
            status = (ctypes.c_int64 * 2)()
            table = [*words, start, start + shared, private, ctypes.addressof(status)]
            packed = (ctypes.c_int64 * len(table))(*table)
            if self.threads == 1:
                self._function(0, 1, ctypes.addressof(packed))
            else:
                pool.run(self._address, ctypes.addressof(packed), self.threads)
        finally:
            if mine:
                self._lock.release()
        if status[0]:
            self._index_error(status[0] - 1, status[1])

    def _memory(self, size: int, keep: bool) -> npt.NDArray[np.uint8]:
        if not keep:
            return np.empty(size + ALIGNMENT, np.uint8)
        if self._arena.size < size + ALIGNMENT:
            self._arena = np.empty(size + ALIGNMENT, np.uint8)
        return self._arena

    def _index_error(self, code: int, value: int) -> None:
        name = self.code.buffers[code >> 8]
        raise IndexRangeError(
            f"an index into '{name}' is out of range: {value} in dimension {code & 255}",
            why="the index was read from another tensor",
        )
