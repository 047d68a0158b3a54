"""Plans of windows that slide over images: lanes, register tiles, and what runs beside them."""

from __future__ import annotations

import pytest

from dovetail.ir.plan import Leaf, Plan
from dovetail.pipeline import program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.facts import facts_of
from dovetail.schedule.inner import inner_order, turns
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
