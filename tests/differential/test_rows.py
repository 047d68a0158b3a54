"""Rows side by side: as many as there are, and those that are left over; rows too long or too few stay alone."""

from __future__ import annotations

import pytest

from dovetail.ir.plan import Tile
from dovetail.pipeline import program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.targets.load import load_target
from tests.differential.kernels import assert_exact, uncertified

NORM = """
in x: f32[{m},{n}]  in g: f32[{n}]  out y: f32[{m},{n}]
temp sum: f32[{m}]  temp apart: f32[{m},{n}]  temp top: f32[{m}]
for i<{m}, j<{n}: sum[i] += x[i,j]
for i<{m}, j<{n}: apart[i,j] = x[i,j] - sum[i]
for i<{m}, j<{n}: top[i] max= apart[i,j]
for i<{m}, j<{n}: y[i,j] = apart[i,j] * g[j] - top[i]
"""
RESULT = """
in x: i32[{m},{n}]  out s: i32[{m}]  out y: i32[{m},{n}]
for i<{m}, j<{n}: s[i] += x[i,j]
for i<{m}, j<{n}: y[i,j] = x[i,j] * s[i]
"""
SHAPES = [(1, 40), (7, 19), (16, 8), (17, 64), (18, 65), (35, 197), (67, 3)]


@pytest.mark.parametrize("text", [NORM, RESULT], ids=["norm", "result"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("target", ["x86-64-v3", "generic"])
def test_rows_side_by_side_and_those_left_over_are_exact(text: str, target: str, threads: int) -> None:
    for m, n in SHAPES:
        rows = program(text.format(m=m, n=n))
        assert_exact(uncertified(rows, default_plan(collapse(rows), load_target(target), threads), target, threads))


def test_several_rows_are_taken_at_once_where_they_stay_near_and_leave_each_unit_some() -> None:
    assert [_rows(64, 768, 2), _rows(8, 768, 2), _rows(7, 768, 2), _rows(64, 8192, 1)] == [4, 2, 1, 1]


def _rows(m: int, n: int, threads: int) -> int:
    node = default_plan(program(NORM.format(m=m, n=n)), load_target("x86-64-v3"), threads).body[0]
    assert isinstance(node, Tile)
    return node.step
