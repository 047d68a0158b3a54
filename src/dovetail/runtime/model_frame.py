"""What one run of a model at a time needs: its arena, the words of all steps, and tables that native code walks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import dtype as dtype_named
from dovetail.base.errors import IndexRangeError
from dovetail.runtime import pool
from dovetail.runtime.model_image import HostStep, Image, NativeStep, Place, Space, Tensor
from dovetail.runtime.pages import new_memory
from dovetail.runtime.plain_call import FAILED, REFUSED, Request, Wanted, wanted

Array = npt.NDArray[np.generic]
HostFunction = Callable[..., Sequence[Array]]
_SPREAD, _MEET = 1, 2  # of %step
_STATUS = 3  # the word behind arguments and sizes that holds the status pointer


class _Step(ctypes.Structure):
    """``%step`` of model.ll."""

    _fields_ = (("kernel", ctypes.c_void_p), ("words", ctypes.c_void_p), ("kind", ctypes.c_int64))


class _Patch(ctypes.Structure):
    """``%patch`` of model.ll."""

    _fields_ = (("word", ctypes.c_void_p), ("number", ctypes.c_int64))


class _Table(ctypes.Structure):
    """``%table`` of model.ll."""

    _fields_ = (("count", ctypes.c_int64), ("steps", ctypes.c_void_p))


class _Model(ctypes.Structure):
    """``%model`` of model.ll."""

    _fields_ = (
        ("request", Request),
        ("table", ctypes.c_void_p),
        ("patches", ctypes.c_void_p),
        ("patch_count", ctypes.c_int64),
        ("checks", ctypes.c_void_p),
        ("check_count", ctypes.c_int64),
    )


class Frame:
    """One caller at a time; whoever finds none free makes another one."""

    def __init__(
        self, image: Image, entries: Mapping[str, int], constants: Sequence[Array], hosts: Sequence[HostFunction]
    ) -> None:
        self.image, self._constants = image, constants
        self.arena, self.start = _aligned(image.arena_bytes)
        self._status, status = _aligned(sum(step.status_bytes for step in image.natives()))
        self._status[:] = 0
        count = len(image.inputs) + len(image.outputs)
        self.addresses = (ctypes.c_int64 * count)()
        """Of inputs, then of outputs: filled in before each run."""
        self.objects = (ctypes.c_int64 * count)()
        self._wanted = self._parameters()
        self._words = (ctypes.c_int64 * max(1, sum(map(_word_count, image.natives()))))()
        self._next_word = ctypes.addressof(self._words)
        functions = iter(hosts)
        self.parts: list[Segment | HostCall] = []
        for group in _groups(image.steps):
            if isinstance(group, HostStep):
                self.parts.append(HostCall(self, group, next(functions)))
                continue
            words = []
            for step in group:
                words.append(self._settle(step, status))
                status += step.status_bytes
            self.parts.append(Segment(self, group, words, entries))

    def request(self, units: int) -> Request:
        return Request(
            count=len(self.objects),
            written=len(self.image.outputs),
            parameters=ctypes.addressof(self._wanted),
            objects=ctypes.addressof(self.objects),
            words=ctypes.addressof(self.addresses),
            threads=units,
        )

    def number(self, place: Place) -> int:
        """Which of ``addresses`` an input or output is; -1 for what lies elsewhere."""
        if place.space is Space.INPUT:
            return place.at
        return len(self.image.inputs) + place.at if place.space is Space.OUTPUT else -1

    def address(self, place: Place) -> int:
        """Where a value lies now."""
        if place.space is Space.ARENA:
            return self.start + place.at
        if place.space is Space.CONSTANT:
            return int(self._constants[place.at].ctypes.data)
        return self.addresses[self.number(place)]

    def array(self, tensor: Tensor) -> Array:
        """A value of the current run, where it lies."""
        element = dtype_named(tensor.dtype).numpy
        length = prod(tensor.shape) * element.itemsize
        if not length:
            return np.empty(tensor.shape, element)
        memory = (ctypes.c_uint8 * length).from_address(self.address(tensor.place))
        return np.ndarray(tensor.shape, element, memoryview(memory))

    def _settle(self, step: NativeStep, status: int) -> int:
        """The words of ``step``, as far as they are known; returns where they are."""
        at, count = self._next_word, len(step.arguments)
        words = (ctypes.c_int64 * _word_count(step)).from_address(at)
        for number, place in enumerate(step.arguments):
            words[number] = 0 if self.number(place) >= 0 else self.address(place)
        work = (self.start + step.shared, self.start + step.private, step.stride, status)
        words[count:] = [*step.sizes, *work]
        self._next_word += ctypes.sizeof(words)
        return at

    def _parameters(self) -> ctypes.Array[Wanted]:
        parameters = (*self.image.inputs, *self.image.outputs)
        self._extents = [(ctypes.c_int64 * len(p.shape))(*(n or 0 for n in p.shape)) for p in parameters]
        found = (Wanted * len(parameters))(
            *(wanted(p, number, ctypes.addressof(self._extents[number])) for number, p in enumerate(parameters))
        )
        for one, extents, parameter in zip(found, self._extents, parameters, strict=True):
            one.bytes = prod(extents) * parameter.numpy.itemsize
        return found


class Segment:
    """Native steps with nothing else between them: one run of the pool."""

    def __init__(
        self, frame: Frame, steps: tuple[NativeStep, ...], words: Sequence[int], entries: Mapping[str, int]
    ) -> None:
        self.steps = steps
        self.units = frame.image.threads if any(step.parallel for step in steps) else 1
        table = [
            _Step(entries[step.entry], at, kind) for step, at, kind in zip(steps, words, step_kinds(steps), strict=True)
        ]
        self._steps = (_Step * len(table))(*table)
        self._table = _Table(len(table), ctypes.addressof(self._steps))
        patches = [
            _Patch(at + 8 * number, frame.number(place))
            for step, at in zip(steps, words, strict=True)
            for number, place in enumerate(step.arguments)
            if frame.number(place) >= 0
        ]
        self._patches = (_Patch * max(1, len(patches)))(*patches)
        self._checked = [(s, _status_at(s, at)) for s, at in zip(steps, words, strict=True) if s.names]
        self._checks = (ctypes.c_int64 * max(1, len(self._checked)))(*(at for _, at in self._checked))
        self._model = _Model(
            frame.request(self.units),
            ctypes.addressof(self._table),
            ctypes.addressof(self._patches),
            len(patches),
            ctypes.addressof(self._checks),
            len(self._checked),
        )
        self.place = ctypes.c_void_p(ctypes.addressof(self._model))
        self._run = pool.model_run()

    def run(self) -> None:
        """All steps, with the addresses that the frame holds."""
        self.finish(self._run(self.place))

    def run_step(self, number: int) -> None:
        """One step alone."""
        whole, steps = self._table.count, self._table.steps
        self._table.count, self._table.steps = 1, ctypes.addressof(self._steps[number])
        try:
            self.run()
        finally:
            self._table.count, self._table.steps = whole, steps

    def finish(self, status: int) -> None:
        """Raises where ``status``, of a run, says that it was refused or that an index left its tensor."""
        if status == REFUSED:
            pool.check(self._model.request.reason)
        if status == FAILED:
            raise self._failure()

    def _failure(self) -> IndexRangeError:
        """The first step that failed; all status words are cleared for the next run."""
        failures = []
        for step, at in self._checked:
            words = (ctypes.c_int64 * 2).from_address(at)
            if words[0]:
                failures.append((step, words[0] - 1, words[1]))
                words[0] = words[1] = 0
        step, code, value = failures[0]
        return IndexRangeError(
            f"an index into '{step.names[code >> 8]}' is out of range: {value} in dimension {code & 255}",
            where=step.title,
            why="the index was read from another tensor",
        )


class HostCall:
    """A step on the host, over the frame's memory."""

    def __init__(self, frame: Frame, step: HostStep, function: HostFunction) -> None:
        self.step, self._frame, self._function = step, frame, function

    def run(self) -> None:
        frame, step = self._frame, self.step
        made = self._function(*(frame.array(t) for t in step.operands))
        for tensor, array in zip(step.results, made, strict=True):
            np.copyto(frame.array(tensor), array, casting="no")


def _groups(steps: Sequence[NativeStep | HostStep]) -> Iterator[tuple[NativeStep, ...] | HostStep]:
    """Neighbouring native steps together."""
    group: list[NativeStep] = []
    for step in steps:
        if isinstance(step, NativeStep):
            group.append(step)
            continue
        if group:
            yield tuple(group)
            group = []
        yield step
    if group:
        yield tuple(group)


def step_kinds(steps: Sequence[NativeStep]) -> list[int]:
    """``kind`` of each step in a row: units meet before one unless unit 0 runs both it and the one before."""
    found = []
    for before, step in zip((None, *steps), steps, strict=False):
        meet = before is not None and (step.parallel or before.parallel)
        found.append((_SPREAD if step.parallel else 0) | (_MEET if meet else 0))
    return found


def _status_at(step: NativeStep, words: int) -> int:
    return ctypes.c_int64.from_address(words + 8 * (len(step.arguments) + len(step.sizes) + _STATUS)).value


def _word_count(step: NativeStep) -> int:
    return len(step.arguments) + len(step.sizes) + 4


def _aligned(length: int) -> tuple[Array, int]:
    """Memory, and its first address on a cache line."""
    memory = new_memory(length)
    return memory, int(memory.ctypes.data)
