"""All passes together."""

from __future__ import annotations

import numpy as np

from dovetail.graph.common_subexpressions import CommonSubexpressions
from dovetail.graph.constant_folding import ConstantFolding
from dovetail.graph.dead_code import DeadCode
from dovetail.graph.grouping import regions
from dovetail.graph.optimise import optimise
from dovetail.ir.compact import compact
from dovetail.ir.evaluate import evaluate as evaluate_program
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.verify import verify
from dovetail.ops.region import region_program
from dovetail.ops.table import OPERATORS
from tests.unit.graph.models import bound, ops, same


def test_what_constants_alone_decide_is_computed_ahead() -> None:
    found = bound(
        "graph g(x: f32[2, 4]) -> (y)\n  const w: f32[4, 3]\n  t = transpose(w)\n  y = matmul(x, t) {transpose_b = 1}"
    )
    after, records = ConstantFolding()(found, OPERATORS)
    assert ops(after.graph) == ["matmul"]
    assert records[0].what == "1 node computed ahead of time"
    same(found, after)


def test_a_constant_that_would_grow_stays_small() -> None:
    found = bound(
        "graph g(x: f32[512, 512]) -> (y)\n  const w: f32[]\n  t = expand(w) {shape = (512, 512)}\n  y = add(x, t)"
    )
    after, records = ConstantFolding()(found, OPERATORS)
    assert after is found
    assert records[0].why == "1048576 bytes made of 4"


def test_an_output_that_is_constant_keeps_its_name() -> None:
    found = bound("graph g(x: f32[2]) -> (y, z)\n  const w: f32[2]\n  y = neg(w)\n  z = neg(x)")
    after, _ = optimise(found, OPERATORS)
    same(found, after)


def test_what_is_computed_alike_is_computed_once() -> None:
    found = bound("graph g(x: f32[2], y: f32[2]) -> (z)\n  a = add(x, y)\n  b = add(y, x)\n  z = mul(a, b)")
    after, records = CommonSubexpressions()(found, OPERATORS)
    assert ops(after.graph) == ["add", "mul"]
    assert records[0].what == "1 node and 0 constants joined with others"
    same(found, after)


def test_attributes_that_compare_equal_but_differ_are_told_apart() -> None:
    found = bound("graph g(x: f32[2]) -> (a, b)\n  a = clip(x) {low = 0.0}\n  b = clip(x) {low = -0.0}")
    after, _ = CommonSubexpressions()(found, OPERATORS)
    assert ops(after.graph) == ["clip", "clip"]


def test_equal_outputs_stay_two_outputs() -> None:
    found = bound("graph g(x: f32[2]) -> (a, b)\n  a = exp(x)\n  b = exp(x)")
    after, _ = CommonSubexpressions()(found, OPERATORS)
    assert ops(after.graph) == ["exp", "identity"]
    same(found, after)


def test_what_no_output_needs_is_left_out() -> None:
    found = bound("graph g(x: f32[2]) -> (y)\n  const w: f32[2]\n  z = mul(x, w)\n  y = exp(x)")
    after, records = DeadCode()(found, OPERATORS)
    assert ops(after.graph) == ["exp"] and not after.data
    assert records[0].what == "1 node and 1 constant left out"


def test_a_result_that_is_still_needed_keeps_its_node_when_its_sibling_goes() -> None:
    found = bound("""
graph g(x: f32[4]) -> (b, a)
  a, c = split(x) {sizes = (2, 2)}
  d, e = split(x) {sizes = (2, 2)}
  b = add(d, c)
""")
    after, _ = CommonSubexpressions()(found, OPERATORS)
    assert ops(after.graph) == ["split", "add"]
    same(found, after)


def test_data_of_every_constant_is_there() -> None:
    found = bound("graph g(x: f32[2]) -> (y)\n  const w: f32[2]\n  const u: f32[2]\n  s = add(w, u)\n  y = add(x, s)")
    after, _ = optimise(found, OPERATORS)
    assert {value.name for value in after.graph.constants} == set(after.data)
    np.testing.assert_array_equal(next(iter(after.data.values())), np.add(found.data["w"], found.data["u"]))


def test_a_graph_with_run_time_sizes_goes_through_all_passes_and_regions() -> None:
    found = bound("""
size n in 1..8
graph g(x: f32[n, 3, 6, 6]) -> (y, z)
  const w: f32[4, 3, 3, 3]
  const v: f32[4, 4, 1, 1]
  const u: f32[4, 5]
  a = conv(x, w) {pads = (1, 1, 1, 1)}
  b = relu(a)
  c = conv(b, v)
  d = add(c, b)
  e = global_average_pool(d)
  f = flatten(e)
  h = identity(f)
  y = matmul(h, u)
  t = transpose(d) {perm = (0, 2, 3, 1)}
  s = transpose(t) {perm = (0, 3, 1, 2)}
  z = exp(s)
""")
    after, _ = optimise(found, OPERATORS)
    assert "identity" not in ops(after.graph) and "transpose" not in ops(after.graph)
    types = verify(after.graph, OPERATORS)
    numbers = np.random.default_rng(0).integers(-2, 3, (2, 3, 6, 6)).astype(np.float32)
    expected = evaluate(found.graph, OPERATORS, {"x": numbers}, found.data)
    values = {"x": numbers, **after.data}
    for region in regions(after.graph, OPERATORS, types):
        program = compact(region_program(after.graph, region.nodes, OPERATORS, types))
        values.update(evaluate_program(program, {t.name: values[t.name] for t in program.inputs}, {"n": 2}))
    for name, array in expected.items():
        np.testing.assert_allclose(values[name].astype(np.float64), array.astype(np.float64), 1e-6)
