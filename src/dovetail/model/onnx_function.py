"""An ONNX model as a function over arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from dovetail.base.dtypes import from_numpy
from dovetail.base.errors import CallError
from dovetail.base.words import printable
from dovetail.frontends.onnx.elements import ELEMENTS
from dovetail.frontends.onnx.entries import HostValue
from dovetail.frontends.onnx.file import read
from dovetail.frontends.onnx.model import OnnxValue, TensorType
from dovetail.model.build import compile_graph, show
from dovetail.model.compiled import CompiledModel
from dovetail.model.general import Shapes
from dovetail.model.onnx_session import Session
from dovetail.model.opened import Input, Setting


def onnx_function(path: Path, how: Setting) -> OnnxFunction:
    """The model in a file, to be compiled as ``how`` says."""
    shapes = Shapes(how.dynamic)
    compile = partial(
        compile_graph,
        target=how.target,
        threads=how.threads,
        cache=how.cache,
        progress=how.progress,
        jobs=how.jobs,
        limits=how.limits,
        shapes=shapes,
        patterns=how.patterns,
    )
    model = read(path, how.limits)
    look = partial(show, shapes=shapes, target=how.target, threads=how.threads, patterns=how.patterns)
    return OnnxFunction(Session(model, compile, look=look if how.dynamic else None), shapes, model.beside)


class OnnxFunction:
    """An ONNX model as a function. New shapes are compiled when they are first seen; the latest ones are kept."""

    def __init__(self, session: Session, shapes: Shapes, beside: tuple[str, ...] = ()) -> None:
        self._session, self.shapes = session, shapes
        self.beside = beside
        """Files beside the model's that hold data of it."""
        self.inputs = tuple(map(_input, session.inputs))
        self.outputs: tuple[str, ...] = session.outputs

    def __call__(self, *arrays: HostValue) -> tuple[HostValue, ...]:
        if len(arrays) != len(self.inputs):
            names = ", ".join(printable(i.name) for i in self.inputs)
            raise CallError(f"the model takes {len(self.inputs)} inputs ({names}), got {len(arrays)}")
        made = self.run({i.name: array for i, array in zip(self.inputs, arrays, strict=True)})
        return tuple(made.values())

    def run(self, feeds: Mapping[str, HostValue]) -> dict[str, HostValue]:
        """The outputs by name, for inputs by name."""
        return self._session.run(feeds)

    def compiled(self, feeds: Mapping[str, HostValue]) -> CompiledModel:
        """The native function for inputs like these; an UnsupportedError where part of the model runs on the host."""
        found = self._session.whole(feeds)
        assert isinstance(found, CompiledModel)
        return found

    @property
    def report(self) -> str:
        """What became of the model's operators, so far."""
        return str(self._session.report)


def _input(value: OnnxValue) -> Input:
    said = value.type
    if not isinstance(said, TensorType):
        return Input(value.name, type(said).__name__.removesuffix("Type").lower(), ())
    element = ELEMENTS[said.elem_type]
    own = from_numpy(element.array)
    return Input(value.name, element.name if own is None else str(own), tuple(said.shape or ()))
