"""What a system under test offers: a version, and ways to run a problem.

A module of ``benchmarks/peers`` (and ``benchmarks/ours.py``) has

    VERSION: str                                                   shown with the results
    EXACT: bool                                                    whether integers must come out exactly
    prepare(problem, operands, threads) -> tuple[Candidate, ...]   everything before the first timed call

Where a system has several ways to run a problem it returns them all, and the fastest is the one that is measured.
It raises ``Unsupported`` for a problem that it has no way to run. Importing the module raises ImportError where the
package is not installed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.problems import Floats, Operands, Problem

MODULES = {
    "dovetail": "benchmarks.ours",
    "dovetail-sized": "benchmarks.ours_sized",
    "dovetail-direct": "benchmarks.ours_direct",
    "dovetail-relaxed": "benchmarks.ours_relaxed",
    "numpy": "benchmarks.peers.numpy_blas",
    "torch": "benchmarks.peers.torch_cpu",
    "onnxruntime": "benchmarks.peers.onnxruntime_cpu",
    "openvino": "benchmarks.peers.openvino_cpu",
}
GEMM_PEERS = "numpy,torch,onnxruntime,openvino"
CONV_PEERS = "torch,onnxruntime,openvino"


class Unsupported(Exception):
    """The system has no way to run this problem; the message says why."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """``run()`` computes the problem once; ``result()`` is what the last run computed, as C[m,n] or NCHW."""

    name: str
    run: Callable[[], object]
    result: Callable[[], Floats]


class SystemModule(Protocol):
    """The type of such a module."""

    VERSION: str
    EXACT: bool

    @staticmethod
    def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]: ...
