"""Plans of windows that slide over images: lanes, register tiles, and what runs beside them."""

from __future__ import annotations

import pytest

from dovetail.ir.plan import Leaf, Plan
from dovetail.pipeline import program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.facts import facts_of
from dovetail.schedule.inner import inner_order, turns
from dovetail.schedule.machine import machine_of
from dovetail.schedule.order import direct_cycles
from dovetail.schedule.tiling import tilings
from dovetail.targets.load import load_target

GUARD = "where p + r >= 1, p + r <= {n}, q + s >= 1, q + s <= {n}"


def conv(channels: int, size: int) -> str:
    """A convolution of 3x3 with padding, channels last, and what follows it."""
    image = f"f32[{size}, {size}, {channels}]"
    return f"""in x: {image}  const w: f32[{channels}, {channels}, 3, 3]  const b: f32[{channels}]
out y: {image}  temp t: {image}
for p<{size}, q<{size}, k<{channels}, c<{channels}, r<3, s<3 {GUARD.format(n=size)}: \
t[p, q, k] += x[p + r - 1, q + s - 1, c] * w[k, c, r, s]
for p<{size}, q<{size}, k<{channels}: y[p, q, k] = max(t[p, q, k] + b[k], 0.0)"""


def planned(text: str, target: str = "x86-64-v3", threads: int = 2) -> Plan:
    return default_plan(collapse(program(text)), load_target(target), threads)


def first_leaf(plan: Plan) -> Leaf:
    return next(plan.leaves())


@pytest.mark.parametrize("channels, size", [(64, 56), (128, 28), (256, 14), (512, 7)])
@pytest.mark.parametrize("target", ["x86-64-v3", "znver4"])
def test_a_convolution_with_channels_last_has_lanes_over_its_output_channels(
    channels: int, size: int, target: str
) -> None:
    plan = planned(conv(channels, size), target)
    assert first_leaf(plan).lanes == "k"
    assert len(plan.body) == 1


def test_the_innermost_loop_turns_as_often_as_the_order_of_the_loops_says() -> None:
    facts = facts_of(collapse(program(conv(128, 28))), 0)
    tile = {"k", "q"}
    assert inner_order(facts, "k", tile) == ("r", "c", "s")
    assert turns(facts, "k", tile) == (128, 3)


def test_the_mean_of_an_image_with_channels_last_has_lanes_over_its_channels() -> None:
    text = """in x: f32[7, 7, 512]  out y: f32[512]  temp t: f32[512]
for c<512, p<7, q<7: t[c] += x[p, q, c]
for c<512: y[c] = t[c] / 49.0"""
    plan = planned(text)
    assert [(leaf.lanes, leaf.width) for leaf in plan.leaves()] == [("c", 8), ("c", 8)]
    assert len(plan.body) == 1


def test_rows_that_are_read_one_element_at_a_time_cost_more_where_they_drive_each_other_out() -> None:
    """Rows of 4096 bytes fall into the same sets: the second cache holds 128 of them, and here are 196."""
    text = """in x: f32[196, 1024]  const w: f32[256, 1024]  out y: f32[196, 256]
for p<196, k<256, c<1024: y[p, k] += x[p, c] * w[k, c]"""
    facts = facts_of(collapse(program(text)), 0)
    machine = machine_of(load_target("x86-64-v3"))
    assert machine.ways(4096, 1) == 128
    tiling = next(t for t in tilings(facts, machine, 8) if t.lanes == "k" and t.across == "p")
    again = (("k", tiling.span, True), ("p", tiling.rows, False))
    once = (("p", tiling.rows, True), ("k", tiling.span, False))
    swept, passed = (direct_cycles(facts, 0, tiling, machine, "p", ("c",), outer) for outer in (again, once))
    assert swept > 10 * passed


def test_few_rows_that_are_read_one_element_at_a_time_stay_where_they_are() -> None:
    text = """in x: f32[49, 512]  const w: f32[2048, 512]  out y: f32[49, 2048]
for p<49, k<2048, c<512: y[p, k] += x[p, c] * w[k, c]"""
    assert [hold.tensor for hold in planned(text).all_holds() if hold.digits] == ["w"]
