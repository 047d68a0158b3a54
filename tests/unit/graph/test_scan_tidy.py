"""Scans in the form in which they are compiled."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dovetail.graph.optimise import optimise
from dovetail.graph.record import Record
from dovetail.graph.scan_tidy import ScanTidy
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Graph, Node
from dovetail.ir.graph.verify import verify
from dovetail.ops.table import OPERATORS
from tests.unit.graph.cells import Layer, Unrolled, f32, lstm, random_cell, unroll
from tests.unit.graph.models import bound, ops, same


def tidied(found: BoundGraph) -> tuple[BoundGraph, tuple[Record, ...], list[Node]]:
    after, records = ScanTidy()(found, OPERATORS)
    verify(after.graph, OPERATORS)
    same(found, after)
    return after, records, [node for node in after.graph.nodes if node.op == "scan"]


def body_of(node: Node) -> Graph:
    return node.bodies[0]


def counts(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


GATES = """graph g(x: f32[5, 2, 3], h: f32[2, 4]) -> (last, all)
  const w: f32[3, 8]
  const r: f32[4, 8]
  const b: f32[8]
  const c: f32[8]
  last, all = scan(h, x, w, r, b, c) {carried = 1, scanned = 1} \
do graph step(h: f32[2, 4], x: f32[2, 3], w: f32[3, 8], r: f32[4, 8], b: f32[8], c: f32[8]) -> (n, n)
    a = matmul(x, w)
    d = add(a, b)
    e = matmul(h, r)
    f = add(e, c)
    s = add(d, f)
    g0 = slice(s) {starts = (0,), ends = (4,), axes = (1,), steps = (1,)}
    g1 = slice(s) {starts = (4,), ends = (8,), axes = (1,), steps = (1,)}
    m = mul(g0, g1)
    n = clip(m) {low = -3.0, high = 3.0}
  end
"""


def test_products_of_the_input_and_all_biases_go_ahead_of_the_steps() -> None:
    after, records, (scan,) = tidied(bound(GATES))
    assert counts(body_of(scan)) == {"matmul": 1, "add": 1, "slice": 2, "mul": 1, "clip": 1}
    assert ops(after.graph).count("matmul") == 1
    assert records[0].what.startswith("5 steps of 6 nodes, 1 product of a state in each: hoisted")


def test_a_scan_that_is_tidy_stays_as_it_is() -> None:
    after, _, _ = tidied(bound(GATES))
    assert ScanTidy()(after, OPERATORS) == (after, ())


def test_products_of_one_state_become_one_with_joined_weights() -> None:
    lines = [f"  const r{k}: f32[4, 4]" for k in range(3)]
    heads = ", ".join(f"r{k}: f32[4, 4]" for k in range(3))
    text = "\n".join(
        [
            "graph g(x: f32[4, 2, 4], h: f32[2, 4]) -> (last)",
            *lines,
            "  last = scan(h, x, r0, r1, r2) {carried = 1, scanned = 1} do graph step(h: f32[2, 4], x: f32[2, 4], "
            f"{heads}) -> (n)",
            "    a = matmul(h, r0)",
            "    b = matmul(h, r1) {transpose_b = 1}",
            "    c = matmul(h, r2)",
            "    d = mul(a, b)",
            "    e = add(d, c)",
            "    f = add(e, x)",
            "    n = clip(f) {low = -2.0, high = 2.0}",
            "  end",
        ]
    )
    _, records, (scan,) = tidied(bound(text))
    assert counts(body_of(scan))["matmul"] == 1
    assert "merged 3 products of the same value" in records[0].what


def test_a_product_of_input_and_state_together_is_one_of_each() -> None:
    text = """graph g(x: f32[4, 2, 3], h: f32[2, 4]) -> (last)
  const w: f32[7, 4]
  last = scan(h, x, w) {carried = 1, scanned = 1} do graph step(h: f32[2, 4], x: f32[2, 3], w: f32[7, 4]) -> (n)
    a = concat(x, h) {axis = 1}
    b = matmul(a, w)
    n = clip(b) {low = -2.0, high = 2.0}
  end
"""
    after, _, (scan,) = tidied(bound(text))
    assert counts(body_of(scan)) == {"matmul": 1, "add": 1, "clip": 1}
    assert "concat" not in ops(after.graph)


def test_states_and_results_that_nothing_needs_are_left_out() -> None:
    text = """graph g(x: f32[4, 2], h: f32[2], k: f32[2]) -> (all)
  a, b, c, all, none, again = scan(h, k, k, x) {carried = 3, scanned = 1} \
do graph step(h: f32[2], k: f32[2], s: f32[2], x: f32[2]) -> (n, m, s, p, m, p)
    n = add(h, x)
    m = mul(k, n)
    p = add(n, s)
  end
  y = relu(all)
"""
    found = bound(text)
    after, _, (scan,) = tidied(found)
    assert len(scan.results) == 2
    assert counts(body_of(scan)) == {"add": 2}
    assert after.graph.outputs == found.graph.outputs


def test_a_result_that_no_state_decides_needs_no_steps() -> None:
    text = """graph g(x: f32[4, 2], h: f32[2]) -> (all)
  last, all = scan(h, x) {carried = 1, scanned = 1} do graph step(h: f32[2], x: f32[2]) -> (n, y)
    n = add(h, x)
    y = relu(x)
  end
"""
    after, _, scans = tidied(bound(text))
    assert not scans
    assert ops(after.graph) == ["relu"]


def test_a_state_that_is_the_input_before_stays_a_state() -> None:
    text = """graph g(x: f32[4, 2], h: f32[2]) -> (all)
  last, all = scan(h, x) {carried = 1, scanned = 1} do graph step(h: f32[2], x: f32[2]) -> (n, y)
    n = neg(x)
    y = mul(h, x)
  end
"""
    tidied(bound(text))


@pytest.mark.parametrize("reverse", [0, 1])
def test_products_that_no_step_needs_are_computed_behind_the_steps(reverse: int) -> None:
    text = f"""graph g(x: f32[4, 2, 3], h: f32[2, 3]) -> (last, all, more)
  const v: f32[3, 5]
  last, all, more = scan(h, x, v) {{carried = 1, reverse = {reverse}, scanned = 1}} \\
do graph step(h: f32[2, 3], x: f32[2, 3], v: f32[3, 5]) -> (n, z, m)
    s = add(h, x)
    n = clip(s) {{low = -2.0, high = 2.0}}
    y = matmul(n, v)
    z = relu(y)
    m = mul(n, x)
  end
""".replace("\\\n", "")
    after, records, (scan,) = tidied(bound(text))
    assert counts(body_of(scan)) == {"add": 1, "clip": 1, "mul": 1}
    assert ops(after.graph).count("matmul") == 1
    assert "behind the steps matmul, relu" in records[0].what


def test_backwards_steps_keep_their_order() -> None:
    found = bound(GATES.replace("{carried = 1, scanned = 1}", "{carried = 1, reverse = 1, scanned = 1}"))
    _, _, (scan,) = tidied(found)
    assert dict(scan.attributes)["reverse"] == 1


@pytest.mark.parametrize("seed", range(12))
def test_random_cells_compute_the_same_after_all_passes(seed: int) -> None:
    g = Unrolled(seed + 1000)
    steps, states = int(g.numbers.integers(3, 9)), int(g.numbers.integers(1, 4))
    layer = Layer(steps, backwards=bool(g.numbers.integers(2)), collect=("stack", "last")[int(g.numbers.integers(2))])
    x = g.builder.input("x", f32(steps, 2, 3))
    cell = random_cell(g, 3, 4, states, int(g.numbers.integers(1, 15)))
    first = [g.builder.input(f"s{k}", f32(2, 4)) for k in range(states)]
    found = g.bound(*unroll(g, layer, x, first, cell))
    after, records = optimise(found, OPERATORS)
    verify(after.graph, OPERATORS)
    same(found, after)
    assert any("recurrence of" in record.what for record in records)


def test_an_unrolled_layer_ends_as_one_product_and_one_scan() -> None:
    g = Unrolled(1)
    x = g.builder.input("x", f32(6, 2, 3))
    zeros = [g.constant(array=np.zeros((2, 4), np.float32)) for _ in range(2)]
    found = g.bound(*unroll(g, Layer(6), x, zeros, lstm(g, 3, 4)))
    after, _ = optimise(found, OPERATORS)
    same(found, after)
    assert counts(after.graph)["scan"] == 1
    assert counts(after.graph)["matmul"] == 1
    (scan,) = [node for node in after.graph.nodes if node.op == "scan"]
    assert counts(body_of(scan))["matmul"] == 1
