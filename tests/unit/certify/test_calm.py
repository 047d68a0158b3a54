"""Inputs of a recurrence with which its results can be compared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.certify.calm import calmed
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.program import Program

Array = npt.NDArray[np.generic]
STATE = """in a: f32[30, 64]  in r: f32[64, 64]  in h0: f32[64]
temp u: f32[30, 64]  temp h: f32[31, 64]  out y: f32[64]
for j<64: h[0, j] = h0[j]
seq t<30: for j<64, k<64: u[t, j] += h[t, k] * r[j, k]
seq t<30: for j<64: h[t + 1, j] = {new}
for j<64: y[j] = h[30, j]
"""


def test_a_small_change_does_not_grow_from_step_to_step() -> None:
    program = parse(STATE.format(new="tanh(u[t, j] + a[t, j])"))
    wild = fill(program, 1)
    assert change(program, wild) > 1e-3
    assert change(program, calmed(program, wild, {})) < 1e-6


def test_dividing_is_exact() -> None:
    program = parse(STATE.format(new="tanh(u[t, j] + a[t, j])"))
    wild = fill(program, 1)
    for name, array in calmed(program, wild, {}).items():
        before, after = wild[name].astype(np.float64), array.astype(np.float64)
        power = np.log2(before.max() / after.max())
        assert power == round(power) > 0
        np.testing.assert_array_equal(after * 2**power, before)


def test_a_recurrence_of_whole_numbers_stays_as_it_is() -> None:
    program = parse(STATE.format(new="max(min(u[t, j] + a[t, j], 8.0), 0.0)"))
    wild = fill(program, 1)
    for name, array in calmed(program, wild, {}).items():
        assert array is wild[name]


def change(program: Program, arrays: dict[str, Array]) -> float:
    """By how much the result differs when the first state is a little off."""
    first = arrays["h0"].astype(np.float32)
    runs = [evaluate(program, {**arrays, "h0": first + np.float32(off)})["y"] for off in (0.0, 1e-6)]
    return float(np.abs(np.subtract(*(y.astype(np.float64) for y in runs))).max())
