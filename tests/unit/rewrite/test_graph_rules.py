"""Rules about operators, applied to graphs by the one matcher."""

import numpy as np
import pytest

from dovetail.base.errors import RewriteError, RuleError
from dovetail.base.limits import RewriteLimits
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.graph import Graph
from dovetail.ir.graph.parse import parse
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.graph_apply import apply_graph_rewrite, derive_graph, graph_rewrites
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.rule_types import check_types


def dsl(before: str, after: str, *when: str, types: tuple[str, ...] = (), name: str = "r") -> Rule:
    return Rule(name, before, after, when, types, level="dsl")


TWICE = dsl("relu(relu(?x))", "relu(?x)")
COMPOSE = dsl("transpose(transpose(?x){perm = ?p}){perm = ?q}", "transpose(?x){perm = compose(?p, ?q)}")
SAME = dsl("transpose(?x){perm = ?p}", "?x", "sorted(?p)", name="same")
NEGATIVE = dsl("add(?x, neg(?y))", "sub(?x, ?y)")


def graph(body: str, inputs: str = "x: f32[4, 6], y: f32[4, 6]", outputs: str = "z") -> Graph:
    return parse(f"graph g({inputs}) -> ({outputs})\n{body}")


def nodes(found: Graph) -> list[str]:
    return [str(node) for node in found.nodes]


def test_a_chain_of_operators_is_replaced() -> None:
    assert nodes(derive_graph(graph("h = relu(x)\nz = relu(h)"), [TWICE]).end) == ["z = relu(x)"]


def test_a_value_that_is_used_elsewhere_is_not_inside_a_match() -> None:
    kept = graph("h = relu(x)\nk = relu(h)\nz = add(h, k)")
    assert derive_graph(kept, [TWICE]).end == kept
    out = graph("h = relu(x)\nz = relu(h)", outputs="z, h")
    assert derive_graph(out, [TWICE]).end == out


def test_commutative_operators_are_matched_in_both_orders() -> None:
    assert nodes(derive_graph(graph("h = neg(x)\nz = add(h, y)"), [NEGATIVE]).end) == ["z = sub(y, x)"]
    assert nodes(derive_graph(graph("h = neg(x)\nz = add(y, h)"), [NEGATIVE]).end) == ["z = sub(y, x)"]


def test_two_operations_of_a_rule_are_two_operations_of_the_graph() -> None:
    rule = dsl("mul(neg(?x), neg(?y))", "mul(?x, ?y)")
    assert nodes(derive_graph(graph("a = neg(x)\nb = neg(y)\nz = mul(a, b)"), [rule]).end) == ["z = mul(x, y)"]
    square = graph("a = neg(x)\nz = mul(a, a)")
    assert derive_graph(square, [rule]).end == square


def test_attributes_are_bound_and_computed() -> None:
    twice = graph("h = transpose(x) {perm = (1, 2, 0)}\nz = transpose(h) {perm = (1, 2, 0)}", "x: f32[2, 3, 4]")
    found = derive_graph(twice, [COMPOSE])
    assert nodes(found.end) == ["z = transpose(x) {perm = (2, 0, 1)}"]
    data = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)}
    before, after = evaluate(twice, OPERATORS, data)["z"], evaluate(found.end, OPERATORS, data)["z"]
    assert np.array_equal(before, after)


def test_a_value_that_is_there_already_takes_the_place() -> None:
    back = graph("h = transpose(x) {perm = (1, 0)}\nz = transpose(h) {perm = (1, 0)}\ny1 = relu(z)", outputs="y1")
    assert nodes(derive_graph(back, [COMPOSE, SAME]).end) == ["y1 = relu(x)"]


def test_an_attribute_that_a_rule_does_not_name_has_its_default() -> None:
    rule = dsl("matmul(?x, ?y)", "relu(matmul(?x, ?y))")
    flipped = graph("z = matmul(x, y) {transpose_b = 1}")
    assert list(graph_rewrites(flipped, rule)) == []
    named = dsl("matmul(?x, ?y){transpose_b = 1}", "relu(matmul(?x, ?y){transpose_b = 1})")
    assert len(list(graph_rewrites(flipped, named))) == 1


def test_conditions_see_types_sizes_and_constants() -> None:
    text = "const w: f32[4, 6]\nh = mul(x, w)\nz = add(h, y)"
    assert [f.value for f in graph_rewrites(graph(text), dsl("mul(?x, ?y)", "mul(?y, ?x)", "constant(?y)"))] == ["h"]
    assert list(graph_rewrites(graph(text), dsl("mul(?x, ?y)", "mul(?y, ?x)", "scalar(?y)"))) == []
    sized = dsl("add(?x, ?y)", "add(?y, ?x)", "?n < ?m", types=("x: f32[?n, ?m]",))
    assert len(list(graph_rewrites(graph(text), sized))) == 2
    assert list(graph_rewrites(graph(text), dsl("add(?x, ?y)", "add(?y, ?x)", "?n > ?m", types=sized.types))) == []


def test_matches_in_many_places_fire_in_one_round() -> None:
    body = "\n".join(f"a{k} = relu({'x' if k == 0 else f'a{k - 1}'})" for k in range(40)) + "\nz = neg(a39)"
    found = derive_graph(graph(body), [TWICE])
    assert nodes(found.end) == ["h = relu(x)".replace("h", found.end.nodes[0].results[0]), str(found.end.nodes[1])]
    assert len(found.steps) == 39


def test_a_rule_that_changes_a_type_is_named() -> None:
    rule = dsl("neg(?x)", "transpose(?x){perm = (1, 0)}", name="turn")
    found = next(graph_rewrites(graph("z = neg(x)"), rule))
    with pytest.raises(RuleError, match="rule 'turn' breaks types"):
        apply_graph_rewrite(graph("z = neg(x)"), found)


def test_rules_that_loop_for_ever_are_stopped() -> None:
    rule = dsl("add(?x, ?y)", "add(?y, ?x)", name="swap")
    found = derive_graph(graph("z = add(x, y)"), [rule], RewriteLimits(steps=5))
    assert found.stopped == "the limit of 5 steps; rule 'swap' kept firing"
    with pytest.raises(RewriteError, match="stopped by the limit of 5 steps"):
        found.finished()


def test_a_derivation_of_a_graph_can_be_read() -> None:
    found = derive_graph(graph("h = neg(x)\nz = add(y, h)"), [NEGATIVE])
    assert str(found.steps[0]) == "r (bit-exact) at z\n  h = neg(x)\n  z = add(y, h)\n->\n  r0 = sub(y, x)"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (dsl("rleu(?x)", "?x"), "unknown operator 'rleu'"),
        (dsl("transpose(?x){prem = ?p}", "?x"), "transpose has no attribute 'prem'"),
        (dsl("transpose(?x){perm = ?p}", "transpose(?x){perm = compse(?p, ?p)}"), "unknown function 'compse'"),
        (dsl("transpose(?x){perm = ?p}", "transpose(?x){perm = compose(?p)}"), "compose takes 2 attributes, not 1"),
        (dsl("relu(?x)", "relu(?y)"), "'\\?y' is not bound"),
        (dsl("relu(?x)", "transpose(?x){perm = ?p}"), "'\\?p' is not bound"),
        (dsl("relu(?x)", "?x", "sortet(?x)"), "unknown predicate 'sortet'"),
        (dsl("?x", "relu(?x)"), "matches every value"),
        (dsl("relu(?x", "?x"), "expected '\\)'"),
        (dsl("relu(?x)", "?x", types=("y: f32[?n]",)), "'\\?y' is not bound"),
    ],
)
def test_a_faulty_rule_is_refused(rule: Rule, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        check_types(rule)
