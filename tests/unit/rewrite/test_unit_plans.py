"""Plans that our planners make use units in a legal way, and illegal ones are told."""

from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.ir.plan import Hold, Leaf, Plan, Tile
from dovetail.mapping.tiles import tile_fits
from dovetail.pipeline import program
from dovetail.rewrite.unit_plans import broken_by_plan, plan_units
from dovetail.rewrite.units import is_legal, solutions
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan as cached_plan
from dovetail.simulated.prepare import prepared
from dovetail.simulated.specialise import default_plan
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

TARGETS = Path(__file__).parents[2] / "targets"
PRODUCT = """
in a: {t}[{m}, {k}]
in b: {t}[{k}, {n}]
out y: {s}[{m}, {n}]
for i<{m}, j<{n}, k<{k}: y[i, j] += a[i, k] * b[k, j]
"""


def machine(name: str) -> Target:
    path = TARGETS / f"{name}.toml"
    return load_target(path if path.exists() else name)


@pytest.mark.parametrize(
    ("name", "t", "s"),
    [("four-cores", "i32", "i32"), ("engine", "f32", "f32"), ("sw26010", "f64", "f64"), ("systolic16", "i8", "i32")],
)
def test_the_planner_of_placed_memories_spreads_legally(name: str, t: str, s: str) -> None:
    target = machine(name)
    found = prepared(program(PRODUCT.format(t=t, s=s, m=256, n=64, k=64)), target)
    posed, assignment = plan_units(default_plan(found, target), target)
    assert is_legal(posed, assignment)
    if len(posed.sites) < 6:
        assert assignment in list(solutions(posed))


def test_the_planner_of_caches_spreads_legally() -> None:
    host = load_target("x86-64-v3")
    target = replace(host, units=(replace(host.units[0], count=(4,)),))
    found = collapse(program(PRODUCT.format(t="f32", s="f32", m=512, n=512, k=512)))
    plan = cached_plan(found, target, 4, tile_fits(found, target))
    assert plan.is_parallel
    assert broken_by_plan(plan, target) == ()


def test_four_cores_are_used_by_the_plan_for_them() -> None:
    target = machine("four-cores")
    found = prepared(program(PRODUCT.format(t="i32", s="i32", m=256, n=64, k=64)), target)
    posed, assignment = plan_units(default_plan(found, target), target)
    assert [posed.text(stretch) for stretch in assignment].count("core") == 1


def test_sums_that_all_cores_would_write_into_one_pad_are_refused() -> None:
    target = machine("four-cores")
    inner = Tile("i", ((0, "i"),), 64, (Leaf(0),), unit="core")
    plan = Plan((Tile("j", ((0, "j"),), 8, (inner,), holds=(Hold("y", "pad", statement=0),)),))
    assert broken_by_plan(plan, target) == (
        "i on core: 'y' lies in 'pad', one for each core, and all of them write it",
    )
    inside = replace(inner, holds=(Hold("y", "pad", statement=0),))
    assert broken_by_plan(Plan((Tile("j", ((0, "j"),), 8, (inside,)),)), target) == ()


def test_a_core_inside_a_core_is_refused() -> None:
    target = machine("four-cores")
    plan = Plan((Tile("i", ((0, "i"),), 64, (Tile("j", ((0, "j"),), 8, (Leaf(0),), unit="core"),), unit="core"),))
    assert broken_by_plan(plan, target) == ("j on core: a map around it is on core already",)
