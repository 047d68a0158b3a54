"""Which nodes are compiled together."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.graph.free_moves import FreeMoves
from dovetail.graph.grouping import Region, regions
from dovetail.ir.evaluate import evaluate as evaluate_program
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.evaluate import evaluate, run_node
from dovetail.ir.graph.parse import parse
from dovetail.ir.graph.verify import infer, verify
from dovetail.ops.region import region_program
from dovetail.ops.table import OPERATORS
from tests.unit.graph.models import bound, numbers_of

ATTENTION = """
graph attention(q: f32[1, 4, 6], k: f32[1, 4, 6], v: f32[1, 4, 6], mask: f32[1, 1, 1, 4]) -> (y)
  const half: f32[]
  const w: f32[6, 6]
  const b: f32[6]
  q4 = reshape(q) {shape = (1, 4, 2, 3)}
  qt = transpose(q4) {perm = (0, 2, 1, 3)}
  k4 = reshape(k) {shape = (1, 4, 2, 3)}
  kt = transpose(k4) {perm = (0, 2, 3, 1)}
  v4 = reshape(v) {shape = (1, 4, 2, 3)}
  vt = transpose(v4) {perm = (0, 2, 1, 3)}
  s = matmul(qt, kt)
  scaled = mul(s, half)
  masked = add(scaled, mask)
  p = softmax(masked)
  c = matmul(p, vt)
  ct = transpose(c) {perm = (0, 2, 1, 3)}
  merged = reshape(ct) {shape = (1, 4, 6)}
  o = dense(merged, w, b)
  r = add(o, q)
  y = layer_norm(r)
"""


def titles(text: str, near_bytes: int = 0) -> list[str]:
    graph = parse(text)
    found = regions(graph, OPERATORS, verify(graph, OPERATORS), near_bytes=near_bytes)
    return [f"{r.kind}: {r.title}" for r in found]


def run_regions(found: BoundGraph, near_bytes: int = 0) -> None:
    """Regions in their order, each by itself, give what the graph gives."""
    graph = found.graph
    types = infer(graph, OPERATORS)
    numbers = np.random.default_rng(3)
    inputs = {value.name: numbers_of(value.type, numbers) for value in graph.inputs}
    values = {**inputs, **found.data}
    for region in regions(graph, OPERATORS, types, near_bytes=near_bytes):
        if region.kind == "compiled":
            program = region_program(graph, region.nodes, OPERATORS, types)
            values.update(evaluate_program(program, {t.name: values[t.name] for t in program.inputs}))
            continue
        for node in region.nodes:
            values.update(zip(node.results, run_node(node, types, OPERATORS, values, {}, {}), strict=True))
    for name, array in evaluate(graph, OPERATORS, inputs, found.data).items():
        np.testing.assert_array_equal(values[name], array)


def test_a_convolution_takes_the_bias_the_residual_sum_and_the_activation_behind_it() -> None:
    text = """
graph block(x: f32[1, 4, 6, 6]) -> (y)
  const w: f32[4, 4, 3, 3]
  const b: f32[4, 1, 1]
  c = conv(x, w) {pads = (1, 1, 1, 1)}
  d = add(c, b)
  e = add(d, x)
  y = relu(e)
"""
    assert titles(text) == ["compiled: conv + add + add + relu"]
    run_regions(bound(text))


def test_a_value_that_others_read_ends_a_region() -> None:
    text = """
graph block(x: f32[1, 4, 6, 6]) -> (y, z)
  const w: f32[4, 4, 1, 1]
  c = conv(x, w)
  r = relu(c)
  y = exp(r)
  z = conv(r, w)
"""
    assert titles(text) == ["compiled: conv + relu", "compiled: exp", "compiled: conv"]


def test_a_residual_that_depends_on_the_region_does_not_join_it() -> None:
    text = """
graph block(x: f32[1, 4, 6, 6]) -> (y)
  const w: f32[4, 4, 1, 1]
  c = conv(x, w)
  d = conv(c, w)
  y = add(c, d)
"""
    assert titles(text) == ["compiled: conv", "compiled: conv + add"]
    run_regions(bound(text))


def test_the_later_of_two_convolutions_takes_their_sum() -> None:
    text = """
graph block(x: f32[1, 4, 6, 6]) -> (y)
  const w: f32[4, 4, 1, 1]
  c = conv(x, w)
  s = conv(x, w) {strides = (1, 1)}
  a = add(c, s)
  y = relu(a)
"""
    assert titles(text) == ["compiled: conv", "compiled: conv + add + relu"]


def test_an_activation_spelled_out_stays_on_its_product() -> None:
    text = """
graph gelu(x: f32[4, 8]) -> (y)
  const w: f32[16, 8]
  const root: f32[]
  const one: f32[]
  const half: f32[]
  h = dense(x, w)
  u = mul(h, root)
  e = erf(u)
  s = add(e, one)
  m = mul(h, s)
  y = mul(m, half)
"""
    assert titles(text) == ["compiled: dense + mul + erf + add + mul + mul"]


def test_attention_reads_heads_where_they_lie() -> None:
    assert titles(ATTENTION) == [
        "view: reshape",
        "view: reshape",
        "view: reshape",
        "compiled: transpose + transpose + transpose + matmul + mul + add + softmax + matmul + transpose",
        "view: reshape",
        "compiled: dense + add",
        "compiled: layer_norm",
    ]


def test_probabilities_that_are_an_output_part_attention() -> None:
    found = titles(ATTENTION.replace("-> (y)", "-> (y, p)"))
    assert found[3:6] == [
        "compiled: transpose + transpose + matmul + mul + add",
        "compiled: softmax",
        "compiled: transpose + matmul + transpose",
    ]


def test_heads_that_share_their_keys_are_a_product_of_their_own() -> None:
    text = """
graph shared(q: f32[1, 4, 5, 3], k: f32[1, 1, 3, 7], v: f32[1, 4, 7, 3]) -> (y)
  s = matmul(q, k)
  p = softmax(s)
  y = matmul(p, v)
"""
    assert titles(text) == ["compiled: matmul", "compiled: softmax", "compiled: matmul"]
    run_regions(bound(ATTENTION))


def test_what_is_computed_for_each_element_before_a_norm_joins_it() -> None:
    text = """
graph norm(x: f32[4, 8], y: f32[4, 8], z: f32[4, 8]) -> (n)
  a = add(x, y)
  b = mul(a, z)
  c = layer_norm(b)
  n = tanh(c)
"""
    assert titles(text) == ["compiled: add + mul + layer_norm + tanh"]


def test_a_tree_of_pointwise_operators_is_one_region() -> None:
    text = """
graph tree(x: f32[4, 8], y: f32[4, 8]) -> (z)
  a = exp(x)
  b = tanh(y)
  c = neg(b)
  z = mul(a, c)
"""
    assert titles(text) == ["compiled: exp + tanh + neg + mul"]
    run_regions(bound(text))


def test_an_output_that_is_a_view_of_an_input_is_a_copy() -> None:
    text = """
graph views(x: f32[4, 8]) -> (y, z)
  y = reshape(x) {shape = (8, 4)}
  e = exp(x)
  z = reshape(e) {shape = (32,)}
"""
    assert titles(text) == ["compiled: reshape", "compiled: exp", "view: reshape"]


def test_a_change_of_axes_that_two_read_is_made_once() -> None:
    text = """
graph axes(x: f32[4, 8]) -> (y, z)
  const w: f32[4, 4]
  t = transpose(x)
  y = matmul(t, w)
  z = exp(t)
"""
    assert titles(text) == ["compiled: transpose", "compiled: matmul", "compiled: exp"]


def test_a_part_that_two_read_is_read_where_it_lies() -> None:
    found = bound("""
graph parts(x: f32[4, 8]) -> (y, z)
  const w: f32[4, 2, 4]
  s = slice(x) {starts = (2,), ends = (6,), axes = (1,)}
  r = reshape(s) {shape = (4, 2, 2)}
  y = exp(r)
  z = matmul(r, w)
""")
    after, records = FreeMoves()(found, OPERATORS)
    assert records[0].what == "2 moves made once more, for another reader"
    types = verify(after.graph, OPERATORS)
    assert [r.title for r in regions(after.graph, OPERATORS, types)] == [
        "slice + reshape + exp",
        "slice + reshape + matmul",
    ]
    run_regions(after)


def test_a_view_that_joins_axes_is_not_read_through() -> None:
    text = """
graph merge(x: f32[1, 4, 6, 2]) -> (y)
  const w: f32[12, 3]
  t = transpose(x) {perm = (0, 2, 1, 3)}
  m = reshape(t) {shape = (6, 8)}
  s = slice(m) {starts = (0,), ends = (12,), axes = (0,)}
  r = relu(m)
  y = reduce_sum(r) {axes = (1,)}
"""
    found = titles(text)
    assert "view: reshape" in found and "compiled: transpose" in found


def test_every_node_is_in_one_region_and_regions_come_in_order() -> None:
    found = bound(ATTENTION)
    types = infer(found.graph, OPERATORS)
    made = {value.name for value in (*found.graph.inputs, *found.graph.constants)}
    count = 0
    for region in regions(found.graph, OPERATORS, types):
        assert isinstance(region, Region)
        inside = {name for node in region.nodes for name in node.results}
        assert {name for node in region.nodes for name in node.operands} <= made | inside
        made |= inside
        count += len(region.nodes)
    assert count == len(found.graph.nodes)


def test_a_cost_that_is_handed_in_keeps_nodes_apart() -> None:
    text = "graph g(x: f32[4, 8]) -> (y)\n  a = exp(x)\n  y = tanh(a)"
    graph = parse(text)
    found = regions(graph, OPERATORS, verify(graph, OPERATORS), worth=lambda nodes: float(len(nodes) ** 2))
    assert [region.title for region in found] == ["exp", "tanh"]


LAYER = """
graph layer(x: f32[5, 2, 4], h0: f32[2, 4], c0: f32[2, 4]) -> (y)
  const w: f32[16, 4]
  const r: f32[16, 4]
  const u: f32[16, 4]
  const s: f32[16, 4]
  const b: f32[32]
  there, a, c = lstm(x, w, r, b, h0, c0)
  back, d, e = lstm({second}, u, s, b, h0, c0) {{reverse = 1}}
  y = add(there, back)
"""


WEIGHTS = 2 * (16 * 4 + 32) * 4
"""Bytes that the steps of both directions read again."""


@pytest.mark.parametrize("near_bytes", [WEIGHTS, 1 << 20])
def test_both_directions_of_a_layer_are_one_region(near_bytes: int) -> None:
    text = LAYER.format(second="x")
    assert [title for title in titles(text, near_bytes) if "lstm" in title] == ["compiled: lstm + lstm"]
    run_regions(bound(text), near_bytes)


def test_directions_whose_weights_do_not_stay_near_together_are_walked_one_after_the_other() -> None:
    found = titles(LAYER.format(second="x"), WEIGHTS - 1)
    assert [title for title in found if "lstm" in title] == ["compiled: lstm", "compiled: lstm"]


def test_a_layer_that_reads_the_one_before_is_a_region_of_its_own() -> None:
    found = titles(LAYER.format(second="there"), 1 << 20)
    assert [title for title in found if "lstm" in title] == ["compiled: lstm", "compiled: lstm"]


def test_layers_that_need_each_other_by_way_of_others_stay_apart() -> None:
    text = LAYER.format(second="k").replace("  back,", "  k = relu(there)\n  back,")
    assert "compiled: lstm + lstm" not in titles(text, 1 << 20)
