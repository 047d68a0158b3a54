"""ONNX graphs become graphs of ours for the values at hand: what is looked at is guarded, the rest holds for all."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from dovetail.base.errors import LimitError, ModelError, UnsupportedError
from dovetail.frontends.onnx.entries import HostValue
from dovetail.frontends.onnx.file import from_proto
from dovetail.frontends.onnx.inline import Names, Work
from dovetail.frontends.onnx.model import OnnxModel
from dovetail.frontends.onnx.specialise import specialise
from dovetail.frontends.onnx.stage import Stage

HEAD = '<ir_version: 10, opset_import: ["": 21, "own": 1]>'


def parsed(text: str) -> OnnxModel:
    return from_proto(onnx.parser.parse_model(f"{HEAD}\n{text}"))


def staged(text: str, **given: HostValue) -> Stage:
    model = parsed(text)
    work = [Work(node, model.opsets) for node in model.graph.nodes]
    fixed: dict[str, HostValue] = {name: tensor.array() for name, tensor in model.graph.initializers.items()}
    outputs = [value.name for value in model.graph.outputs]
    return specialise(work, given, fixed, outputs, model.functions, Names(model))


def operators(stage: Stage) -> list[str]:
    return [node.op for node in stage.bound.graph.nodes]


def test_arithmetic_on_shapes_leaves_only_what_uses_it() -> None:
    stage = staged(
        """g (float[a, b] x) => (float[c] y)
        <int64[1] first = {0}, int64[1] minus = {-1}>
        { s = Shape(x)  n = Gather(s, first)  m = Add(n, n)  t = Concat<axis=0>(m, minus)
          u = Add(t, first)  r = Reshape(x, u)  y = Relu(r) }""",
        x=np.ones((2, 6), np.float32),
    )
    assert operators(stage) == ["reshape", "relu"]
    assert stage.guards == ()


def test_a_value_that_is_looked_at_is_a_guard_and_no_other_is() -> None:
    stage = staged(
        "g (float[a] x, int64[2] shape, int64[2] other) => (float[c, d] y) { r = Reshape(x, shape)  y = Neg(r) }",
        x=np.ones(6, np.float32),
        shape=np.array([2, 3]),
        other=np.array([1, 1]),
    )
    assert [path for path, _ in stage.guards] == [("shape",)]
    assert stage.inputs == (("x",),)


def test_what_is_computed_from_a_small_input_is_known_by_a_guard_on_that_input() -> None:
    stage = staged(
        """g (float[a] x, int64[2] half) => (float[c, d] y)
        { shape = Add(half, half)  r = Reshape(x, shape)  y = Neg(r) }""",
        x=np.ones(8, np.float32),
        half=np.array([1, 2]),
    )
    assert operators(stage) == ["reshape", "neg"]
    assert [path for path, _ in stage.guards] == [("half",)]


def test_a_node_whose_result_has_as_many_elements_as_its_values_say_ends_the_stage() -> None:
    stage = staged(
        "g (float[a] x) => (float[b] y) { r = Relu(x)  n = NonZero(r)  t = Neg(r)  u = Squeeze(n)  y = Gather(t, u) }",
        x=np.array([1, -1, 2], np.float32),
    )
    assert [hosted.work.node.op for hosted in stage.hosted] == ["NonZero"]
    assert [item.node.op for item in stage.rest] == ["Squeeze", "Gather"]
    assert operators(stage) == ["relu", "neg"]


def test_the_branch_that_is_taken_stands_in_place_of_if() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) { y = If (c) <
        then_branch = yes () => (float[2] a) { a = Relu(x) },
        else_branch = no () => (float[2] b) { t = Neg(x)  b = Neg(t) }> }"""
    x = np.ones(2, np.float32)
    assert operators(staged(text, x=x, c=np.array(True))) == ["relu"]
    assert operators(staged(text, x=x, c=np.array(False))) == ["neg", "neg"]


def test_a_condition_that_is_computed_ends_the_stage_and_guards_nothing() -> None:
    stage = staged(
        """g (float[2] x, float[1] limit) => (float[2] y) { t = ReduceMax<keepdims=0>(x)  l = Squeeze(limit)
        c = Less(t, l)
        y = If (c) <then_branch = yes () => (float[2] a) { a = Relu(x) },
                    else_branch = no () => (float[2] b) { b = Neg(x) }> }""",
        x=np.ones(2, np.float32),
        limit=np.ones(1, np.float32),
    )
    assert [item.node.op for item in stage.rest] == ["If"]
    assert stage.guards == ()


def test_a_few_steps_of_a_loop_stand_in_its_place() -> None:
    stage = staged(
        """g (float[2] x, int64 n, bool go) => (float[2] last, float[m, 2] all) { last, all = Loop (n, go, x) <
        body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u)
          { d = Identity(c)  t = Add(s, s)  u = Neg(t) }> }""",
        x=np.ones(2, np.float32),
        n=np.array(3),
        go=np.array(True),
    )
    assert operators(stage).count("add") == 3
    assert {path for path, _ in stage.guards} == {("n",), ("go",)}


def test_functions_are_put_in_place_with_the_attributes_of_their_caller() -> None:
    model = parsed(
        """g (float[2] x) => (float[2] y) { y = own.twice<slope=0.25>(x) }
        <domain: "own", opset_import: ["": 21]>
        twice <slope> (a) => (b) { t = LeakyRelu<alpha: float = @slope>(a)  b = LeakyRelu<alpha: float = @slope>(t) }"""
    )
    work = [Work(node, model.opsets) for node in model.graph.nodes]
    stage = specialise(work, {"x": np.ones(2, np.float32)}, {}, ["y"], model.functions, Names(model))
    assert operators(stage) == ["leaky_relu", "leaky_relu"]
    assert all(node.attribute("alpha") == 0.25 for node in stage.bound.graph.nodes)


def test_sequences_of_known_length_leave_nothing_in_the_graph() -> None:
    stage = staged(
        """g (float[2] a, float[2] b) => (float[2] y) <int64 last = {-1}>
        { s = SequenceConstruct(a, b)  t = SequenceInsert(s, a)  e = SequenceErase(t, last)  z = SequenceAt(e, last)
          y = Neg(z) }""",
        a=np.zeros(2, np.float32),
        b=np.ones(2, np.float32),
    )
    assert operators(stage) == ["neg"]
    assert stage.inputs == (("b",),)


def test_names_of_the_model_never_are_names_of_the_graph() -> None:
    stage = staged("g (float[2] x) => (float[2] y) { y = Relu(x) }", x=np.ones(2, np.float32))
    graph = stage.bound.graph
    assert {value.name for value in graph.inputs}.isdisjoint({"x", "y"}) and "y" not in graph.outputs
    assert stage.bound.shown(graph.outputs[0]) == "y"


def test_a_constant_too_large_to_make_while_building_is_left_to_the_run() -> None:
    text = "g () => (float[a, b] y) <int64[2] shape = {100000, 100000}> { c = ConstantOfShape(shape)  y = Neg(c) }"
    assert operators(staged(text))[-1] == "neg"


def test_a_window_larger_than_any_tensor_is_refused() -> None:
    with pytest.raises(LimitError, match="strides of"):
        staged(
            """g (float[1, 1, 4, 4] x) => (float[1, 1, a, b] y)
            { y = MaxPool<kernel_shape=[3, 3], strides=[9223372036854775807, 2]>(x) }""",
            x=np.ones((1, 1, 4, 4), np.float32),
        )


def test_a_random_operator_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="RandomNormal cannot be taken: it draws random numbers"):
        staged("g () => (float[2] y) { y = RandomNormal<shape=[2]>() }")


def test_a_sequence_read_outside_is_an_error_of_the_model() -> None:
    with pytest.raises(ModelError, match="place 5 is outside a sequence of 1"):
        staged(
            "g (float[2] x) => (float[2] y) <int64 at = {5}> { s = SequenceConstruct(x)  y = SequenceAt(s, at) }",
            x=np.ones(2, np.float32),
        )


def test_a_function_that_calls_itself_many_times_over_is_stopped() -> None:
    with pytest.raises((LimitError, ModelError)):
        staged(
            """g (float[2] x) => (float[2] y) { y = own.f(x) }
            <domain: "own", opset_import: ["": 21, "own": 1]>
            f (a) => (b) { t = own.f(a)  b = Neg(t) }""",
            x=np.ones(2, np.float32),
        )
