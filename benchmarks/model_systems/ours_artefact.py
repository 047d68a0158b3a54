"""A compiled model from its file: what a process needs that only runs it."""

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.zoo import Array, Model
from dovetail.model.artefact import load
from dovetail.model.compiled import CompiledModel


def run_artefact(path: Path, model: Model) -> list[Array]:
    """Load the file and call the model once."""
    return direct(load(path), model.inputs())[1]()


def direct(
    compiled: CompiledModel, feeds: Mapping[str, Array]
) -> tuple[Callable[[], object], Callable[[], list[Array]]]:
    """A call into results that are made once, and those results."""
    arrays = [feeds[parameter.name] for parameter in compiled.inputs]
    results = list(compiled(*arrays))
    return (lambda: compiled(*arrays, out=results)), (lambda: results)
