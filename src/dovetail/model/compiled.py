"""A compiled model: one callable over arrays.

model(x)            -> (y, ...)
model(x, out=(z,))  writes into z
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.model.report import VIEW, ModelReport, Timing
from dovetail.runtime.arrays import Parameter
from dovetail.runtime.cache import Cache
from dovetail.runtime.model import NativeModel
from dovetail.runtime.model_frame import HostFunction
from dovetail.runtime.model_image import Image

Array = npt.NDArray[np.generic]
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Parts:
    """What a compiled model is made of: all that a file must hold."""

    image: Image
    objects: tuple[bytes, ...]
    constants: tuple[Array, ...]
    report: ModelReport


class CompiledModel:
    """A graph compiled for one target and number of threads. Several Python threads may call it at once."""

    def __init__(
        self,
        parts: Parts,
        hosts: Sequence[HostFunction] = (),
        symbols: Mapping[str, int] | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.parts = parts
        self._native = NativeModel(parts.image, parts.objects, parts.constants, hosts, symbols, cache)

    def __call__(self, *arrays: object, out: Sequence[object] | None = None) -> tuple[Array, ...]:
        return self._native(*arrays, out=out)

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """What a call hands in: names, dtypes and shapes."""
        return self.parts.image.inputs

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        return self.parts.image.outputs

    @property
    def threads(self) -> int:
        return self.parts.image.threads

    @property
    def report(self) -> ModelReport:
        return self.parts.report

    def profile(self, *arrays: object) -> tuple[Timing, ...]:
        """Seconds that each step takes, run alone, the middle of a few rounds."""
        rows = [row for row in self.report.rows if row.kind != VIEW]
        found = self._native.seconds(arrays, _ROUNDS)
        return tuple(Timing(row, seconds) for row, seconds in zip(rows, found, strict=True))
