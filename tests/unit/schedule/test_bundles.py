"""Statements that make one tensor part by part run under the same loops, and load what they share once."""

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.nest import Call, Place, walk
from dovetail.ir.parse import parse
from dovetail.ir.plan import Leaf, Tile
from dovetail.ir.program import Program
from dovetail.ir.verify import verify
from dovetail.pipeline import compile
from dovetail.schedule.bundles import bundle_run
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target

HOST = load_target("x86-64-v3")
BUTTERFLY = """
in x: f32[41, 16]  out y: f32[2, 20, 8, 16]
temp t: f32[3, 20, 16, 16]
in z: f32[16, 16]
for i<20, j<16, c<16: t[0, i, j, c] = x[2*i, c] + z[j, c]
for i<20, j<16, c<16: t[1, i, j, c] = x[2*i, c] - 2*z[j, c]
for i<20, j<16, c<16: t[2, i, j, c] = x[2*i+1, c] + z[j, c]
for i<20, j<8, c<16: y[0, i, j, c] = t[0, i, 2*j, c] + t[1, i, 2*j+1, c]
for i<20, j<8, c<16: y[1, i, j, c] = t[2, i, 2*j, c] - t[1, i, 2*j, c]
"""


def flat(text: str) -> Program:
    program = parse(text)
    verify(program)
    return collapse(program)


def test_two_bundles_share_the_loops_that_walk_the_same_elements() -> None:
    run = bundle_run(parse(BUTTERFLY), 0, set())
    assert run is not None
    assert [b.numbers for b in run.bundles] == [(0, 1, 2), (3, 4)]
    assert run.shared == (("i", "i"), ("c", "c"))
    assert run.scratch == ("t",)


def test_names_of_loops_do_not_matter() -> None:
    text = BUTTERFLY.replace("for i<20, j<16, c<16: t[1, i, j, c]", "for a<20, b<16, d<16: t[1, a, b, d]").replace(
        "x[2*i, c] - 2*z[j, c]", "x[2*a, d] - 2*z[b, d]"
    )
    run = bundle_run(parse(text), 0, set())
    assert run is not None and run.bundles[0].names[1] == {"i": "a", "j": "b", "c": "d"}


def test_a_temporary_that_others_read_too_is_not_kept_between_bundles() -> None:
    text = BUTTERFLY.replace("out y", "out s: f32[20]  out y") + "for i<20: s[i] = t[0, i, 0, 0]"
    run = bundle_run(parse(text), 0, set())
    assert run is not None and len(run.bundles) == 1 and run.scratch == ()


@pytest.mark.parametrize(
    "text",
    [
        "in x: f32[8]  out y: f32[8]\nfor i<8: y[i] = x[i] + 1",
        "in x: f32[8]  out y: f32[8]  out z: f32[8]\nfor i<8: y[i] = x[i]\nfor i<8: z[i] = x[i]",
        "in x: f32[8]  out y: f32[2,8]\nfor i<8: y[0,i] = x[i]\nfor i<8: y[1,i] = y[0,i]",
        "in x: f32[9]  out y: f32[17]\nfor i<8: y[i] = x[i]\nfor i<9: y[i+8] = x[i]",
    ],
    ids=["one statement", "two tensors", "reads what it makes", "other loops"],
)
def test_what_is_no_bundle(text: str) -> None:
    assert bundle_run(parse(text), 0, set()) is None


def test_the_plan_is_one_nest_with_scratch_for_one_round() -> None:
    plan = default_plan(flat(BUTTERFLY), HOST, 2)
    (node,) = plan.body
    assert isinstance(node, Tile)
    assert [hold.tensor for hold in node.holds] == ["t"]
    assert {leaf.lanes for leaf in plan.leaves()} == {"c"}
    innermost = [t for t in _tiles(node) if all(isinstance(n, Leaf) for n in t.body)]
    assert [len(t.body) for t in innermost] == [3, 2]


def _tiles(tile: Tile) -> list[Tile]:
    return [tile, *(t for n in tile.body if isinstance(n, Tile) for t in _tiles(n))]


def test_an_element_that_several_statements_read_is_loaded_once() -> None:
    program = flat(BUTTERFLY)
    nest = build_nest(program, default_plan(program, HOST, 1), HOST)
    loads = [n for n in walk(nest.body) if isinstance(n, Call) and n.instruction.startswith("load")]
    read = [o.buffer for call in loads for o in call.operands if isinstance(o, Place)]
    assert read.count("z") == 1 and read.count("x") == 2


def test_a_load_after_a_store_to_the_same_tensor_stays() -> None:
    text = """in x: f32[4, 16]  out y: f32[2, 4, 16]  temp t: f32[2, 4, 16]
for i<4, c<16: t[0, i, c] = x[i, c]
for i<4, c<16: t[1, i, c] = 2 * x[i, c]
for i<4, c<16: y[0, i, c] = t[0, i, c] + t[1, i, c]
for i<4, c<16: y[1, i, c] = t[0, i, c] - t[1, i, c]"""
    assert_exact(parse(text))


@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_exact(threads: int) -> None:
    assert_exact(parse(BUTTERFLY), threads)


def test_a_result_across_memory_and_conditions_on_the_last_bundle_are_exact() -> None:
    text = """in x: f32[8, 24]  out y: f32[24, 15]  temp t: f32[2, 8, 24]
for i<8, k<24: t[0, i, k] = x[i, k] + 1
for i<8, k<24: t[1, i, k] = x[i, k] - 1
for i<8, k<24: y[k, 2*i] = t[0, i, k] - t[1, i, k]
for i<8, k<24 where 2*i+1 < 15: y[k, 2*i+1] = t[0, i, k] + t[1, i, k]"""
    assert_exact(parse(text))


def test_dimensions_that_one_product_walks_together_are_joined_for_it() -> None:
    text = """in x: f32[5, 3]  const w: f32[2, 5, 3, 4]  out y: f32[2, 5, 4]  temp t: f32[2, 5, 3]
for i<5, c<3: t[0, i, c] = x[i, c]
for i<5, c<3: t[1, i, c] = 2 * x[i, c]
for b<2, i<5, k<4, c<3: y[b, i, k] += t[b, i, c] * w[b, i, c, k]"""
    program = flat(text)
    assert [str(t.shape[0]) for t in program.tensors] == ["5", "10", "10", "10"]
    assert str(program.statements[1].out) == "t[i + 5, c]"
    assert str(program.statements[2]).startswith("for b<10, k<4, c<3: y[b, k] += t[b, c] * w[b, c, k]")
    assert_exact(parse(text))


def test_dimensions_that_others_walk_with_two_loops_stay_two() -> None:
    text = """in x: f32[2, 5, 3]  in m: f32[2]  const w: f32[3, 4]  out y: f32[2, 5, 4]  temp t: f32[2, 5, 3]
for b<2, i<5, c<3: t[b, i, c] = x[b, i, c] * m[b]
for b<2, i<5, k<4, c<3: y[b, i, k] += t[b, i, c] * w[c, k]"""
    assert len(flat(text).tensor("t").shape) == 3


def assert_exact(program: Program, threads: int = 2) -> None:
    verify(program)
    arrays = fill(program, 3)
    kernel = compile(program, "host", threads, cache=False)
    found = kernel(*(arrays[t.name] for t in program.inputs))
    np.testing.assert_array_equal(found, evaluate(program, arrays)[program.outputs[0].name])
