"""Patterns put in place: chosen by cost, checked by evaluating both sides, right in the graph that comes out."""

from itertools import permutations

import numpy as np
import pytest

from dovetail.base.errors import PatternError
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.graph import Graph
from dovetail.ir.graph.verify import Operators
from dovetail.rewrite.patterns.apply import Mapped, map_patterns
from dovetail.rewrite.patterns.pattern import Pattern
from tests.unit.rewrite.patterns.graphs import bound

SWISH = Pattern("swish", "mul(?x, sigmoid(?x))", "silu(?x)")
QKV = Pattern(
    "qkv",
    "matmul(?x, ?q), matmul(?x, ?k), matmul(?x, ?v)",
    "a, b, c = split(matmul(?x, concat(?q, ?k, ?v){axis = 1})){sizes = (?m, ?n, ?o), axis = 1}  a, b, c",
    types=("q: ?t[?i, ?m]", "k: ?t[?i, ?n]", "v: ?t[?i, ?o]"),
    when=("constant(?q)", "constant(?k)", "constant(?v)"),
)


def lines(mapped: Mapped) -> list[str]:
    return [str(node) for node in mapped.bound.graph.nodes]


def agree(before: BoundGraph, mapped: Mapped) -> None:
    """The whole graph computes the same, on whole numbers."""
    rng = np.random.default_rng(1)
    inputs = {
        value.name: rng.integers(-3, 4, [e.const for e in value.type.shape]).astype(value.type.dtype.numpy)
        for value in before.graph.inputs
    }
    from_before = evaluate(before.graph, mapped.operators, inputs, before.data)
    after = mapped.bound
    from_after = evaluate(after.graph, mapped.operators, inputs, after.data)
    assert from_before.keys() == from_after.keys()
    for name, wanted in from_before.items():
        found, right = from_after[name].astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)


def test_what_is_matched_is_replaced_and_computes_the_same() -> None:
    graph = bound("s = sigmoid(x)\nm = mul(s, x)\nz = add(m, y)")
    mapped = map_patterns(graph, [SWISH])
    assert lines(mapped) == ["m = silu(x)", "z = add(m, y)"]
    agree(graph, mapped)


def test_a_graph_without_a_match_stays_as_it_is() -> None:
    graph = bound("z = add(x, y)")
    assert map_patterns(graph, [SWISH]).bound is graph


def test_weights_are_joined_ahead_of_one_product() -> None:
    graph = bound(
        "const q: f32[6, 4]\nconst k: f32[6, 4]\nconst v: f32[6, 8]\n"
        "a = matmul(x, q)\nb = matmul(x, k)\nc = matmul(x, v)\nd = add(a, b)\ne = relu(c)",
        "x: f32[5, 6]",
        "d, e",
    )
    mapped = map_patterns(graph, [QKV])
    assert [node.op for node in mapped.bound.graph.nodes].count("matmul") == 1
    assert len(mapped.steps) == 1
    agree(graph, mapped)


def test_a_chain_becomes_one_sum() -> None:
    pattern = Pattern(
        "sums",
        "repeat(?n >= 2, ?h = ?x, add(?h, each(?b)))",
        "reduce_sum(concat(unsqueeze(?x){axes = (0)}, each(unsqueeze(?b){axes = (0)})){axis = 0})"
        "{axes = (0), keepdims = 0}",
        types=("x: ?t", "b: ?t"),
    )
    graph = bound("a = add(x, y)\nb = add(a, x)\nc = add(b, y)\nz = relu(c)")
    mapped = map_patterns(graph, [pattern])
    assert [node.op for node in mapped.bound.graph.nodes][-3:] == ["concat", "reduce_sum", "relu"]
    agree(graph, mapped)


def test_a_chain_may_stay_a_chain_of_other_steps() -> None:
    pattern = Pattern(
        "turned",
        "repeat(?n, ?h = ?x, sub(?h, each(?b)))",
        "repeat(?n, ?k = ?x, add(?k, neg(each(?b))))",
    )
    graph = bound("a = sub(x, y)\nz = sub(a, x)")
    mapped = map_patterns(graph, [pattern])
    assert lines(mapped) == ["r0 = neg(y)", "r1 = add(x, r0)", "r2 = neg(x)", "z = add(r1, r2)"]
    agree(graph, mapped)


def test_a_program_takes_the_place_of_operators() -> None:
    text = "in x: ?t[?n, ?k]  out y: ?t[?n, ?k]  for i<?n, j<?k: y[i, j] = x[i, j] * max(x[i, j], 0)"
    graph = bound("r = relu(x)\nm = mul(r, x)\nz = add(m, y)")
    mapped = map_patterns(graph, [Pattern("square", "mul(?x, relu(?x))", program=text)])
    (made, _) = mapped.bound.graph.nodes
    assert made.op.startswith("square_")
    assert made.op in mapped.operators
    agree(graph, mapped)


def test_a_program_is_for_the_types_it_declares() -> None:
    text = "in x: f32[?n]  out y: f32[?n]  for i<?n: y[i] = max(x[i], 0)"
    graph = bound("a = relu(x)\nb = relu(w)", "x: f32[4, 6], w: f32[3]", "a, b")
    mapped = map_patterns(graph, [Pattern("mine", "relu(?x)", program=text)])
    assert [step.sinks for step in mapped.steps] == [("b",)]


def test_operands_of_a_program_are_adapted() -> None:
    text = (
        "in x: f32[?n, ?k]  in w: f32[?m, ?k]  out y: f32[?n, ?m]  for i<?n, j<?m, l<?k: y[i, j] += x[i, l] * w[j, l]"
    )
    pattern = Pattern("turned", "matmul(?x, ?w)", "program(?x, transpose(?w){perm = (1, 0)})", program=text)
    graph = bound("const w: f32[6, 3]\nz = matmul(x, w)")
    mapped = map_patterns(graph, [pattern])
    assert mapped.bound.graph.nodes[0].op == "transpose"
    agree(graph, mapped)


def test_overlapping_matches_are_chosen_by_cost_whatever_their_order() -> None:
    patterns = [
        SWISH,
        Pattern("whole", "relu(mul(?x, sigmoid(?x)))", "relu(silu(?x))"),
        Pattern("outer", "relu(mul(?x, ?y))", "max(mul(?x, ?y), 0.0)"),
    ]
    graph = bound("s = sigmoid(x)\nm = mul(s, x)\nz = relu(m)")

    def cost(nodes: Graph, operators: Operators, constants: object) -> float:
        return sum({"silu": 1.0, "max": 9.0}.get(node.op, 5.0) for node in nodes.nodes)

    results = {tuple(lines(map_patterns(graph, order, cost=cost))) for order in permutations(patterns)}
    assert len(results) == 1
    assert [line.partition(" = ")[2].partition("(")[0] for line in results.pop()] == ["silu", "relu"]


def test_the_cheapest_of_two_that_overlap_is_taken() -> None:
    first = Pattern("first", "relu(neg(?x))", "relu(neg(?x))")
    dear = Pattern("dear", "neg(abs(?x))", "neg(abs(?x))")
    graph = bound("a = abs(x)\nb = neg(a)\nz = relu(b)")

    def prefers(op: str) -> list[str]:
        def cost(nodes: Graph, operators: Operators, constants: object) -> float:
            return float(nodes.name == "before" and any(node.op == op for node in nodes.nodes))

        return [step.pattern for step in map_patterns(graph, [first, dear], cost=cost).steps]

    assert prefers("relu")[0] == "first"
    assert prefers("abs")[0] == "dear"


def test_two_small_matches_can_be_worth_more_than_one_between_them() -> None:
    ends = Pattern("ends", "neg(?x)", "mul(?x, -1.0)")
    middle = Pattern("middle", "neg(abs(neg(?x)))", "neg(abs(?x))")
    graph = bound("a = neg(x)\nb = abs(a)\nz = neg(b)")

    def saving(of_middle: float) -> set[str]:
        def cost(nodes: Graph, operators: Operators, constants: object) -> float:
            if nodes.name == "after":
                return 0.0
            return of_middle if len(nodes.nodes) == 3 else 1.0

        return {step.pattern for step in map_patterns(graph, [middle, ends], cost=cost).steps}

    assert "ends" in saving(1.5) and "middle" not in saving(1.5)
    assert "middle" in saving(2.5)


def test_a_mapping_to_another_computation_is_refused() -> None:
    wrong = Pattern("wrong", "mul(?x, sigmoid(?x))", "mul(?x, tanh(?x))")
    with pytest.raises(PatternError, match="maps to another computation"):
        map_patterns(bound("s = sigmoid(x)\nz = mul(x, s)"), [wrong])


def test_a_mapping_that_is_right_on_whole_numbers_alone_is_refused() -> None:
    wrong = Pattern("wrong", "abs(?x)", "abs(round(?x))")
    with pytest.raises(PatternError, match="numbers around zero"):
        map_patterns(bound("z = abs(x)"), [wrong])


def test_the_two_forms_of_a_gru_are_not_taken_for_each_other() -> None:
    after_reset = Pattern("gru", "tanh(add(?a, matmul(mul(?r, ?h), ?w)))", "tanh(add(?a, mul(?r, matmul(?h, ?w))))")
    inputs = "a: f32[2, 4], r: f32[2, 4], h: f32[2, 4], w: f32[4, 4]"
    graph = bound("g = mul(r, h)\np = matmul(g, w)\ns = add(a, p)\nz = tanh(s)", inputs)
    with pytest.raises(PatternError, match="another computation"):
        map_patterns(graph, [after_reset])


def test_equal_matches_are_evaluated_once() -> None:
    body = "\n".join(f"s{k} = sigmoid(v{k})\nv{k + 1} = mul(s{k}, v{k})" for k in range(10))
    graph = bound(body, "v0: f32[4, 6]", "v10")
    mapped = map_patterns(graph, [SWISH])
    assert (len(mapped.steps), mapped.checks) == (10, 1)


def test_matches_of_other_types_are_evaluated_again() -> None:
    graph = bound("s = sigmoid(x)\na = mul(s, x)\nt = sigmoid(w)\nb = mul(t, w)", "x: f32[4, 6], w: f32[3]", "a, b")
    assert map_patterns(graph, [SWISH]).checks == 2


def test_a_replacement_of_another_type_is_refused() -> None:
    wrong = Pattern("wrong", "relu(?x)", "transpose(?x){perm = (1, 0)}")
    with pytest.raises(PatternError, match="another type"):
        map_patterns(bound("z = relu(x)"), [wrong])


def test_a_pattern_is_not_applied_to_what_it_made() -> None:
    pattern = Pattern("again", "exp(?x)", "exp(add(?x, 0.0))")
    mapped = map_patterns(bound("z = exp(x)"), [pattern])
    assert [node.op for node in mapped.bound.graph.nodes] == ["add", "exp"]


def test_one_pattern_makes_what_another_matches() -> None:
    second = Pattern("second", "relu(silu(?x))", "mul(silu(?x), 1.0)", error="1 * eps")
    graph = bound("s = sigmoid(x)\nm = mul(s, x)\nz = relu(m)")
    with pytest.raises(PatternError, match="second"):
        map_patterns(graph, [second, SWISH])


def test_joint_replacements_never_run_in_a_circle() -> None:
    pair = Pattern(
        "pair",
        "matmul(?x, ?a), matmul(?x, ?b)",
        "c, d = split(matmul(?x, concat(?a, ?b){axis = 1})){sizes = (?m, ?n), axis = 1}  c, d",
        types=("a: ?t[?k, ?m]", "b: ?t[?k, ?n]"),
    )
    body = "a = matmul(x, p)\nb = matmul(y, a)\nc = matmul(y, p)\nd = matmul(x, c)\nz = add(b, d)"
    graph = bound(body, "x: f32[6, 6], y: f32[6, 6], p: f32[6, 6]")
    mapped = map_patterns(graph, [pair])
    assert len(mapped.steps) == 1
    agree(graph, mapped)
