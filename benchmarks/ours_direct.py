"""Dovetail with the program as it is: no other algorithm is looked at."""

from benchmarks import ours
from benchmarks.problems import Operands, Problem
from benchmarks.systems import Candidate

VERSION = f"{ours.VERSION}, direct"
EXACT = True


def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
    """One kernel of the direct form."""
    return ours.candidates(problem, inputs, threads, algorithm="direct")
