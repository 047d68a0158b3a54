"""Nests that the compiler makes for a processor, with registers, edges and several cores, in the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.nest import Nest
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.sim.functional import simulate
from dovetail.sim.timed import simulate_time
from dovetail.targets.load import load_target
from tests.unit.sim.machines import Array

TARGET = load_target("x86-64-v3")
PROGRAMS = {
    "product": "in a: f32[21, 19] in b: f32[19, 37] out c: f32[21, 37] "
    "for i<21, j<37, k<19: c[i, j] += a[i, k] * b[k, j]",
    "row sums": "in x: i32[7, 33] out y: i32[7] for i<7, j<33: y[i] += x[i, j]",
    "gather": "in t: f32[10, 8] in n: i32[5] out y: f32[5, 8] for i<5, j<8: y[i, j] = t[n[i], j]",
    "two steps": "in x: f32[6, 33] temp m: f32[6] out y: f32[6, 33] "
    "for i<6, j<33: m[i] max= x[i, j] for i<6, j<33: y[i, j] = x[i, j] - m[i]",
}


def prepared(name: str, threads: int) -> tuple[Program, Nest, dict[str, Array]]:
    program = parse(PROGRAMS[name])
    rng = np.random.default_rng(threads)
    arrays: dict[str, Array] = {
        t.name: rng.integers(0, 9, tuple(e.const for e in t.shape)).astype(t.dtype.numpy) for t in program.inputs
    }
    return program, build_nest(program, default_plan(program, TARGET, threads), TARGET), arrays


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_reference(name: str, threads: int) -> None:
    program, nest, arrays = prepared(name, threads)
    expected = evaluate(program, arrays)
    for out, found in simulate(nest, TARGET, arrays).arrays.items():
        np.testing.assert_array_equal(found, expected[out])


@pytest.mark.parametrize("name", PROGRAMS)
def test_closing_loops_changes_nothing(name: str) -> None:
    nest = prepared(name, 2)[1]
    quick, full = (simulate_time(nest, TARGET, close_loops=c) for c in (True, False))
    assert (quick.cycles, quick.memories) == (full.cycles, full.memories)
    assert set(quick.instructions) == set(full.instructions)
