"""Statements that look at their loops: masks, ramps and steps, along their lanes and beside them."""

from __future__ import annotations

import pytest

from dovetail.pipeline import program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.targets.load import load_target
from tests.differential.kernels import assert_exact, uncertified

TEXTS = {
    "causal": "in x: f32[9,37] out y: f32[9,37]\nfor i<9, j<37: y[i,j] = select(j - i > 2, -inf, x[i,j])",
    "window": "in x: i32[40] out y: i32[40]\nfor i<40: y[i] = select((i > 5) & (2 * i < 61), x[i], 0)",
    "ramp": "out y: f32[3,50]\nfor i<3, j<50: y[i,j] = f32(3 * j - 7 * i + 1)",
    "backwards": "in x: f64[21] out y: f64[21]\nfor i<21: y[i] = x[i] * f64(20 - i)",
    "beside": "in x: f32[21,19] out y: f32[21,19]\nfor i<21, j<19: y[i,j] = x[i,j] + f32(i)",
    "uneven": "in x: f32[33] out y: f32[33]\nfor i<33: y[i] = x[i] + f32(i // 4 + i % 3)",
    "bytes": "out y: u8[300]\nfor i<300: y[i] = u8(i)",
    "sum": "in x: f32[7,41] out s: f32[7]\nfor i<7, j<41: s[i] += select(j >= i, x[i,j], 0.0)",
    "top": "in x: f32[7,41] out s: f32[7]\nfor i<7, j<41: s[i] max= x[i,j] - f32(j)",
    "product": "in a: f32[6,9] in b: f32[9,33] out c: f32[6,33]\n"
    "for i<6, j<33, k<9: c[i,j] += select(k <= i, a[i,k], 0.0) * b[k,j]",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("target", ["x86-64-v3", "generic"])
@pytest.mark.parametrize("threads", [1, 2])
def test_positions_are_the_same_in_every_lane(text: str, target: str, threads: int) -> None:
    looking = program(text)
    assert_exact(uncertified(looking, default_plan(collapse(looking), load_target(target), threads), target, threads))
