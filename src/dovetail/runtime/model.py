"""A model in memory, ready to run: code loaded, constants at hand, frames for as many callers as there are at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import CallError
from dovetail.runtime import pool
from dovetail.runtime.arrays import Argument, bind, empty_aligned
from dovetail.runtime.cache import Cache
from dovetail.runtime.jit import load_objects
from dovetail.runtime.model_frame import Frame, HostFunction, Segment
from dovetail.runtime.model_image import Image, Tensor
from dovetail.runtime.plain_call import DONE, layout_is_known

Array = npt.NDArray[np.generic]
_NOT_PLAIN = 1  # as dt_model_call returns it


class NativeModel:
    """``model(x, y)`` -> outputs; ``model(x, y, out=(z,))`` writes into z. Several Python threads may call at once."""

    def __init__(
        self,
        image: Image,
        objects: Iterable[bytes],
        constants: Sequence[Array],
        hosts: Sequence[HostFunction] = (),
        symbols: Mapping[str, int] | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.image, self._constants, self._hosts = image, tuple(constants), tuple(hosts)
        known = pool.symbols(image.machine.relax, cache)
        self._code = load_objects(objects, {**known, **(symbols or {})})
        self._entries = {step.entry: self._code.address(step.entry) for step in image.natives()}
        self._arguments = len(image.inputs) + len(image.outputs)
        self._results = [partial(empty_aligned, tuple(n or 0 for n in p.shape), p.dtype) for p in image.outputs]
        self._native = pool.model_call()
        self._idle: list[Frame] = [self._new_frame()]
        self._simple = len(self._idle[0].parts) == 1 and isinstance(self._idle[0].parts[0], Segment)
        self._simple = self._simple and layout_is_known() and not image.copies

    def __call__(self, *arrays: object, out: Sequence[object] | None = None) -> tuple[Array, ...]:
        results = tuple(make() for make in self._results) if out is None else tuple(out)
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = self._new_frame()
        try:
            if not self._simple or not self._plainly(frame, arrays, results):
                results = self._generally(frame, arrays, results)
        finally:
            self._idle.append(frame)
        return cast(tuple[Array, ...], results)  # the call has checked that they are

    def seconds(self, arrays: Sequence[object], rounds: int) -> list[float]:
        """How long each step takes, the middle of so many rounds."""
        frame = self._new_frame()
        arguments, _ = self._bound(arrays, tuple(make() for make in self._results))
        frame.addresses[:] = [mine.address for mine in arguments]
        found: list[list[float]] = []
        for _ in range(rounds):
            taken: list[float] = []
            for part in frame.parts:
                if isinstance(part, Segment):
                    taken += [_timed(partial(part.run_step, number)) for number in range(len(part.steps))]
                else:
                    taken.append(_timed(part.run))
            found.append(taken)
        return [sorted(column)[rounds // 2] for column in zip(*found, strict=True)]

    def _new_frame(self) -> Frame:
        return Frame(self.image, self._entries, self._constants, self._hosts)

    def _plainly(self, frame: Frame, arrays: tuple[object, ...], results: tuple[object, ...]) -> bool:
        """Whether the model ran: it did not where an argument is no plain array of the right kind."""
        if len(arrays) + len(results) != self._arguments:
            return False
        frame.objects[:] = [*map(id, arrays), *map(id, results)]
        segment = frame.parts[0]
        assert isinstance(segment, Segment)
        status = self._native(segment.place)
        if status != DONE and status != _NOT_PLAIN:
            segment.finish(status)
        return status == DONE

    def _generally(self, frame: Frame, arrays: Sequence[object], results: Sequence[object]) -> tuple[Array, ...]:
        """Anything that can be taken for the arrays that are wanted, or the error that says why not."""
        arguments, made = self._bound(arrays, results)
        frame.addresses[:] = [mine.address for mine in arguments]
        for part in frame.parts:
            part.run()
        for copy in self.image.copies:
            parameter = self.image.outputs[copy.output]
            shape = tuple(n or 0 for n in parameter.shape)
            np.copyto(made[copy.output], frame.array(Tensor(copy.source, parameter.dtype, shape)))
        return made

    def _bound(self, arrays: Sequence[object], results: Sequence[object]) -> tuple[list[Argument], tuple[Array, ...]]:
        inputs, outputs = self.image.inputs, self.image.outputs
        if len(arrays) != len(inputs):
            listed = ", ".join(f"{p.name}: {p}" for p in inputs) or "none"
            raise CallError(f"the model takes {len(inputs)} inputs, got {len(arrays)}", why=f"its inputs: {listed}")
        if len(results) != len(outputs):
            raise CallError(f"out has {len(results)} arrays, the model has {len(outputs)} outputs")
        arguments = bind((*inputs, *outputs), (*arrays, *results))
        return arguments, tuple(a.array for a in arguments[len(inputs) :])


def _timed(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
