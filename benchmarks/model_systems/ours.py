"""Dovetail: the ONNX file as one native function."""

import numpy as np

import dovetail
from benchmarks.model_systems import ModelRun
from benchmarks.model_systems.ours_artefact import direct
from benchmarks.zoo import Array, Model
from dovetail.base.errors import UnsupportedError
from dovetail.model.compiled import CompiledModel
from dovetail.model.opened import Function, open_model

VERSION = f"dovetail {dovetail.__version__}"


def prepare(model: Model, threads: int) -> tuple[ModelRun, ...]:
    """As a model file is called; and, where the whole model became one function, by that."""
    feeds = model.inputs()
    last: list[Array] = []
    opened, compiled = compile_model(model, threads)

    def run() -> None:
        last[:] = [found for found in opened.run(feeds).values() if isinstance(found, np.ndarray)]

    runs = [ModelRun("model", run, lambda: last)]
    if compiled is not None:
        runs.append(ModelRun("one function", *direct(compiled, feeds)))
    return tuple(runs)


def compile_model(model: Model, threads: int) -> tuple[Function, CompiledModel | None]:
    """The model after its first run, and its native function where nothing of it runs on the host."""
    opened, feeds = open_model(model.onnx, threads=threads), model.inputs()
    opened.run(feeds)
    try:
        return opened, opened.compiled(feeds)
    except UnsupportedError:
        return opened, None
