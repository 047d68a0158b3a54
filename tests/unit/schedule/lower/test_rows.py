"""Lines of what a register tile reads as it lies are asked for ahead, where the target says that it pays."""

from itertools import pairwise

from dovetail.ir.nest import Fetch, Nest, walk
from dovetail.ir.parse import parse
from dovetail.ir.plan import Leaf, Plan, Tile, plan_from_json
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target
from tests.unit.schedule.lower.test_fetches import LINE_ELEMENTS, places

POINTWISE = (
    "in x: f32[256,784]  const w: f32[128,256]  out y: f32[128,784]\nfor k<128, p<784, c<256: y[k,p] += x[c,p] * w[k,c]"
)
WINDOWS = (
    "in x: f32[64,58,58]  const w: f32[64,64,3,3]  out y: f32[64,56,56]\n"
    "for k<64, p<56, q<56, c<64, r<3, s<3: y[k,p,q] += x[c,p+r,q+s] * w[k,c,r,s]"
)


def test_all_lines_but_the_first_are_asked_for_once_in_a_pass() -> None:
    plan, nest = planned(POINTWISE)
    asked = list(places(nest.body, "x", {}))
    assert asked
    ahead = dict(leaf(plan).fetched)["x"]
    lines = {(c, p // LINE_ELEMENTS) for c, p in asked}
    assert lines >= {(c, p) for c in range(ahead, 256) for p in range(784 // LINE_ELEMENTS)}
    assert min(c for c, _ in asked) == ahead


def test_taps_that_share_lines_ask_for_them_once() -> None:
    plan, nest = planned(WINDOWS)
    assert "x" in dict(leaf(plan).fetched)
    (tile,) = [n for n in tiles(plan.body) if n.unrolled]
    assert tile.loops == ((0, "s"),)
    asked = [node.place.indices[-1] for node in walk(nest.body) if isinstance(node, Fetch)]
    along = sorted({index.const for index in asked})
    assert asked
    assert all(after - before > 3 for before, after in pairwise(along))  # three taps would ask for neighbours


def test_nothing_is_asked_for_where_the_target_brings_it_by_itself() -> None:
    plan, nest = planned(POINTWISE, "x86-64-v3")
    assert leaf(plan).fetched == ()
    assert not list(places(nest.body, "x", {}))


def test_what_a_leaf_asks_for_is_part_of_the_plan() -> None:
    plan, _ = planned(POINTWISE)
    assert f"fetching x {dict(leaf(plan).fetched)['x']}" in str(plan)
    assert plan_from_json(plan.to_json()) == plan


def planned(text: str, target: str = "x86-64-v4") -> tuple[Plan, Nest]:
    program, machine = parse(text), load_target(target)
    plan = default_plan(program, machine, 1)
    return plan, build_nest(program, plan, machine)


def leaf(plan: Plan) -> Leaf:
    return next(n for n in nodes(plan.body) if isinstance(n, Leaf) and n.statement == 0)


def tiles(body: tuple[Tile | Leaf, ...]) -> list[Tile]:
    return [n for n in nodes(body) if isinstance(n, Tile)]


def nodes(body: tuple[Tile | Leaf, ...]) -> list[Tile | Leaf]:
    return [found for n in body for found in (n, *(nodes(n.body) if isinstance(n, Tile) else ()))]
