"""Dovetail with the rows of a product known at run time only: one object for every ``m`` in a range."""

from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks import programs
from benchmarks.ours import EXACT, VERSION, compile_kernel
from benchmarks.problems import Operands, Problem, Table
from benchmarks.shapes import Gemm
from benchmarks.systems import Candidate, Unsupported

__all__ = ["EXACT", "VERSION", "prepare"]

LEAST_ROWS, MOST_ROWS = 1, 512


def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
    """The kernel of all row counts, called with the rows of this problem."""
    shape = problem.shape
    if not isinstance(shape, Gemm) or shape.trans_a or shape.trans_b or problem.table is not Table.RUN_TIME:
        raise Unsupported("only plain products have run-time rows here")
    if not LEAST_ROWS <= shape.m <= MOST_ROWS:
        raise Unsupported(f"rows are {LEAST_ROWS} to {MOST_ROWS} here")
    kernel = _kernel(shape.n, shape.k, threads)
    out = np.full((shape.m, shape.n), np.nan, np.float32)
    return (Candidate("sized kernel", lambda: kernel(inputs.first, inputs.second, out=out), lambda: out),)


@cache
def _kernel(n: int, k: int, threads: int) -> Callable[..., object]:
    return compile_kernel(programs.sized_gemm(n, k, LEAST_ROWS, MOST_ROWS), threads, {})
