"""Patterns found in graphs: from a sink upwards, injective, used nowhere else."""

import pytest

from dovetail.ir.index import constant
from dovetail.rewrite.patterns.find import find
from dovetail.rewrite.patterns.pattern import Pattern
from tests.unit.rewrite.patterns.graphs import bound, only, sinks

SWISH = Pattern("swish", "mul(?x, sigmoid(?x))", "silu(?x)")
SUMS = Pattern("sums", "repeat(?n, ?h = ?x, add(?h, each(?b)))", "?x")
PAIR = Pattern("pair", "matmul(?x, ?a), matmul(?x, ?b)", "?x, ?x")


def test_commutative_operators_match_in_both_orders() -> None:
    assert sinks(bound("s = sigmoid(x)\nz = mul(x, s)"), SWISH) == [("swish", ("z",))]
    assert sinks(bound("s = sigmoid(x)\nz = mul(s, x)"), SWISH) == [("swish", ("z",))]


def test_a_hole_stands_for_one_value() -> None:
    assert sinks(bound("s = sigmoid(y)\nz = mul(x, s)"), SWISH) == []


def test_a_value_inside_that_others_read_parts_the_match() -> None:
    assert sinks(bound("s = sigmoid(x)\nm = mul(x, s)\nz = add(m, s)"), SWISH) == []


def test_a_value_inside_that_is_an_output_parts_the_match() -> None:
    assert sinks(bound("s = sigmoid(x)\nz = mul(x, s)", outputs="z, s"), SWISH) == []


def test_a_hole_is_nothing_inside_the_match() -> None:
    pattern = Pattern("p", "mul(relu(?x), ?y)", "?x")
    assert sinks(bound("r = relu(x)\nz = mul(r, r)"), pattern) == []


def test_two_operations_of_a_pattern_are_two_nodes() -> None:
    pattern = Pattern("p", "mul(relu(?x), relu(?y))", "mul(?x, ?y)")
    assert sinks(bound("r = relu(x)\nz = mul(r, r)"), pattern) == []
    assert len(find(bound("r = relu(x)\ns = relu(y)\nz = mul(r, s)"), [pattern])) == 2


def test_equal_operations_of_a_pattern_are_one_node() -> None:
    pattern = Pattern("p", "mul(relu(?x), relu(?x))", "relu(mul(?x, ?x))")
    assert sinks(bound("r = relu(x)\nz = mul(r, r)"), pattern) == [("p", ("z",))]


def test_shared_operations_are_written_with_names() -> None:
    pattern = Pattern("p", "s = sigmoid(?x)  mul(s, add(s, 1.0))", "?x")
    one = "const one: f32[]\n"
    graph = bound(f"{one}s = sigmoid(x)\na = add(s, one)\nz = mul(a, s)", one=1)
    assert sinks(graph, pattern) == [("p", ("z",))]


def test_a_number_matches_a_constant_of_that_number_alone() -> None:
    pattern = Pattern("half", "mul(?x, 0.5)", "?x")
    body = "const c: f32[6]\nz = mul(x, c)"
    assert sinks(bound(body, c=[0.5] * 6), pattern) == [("half", ("z",))]
    assert sinks(bound(body, c=[0.5] * 5 + [0.25]), pattern) == []
    assert sinks(bound(body, c=[0.50001] * 6), pattern) == []


def test_an_attribute_that_is_not_named_has_its_default() -> None:
    plain = Pattern("p", "matmul(?x, ?w)", "?x")
    open_ = Pattern("q", "matmul(?x, ?w){transpose_b = ?t}", "?x")
    graph = bound("z = matmul(x, y) {transpose_b = 1}")
    assert sinks(graph, plain, open_) == [("q", ("z",))]
    assert only(graph, open_).settings["t"] == constant(1)


@pytest.mark.parametrize(("axis", "found"), [(-1, True), (1, True), (0, False), (-2, False)])
def test_axes_may_be_counted_from_either_end(axis: int, found: bool) -> None:
    pattern = Pattern("p", f"softmax(?x){{axis = {axis}}}", "?x")
    for stated in (1, -1):
        assert bool(find(bound(f"z = softmax(x) {{axis = {stated}}}"), [pattern])) == found
    several = Pattern("p", f"reduce_sum(?x){{axes = ({axis}), keepdims = 1}}", "?x")
    assert bool(find(bound("z = reduce_sum(x) {axes = (1,), keepdims = 1}"), [several])) == found


def test_types_fix_dtype_rank_and_extents() -> None:
    graph = bound("z = relu(x)")
    for kind, found in (
        ("f32[?n, ?k]", True),
        ("?t[?n, 6]", True),
        ("f32[4, 7]", False),
        ("f32[?n, ?n]", False),
        ("f16[?n, ?k]", False),
        ("?t[?n]", False),
        ("?t", True),
    ):
        assert bool(find(graph, [Pattern("p", "relu(?x)", "?x", types=(f"x: {kind}",))])) == found, kind


@pytest.mark.parametrize(
    ("condition", "found"),
    [("?k % 3 == 0", True), ("?k % 4 == 0", False), ("constant(?x)", False), ("float(?x)", True)],
)
def test_conditions_guard_a_match(condition: str, found: bool) -> None:
    pattern = Pattern("p", "relu(?x)", "?x", types=("x: ?t[?n, ?k]",), when=(condition,))
    assert bool(find(bound("z = relu(x)"), [pattern])) == found


def test_different_holes_may_be_one_value_unless_a_condition_says_no() -> None:
    graph = bound("z = sub(x, x)")
    assert len(find(graph, [Pattern("p", "sub(?a, ?b)", "?a")])) == 1
    assert find(graph, [Pattern("p", "sub(?a, ?b)", "?a", when=("different(?a, ?b)",))]) == ()


def test_several_sinks_share_what_they_read() -> None:
    graph = bound("a = matmul(x, p)\nb = matmul(x, q)\nz = add(a, b)", "x: f32[4, 6], p: f32[6, 6], q: f32[6, 6]")
    assert sinks(graph, PAIR) == [("pair", ("a", "b")), ("pair", ("b", "a"))]


def test_sinks_of_which_one_is_made_of_the_other_are_no_match() -> None:
    graph = bound("a = matmul(x, p)\nb = matmul(x, a)\nz = add(b, x)", "x: f32[6, 6], p: f32[6, 6]")
    assert sinks(graph, PAIR) == []


def test_results_of_one_operator_belong_together() -> None:
    pattern = Pattern("glu", "a, b = split(?x){sizes = ?s, axis = 1}  mul(a, sigmoid(b))", "?x")
    split = "a, b = split(x) {sizes = (3, 3), axis = 1}\n"
    assert sinks(bound(f"{split}s = sigmoid(b)\nz = mul(a, s)"), pattern) == [("glu", ("z",))]
    assert sinks(bound(f"{split}s = sigmoid(a)\nz = mul(b, s)"), pattern) == []
    assert sinks(bound(f"{split}s = sigmoid(b)\nm = mul(a, s)\nz = add(m, b)"), pattern) == []


def test_a_chain_is_as_long_as_it_can_be() -> None:
    found = only(bound("a = add(x, y)\nb = add(y, a)\nz = add(b, x)"), SUMS)
    assert found.settings["n"] == constant(3)
    assert dict(found.found.items) == {"b": ("y", "y", "x")}
    assert found.inside == ("a", "b", "z")


def test_a_chain_begins_behind_what_others_read() -> None:
    graph = bound("a = add(x, y)\nb = add(a, y)\nc = add(b, y)\nr = relu(a)\nz = mul(c, r)")
    first, last = find(graph, [SUMS])
    assert (first.found.sinks, first.settings["n"]) == (("a",), constant(1))
    assert (last.found.sinks, last.settings["n"]) == (("c",), constant(2))
    assert dict(last.found.holes) == {"x": "a"}


def test_a_chain_of_one_step_is_a_chain_and_a_chain_of_none_is_not() -> None:
    assert only(bound("z = add(x, y)"), SUMS).settings["n"] == constant(1)
    assert find(bound("z = relu(x)"), [SUMS]) == ()
    least = Pattern("p", "repeat(?n >= 2, ?h = ?x, add(?h, each(?b)))", "?x")
    assert find(bound("z = add(x, y)"), [least]) == ()


def test_what_every_step_shares_is_the_same_at_all_of_them() -> None:
    pattern = Pattern("p", "repeat(?n, ?h = ?x, tanh(matmul(?h, ?w)))", "?x")
    body = "a = matmul(x, {0})\nb = tanh(a)\nc = matmul(b, {1})\nd = tanh(c)\ne = matmul(d, {1})\nz = tanh(e)"
    weights = "x: f32[6, 6], p: f32[6, 6], q: f32[6, 6]"
    assert only(bound(body.format("p", "p"), weights), pattern).settings["n"] == constant(3)
    lengths = [one.settings["n"] for one in find(bound(body.format("p", "q"), weights), [pattern])]
    assert lengths == [constant(1), constant(2)]


def test_a_chain_may_begin_and_end_with_other_operators() -> None:
    pattern = Pattern("p", "relu(repeat(?n, ?h = neg(?x), add(?h, each(?b))))", "?x")
    assert only(bound("n = neg(x)\na = add(n, y)\nb = add(a, y)\nz = relu(b)"), pattern).settings["n"] == constant(2)
    assert find(bound("a = add(x, y)\nb = add(a, y)\nz = relu(b)"), [pattern]) == ()


def test_a_long_chain_is_found_once() -> None:
    lines = ["v0 = add(x, y)", *(f"v{k} = add(v{k - 1}, y)" for k in range(1, 3000))]
    found = only(bound("\n".join(lines), outputs="v2999"), SUMS)
    assert found.settings["n"] == constant(3000)


def test_the_order_of_patterns_does_not_matter() -> None:
    graph = bound("s = sigmoid(x)\nm = mul(s, x)\nz = add(m, y)")
    assert set(sinks(graph, SWISH, SUMS)) == set(sinks(graph, SUMS, SWISH))
