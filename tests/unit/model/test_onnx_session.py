"""Sessions: an ONNX model called with arrays, specialised again when types or guarded values change."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from dovetail.base.errors import CallError, LimitError
from dovetail.base.limits import ModelLimits
from dovetail.frontends.onnx.entries import HostValue
from dovetail.frontends.onnx.file import from_proto
from dovetail.ir.graph.bound import BoundGraph
from dovetail.model.onnx_session import Session, reference
from dovetail.model.onnx_stages import RunGraph

HEAD = '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 5]>'


class Counting:
    """Runs graphs by their meaning, and counts how many were made."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, bound: BoundGraph) -> RunGraph:
        self.made += 1
        return reference(bound)


def session(text: str, count: Counting | None = None, **settings: int) -> Session:
    return Session(from_proto(onnx.parser.parse_model(f"{HEAD}\n{text}")), count or reference, **settings)  # type: ignore[arg-type]


def called(text: str, **feeds: HostValue) -> dict[str, HostValue]:
    return session(text).run(feeds)


def test_new_shapes_are_specialised_once_each() -> None:
    count = Counting()
    model = session("g (float[n] x) => (float[n] y) { y = Add(x, x) }", count)
    for length in (3, 4, 3, 4, 3):
        x = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(model.run({"x": x})["y"], x + x)
    assert count.made == 2


def test_another_value_of_a_guarded_input_is_another_specialisation() -> None:
    count = Counting()
    model = session("g (float[6] x, int64[2] s) => (float[a, b] y) { r = Reshape(x, s)  y = Neg(r) }", count)
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, 2], [2, 3]):
        np.testing.assert_array_equal(model.run({"x": x, "s": np.array(shape)})["y"], -x.reshape(shape))
    assert count.made == 2


def test_a_guarded_array_that_is_changed_in_place_is_seen() -> None:
    model = session("g (float[6] x, int64[2] s) => (float[a, b] y) { r = Reshape(x, s)  y = Neg(r) }")
    x, shape = np.arange(6, dtype=np.float32), np.array([2, 3])
    model.run({"x": x, "s": shape})
    shape[:] = [3, 2]
    np.testing.assert_array_equal(model.run({"x": x, "s": shape})["y"], -x.reshape(3, 2))


def test_no_more_specialisations_are_kept_than_allowed() -> None:
    count = Counting()
    model = session("g (float[n] x) => (float[n] y) { y = Neg(x) }", count, most_stages=2)
    for length in (1, 2, 3, 1):
        model.run({"x": np.ones(length, np.float32)})
    assert count.made == 4


def test_stages_before_and_after_a_host_operator_meet() -> None:
    model = session(
        "g (float[n] x) => (float[m] y) { r = Relu(x)  n = NonZero(r)  u = Squeeze(n)  g = Gather(r, u)  y = Neg(g) }"
    )
    for x in ([1, -1, 2], [0, 0, 3], [1, 1, 1]):
        found = model.run({"x": np.array(x, np.float32)})["y"]
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found.reshape(-1), -np.array([v for v in x if v > 0], np.float32))
    assert [name for name, _ in model.report.host] == ["NonZero"]
    assert model.report.compiled["Relu"] >= 1


def test_a_condition_computed_from_large_data_takes_either_branch() -> None:
    text = """g (float[100] x) => (float[100] y) { m = ReduceMax<keepdims=0>(x)  z = Sub(m, m)  c = Less(z, m)
        y = If (c) <then_branch = yes () => (float[100] a) { a = Neg(x) },
                    else_branch = no () => (float[100] b) { b = Abs(x) }> }"""
    model = session(text)
    up, down = np.arange(100, dtype=np.float32), -np.arange(1, 101, dtype=np.float32)
    np.testing.assert_array_equal(model.run({"x": up})["y"], -up)
    np.testing.assert_array_equal(model.run({"x": down})["y"], -down)
    np.testing.assert_array_equal(model.run({"x": up})["y"], -up)


def test_a_loop_whose_end_is_computed_runs_on_the_host() -> None:
    text = """g (float[1] x) => (float[1] last, float[n, 1] all) <int64 most = {50}, bool go = {1}, float[1] end = {20}>
        { last, all = Loop (most, go, x) <
        body = step (int64 i, bool c, float[1] s) => (bool d, float[1] t, float[1] u)
          { t = Add(s, s)  u = Identity(t)  l = Less(t, end)  d = Squeeze(l) }> }"""
    model = session(text)
    found = model.run({"x": np.ones(1, np.float32)})
    np.testing.assert_array_equal(found["last"], np.array([32], np.float32))
    np.testing.assert_array_equal(found["all"], np.array([[2], [4], [8], [16], [32]], np.float32))
    assert [name for name, _ in model.report.host] == ["Loop"]


def test_a_loop_of_no_steps_gives_back_what_it_was_given() -> None:
    text = """g (float[2] x, int64 n) => (float[2] last, float[m, 2] all) <bool go = {1}>
        { last, all = Loop (n, go, x) < body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u)
          { d = Identity(c)  t = Add(s, s)  u = Neg(t) }> }"""
    found = called(text, x=np.ones(2, np.float32), n=np.array(0))
    np.testing.assert_array_equal(found["last"], np.ones(2, np.float32))
    assert isinstance(found["all"], np.ndarray) and found["all"].shape == (0, 2)


def test_a_scan_adds_up_what_it_sees_from_either_end() -> None:
    text = """g (float[2] s, float[n, 2] x) => (float[2] last, float[n, 2] sums)
        { last, sums = Scan <num_scan_inputs=1, scan_input_directions=[BACK],
        body = step (float[2] h, float[2] v) => (float[2] t, float[2] u) { t = Add(h, v)  u = Identity(t) }> (s, x) }"""
    for back in (0, 1):
        for steps in (3, 1000):
            x = np.arange(2 * steps, dtype=np.float32).reshape(steps, 2)
            model = session(text.replace("BACK", str(back)))
            found = model.run({"s": np.zeros(2, np.float32), "x": x})
            assert not model.report.host
            np.testing.assert_array_equal(found["sums"], np.cumsum(x[:: -1 if back else 1], 0))
            np.testing.assert_array_equal(found["last"], x.sum(0))


def test_many_steps_of_a_loop_become_one_scan() -> None:
    text = """g (float[2] x, float[2] w) => (float[2] last, float[m, 2] all) <int64 n = {400}, bool go = {1}>
        { last, all = Loop (n, go, x) < body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u)
          { d = Identity(c)  f = Cast<to=1>(i)  a = Add(s, f)  t = Add(a, w)  u = Neg(t) }> }"""
    model = session(text)
    found = model.run({"x": np.zeros(2, np.float32), "w": np.ones(2, np.float32)})
    sums = np.cumsum(np.arange(400) + 1).astype(np.float32)
    np.testing.assert_array_equal(found["last"], np.full(2, sums[-1], np.float32))
    np.testing.assert_array_equal(found["all"], -np.stack([sums, sums], 1))
    assert not model.report.host


def test_outputs_belong_to_the_caller() -> None:
    model = session(
        "g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> { y = Identity(x)  z = Identity(w) }"
    )
    x = np.ones(2, np.float32)
    for _ in range(2):
        found = model.run({"x": x})
        np.testing.assert_array_equal(found["z"], np.array([1, 2], np.float32))
        for value in found.values():
            assert isinstance(value, np.ndarray)
            value[...] = 7
    np.testing.assert_array_equal(x, np.ones(2, np.float32))


def test_strings_go_over_the_host() -> None:
    words = np.array(["a", "bc"], object)
    found = called("g (string[n] x) => (string[n] y) { y = StringConcat(x, x) }", x=words)["y"]
    assert isinstance(found, np.ndarray) and list(found) == ["aa", "bcbc"]


def test_sequences_come_in_and_go_out_as_lists() -> None:
    text = """g (seq(float[n]) s, float[n] x) => (seq(float[n]) t, int64 n)
        { t = SequenceInsert(s, x)  n = SequenceLength(t) }"""
    a, b = np.ones(2, np.float32), np.zeros(3, np.float32)
    found = called(text, s=[a], x=b)
    assert isinstance(found["t"], list) and len(found["t"]) == 2
    np.testing.assert_array_equal(found["t"][1], b)
    assert found["n"] == 2


def test_a_missing_input_is_named() -> None:
    with pytest.raises(CallError, match="input 'b' is missing"):
        called("g (float[2] a, float[2] b) => (float[2] y) { y = Add(a, b) }", a=np.ones(2, np.float32))


def test_an_input_the_model_does_not_have_is_named() -> None:
    with pytest.raises(CallError, match="no input 'z'"):
        called("g (float[2] a) => (float[2] y) { y = Neg(a) }", a=np.ones(2, np.float32), z=np.ones(2, np.float32))


def test_another_dtype_is_refused() -> None:
    with pytest.raises(CallError, match="input 'a' is of float32, not float64"):
        called("g (float[2] a) => (float[2] y) { y = Neg(a) }", a=np.ones(2))


def test_another_shape_is_refused() -> None:
    with pytest.raises(CallError, match=r"input 'a' has shape \[3, 1\], the model takes \[3\]"):
        called("g (float[3] a) => (float[3] y) { y = Neg(a) }", a=np.ones((3, 1), np.float32))


def test_a_result_larger_than_the_limits_is_named_before_it_is_made() -> None:
    text = """g (float[100] x, string[1] w) => (string[a, b] y)
        { n = NonZero(x)  s = Squeeze(n)  y = Expand(w, s) }"""
    model = from_proto(onnx.parser.parse_model(f"{HEAD}\n{text}"))
    tight = Session(model, reference, ModelLimits(tensor_bytes=1000))
    x = np.zeros(100, np.float32)
    x[[70, 90]] = 1
    with pytest.raises(LimitError, match="Expand would make a tensor"):
        tight.run({"x": x, "w": np.array(["a"], object)})


def test_an_initializer_that_is_an_input_may_be_given_or_not() -> None:
    model = session("g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }")
    x = np.array([3, 4], np.float32)
    np.testing.assert_array_equal(model.run({"x": x})["y"], np.array([3, 8], np.float32))
    np.testing.assert_array_equal(model.run({"x": x, "w": x})["y"], x * x)
