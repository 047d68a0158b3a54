"""A compiled program, ready to call.

kernel(x, y)              -> the output, or a tuple of outputs
kernel(x, y, out=z)       -> writes into z
kernel(x, sizes={"m": 7}) -> where no input's shape tells a run-time size
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import CallError, IndexRangeError
from dovetail.ir.bind import bind_sizes, extents
from dovetail.ir.certificate import Certificate
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role, Tensor
from dovetail.runtime.arrays import Argument, Parameter, argument, empty_aligned
from dovetail.runtime.frame import Code, Frame
from dovetail.runtime.layout import laid_out
from dovetail.runtime.plain_call import PlainCall, layout_is_known

Array = npt.NDArray[np.generic]

__all__ = ["Code", "Kernel"]


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
    main: Program | None = None
    """What the code computes, where that is not all of the program: some of its constants are made by ``ahead``."""
    ahead: Kernel | None = None
    """Makes constants of ``main`` from constants of the program, once they are known."""
    algorithm: str = "direct"
    """The rule that gave the form of the program that the code computes."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._main = self.main or self.program
        self._sources = tuple(t.name for t in self.ahead.program.inputs) if self.ahead else ()
        self._known: dict[str, Array] = {}
        self._made: dict[str, Array] = {}
        self._tensors = tuple(t for t in self._main.tensors if t.role is not Role.TEMP)
        self._slots = {t.name: number for number, t in enumerate(self._tensors)}
        self._ahead = {h.tensor: h.digits for h in self.plan.holds if h.ahead}
        self._names = tuple(s.name for s in self.program.sizes)
        self._inouts = tuple(t.name for t in self.program.outputs if t.role is Role.INOUT)
        self._written = tuple((t, self._slots[t.name]) for t in self.program.outputs)
        self._results = tuple(_parameter(t, writable=True) for t in self.program.outputs)
        self._fixed: tuple[tuple[int, int], ...] = ()
        self._expect()

    @property
    def packing_seconds(self) -> float:
        """Time spent laying out constants."""
        return self.seconds.get("constants", 0.0)

    def __call__(
        self, *arrays: object, out: object = None, sizes: Mapping[str, int] | None = None
    ) -> Array | tuple[Array, ...]:
        if out is not None and sizes is None and self._plain is not None and self._plain(arrays, out):
            return cast(Array, out)
        if len(arrays) != len(self._given):
            names = ", ".join(t.name for t in self._given)
            raise CallError(f"the kernel takes {len(self._given)} arguments ({names}), got {len(arrays)}")
        given = list(map(argument, self._wanted, arrays))
        bound = self._bound(given, sizes) if self._names or sizes else {}
        results = self._fresh(bound) if out is None else self._into(out, bound, given)
        for name in self._inouts:
            self._start(name, given, results)
        mine = self._lock.acquire(blocking=False)
        try:
            frame = self._frame if mine else self._new_frame()
            code, value = self._run(frame, given, results, bound)
        finally:
            if mine:
                self._lock.release()
        if code:
            raise _index_error(self.code.buffers, code, value)
        return results[0].array if len(results) == 1 else tuple(r.array for r in results)

    def explain(self) -> str:
        """What was chosen, and why."""
        return self.explanation()

    def bind(self, constants: Mapping[str, object]) -> None:
        """Lay out constants once, and compute what depends on them alone; they are no longer arguments."""
        for name, value in constants.items():
            tensor = next((t for t in self.program.tensors if t.name == name), None)
            if tensor is None or tensor.role is not Role.CONST:
                raise CallError(f"'{name}' is not a constant of the program", hint="declare it: const ...")
            given = argument(_parameter(tensor), value).array
            self.constants[name] = np.ascontiguousarray(self._laid_out(tensor, given))
            if name in self._sources:
                self._known[name] = given if name in self._slots else self.constants[name]
        if self._sources and self._known.keys() >= set(self._sources):
            self._made = self._derived(self._known)
        self._expect()

    # -- arguments

    def _expect(self) -> None:
        """What a call must hand in, now that some constants are bound."""
        self._given = tuple(t for t in self.program.inputs if t.name not in self.constants)
        self._wanted = tuple(_parameter(t) for t in self._given)
        self._places = tuple((self._slots.get(t.name, -1), t.name in self._ahead, t) for t in self._given)
        fixed = {**{n: a for n, a in self.constants.items() if n in self._slots}, **self._made}
        self._fixed = tuple((self._slots[n], a.ctypes.data) for n, a in fixed.items())
        self._pending = bool(self._sources) and not self._made
        self._frame = self._new_frame()
        self._plain = self._plain_call()

    def _plain_call(self) -> PlainCall | None:
        """For sizes that shapes tell, one result, and constants that are bound or used as they lie."""
        if self._inouts or len(self._results) != 1 or any(ahead for _, ahead, _ in self._places) or self._pending:
            return None
        told = {name for t in self._given for e in t.shape if e.is_affine and len(e.terms) == 1 for name in e.names()}
        if not told.issuperset(self._names) or not layout_is_known():
            return None
        if not self._names:
            self._frame.settle({})
        read = [(p, slot) for p, (slot, _, _) in zip(self._wanted, self._places, strict=True)]
        index_error = partial(_index_error, self.code.buffers)
        return PlainCall(self._frame, self._lock, index_error, [*read, (self._results[0], self._written[0][1])])

    def _new_frame(self) -> Frame:
        units = self.threads if self.plan.is_parallel else 1
        frame = Frame(self.code, len(self._tensors), len(self._names), units)
        for slot, address in self._fixed:
            frame.words[slot] = address
        return frame

    def _bound(self, given: Sequence[Argument], sizes: Mapping[str, int] | None) -> dict[str, int]:
        shapes = {t.name: a.array.shape for t, a in zip(self._given, given, strict=True)}
        found = bind_sizes(self.program, shapes, sizes)
        return {name: found[name] for name in self._names}

    def _fresh(self, sizes: Mapping[str, int]) -> list[Argument]:
        found = []
        for tensor, _ in self._written:
            array = empty_aligned(extents(tensor, sizes), tensor.dtype.name)
            found.append(Argument(array.ctypes.data, array))
        return found

    def _into(self, out: object, sizes: Mapping[str, int], given: Sequence[Argument]) -> list[Argument]:
        """The caller's own arrays for the results."""
        several = list(out) if isinstance(out, list | tuple) else [out]
        if len(several) != len(self._results):
            raise CallError(f"out has {len(several)} arrays, the program has {len(self._results)} outputs")
        wanted = self._results
        if self._names:
            wanted = tuple(Parameter(t.name, t.dtype.name, extents(t, sizes), True) for t in self.program.outputs)
        found = list(map(argument, wanted, several))
        for (tensor, _), mine in zip(self._written, found, strict=True):
            start, end = mine.address, mine.address + mine.array.nbytes
            for other, theirs in zip(self._given, given, strict=True):
                own = tensor.role is Role.INOUT and other.name == tensor.name
                if not own and theirs.address < end and start < theirs.address + theirs.array.nbytes:
                    raise CallError(
                        f"output '{tensor.name}' shares memory with input '{other.name}'", hint="pass a copy"
                    )
            for (other, _), theirs in zip(self._written, found, strict=True):
                if other is not tensor and theirs.address < end and start < theirs.address + theirs.array.nbytes:
                    what = f"outputs '{tensor.name}' and '{other.name}' share memory"
                    raise CallError(what, hint="pass separate arrays")
        return found

    def _start(self, name: str, given: Sequence[Argument], results: Sequence[Argument]) -> None:
        """An inout result starts at the value that came in."""
        mine = next(r for (t, _), r in zip(self._written, results, strict=True) if t.name == name)
        came = next(a for t, a in zip(self._given, given, strict=True) if t.name == name)
        if mine.address != came.address:
            np.copyto(mine.array, came.array)

    def _laid_out(self, tensor: Tensor, array: Array) -> Array:
        digits = self._ahead.get(tensor.name)
        if digits is None:
            return array
        return laid_out(array.reshape(self.views[tensor.name]), digits, tensor.dtype.name)

    def _derived(self, known: Mapping[str, Array]) -> dict[str, Array]:
        """The constants that are made of others, laid out."""
        assert self.ahead is not None
        found = self.ahead(*(known[name] for name in self._sources))
        several = found if isinstance(found, tuple) else (found,)
        tensors = self.ahead.program.outputs
        return {t.name: self._laid_out(t, array) for t, array in zip(tensors, several, strict=True)}

    # -- running

    def _run(
        self, frame: Frame, given: Sequence[Argument], results: Sequence[Argument], sizes: Mapping[str, int]
    ) -> tuple[int, int]:
        if frame.settle(sizes) and frame is self._frame and self._plain is not None:
            self._plain.expect([extents(t, sizes) for t in (*self._given, *self.program.outputs)])
        words = frame.words
        moved: list[Array] = []
        if self._pending:
            raw = {t.name: mine.array for t, mine in zip(self._given, given, strict=True)}
            for name, array in self._derived({**self._known, **raw}).items():
                moved.append(array)
                words[self._slots[name]] = array.ctypes.data
        for (slot, ahead, tensor), mine in zip(self._places, given, strict=True):
            if slot < 0:
                continue
            if ahead:
                moved.append(self._laid_out(tensor, mine.array))
                words[slot] = moved[-1].ctypes.data
            else:
                words[slot] = mine.address
        for (_, slot), mine in zip(self._written, results, strict=True):
            words[slot] = mine.address
        return frame.run()


def _parameter(tensor: Tensor, writable: bool = False) -> Parameter:
    shape = tuple(e.const if e.is_constant else None for e in tensor.shape)
    return Parameter(tensor.name, tensor.dtype.name, shape, writable)


def _index_error(buffers: Sequence[str], code: int, value: int) -> IndexRangeError:
    """What the status words of a run say."""
    code -= 1
    return IndexRangeError(
        f"an index into '{buffers[code >> 8]}' is out of range: {value} in dimension {code & 255}",
        why="the index was read from another tensor",
    )
