"""A model as a whole: opsets, operators as defined, names made once and before use, functions that end."""

from __future__ import annotations

import pytest
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from dovetail.base.errors import LimitError, ModelError, UnsupportedError
from dovetail.base.limits import ModelLimits
from dovetail.frontends.onnx.file import from_proto
from tests.unit.frontends.onnx.models import array, branch, conditional, identity, model, value

BOOL = TensorProto.BOOL


def node(op: str, inputs: str, outputs: str, **attributes: object) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def of(*nodes: NodeProto) -> ModelProto:
    """A model of x[2] and the truth value c to y."""
    return model(list(nodes), [value("x", 2), value("c", dtype=BOOL)], [value("y", 2)])


def order(*nodes: NodeProto) -> list[str]:
    return [node.outputs[0] for node in from_proto(of(*nodes)).graph.nodes]


@pytest.mark.parametrize("opset", range(7, 27))
def test_opsets_7_to_26_are_taken(opset: int) -> None:
    assert from_proto(identity(opset)).opset == opset


@pytest.mark.parametrize("opset", [-1, 0, 27, 2**63 - 1])
def test_other_opsets_are_refused(opset: int) -> None:
    with pytest.raises(UnsupportedError, match=f"opset {opset} of ai.onnx"):
        from_proto(identity(opset))


def test_a_model_without_opsets_is_refused() -> None:
    proto = identity()
    del proto.opset_import[:]
    with pytest.raises(ModelError, match="no opset"):
        from_proto(proto)


def test_a_domain_in_two_versions_is_refused() -> None:
    proto = identity()
    proto.opset_import.add(domain="ai.onnx", version=20)
    with pytest.raises(ModelError, match="two versions"):
        from_proto(proto)


def test_an_operator_of_a_domain_that_is_not_imported_is_refused() -> None:
    with pytest.raises(ModelError, match="'own' is imported"):
        from_proto(of(node("Any", "x", "y", domain="own")))


def test_unknown_domains_are_kept_for_whoever_knows_them() -> None:
    proto = of(node("Any", "x", "y", domain="own", any=[1]))
    proto.opset_import.add(domain="own", version=9)
    assert from_proto(proto).opsets == {"": 21, "own": 9}


def test_nodes_in_order_stay_as_they_are() -> None:
    assert order(node("Neg", "x", "b"), node("Abs", "x", "a"), node("Add", "a b", "y")) == ["b", "a", "y"]


def test_nodes_that_stand_before_what_they_read_are_put_in_order() -> None:
    nodes = node("Add", "a b", "y"), node("Neg", "a", "b"), node("Abs", "x", "a"), node("Exp", "x", "e")
    assert order(*nodes) == ["a", "b", "y", "e"]


def test_what_a_branch_reads_from_around_it_stands_before() -> None:
    then = branch(node("Neg", "late", "t"), output="t")
    other = branch(node("Neg", "x", "o"), output="o")
    assert order(conditional(then, other), node("Exp", "x", "late")) == ["late", "y"]


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ModelError, match="cyclic"):
        from_proto(of(node("Add", "x b", "a"), node("Neg", "a", "b"), node("Neg", "a", "y")))


def test_a_cycle_through_a_branch_is_refused() -> None:
    then = branch(node("Neg", "y", "t"), output="t")
    with pytest.raises(ModelError, match="cyclic"):
        from_proto(of(conditional(then, branch(node("Neg", "x", "o"), output="o"))))


def test_a_value_that_nothing_makes_is_refused() -> None:
    with pytest.raises(ModelError, match="'missing' is read but made by nothing"):
        from_proto(of(node("Neg", "missing", "y")))


def test_a_value_of_another_branch_cannot_be_read() -> None:
    then = branch(node("Neg", "x", "t"), output="t")
    other = branch(node("Neg", "t", "o"), output="o")
    with pytest.raises(ModelError, match="'t' is read but made by nothing"):
        from_proto(of(conditional(then, other)))


def test_an_output_that_nothing_makes_is_refused() -> None:
    with pytest.raises(ModelError, match="'y' is made by nothing"):
        from_proto(of(node("Neg", "x", "z")))


def test_a_model_without_outputs_is_refused() -> None:
    with pytest.raises(ModelError, match="no outputs"):
        from_proto(model([node("Neg", "x", "y")], [value("x", 2)], []))


@pytest.mark.parametrize("first", ["y", "x"])
def test_a_name_made_twice_is_refused(first: str) -> None:
    with pytest.raises(ModelError, match=f"'{first}' is made twice"):
        from_proto(of(node("Neg", "x", first), node("Abs", "x", "y")))


def test_a_name_made_twice_by_one_node_is_refused() -> None:
    with pytest.raises(ModelError, match="made twice"):
        from_proto(of(node("Split", "x", "y y", num_outputs=2)))


def test_a_name_of_around_cannot_be_made_inside() -> None:
    then = branch(node("Neg", "x", "n"), output="n")
    other = branch(node("Neg", "x", "o"), output="o")
    with pytest.raises(ModelError, match="'n' is made twice"):
        from_proto(of(node("Abs", "x", "n"), conditional(then, other)))


def test_two_branches_may_make_the_same_name_and_that_of_their_result() -> None:
    then, other = (branch(node(op, "x", "y"), output="y") for op in ("Neg", "Abs"))
    from_proto(of(conditional(then, other)))


def test_two_inputs_of_one_name_are_refused() -> None:
    with pytest.raises(ModelError, match="two inputs"):
        from_proto(model([node("Neg", "x", "y")], [value("x", 2), value("x", 2)], [value("y", 2)]))


def test_two_initializers_of_one_name_are_refused() -> None:
    with pytest.raises(ModelError, match="that of another"):
        from_proto(model([node("Neg", "w", "y")], [], [value("y", 2)], [array(1, 2), array(3, 4)]))


def test_an_initializer_may_be_the_default_of_an_input() -> None:
    found = from_proto(model([node("Neg", "w", "y")], [value("w", 2)], [value("y", 2)], [array(1, 2)]))
    assert "w" in found.graph.initializers


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (node("Neg", "x x", "y"), "has 2 inputs, not 1"),
        (node("Add", "x", "y"), "has 1 inputs, not 2"),
        (node("Concat", "", "y", axis=0), "has 0 inputs, not 1 or more"),
        (node("Neg", "x", "y z"), "has 2 outputs, not 1"),
        (helper.make_node("Add", ["x", ""], ["y"]), "input 1 of Add is left out"),
        (helper.make_node("Concat", ["x", ""], ["y"], axis=0), "input 1 of Concat is left out"),
        (node("Concat", "x x", "y"), "needs an attribute 'axis'"),
        (node("Concat", "x x", "y", axis=0.5), "'axis' of Concat is not of type int"),
        (node("Transpose", "x", "y", perm=3), "'perm' of Transpose is not of type ints"),
        (node("Concat", "x x", "y", axes=0, axis=0), "no attribute 'axes'"),
    ],
)
def test_a_node_that_does_not_fit_its_operator_is_refused(wrong: NodeProto, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        from_proto(of(wrong))


def test_an_input_that_may_be_left_out_may_be() -> None:
    from_proto(of(helper.make_node("Clip", ["x", "", "x"], ["y"])))


@pytest.mark.parametrize(
    ("op", "opset", "words"),
    [("Nothing", 21, "no such operator"), ("Gelu", 19, "no such operator"), ("Upsample", 11, "no longer part")],
)
def test_an_operator_that_the_opset_does_not_have_is_refused(op: str, opset: int, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        from_proto(model([node(op, "x", "y")], [value("x", 2)], [value("y", 2)], opset=opset))


def test_an_attribute_given_twice_is_refused() -> None:
    twice = node("Concat", "x x", "y", axis=0)
    twice.attribute.add(name="axis", type=2, i=0)
    with pytest.raises(ModelError, match="given twice"):
        from_proto(of(twice))


def body(inputs: int, outputs: int) -> GraphProto:
    """A graph of so many inputs and outputs."""
    values = [value(f"i{at}") for at in range(inputs)], [value(f"o{at}") for at in range(outputs)]
    nodes = [node("Constant", "", f"o{at}", value_float=0.0) for at in range(outputs)]
    return helper.make_graph(nodes, "body", *values)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "counts", "attributes"),
    [
        ("If", "c", "y", (0, 1), {"else_branch": body(0, 1)}),
        ("Loop", "n c x", "y", (3, 2), {}),
        ("Loop", "n c x", "y z", (3, 3), {}),
        ("Loop", "n c", "y", (2, 2), {}),
        ("Scan", "x x", "y", (2, 1), {"num_scan_inputs": 1}),
        ("Scan", "x", "y z", (1, 2), {"num_scan_inputs": 1}),
    ],
)
def test_bodies_fit_the_nodes_they_are_in(
    op: str, inputs: str, outputs: str, counts: tuple[int, int], attributes: dict[str, object]
) -> None:
    name = "then_branch" if op == "If" else "body"

    def proto(inner: int, made: int) -> ModelProto:
        given = [value("x", 2), value("c", dtype=BOOL), value("n", dtype=TensorProto.INT64)]
        return model([node(op, inputs, outputs, **{name: body(inner, made)}, **attributes)], given, [value("y", 2)])

    from_proto(proto(*counts))
    for wrong in ((counts[0] + 1, counts[1]), (counts[0], counts[1] + 1), (counts[0], counts[1] - 1)):
        with pytest.raises(ModelError, match=f"'{name}' of {op} has"):
            from_proto(proto(*wrong))


@pytest.mark.parametrize("elements", [0, -1, 3, 2**62])
def test_a_scan_over_more_than_its_inputs_is_refused(elements: int) -> None:
    with pytest.raises(ModelError, match="no graph fits"):
        from_proto(of(node("Scan", "x x", "y", body=body(2, 1), num_scan_inputs=elements)))


# Functions of the model.


def function(name: str, *nodes: NodeProto, attributes: tuple[str, ...] = ()) -> FunctionProto:
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], list(nodes), imports, attributes)


def call(name: str, inputs: str, outputs: str, **attributes: object) -> NodeProto:
    return node(name, inputs, outputs, domain="own", **attributes)


def calling(entry: NodeProto, *functions: FunctionProto) -> ModelProto:
    proto = of(entry)
    proto.opset_import.add(domain="own", version=1)
    proto.functions.extend(functions)
    return proto


def test_functions_may_call_functions() -> None:
    inner, outer = function("In", node("Neg", "a", "b")), function("Out", call("In", "a", "b"))
    found = from_proto(calling(call("Out", "x", "y"), outer, inner))
    assert set(found.functions) == {("own", "Out", ""), ("own", "In", "")}


def test_a_function_that_calls_itself_is_refused() -> None:
    with pytest.raises(ModelError, match="calls itself"):
        from_proto(calling(call("F", "x", "y"), function("F", call("F", "a", "b"))))


def test_functions_that_call_each_other_in_a_circle_are_refused() -> None:
    ring = [function(f"F{at}", call(f"F{(at + 1) % 300}", "a", "b")) for at in range(300)]
    with pytest.raises(ModelError, match="calls itself"):
        from_proto(calling(call("F0", "x", "y"), *ring))


def test_a_long_chain_of_functions_is_no_circle() -> None:
    chain = [function(f"F{at}", call(f"F{at + 1}", "a", "b")) for at in range(2000)]
    from_proto(calling(call("F0", "x", "y"), *chain, function("F2000", node("Neg", "a", "b"))))


def test_functions_that_double_without_end_are_refused() -> None:
    doubling = [function(f"F{at}", call(f"F{at + 1}", "a", "c"), call(f"F{at + 1}", "c", "b")) for at in range(60)]
    with pytest.raises(LimitError, match="has 3458764513820540927 nodes"):
        from_proto(calling(call("F0", "x", "y"), *doubling, function("F60", node("Neg", "a", "b"))))


def test_a_function_within_the_limit_is_taken() -> None:
    proto = calling(call("F", "x", "y"), function("F", node("Neg", "a", "b")))
    from_proto(proto, ModelLimits(inlined_nodes=2))
    with pytest.raises(LimitError):
        from_proto(proto, ModelLimits(inlined_nodes=1))


def test_a_function_given_twice_is_refused() -> None:
    with pytest.raises(ModelError, match="twice"):
        from_proto(calling(call("F", "x", "y"), *[function("F", node("Neg", "a", "b"))] * 2))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (call("F", "x x", "y"), "has 1 inputs but is called with 2"),
        (call("F", "x", "y z"), "has 1 outputs but is called with 2"),
        (call("F", "x", "y"), "needs an attribute 'k'"),
    ],
)
def test_a_call_that_does_not_fit_its_function_is_refused(entry: NodeProto, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        from_proto(calling(entry, function("F", node("Neg", "a", "b"), attributes=("k",))))


def test_a_function_sees_nothing_of_the_graph() -> None:
    with pytest.raises(ModelError, match="'x' is read but made by nothing"):
        from_proto(calling(call("F", "x", "y"), function("F", node("Neg", "x", "b"))))


def test_a_body_of_many_nodes_in_reverse_order_is_sorted_quickly() -> None:
    chain = [node("Neg", f"v{at}", f"v{at + 1}") for at in range(20_000)]
    nodes = [*reversed(chain), node("Neg", "x", "v0"), node("Neg", "v20000", "y")]
    assert order(*nodes)[-1] == "y"
