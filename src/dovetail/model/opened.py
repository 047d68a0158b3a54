"""A model file, opened: called with arrays, compiled for what it is called with.

    model = open_model("resnet.onnx")
    (scores,) = model(image)                        by place, or by name: model.run({"image": image})
    model.compiled({"image": image}).save("resnet.dovetail")

A file that was compiled before (``.dovetail``) is opened the same way, and takes one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import CallError, ModelError, UnsupportedError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.base.suggest import closest
from dovetail.base.words import printable
from dovetail.model.artefact import SUFFIX, load
from dovetail.model.compiled import CompiledModel
from dovetail.targets.model import Target

if TYPE_CHECKING:
    from dovetail.frontends.onnx.entries import HostValue
    from dovetail.rewrite.patterns.file import Patterns
    from dovetail.rewrite.patterns.pattern import Pattern

Array = npt.NDArray[np.generic]
Progress = Callable[[int, int, str], None]
"""(done, total, title) after each program."""
ONNX = ".onnx"


@dataclass(frozen=True, slots=True)
class Input:
    """What a model takes: an extent is a number, a name, or None where the file says nothing."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]

    def __str__(self) -> str:
        extents = ", ".join("?" if extent is None else printable(str(extent)) for extent in self.shape)
        return f"{printable(self.name)}: {self.dtype}[{extents}]"


class Function(Protocol):
    """A model that can be called, by place or by name."""

    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]

    def __call__(self, *arrays: HostValue) -> tuple[HostValue, ...]: ...

    def run(self, feeds: Mapping[str, HostValue]) -> dict[str, HostValue]:
        """The outputs by name, for inputs by name."""

    def compiled(self, feeds: Mapping[str, HostValue]) -> CompiledModel:
        """The native function for inputs like these; an UnsupportedError where part of the model runs on the host."""

    @property
    def report(self) -> str:
        """What became of the model's operators, so far."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a model is compiled."""

    target: str | Path | Target
    threads: int | None
    cache: bool
    progress: Progress | None
    jobs: int | None
    limits: ModelLimits
    dynamic: bool | None = None
    """Whether code is made for many shapes: never, from the start, or (None) from the second shape on."""
    patterns: tuple[Pattern, ...] = ()
    """Put in place in the model's graph before it is compiled."""


class KeptFunction:
    """A model from a ``.dovetail`` file, as a function of the same kind."""

    def __init__(self, model: CompiledModel) -> None:
        self.model = model
        self.inputs = tuple(Input(p.name, p.dtype, tuple(p.shape)) for p in model.inputs)
        self.outputs = tuple(p.name for p in model.outputs)

    def __call__(self, *arrays: HostValue) -> tuple[HostValue, ...]:
        return self.model(*arrays)

    def run(self, feeds: Mapping[str, HostValue]) -> dict[str, HostValue]:
        """The outputs by name, for inputs by name."""
        known = [i.name for i in self.inputs]
        for name in feeds:
            if name not in known:
                raise CallError(f"the model has no input '{printable(name)}'", hint=closest(name, known))
        for name in known:
            if name not in feeds:
                raise CallError(f"input '{printable(name)}' is missing", why=f"the model takes {', '.join(known)}")
        return dict(zip(self.outputs, self.model(*(feeds[name] for name in known)), strict=True))

    def compiled(self, feeds: Mapping[str, HostValue]) -> CompiledModel:
        return self.model

    @property
    def report(self) -> str:
        return str(self.model.report)


def open_model(
    path: str | Path,
    target: str | Path | Target = "host",
    threads: int | None = None,
    *,
    cache: bool = True,
    progress: Progress | None = None,
    jobs: int | None = None,
    limits: ModelLimits = DEFAULT_MODEL_LIMITS,
    dynamic: bool | None = None,
    patterns: Patterns | None = None,
) -> Function:
    """The model in a file: ``.onnx``, which needs the extra ``dovetail[onnx]``, or ``.dovetail``.

    The first shape that it is called with gets code of its own; from the second on, code takes sizes at run time where
    it can, so that further shapes compile nothing. ``dynamic=True`` has such code from the start, ``False`` never.
    ``patterns`` is a file of patterns, or patterns, that are put in place in the model's graph.
    """
    path = Path(path)
    if path.suffix == SUFFIX:
        if patterns is not None:
            why = "what is in it is code, not operators"
            raise ModelError(f"'{printable(path.name)}' was compiled already", why=why, hint="patterns with the .onnx")
        return KeptFunction(load(path, limits))
    if path.suffix != ONNX:
        raise ModelError(f"'{printable(path.name)}' is no model file", hint=f"a file called *{ONNX} or *{SUFFIX}")
    setting = Setting(target, threads, cache, progress, jobs, limits, dynamic, own_patterns(patterns))
    module = import_module("dovetail.model.remembered")
    opened: Function = module.remembered(path, setting, partial(_read, path, setting))
    return opened


def own_patterns(patterns: Patterns | None) -> tuple[Pattern, ...]:
    """Patterns, or those in a file, read and checked; what reads them is loaded when there are some."""
    if patterns is None:
        return ()
    found: tuple[Pattern, ...] = import_module("dovetail.rewrite.patterns.file").gathered(patterns)
    return found


def _read(path: Path, setting: Setting) -> Function:
    try:
        module = import_module("dovetail.model.onnx_function")
    except ModuleNotFoundError as missing:
        if missing.name != "onnx":
            raise
        raise ModelError("the package 'onnx' is not installed", hint="pip install 'dovetail[onnx]'") from None
    found: Function = module.onnx_function(path, setting)
    return found


def made_up(inputs: Sequence[Input], shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, Array]:
    """An array for each input: floats around zero, and whole numbers that are 0 or 1, which any table has places for.

    ``shapes`` says what the file leaves open; an extent of which nothing is said is 1.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for given in inputs:
        shape = shapes.get(given.name) or tuple(n if isinstance(n, int) else 1 for n in given.shape)
        kind = _numpy(given)
        if np.issubdtype(kind, np.integer) or kind == np.bool_:
            found[given.name] = rng.integers(0, 2, shape).astype(kind)
        else:
            found[given.name] = rng.standard_normal(shape).astype(kind)
    return found


def _numpy(given: Input) -> np.dtype[np.generic]:
    if given.dtype not in DTYPES:
        raise UnsupportedError(f"input '{printable(given.name)}'", f"nothing can be made up for {given.dtype}")
    return DTYPES[given.dtype].numpy
