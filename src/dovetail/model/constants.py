"""Constants as kernels want them: each layout of each constant is in memory once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import from_numpy
from dovetail.model.packed import Packed
from dovetail.model.parts import Layout, Part
from dovetail.runtime.layout import laid_out
from dovetail.runtime.model import NativeModel
from dovetail.runtime.model_image import Image, Machine, NativeStep, Place, Space

Array = npt.NDArray[np.generic]


class Constants:
    """Numbered arrays; asking twice for the same gives the same place."""

    def __init__(self, data: Mapping[str, Array], machine: Machine, threads: int, packed: Packed | None = None) -> None:
        self._data, self._machine, self._threads, self._packed = data, machine, threads, packed
        self._places: dict[object, Place] = {}
        self.arrays: list[Array] = []

    def whole(self, value: str) -> Place:
        """The constant ``value`` as it is."""
        return self._kept((value, None), lambda: np.ascontiguousarray(self._data[value]))

    def laid_out(self, value: str, layout: Layout) -> Place:
        return self._kept((value, layout), lambda: self._shared((value,), layout, lambda: self._data[value]))

    def made(self, part: Part, values: Mapping[str, str]) -> dict[str, Place]:
        """The arguments of ``part`` that its ``ahead`` makes; ``values``: which constant each of its own names is."""
        ahead = part.ahead
        assert ahead is not None
        sources = {p.name: values[p.name] for p in ahead.arguments if not p.writable}
        key = (part.entry, tuple(sources.items()))
        results = [p.name for p in ahead.arguments if p.writable]
        if (key, results[0]) not in self._places:
            run = cache(lambda: self._run(ahead, [self._data[value] for value in sources.values()]))
            for number, name in enumerate(results):
                what: tuple[str | int, ...] = (*sources.values(), ahead.entry, number)
                one = partial(_nth, run, number)
                self._kept((key, name), partial(self._shared, what, part.layouts.get(name), one))
        return {name: self._places[key, name] for name in results}

    def _shared(self, what: tuple[str | int, ...], layout: Layout | None, make: Callable[[], Array]) -> Array:
        """What ``make`` makes, laid out, or what another model has made; ``what``: constants, and words beside."""
        if self._packed is None:
            return _moved(make(), layout)
        packed = self._packed
        names = [packed.digest(self._data[w]) if isinstance(w, str) and w in self._data else w for w in what]
        return packed.shared((*names, layout), lambda: _moved(make(), layout))

    def _kept(self, key: object, make: Callable[[], Array]) -> Place:
        if key not in self._places:
            self._places[key] = Place(Space.CONSTANT, len(self.arrays))
            self.arrays.append(make())
        return self._places[key]

    def _run(self, part: Part, arrays: list[Array]) -> tuple[Array, ...]:
        """What ``part`` alone makes of ``arrays``."""
        inputs = tuple(p for p in part.arguments if not p.writable)
        outputs = tuple(p for p in part.arguments if p.writable)
        numbers = {p.name: Place(Space.INPUT, n) for n, p in enumerate(inputs)}
        numbers |= {p.name: Place(Space.OUTPUT, n) for n, p in enumerate(outputs)}
        step = NativeStep(
            "constants",
            part.entry,
            part.parallel,
            tuple(numbers[p.name] for p in part.arguments),
            0,
            part.shared_bytes,
            part.private_bytes,
            part.status_bytes,
        )
        memory = part.shared_bytes + part.private_bytes * self._threads
        image = Image(self._machine, self._threads, inputs, outputs, (step,), (), memory)
        shaped = [a.reshape([n or 0 for n in p.shape]) for a, p in zip(arrays, inputs, strict=True)]
        return NativeModel(image, (part.code,), ())(*shaped)


def _nth(run: Callable[[], tuple[Array, ...]], number: int) -> Array:
    return run()[number]


def _moved(array: Array, layout: Layout | None) -> Array:
    dtype = from_numpy(array.dtype)
    assert dtype is not None
    return array if layout is None else laid_out(array.reshape(layout.view), layout.digits, dtype.name)
