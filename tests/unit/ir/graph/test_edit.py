"""Graphs changed: values replaced, dead nodes dropped, constants folded."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import GraphError
from dovetail.ir.graph.edit import Replacement, free_names, replace_values, without_dead
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.fold import fold_constants
from dovetail.ir.graph.graph import Graph, Value, node
from dovetail.ir.graph.parse import parse, parse_type
from dovetail.ops.table import OPERATORS
from tests.unit.ir.graph.random_graphs import inputs_for, random_graph


def replaced(graph: Graph, *replacements: Replacement) -> str:
    return str(replace_values(graph, replacements, OPERATORS))


def test_a_new_node_takes_the_name_of_what_it_replaces() -> None:
    graph = parse("graph g(x: f32[2]) -> (z) const o: f32[2] y = relu(x) z = add(y, x)")
    new = Replacement((("y", "n"),), (node("max", ("x", "c"), ("n",)),), (Value("c", parse_type("f32[2]")),))
    assert replaced(graph, new) == ("graph g(x: f32[2]) -> (z)\n  const c: f32[2]\n  y = max(x, c)\n  z = add(y, x)")


def test_what_nothing_needs_any_more_is_gone() -> None:
    graph = parse("graph g(x: f32[2]) -> (z) a = neg(x) b = neg(a) z = relu(b)")
    assert replaced(graph, Replacement((("b", "x"),))) == "graph g(x: f32[2]) -> (z)\n  z = relu(x)"


def test_several_replacements_may_meet() -> None:
    graph = parse("graph g(x: f32[2]) -> (z) a = neg(x) b = neg(a) c = identity(b) z = relu(c)")
    out = Replacement((("c", "b"),))
    twice = Replacement((("b", "x"),))
    both = Replacement((("z", "n"),), (node("abs", ("c",), ("n",)),))
    assert replaced(graph, out, twice, both) == "graph g(x: f32[2]) -> (z)\n  z = abs(x)"


def test_one_result_of_two_can_be_replaced() -> None:
    graph = parse("graph g(x: f32[4]) -> (p, q) p, q = split(x) {sizes = (2, 2)}")
    new = Replacement((("p", "n"),), (node("slice", ("x",), ("n",), starts=(0,), ends=(2,)),))
    changed = replace_values(graph, [new], OPERATORS)
    x = np.arange(4, dtype=np.float32)
    found = evaluate(changed, OPERATORS, {"x": x})
    assert [found[name].tolist() for name in changed.outputs] == [[0, 1], [2, 3]]


def test_new_nodes_stand_before_their_readers() -> None:
    graph = parse("graph g(x: f32[2]) -> (z) y = relu(x) z = add(y, x)")
    new = Replacement((("y", "n"),), (node("abs", ("m",), ("n",)), node("neg", ("x",), ("m",))))
    assert replaced(graph, new).splitlines()[1:] == ["  m = neg(x)", "  y = abs(m)", "  z = add(y, x)"]


def test_a_replacement_of_another_type_is_refused() -> None:
    graph = parse("graph g(x: f32[2]) -> (y) y = relu(x)")
    new = Replacement((("y", "n"),), (node("unsqueeze", ("x",), ("n",), axes=(0,)),))
    with pytest.raises(GraphError, match=r"'y' is f32\[2\], its replacement is f32\[1, 2\]"):
        replaced(graph, new)


def test_a_replacement_may_not_need_what_it_replaces() -> None:
    graph = parse("graph g(x: f32[2]) -> (y) y = relu(x)")
    with pytest.raises(GraphError, match="runs in a circle"):
        replaced(graph, Replacement((("y", "n"),), (node("neg", ("y",), ("n",)),)))
    with pytest.raises(GraphError, match="replaced twice"):
        replaced(graph, Replacement((("y", "x"),)), Replacement((("y", "x"),)))


def test_a_long_chain_is_no_trouble() -> None:
    lines = ["graph g(v0: f32[1]) -> (v5000)", *(f"v{k + 1} = neg(v{k})" for k in range(5000))]
    graph = parse("\n".join(lines))
    new = Replacement((("v1", "n"),), (node("abs", ("v0",), ("n",)),))
    assert len(replace_values(graph, [new], OPERATORS).nodes) == 5000


def test_free_names_are_free() -> None:
    names = free_names(parse("graph g(v0: f32[2]) -> (v2) v2 = relu(v0)"))
    assert [next(names) for _ in range(3)] == ["v1", "v3", "v4"]


@pytest.mark.parametrize("seed", range(20))
def test_dropping_and_folding_keep_what_comes_out(seed: int) -> None:
    graph = random_graph(seed)
    inputs, data = inputs_for(graph)
    expected = evaluate(graph, OPERATORS, inputs, data)
    lean = without_dead(graph)
    folded, more = fold_constants(lean, OPERATORS, data)
    for changed, known in ((lean, data), (folded, more)):
        found = evaluate(changed, OPERATORS, inputs, known)
        for name in graph.outputs:
            np.testing.assert_array_equal(found[name], expected[name])


def test_nodes_of_constants_become_constants() -> None:
    graph = parse(
        """graph g(x: f32[1, 2]) -> (y)
             const w: f32[3, 2]
             const s: f32[3, 1]
             t = mul(w, s)
             u = transpose(t)
             y = matmul(x, u)"""
    )
    w, s = np.arange(6, dtype=np.float32).reshape(3, 2), np.full((3, 1), 2, np.float32)
    folded, data = fold_constants(graph, OPERATORS, {"w": w, "s": s})
    assert str(folded) == "graph g(x: f32[1, 2]) -> (y)\n  const u: f32[2, 3]\n  y = matmul(x, u)"
    np.testing.assert_array_equal(data["u"], 2 * w.T)
    assert list(data) == ["u"]


def test_a_constant_is_not_expanded_without_bounds() -> None:
    graph = parse("graph g() -> (y) const c: f32[1] y = expand(c) {shape = (1000,)}")
    one = {"c": np.ones(1, np.float32)}
    folded, _ = fold_constants(graph, OPERATORS, one, largest_bytes=100)
    assert folded.nodes == graph.nodes
    assert fold_constants(graph, OPERATORS, one)[0].nodes == ()
