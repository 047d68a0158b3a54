"""Rules about operators, on graphs as models have them."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.graph import Graph
from dovetail.ir.graph.parse import parse
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.graph_apply import derive_graph
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.dsl import ASSOCIATION, EVERYDAY, PARTS
from dovetail.rewrite.tables.folding import FOLDING


def _derived(text: str, rules: tuple[Rule, ...]) -> Graph:
    """The graph after all rules, which computes the same."""
    graph = parse(text)
    end = derive_graph(graph, rules).finished().end
    random = np.random.default_rng(1)
    data = {
        value.name: random.uniform(0.5, 2, [e.const for e in value.type.shape]).astype(np.float32)
        for value in (*graph.inputs, *graph.constants)
    }
    inputs = {value.name: data[value.name] for value in graph.inputs}
    first, second = (list(evaluate(g, OPERATORS, inputs, data).values()) for g in (graph, end))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=1e-5)
    return end


def _ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def test_a_norm_after_a_convolution_is_folded_into_its_weights() -> None:
    graph = _derived(
        """graph block(x: f32[1, 4, 6, 6]) -> (y)
        const w: f32[8, 4, 3, 3]
        const s: f32[8]
        const b: f32[8]
        const m: f32[8]
        const v: f32[8]
        h = conv(x, w) {pads = (1, 1, 1, 1)}
        n = batch_norm(h, s, b, m, v)
        y = relu(n)""",
        FOLDING,
    )
    made = {name for node in graph.nodes for name in node.results if node.op == "conv"}
    (last,) = (node for node in graph.nodes if node.op == "relu")
    assert set(last.operands) == made, "nothing is between the convolution and its activation"


def test_transposes_meet_and_vanish() -> None:
    graph = _derived(
        """graph g(x: f32[2, 3, 4]) -> (y)
        a = transpose(x) {perm = (2, 0, 1)}
        b = relu(a)
        c = tanh(b)
        y = transpose(c) {perm = (1, 2, 0)}""",
        EVERYDAY,
    )
    assert _ops(graph) == ["relu", "tanh"]


def test_a_product_with_a_bias_is_a_layer_and_a_layer_is_a_product_with_a_bias() -> None:
    layer = """graph g(x: f32[5, 3]) -> (y)
        const w: f32[4, 3]
        const b: f32[4]
        p = matmul(x, w) {transpose_b = 1}
        s = add(p, b)
        y = relu(s)"""
    assert _ops(_derived(layer, EVERYDAY)) == ["dense", "relu"]
    assert _ops(_derived(str(_derived(layer, EVERYDAY)), PARTS)) == ["matmul", "add", "relu"]


@pytest.mark.parametrize(("rows", "columns"), [(2, 50), (50, 2)])
def test_a_chain_of_products_is_done_the_cheap_way(rows: int, columns: int) -> None:
    text = f"""graph g(a: f32[{rows}, 40], b: f32[40, 30], c: f32[30, {columns}]) -> (y)
        h = matmul(a, b)
        y = matmul(h, c)"""
    graph = _derived(text, ASSOCIATION)
    assert graph.nodes[0].operands == (("a", "b") if rows < columns else ("b", "c"))


def test_a_convolution_of_points_is_a_product() -> None:
    graph = _derived(
        """graph g(x: f32[2, 4, 5, 6]) -> (y)
        const w: f32[3, 4, 1, 1]
        y = conv(x, w)""",
        PARTS,
    )
    assert "matmul" in _ops(graph)
    assert "conv" not in _ops(graph)


def test_rules_of_every_day_end() -> None:
    text = """graph g(x: f32[2, 3]) -> (y)
        const w: f32[3, 4]
        const b: f32[4]
        a = identity(x)
        c = matmul(a, w)
        d = add(c, b)
        e = relu(d)
        f = relu(e)
        h = reshape(f) {shape = (8,)}
        y = reshape(h) {shape = (4, 2)}"""
    assert _ops(_derived(text, EVERYDAY)) == ["transpose", "dense", "relu", "reshape"]
