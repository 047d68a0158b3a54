"""NumPy, which multiplies with OpenBLAS. It has no convolution, and nothing to pack ahead of time."""

from collections.abc import Callable

import numpy as np

from benchmarks.problems import Floats, Operands, Problem, Table
from benchmarks.shapes import Gemm
from benchmarks.systems import Candidate, Unsupported

VERSION = f"numpy {np.__version__}"
EXACT = False


def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
    """The product as it is; with a constant A also the transposed one. Threads come from the environment."""
    shape = problem.shape
    if not isinstance(shape, Gemm):
        raise Unsupported("NumPy has no convolution")
    a = inputs.first.T if shape.trans_a else inputs.first
    b = inputs.second.T if shape.trans_b else inputs.second
    plain = _product(a, b)
    if problem.table is Table.RUN_TIME:
        return (Candidate("A B", *plain),)
    run, result = _product(np.ascontiguousarray(b.T), a.T)
    packed_run, packed_result = _product(np.ascontiguousarray(b.T), np.ascontiguousarray(a.T))
    return (
        Candidate("A B", *plain),
        Candidate("B' A' of A", run, lambda: result().T),
        Candidate("B' A'", packed_run, lambda: packed_result().T),
    )


def _product(a: Floats, b: Floats) -> tuple[Callable[[], object], Callable[[], Floats]]:
    c = np.full((a.shape[0], b.shape[1]), np.nan, np.float32)
    return (lambda: np.matmul(a, b, out=c)), (lambda: c)
