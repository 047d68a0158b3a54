"""Dovetail as one more system: a program for the shape, compiled for this machine."""

from collections.abc import Mapping

import numpy as np

import dovetail
from benchmarks import programs
from benchmarks.problems import Floats, Operands, Problem, Table, output_shape
from benchmarks.shapes import Conv
from benchmarks.systems import Candidate
from dovetail.runtime.kernel import Kernel

VERSION = f"dovetail {dovetail.__version__}"
EXACT = True
CONSTANTS: Mapping[Table, tuple[str, ...]] = {Table.RUN_TIME: (), Table.CONSTANT: ("a",), Table.CONV: ("w",)}


def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
    """One kernel, plain row-major operands; constants are handed over when it is compiled."""
    return candidates(problem, inputs, threads)


def candidates(
    problem: Problem, inputs: Operands, threads: int, relaxed: bool = False, algorithm: str = ""
) -> tuple[Candidate, ...]:
    """One kernel, of the algorithm that is asked for or chosen."""
    kernel = compile_kernel(source(problem), threads, constants(problem, inputs), relaxed, algorithm)
    run_time = [array for name, array in _named(problem, inputs).items() if name not in CONSTANTS[problem.table]]
    out = np.full(output_shape(problem.shape), np.nan, np.float32)
    return (Candidate(kernel.algorithm, lambda: kernel(*run_time, out=out), lambda: out),)


def source(problem: Problem) -> str:
    """The program of a problem."""
    names = CONSTANTS[problem.table]
    if isinstance(problem.shape, Conv):
        return programs.conv(problem.shape, names)
    return programs.gemm(problem.shape, names)


def constants(problem: Problem, inputs: Operands) -> dict[str, Floats]:
    """The operands that are known when the problem is compiled, by name."""
    return {name: array for name, array in _named(problem, inputs).items() if name in CONSTANTS[problem.table]}


def _named(problem: Problem, inputs: Operands) -> dict[str, Floats]:
    first, second = ("x", "w") if isinstance(problem.shape, Conv) else ("a", "b")
    return {first: inputs.first, second: inputs.second}


def compile_kernel(
    text: str, threads: int, constants: Mapping[str, Floats], relaxed: bool = False, algorithm: str = ""
) -> Kernel:
    """The one call into Dovetail that all benchmarks make."""
    program = dovetail.program(text)
    kernel = dovetail.compile(program, threads=threads, constants=constants, relaxed=relaxed, algorithm=algorithm)
    assert isinstance(kernel, Kernel)
    return kernel
