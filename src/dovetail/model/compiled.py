"""A compiled model: one callable over arrays.

model(x)            -> (y, ...)
model(x, out=(z,))  writes into z
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import ModelError
from dovetail.model.container import write
from dovetail.model.finished import Finished
from dovetail.model.report import VIEW, ModelReport, Timing
from dovetail.runtime.arrays import Parameter
from dovetail.runtime.cache import Cache
from dovetail.runtime.model import NativeModel
from dovetail.runtime.model_frame import HostFunction
from dovetail.runtime.model_image import HostStep

Array = npt.NDArray[np.generic]
_ROUNDS = 5


class CompiledModel:
    """A graph compiled for one target and number of threads. Several Python threads may call it at once."""

    def __init__(
        self,
        finished: Finished,
        symbols: Mapping[str, int] | None = None,
        cache: Cache | None = None,
        kept_as: Mapping[str, str] | None = None,
    ) -> None:
        self.finished = finished
        self.kept_as = kept_as
        """The key that it is kept under in the cache on disk, where it is."""
        image = finished.image
        hosts = _host_functions([step.node for step in image.steps if isinstance(step, HostStep)])
        self._native = NativeModel(image, finished.objects, finished.constants, hosts, symbols, cache)

    def __call__(self, *arrays: object, out: Sequence[object] | None = None) -> tuple[Array, ...]:
        return self._native(*arrays, out=out)

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """What a call hands in: names, dtypes and shapes."""
        return self.finished.image.inputs

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        return self.finished.image.outputs

    @property
    def threads(self) -> int:
        return self.finished.image.threads

    @property
    def report(self) -> ModelReport:
        return self.finished.report

    def profile(self, *arrays: object) -> tuple[Timing, ...]:
        """Seconds that each step takes, run alone, the middle of a few rounds."""
        rows = [row for row in self.report.rows if row.kind != VIEW]
        found = self._native.seconds(arrays, _ROUNDS)
        return tuple(Timing(row, seconds) for row, seconds in zip(rows, found, strict=True))

    def save(self, path: str | Path) -> None:
        """A file that ``artefact.load`` makes this model of again, in a process that has no more than Dovetail."""
        if self.finished.beside:
            raise ModelError(
                "the model calls functions in files beside its target file, and cannot be saved",
                why=f"functions: {', '.join(self.finished.beside)}",
            )
        write(self.finished, Path(path))


def _host_functions(nodes: Sequence[str]) -> list[HostFunction]:
    """The operators are loaded where a model needs one on the host."""
    if not nodes:
        return []
    module = import_module("dovetail.model.hosts")
    return [module.host_function(node) for node in nodes]
