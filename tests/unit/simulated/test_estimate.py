"""Estimates of programs: near what is simulated, and nothing for what is done ahead."""

from __future__ import annotations

import pytest

import dovetail
from dovetail.simulated.estimate import Estimates, estimated_cycles
from dovetail.simulated.kernel import SimulatedKernel
from dovetail.targets.load import load_target

PRODUCT = "in a: {d}[96,64]  const b: {d}[64,128]  out c: {s}[96,128]\nfor i<96, j<128, k<64: c[i,j] += a[i,k] * b[k,j]"
AHEAD = """
const v: f64[64,128]  temp b: f64[64,128]  in a: f64[96,64]  out c: f64[96,128]
for k<64, j<128: b[k,j] = v[k,j] + v[k,j]
for i<96, j<128, k<64: c[i,j] += a[i,k] * b[k,j]
"""


@pytest.mark.parametrize(("machine", "data", "sums"), [("sw26010", "f64", "f64"), ("systolic16", "i8", "i32")])
def test_an_estimate_is_near_what_is_simulated(machine: str, data: str, sums: str) -> None:
    program, target = dovetail.program(PRODUCT.format(d=data, s=sums)), load_target(machine)
    assert estimated_cycles(program, target) == pytest.approx(SimulatedKernel(program, target).cycles, rel=0.05)


def test_what_is_done_ahead_costs_nothing() -> None:
    target = load_target("sw26010")
    plain = estimated_cycles(dovetail.program(PRODUCT.format(d="f64", s="f64")), target)
    assert estimated_cycles(dovetail.program(AHEAD), target) == plain


def test_run_time_sizes_are_as_large_as_they_may_be() -> None:
    text = "size m in 1..96\n" + PRODUCT.format(d="i8", s="i32").replace("96", "m").replace("1..m", "1..96")
    program, target = dovetail.program(text), load_target("systolic16")
    largest = estimated_cycles(program, target)
    assert largest == estimated_cycles(dovetail.program(PRODUCT.format(d="i8", s="i32")), target)
    assert estimated_cycles(program, target, {"m": 8}) < largest


def test_what_main_memory_does_not_hold_is_never_chosen() -> None:
    text = "in a: f64[65536,32768]  out c: f64[65536]\nfor i<65536, k<32768: c[i] += a[i,k]"
    assert estimated_cycles(dovetail.program(text), load_target("sw26010")) == float("inf")


def test_what_surely_takes_longer_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_target("systolic16")
    small = dovetail.program(PRODUCT.format(d="i8", s="i32"))
    large = dovetail.program(PRODUCT.format(d="i8", s="i32").replace("96", "960"))
    whole = estimated_cycles(large, target)
    compare = Estimates(target)
    assert compare(small) == estimated_cycles(small, target)
    monkeypatch.setattr("dovetail.simulated.estimate.lowered", None)
    assert compare.best < compare(large) <= whole
