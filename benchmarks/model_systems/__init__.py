"""Whole models run by each system, one module each.

A module has

    VERSION: str                                     the system's name and version
    prepare(model, threads) -> tuple[ModelRun, ...]  everything before the first timed call

and raises ImportError or ``Unsupported`` as the modules in ``benchmarks/systems.py`` do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.zoo import Array, Model

MODEL_MODULES = {
    "model/dovetail": "benchmarks.model_systems.ours",
    "model/onnxruntime": "benchmarks.model_systems.onnxruntime_cpu",
    "model/openvino": "benchmarks.model_systems.openvino_cpu",
    "model/torch": "benchmarks.model_systems.torch_eager",
    "model/torch.compile": "benchmarks.model_systems.torch_compile",
}
BOUND = 1e-5
"""The largest error of an output, as a part of its largest value, against the float64 run of the same weights: these
models sum up to 3072 products fifty times in a row, and a good float32 run of them stays below 2e-6."""


@dataclass(frozen=True, slots=True)
class ModelRun:
    """``run()`` computes the model once; ``results()`` are the outputs of the last run, in order."""

    name: str
    run: Callable[[], object]
    results: Callable[[], Sequence[Array]]


class ModelModule(Protocol):
    """The type of such a module."""

    VERSION: str

    @staticmethod
    def prepare(model: Model, threads: int) -> tuple[ModelRun, ...]: ...


def worst_error(results: Sequence[Array], wanted: Sequence[NDArray[np.float64]]) -> float:
    """The largest error of any output as a part of that output's largest value; inf where shapes differ or NaNs are."""
    if len(results) != len(wanted):
        return float("inf")
    worst = 0.0
    for result, reference in zip(results, wanted, strict=True):
        if result.shape != reference.shape:
            return float("inf")
        error = float(np.max(np.abs(result.astype(np.float64) - reference)) / np.max(np.abs(reference)))
        worst = max(worst, error) if error == error else float("inf")
    return worst
