"""Results whose lanes are rows of memory: what lies side by side is written together, or one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.nest import Call, Place, walk
from dovetail.ir.parse import parse
from dovetail.ir.plan import Leaf, Plan, Tile
from dovetail.pipeline import compile
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

V3, V4 = load_target("x86-64-v3"), load_target("x86-64-v4")
CONV = """in x: {dtype}[3,64,64]  const w: {dtype}[64,3,7,7]  out y: {dtype}[64,29,29]
for k<64, p<29, q<29, c<3, r<7, s<7: y[k,p,q] += x[c,2*p+r,2*q+s] * w[k,c,r,s]"""


def plan_across(rows: int, lanes: int, extent: int) -> Plan:
    """Tiles of so many rows and two vectors, lanes over what lies apart in the result."""
    inner = Tile("p1", ((0, "p"),), rows, (Leaf(0, "k", lanes),))
    return Plan((Tile("k1", ((0, "k"),), min(2 * lanes, extent), (inner,)),))


def stores(text: str, plan: Plan, target: Target) -> list[str]:
    nest = build_nest(parse(text), plan, target)
    return [n.instruction for n in walk(nest.body) if isinstance(n, Call) and n.instruction.startswith("store")]


def parts(found: Sequence[str]) -> list[int]:
    """How many rows each store writes."""
    return [int(name[len("store_rows")]) if name.startswith("store_rows") else 1 for name in found]


def test_a_tile_across_memory_is_written_row_by_row() -> None:
    flat = collapse(parse(CONV.format(dtype="f64")))
    nest = build_nest(flat, default_plan(flat, V4, 1), V4)
    calls = [n for n in walk(nest.body) if isinstance(n, Call) and n.instruction.startswith("store_strided")]
    places = [p for n in calls for p in n.operands if isinstance(p, Place) and p.buffer == "y"]
    assert places
    steps = list(pairwise(places))
    rows, columns = (sum(one.indices[d] != other.indices[d] for one, other in steps) for d in (0, 2))
    assert rows < columns / 2


def test_the_first_convolution_of_a_network_stores_neighbours_together() -> None:
    flat = collapse(parse(CONV.format(dtype="f32")))
    found = stores(str(flat), default_plan(flat, V4, 1), V4)
    assert sum(n for n in parts(found) if n > 1) > 10 * parts(found).count(1)


@pytest.mark.parametrize(
    ("rows", "together"), [(1, [1]), (2, [2]), (3, [2, 1]), (4, [4]), (7, [4, 2, 1]), (9, [8, 1]), (15, [8, 4, 2, 1])]
)
@pytest.mark.parametrize("target", [V3, V4], ids=["v3", "v4"])
def test_neighbours_are_stored_by_the_largest_instructions(target: Target, rows: int, together: list[int]) -> None:
    text = f"in x: f32[{rows}, 16]  out y: f32[16, {rows}]  for k<16, p<{rows}: y[k, p] = x[p, k] * 2"
    assert parts(stores(text, plan_across(rows, 8, 16), target)) == together * 2


@pytest.mark.parametrize("dtype", ["f32", "i32", "u32", "f64", "i16"])
@pytest.mark.parametrize("extent", [16, 24, 21])
@pytest.mark.parametrize("rows", range(1, 12))
def test_what_is_stored_across_memory_is_exact(dtype: str, extent: int, rows: int) -> None:
    text = f"in x: {dtype}[11, {extent}]  out y: {dtype}[{extent}, 11]  for k<{extent}, p<11: y[k, p] = x[p, k] * 2"
    program = parse(text)
    arrays = fill(program, rows, {})
    kernel = compile(program, target=V3, threads=1, plan=plan_across(rows, 4, extent), cache=False)
    assert np.array_equal(kernel(arrays["x"]), evaluate(program, arrays)["y"])


def test_rows_that_do_not_lie_side_by_side_are_stored_apart() -> None:
    text = "in x: f32[8, 16]  out y: f32[16, 8, 2]  for k<16, p<8: y[k, p, 1] = x[p, k]  for k<16, p<8: y[k, p, 0] = 0"
    inner = Tile("p1", ((0, "p"),), 8, (Leaf(0, "k", 8),))
    plan = Plan((Tile("k1", ((0, "k"),), 16, (inner,)), Tile("k2", ((1, "k"),), 1, (Leaf(1),))))
    assert not any(name.startswith("store_rows") for name in stores(text, plan, V3))


def test_what_later_points_read_is_stored_at_once() -> None:
    text = "inout y: f32[16, 9]  for k<16, p<8: y[k, p] = y[k, p + 1] + 1"
    program = parse(text)
    plan = plan_across(8, 8, 16)
    assert not any(name.startswith("store_rows") for name in stores(text, plan, V3))
    arrays = fill(program, 1, {})
    wanted = evaluate(program, arrays)["y"]
    found = compile(program, target=V3, threads=1, plan=plan, cache=False)(arrays["y"])
    assert np.array_equal(found, wanted)


def test_rows_that_share_cache_sets_are_not_expected_to_be_stored_fast() -> None:
    text = """in a: f32[{m}, 64]  const b: f32[64, 256]  out c: f32[256, {m}]
for i<{m}, j<256, l<64: c[j, i] += a[i, l] * b[l, j]"""
    lanes = {m: default_plan(parse(text.format(m=m)), V4, 1).leaves() for m in (1024, 1040)}
    assert [next(iter(leaves)).lanes for leaves in lanes.values()] == ["i", "j"]
