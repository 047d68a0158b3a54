"""Dovetail: the ONNX file as one native function."""

import numpy as np

import dovetail
from benchmarks.model_systems import ModelRun
from benchmarks.model_systems.ours_artefact import direct
from benchmarks.zoo import Array, Model
from dovetail.frontends.onnx.file import read
from dovetail.ir.graph.bound import BoundGraph
from dovetail.model.build import compile_graph
from dovetail.model.compiled import CompiledModel
from dovetail.model.onnx_session import Session

VERSION = f"dovetail {dovetail.__version__}"


def prepare(model: Model, threads: int) -> tuple[ModelRun, ...]:
    """By a session; and, where the whole model became one function, by that."""
    feeds = model.inputs()
    last: list[Array] = []
    session, compiled = compile_model(model, threads)

    def run() -> None:
        last[:] = [found for found in session.run(feeds).values() if isinstance(found, np.ndarray)]

    runs = [ModelRun("session", run, lambda: last)]
    if len(compiled) == 1:
        runs.append(ModelRun("one function", *direct(compiled[0], feeds)))
    return tuple(runs)


def compile_model(model: Model, threads: int, cache: bool = True) -> tuple[Session, list[CompiledModel]]:
    """The session after its first run, and the functions that were compiled for it."""
    compiled: list[CompiledModel] = []

    def compile_one(bound: BoundGraph) -> CompiledModel:
        compiled.append(compile_graph(bound, "host", threads, cache=cache))
        return compiled[-1]

    session = Session(read(model.onnx), compile_one)
    session.run(model.inputs())
    return session, compiled
